"""The deployment as it runs: web server and daemon, alerts on all channels, a schedule, sensors.

One ``spanbench serve`` runs for all of it. What goes wrong is planted in a chunker of the test's
own, which a file tells what to do: that is read in whatever process the run happens to be.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import serve
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, CHECKOUT, write_corpus
from spanbench_pipeline_tests.support import sinks
from spanbench_pipeline_tests.support.sinks import MailSink, WebhookSink

PATIENCE_SECONDS = 240
"""How long anything may take before the test fails: the machine may be busy."""
PLANTED = '''
"""One piece a document, unless the plant says otherwise."""
import os, pathlib
from spanbench_pipeline.checks import invariants

TILES = True
OVERLAPS = False
PLANT = pathlib.Path(os.environ["SPANBENCH_TEST_PLANT"])
sound = invariants.wrong_chunk_ids

def wrong_chunk_ids(chunks):
    mine = "planted" in set(chunks["chunker"].to_pylist())
    if mine and PLANT.read_text() == "check":
        return [{"chunk_id": "alpha:planted:0", "why": "planted fault"}]
    return sound(chunks)

invariants.wrong_chunk_ids = wrong_chunk_ids

def chunk(text: str, *, pieces: int = 1) -> list[tuple[int, int]]:
    if PLANT.read_text() == "raise":
        raise RuntimeError("planted: the chunker broke")
    size = -(-len(text) // pieces)
    return [(at, min(at + size, len(text))) for at in range(0, len(text), size)]
'''
EXPERIMENT = """
[[configurations]]
name = "planted + bm25"
chunker = "planted"
retriever = "bm25"
"""
SETTINGS = """
[nightly]
corpora = ["small"]
cron = "{minute} {hour} * * *"
[alerts]
link = "http://127.0.0.1:{port}"
[alerts.email]
host = "127.0.0.1"
port = {mail}
sender = "spanbench@example.com"
recipients = ["team@example.com"]
[alerts.webhook]
url_env = "SPANBENCH_TEST_WEBHOOK"
[web]
allow_hosts = ["bench.example"]
"""


@dataclass
class Served:
    """A home that is served, what its alerts arrive at, and the file that plants faults."""

    process: subprocess.Popen[bytes]
    project: Project
    port: int
    mail: MailSink
    hook: WebhookSink
    plant: Path
    environment: dict[str, str]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Waits for ``holds``; fails where serve ended or patience did."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert self.process.poll() is None, "serve ended"
            assert time.monotonic() < deadline, f"still not: {what}; {self.arrived()}"
            time.sleep(0.3)

    def runs(self, *, job: str = "", done: bool = True) -> list[dg.DagsterRun]:
        with open_instance(self.project) as instance:
            found = instance.get_runs()
        return [r for r in found if (not job or r.job_name == job) and (r.is_finished or not done)]

    def arrived(self) -> list[list[str]]:
        """The titles of the alerts on each channel."""
        path = self.project.home / "alerts.jsonl"
        written = path.read_text().splitlines() if path.exists() else []
        return [
            [json.loads(line)["title"] for line in written],
            [m["Subject"].removeprefix("[spanbench] ") for m in self.mail.messages],
            [p["text"].splitlines()[0].removeprefix("spanbench: ") for p in self.hook.posts],
        ]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "spanbench_pipeline.cli.main", *arguments],
            env=self.environment,
            cwd=self.project.root,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def ticks(self, sensor: str) -> list[str]:
        """What a sensor said when it requested nothing, latest first."""
        query = """query ($s: SensorSelector!) {
          sensorOrError(sensorSelector: $s) { ... on Sensor { sensorState { ticks(limit: 5) {
            status skipReason } } } } }"""
        selector = {
            "sensorName": sensor,
            "repositoryName": "__repository__",
            "repositoryLocationName": "spanbench",
        }
        answer = self.graphql(query, {"s": selector})
        ticks = answer["sensorOrError"]["sensorState"]["ticks"]
        return [tick["skipReason"] or tick["status"] for tick in ticks]

    def is_fresh(self) -> bool:
        return self.ticks("keep_fresh")[0].endswith("assets are up to date")

    def graphql(self, query: str, variables: dict) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("serve")
    root, home, port = folder / "checkout", folder / "home", sinks.free_port()
    # A checkout without the experiments of this one: every process loads them all.
    shutil.copytree(CHECKOUT / "spanbench_pipeline", root / "spanbench_pipeline")
    shutil.copy(CHECKOUT / "workspace.yaml", root)
    (folder / "code" / "plants").mkdir(parents=True)
    (folder / "code" / "plants" / "cutter.py").write_text(PLANTED)
    (folder / "plant").write_text("check")
    write_corpus(folder / "given")
    (home / "experiments").mkdir(parents=True)
    text = BM25_ONLY.format(
        corpus="small",
        documents=folder / "given" / "docs",
        queries=folder / "given" / "queries.jsonl",
    )
    planted = '[chunkers]\nplanted = { strategy = "plants.cutter", pieces = 1 }\n'
    text = text.replace("[chunkers]\n", planted) + EXPERIMENT
    (home / "experiments" / "small.toml").write_text(text)
    soon = datetime.now(UTC) + timedelta(seconds=80)  # whole minutes: in 21 to 80 seconds
    with sinks.running(MailSink()) as mail, sinks.running(WebhookSink()) as hook:
        settings = SETTINGS.format(minute=soon.minute, hour=soon.hour, port=port, mail=mail.port)
        (home / "operations.toml").write_text(settings)
        environment = {
            **os.environ,
            "SPANBENCH_HOME": str(home),
            "SPANBENCH_TICK_SECONDS": "3",
            "SPANBENCH_TEST_PLANT": str(folder / "plant"),
            "SPANBENCH_TEST_WEBHOOK": hook.url,
            "PYTHONPATH": os.pathsep.join([str(root), str(folder / "code")]),
        }
        with (folder / "serve.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "spanbench_pipeline.cli.main", "serve", "--port", str(port)],
                env=environment,
                cwd=root,
                stdout=log,
                stderr=log,
            )
        project = Project(root, home)
        try:
            yield Served(process, project, port, mail, hook, folder / "plant", environment)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


@pytest.mark.integration
def test_a_planted_check_and_a_failing_run_arrive_once_on_every_channel(served: Served):
    check = "small/chunks/planted: check chunk_ids_unique failed (ERROR)"
    served.until("the alert", lambda: served.arrived() == 3 * [[check]])
    # The sensor's run, the nightly run and the command line's each fail by it.
    assert served.command("run", "small").returncode == 1
    served.until("the schedule's run", lambda: len(served.runs(job="nightly_run")) == 1)
    served.until("it holds", lambda: "nothing has changed" in served.ticks("keep_fresh")[0])
    served.until("all is told", lambda: served.ticks("check_alerts")[0] == "no run has ended")
    assert served.arrived() == 3 * [[check]]
    [line] = (served.project.home / "alerts.jsonl").read_text().splitlines()
    told = json.loads(line)
    text = html.unescape(served.hook.posts[0]["text"])
    assert served.mail.messages[0].get_content().splitlines() == text.splitlines()
    for part in (
        "corpus small, asset small/chunks/planted, check chunk_ids_unique",
        "| alpha:planted:0 | planted fault |",
        f"run: http://127.0.0.1:{served.port}/runs/{told['run_id']}",
    ):
        assert part in text
    assert told["run_id"] in {run.run_id for run in served.runs()}

    served.plant.write_text("raise")
    error = "small/chunks/planted: RuntimeError (ERROR)"
    for _ in range(2):
        assert served.command("run", "small").returncode == 3
        served.until("the second alert", lambda: served.arrived() == 3 * [[check, error]])
    served.until("all is told", lambda: served.ticks("run_failure_alerts")[0] == "no run has ended")
    assert served.arrived() == 3 * [[check, error]]
    assert "planted: the chunker broke" in served.hook.posts[1]["text"]


@pytest.mark.integration
def test_the_sensor_runs_wave_after_wave_and_then_nothing(served: Served):
    served.plant.write_text("")
    path = served.project.registered / "small.toml"
    path.write_text(path.read_text().replace("pieces = 1", "pieces = 2"))
    served.until("fresh", served.is_fresh)
    before = len(served.runs(job="run_small", done=False))
    path.write_text('baseline = "clause + bm25"\n' + path.read_text())
    served.until("stale", lambda: len(served.runs(job="run_small", done=False)) > before)
    served.until("fresh", served.is_fresh)
    waves = len(served.runs(job="run_small", done=False)) - before
    assert waves == 2  # the reports, and then the warehouse, which reads them
    time.sleep(7)  # two more looks
    assert len(served.runs(job="run_small", done=False)) == before + waves
    status = served.command("status", "small")
    assert "up to date" in status.stdout
    assert len(served.runs(job="nightly_run")) == 1
    # Nothing new went wrong on the way.
    assert [len(titles) for titles in served.arrived()] == [2, 2, 2]


@pytest.mark.integration
def test_the_web_server_answers_to_its_own_hosts_and_pages_alone(served: Served):
    own = f"127.0.0.1:{served.port}"
    query = json.dumps({"query": "{ version }"}).encode()
    json_kind = {"Content-Type": "application/json"}

    def status(path: str, data: bytes | None = None, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://{own}{path}", data, json_kind | named)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert status("/server_info") == 200
    assert status("/server_info", Host="evil.example") == 421
    assert status("/server_info", Host=f"bench.example:{served.port}") == 200  # operations.toml
    assert status("/graphql", query) == 200
    assert status("/graphql", query, Origin=f"http://{own}") == 200
    assert status("/graphql", query, Origin="http://127.0.0.1:1") == 403
    assert status("/graphql", query, Content_Type="text/plain") == 415
    assert status("/graphql?query=%7Bversion%7D") == 405
    assert status("/report_asset_materialization/small/documents", b"{}") == 403


@pytest.mark.integration
def test_a_second_serve_on_the_home_is_refused(served: Served):
    other = served.command("serve", "--port", str(sinks.free_port()))
    assert other.returncode == 2
    assert "already runs" in other.stderr
    assert f"serve: process {served.process.pid}, the web server: process " in other.stderr
    same = served.command("serve", "--port", str(served.port))
    assert same.returncode == 2
    assert "cannot be served" in same.stderr


@pytest.mark.integration
def test_a_termination_ends_everything_that_was_started(served: Served):
    home = str(served.project.home)
    assert len(_processes_of(home)) > 2
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(60) == 0
    assert _processes_of(home) == []


def _processes_of(home: str) -> list[str]:
    """The processes whose environment names a home."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"SPANBENCH_HOME={home}\0".encode() in path.read_bytes():
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


@pytest.mark.integration
def test_where_one_process_ends_the_other_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    port = sinks.free_port()
    commands = {
        "the web server": ["http.server", str(port), "--bind", "127.0.0.1"],
        "the daemon": ["platform"],
    }
    monkeypatch.setattr(serve, "_commands", lambda *_: commands)
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["--home", str(tmp_path), "serve", "--port", str(port)]) == 3
    assert "the daemon ended (code 0); stopped the rest" in capsys.readouterr().err
    assert _processes_of(str(tmp_path)) == []
    assert signal.getsignal(signal.SIGTERM) is before


def _wait_for_the_lock(project: Project) -> None:
    """A killed process holds its lock until the kernel has ended it, which is not at once."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with serve.only_one(project):
                return
        except InputError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.integration
def test_what_outlives_a_killed_serve_keeps_a_second_one_out(tmp_path: Path):
    port, other = sinks.free_port(), sinks.free_port()
    waits = ["timeit", "-n1", "-r1", "-s", "import time", "time.sleep(120)"]
    code = f"""
import sys
from spanbench_pipeline.cli import main as cli, serve
from spanbench_pipeline.pipeline.dagster import code_location
serve._commands = lambda *_: {{"the web server": {waits}, "the daemon": {waits}}}
sys.exit(cli.main(["--home", {str(tmp_path)!r}, "serve", "--port", sys.argv[1]]))
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(port)])
    lock = tmp_path / "serve.lock"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (lock.exists() and lock.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    held = lock.read_text()
    pids = [int(part.rpartition(" ")[2]) for part in held.split(", ")]
    try:
        assert pids[0] == process.pid
        process.kill()
        process.wait()
        second = [sys.executable, "-c", code, str(other)]
        for left in (pids[1:], pids[2:]):  # both live on, and then one of them
            refused = subprocess.run(second, capture_output=True, text=True, timeout=120)
            assert refused.returncode == 2
            assert held in refused.stderr
            assert "kill" in refused.stderr
            os.kill(left[0], signal.SIGKILL)
    finally:
        for pid in pids[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    _wait_for_the_lock(Project(CHECKOUT, tmp_path))
