"""Schedule and sensors as the daemon calls them, on real runs in a project of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import dagster as dg
import pytest

from spanbench_pipeline import chunkers
from spanbench_pipeline.checks import consistency
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import assets, automation, run_events
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.stage import Check
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline_tests.end_to_end.conftest import edit

SETTINGS = """
[nightly]
corpora = ["small"]
cron = "30 2 * * *"
timezone = "Europe/Prague"
[alerts]
link = "http://ui.example/"
"""


@pytest.fixture
def project(small: Project) -> Project:
    small.home.mkdir(parents=True, exist_ok=True)
    (small.home / "operations.toml").write_text(SETTINGS)
    return small


@pytest.fixture
def instance(project: Project) -> Iterator[dg.DagsterInstance]:
    with open_instance(project) as opened:
        yield opened


class Operated:
    """A project with its definitions loaded, and the sensors' cursors."""

    def __init__(self, project: Project, instance: dg.DagsterInstance) -> None:
        self.project = project
        self.instance = instance
        self.automatic = automation.build(project, graphs.build(project))
        self.sensors = {sensor.name: sensor for sensor in self.automatic.sensors}
        self.cursors: dict[str, str | None] = {}

    def load(self) -> dg.Definitions:
        """The definitions as they are now: a run's process loads them anew."""
        graph = graphs.build(self.project)
        return dg.Definitions(
            assets=assets.definitions(graph.stages, self.project),
            jobs=automation.build(self.project, graph).jobs,
            resources=assets.resources(graph.stages, self.project),
            executor=dg.in_process_executor,
        )

    def tick(self, name: str) -> tuple[list[dg.RunRequest], str]:
        """One tick: the runs requested, and why none was."""
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursors.get(name), sensor_name=name
        )
        done = self.sensors[name].evaluate_tick(context)
        self.cursors[name] = done.cursor
        return list(done.run_requests or ()), done.skip_message or ""

    def tell(self) -> list[dict]:
        """A tick of both alert sensors; all alerts so far."""
        self.tick("check_alerts")
        self.tick("run_failure_alerts")
        path = self.project.home / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def launch(self, request: dg.RunRequest) -> set[str]:
        """Does what the daemon does with a request; the assets that were made."""
        done = (
            self.load()
            .resolve_job_def(request.job_name)
            .execute_in_process(
                instance=self.instance,
                asset_selection=request.asset_selection,
                tags=request.tags,
                run_config=request.run_config,
                raise_on_error=False,
            )
        )
        return {
            name(tuple(e.asset_key.path))
            for e in done.filter_events(lambda e: e.is_step_materialization)
        }


@pytest.fixture
def operated(project: Project, instance: dg.DagsterInstance) -> Operated:
    return Operated(project, instance)


def run(project: Project, instance: dg.DagsterInstance) -> Result:
    return Runner(project, instance, graphs.build(project).of(["small"])).run()


def boom(*_: object) -> None:
    raise RuntimeError("planted: the chunker broke")


def test_a_failing_check_is_one_alert_over_retries_and_restarts(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
):
    project, instance = operated.project, operated.instance
    rows = [{"query_id": f"q{i}", "rank": i} for i in range(7)]
    with monkeypatch.context() as patched:
        patched.setattr(consistency, "unlike_candidates", lambda *_: rows)
        for _ in range(2):
            run(project, instance)
            told = operated.tell()
        operated.cursors.clear()  # a daemon that has lost its memory
        assert operated.tell() == told
        assert sorted((a["asset"], a["error"]) for a in told) == [
            ("small/rankings/clause_bm25", ""),
            ("small/rankings/naive_bm25", ""),
        ]
        first = told[0]
        assert first["corpus"] == "small"
        assert first["severity"] == "ERROR"
        run_id = first["run_id"]
        assert first["link"] == f"http://ui.example/runs/{run_id}"
        assert instance.get_run_by_id(run_id) is not None
        stage = next(s for s in graphs.build(project).stages if name(s.key) == first["asset"])
        check = next(c for c in stage.all_checks if c.name == first["check"])
        assert check.description in first["details"].partition("\n")[0]
        assert "offending_rows: 7" in first["details"]
        assert "| q0 | 0 |" in first["details"]
        assert "| q6 | 6 |" not in first["details"]
    # Mended in between: the same fault may be told again.
    run(project, instance)
    assert operated.tell() == told
    (project.parquet / "small" / "rankings" / "naive_bm25.parquet").unlink()
    monkeypatch.setattr(consistency, "unlike_candidates", lambda *_: rows)
    run(project, instance)
    again = operated.tell()[len(told) :]
    assert [a["asset"] for a in again] == ["small/rankings/naive_bm25"]
    assert again[0]["fault"] in {a["fault"] for a in told}
    # Other inputs are another fault.
    edit(project, "small", "step = 150", "step = 140")
    run(project, instance)
    [other] = operated.tell()[len(told) + 1 :]
    assert other["asset"] == "small/rankings/naive_bm25"
    assert other["fault"] != again[0]["fault"]


def test_a_failing_check_that_fails_no_run_is_an_alert(operated: Operated):
    project, instance = operated.project, operated.instance
    odd = Check("odd", "Nothing is odd.", lambda _: [{"what": "planted"}], blocking=False)
    stages = [
        replace(stage, checks=(*stage.checks, odd)) if stage.key[-1] == "documents" else stage
        for stage in graphs.build(project).of(["small"])
    ]
    result = Runner(project, instance, stages).run()
    assert not result.failed_checks
    [told] = operated.tell()
    assert (told["asset"], told["check"], told["severity"]) == ("small/documents", "odd", "WARN")
    assert "| planted |" in told["details"]
    assert instance.get_run_by_id(told["run_id"]).status == dg.DagsterRunStatus.SUCCESS


def test_a_failing_run_is_one_alert_an_asset_over_retries(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
):
    project, instance = operated.project, operated.instance
    with monkeypatch.context() as patched:
        patched.setattr(chunkers, "chunk_documents", boom)
        for _ in range(2):
            assert run(project, instance).failures
            told = operated.tell()
    assert {(a["asset"], a["error"], a["details"]) for a in told} == {
        (f"small/chunks/{c}", "RuntimeError", "planted: the chunker broke")
        for c in ("naive", "clause")
    }
    assert len(told) == 2
    assert not run(project, instance).failures
    (project.parquet / "small" / "chunks" / "naive.parquet").unlink()
    monkeypatch.setattr(chunkers, "chunk_documents", boom)
    run(project, instance)
    assert [a["asset"] for a in operated.tell()[2:]] == ["small/chunks/naive"]


def test_runs_beyond_one_tick_are_told_by_the_next(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_events, "AT_ONCE", 2)
    monkeypatch.setattr(chunkers, "chunk_documents", boom)
    for _ in range(3):
        run(operated.project, operated.instance)
    assert operated.tick("check_alerts")[1] == "2 runs ended, 0 faults in them"
    ended = []
    while (said := operated.tick("run_failure_alerts")[1]) != "no run has ended":
        ended.append(said.partition(",")[0])
    assert ended == ["2 runs ended", "1 runs ended"]
    assert len(operated.tell()) == 2


KILLED = """
import pathlib, sys, time
from spanbench_pipeline import chunkers
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner

def hang(*_):
    print("there", flush=True)
    time.sleep(600)

chunkers.chunk_documents = hang
project = Project(*map(pathlib.Path, sys.argv[1:]))
with open_instance(project) as instance:
    Runner(project, instance, graphs.build(project).of(["small"])).run()
"""


def test_a_killed_run_is_buried_told_once_and_does_not_block(operated: Operated):
    project, instance = operated.project, operated.instance
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(project.root), str(project.home)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        # It is alive: nobody buries it, and nothing starts beside it.
        assert run_events.bury_dead_runs(instance) == []
        requests, why = operated.tick("keep_fresh")
        assert requests == []
        assert why.startswith("small: at work in ")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    told = operated.tell()
    assert [(a["corpus"], a["asset"], a["error"]) for a in told] == [("small", "", "run failed")]
    assert "process is gone" in told[0]["details"]
    assert operated.tell() == told
    [request], _ = operated.tick("keep_fresh")
    assert "small/chunks/naive" in operated.launch(request)


def test_keep_fresh_runs_wave_after_wave_and_then_nothing(operated: Operated):
    def until_quiet() -> list[set[str]]:
        waves = []
        for _ in range(20):
            requests, why = operated.tick("keep_fresh")
            if not requests:
                assert why.endswith("assets are up to date")
                return waves
            [request] = requests
            assert request.job_name == "run_small"
            waves.append(operated.launch(request))
        raise AssertionError("requests without end")

    run(operated.project, operated.instance)
    assert until_quiet() == []
    edit(operated.project, "small", 'corpus = "small"', 'corpus = "small"\ndescription = "new"')
    assert until_quiet() == [{"small/reports"}, {"warehouse"}]


def test_keep_fresh_holds_what_failed_and_says_so(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patched:
        patched.setattr(chunkers, "chunk_documents", boom)
        [request], _ = operated.tick("keep_fresh")
        operated.launch(request)
        requests, why = operated.tick("keep_fresh")
        assert requests == []
        assert "nothing has changed since" in why
        assert "small/chunks/naive" in why
        assert len(operated.tell()) == 2
    # The code as it was read is the same: it stays held, until something changes.
    assert operated.tick("keep_fresh")[0] == []
    edit(operated.project, "small", "step = 150", "step = 140")
    [request], _ = operated.tick("keep_fresh")
    assert "small/chunks/naive" in operated.launch(request)


def test_the_schedule_ticks_and_its_run_consists_of_waves(operated: Operated):
    [schedule] = operated.automatic.schedules
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 2 * * *", "Europe/Prague")
    tick = schedule.evaluate_tick(dg.build_schedule_context(instance=operated.instance))
    assert len(tick.run_requests) == 1
    job = operated.load().resolve_job_def("nightly_run")
    done = job.execute_in_process(instance=operated.instance)
    assert done.success
    waves = operated.instance.get_runs(dg.RunsFilter(tags={run_events.NIGHTLY_TAG: done.run_id}))
    assert [run.status for run in waves] == [dg.DagsterRunStatus.SUCCESS]
    assert operated.tick("keep_fresh")[0] == []
    again = job.execute_in_process(instance=operated.instance)
    assert not operated.instance.get_runs(
        dg.RunsFilter(tags={run_events.NIGHTLY_TAG: again.run_id})
    )


def test_a_nightly_run_that_fails_is_an_alert_of_the_asset_alone(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chunkers, "chunk_documents", boom)
    job = operated.load().resolve_job_def("nightly_run")
    for _ in range(2):
        assert not job.execute_in_process(instance=operated.instance, raise_on_error=False).success
        told = operated.tell()
    assert sorted(a["asset"] for a in told) == ["small/chunks/clause", "small/chunks/naive"]


def test_a_corpus_that_broke_since_is_an_alert_of_the_nightly_run(operated: Operated):
    job = operated.load().resolve_job_def("nightly_run")
    edit(operated.project, "small", "size = 200", "sise = 200")
    assert not job.execute_in_process(instance=operated.instance, raise_on_error=False).success
    # Once, whoever finds it first, and however often.
    for _ in range(2):
        requests, why = operated.tick("keep_fresh")
        assert (requests, "broken experiment" in why) == ([], True)
    [told] = operated.tell()
    assert told["corpus"] == "small"
    assert told["title"] == "broken_experiments/small: nothing of this corpus runs (ERROR)"
    assert "unknown key 'sise'" in told["details"]
    edit(operated.project, "small", "sise = 200", "size = 200")
    operated.tick("keep_fresh")
    edit(operated.project, "small", "size = 200", "sise = 200")
    operated.tick("keep_fresh")
    assert len(operated.tell()) == 2  # it was well in between


def test_a_corpus_that_is_broken_or_gone_is_an_alert_of_the_freshness_sensor(
    project: Project, instance: dg.DagsterInstance
):
    """Even where no experiment is left that could be used."""
    path = project.root / "data" / "experiments" / "small.toml"
    edit(project, "small", "size = 200", "sise = 200")
    operated = Operated(project, instance)
    operated.tick("keep_fresh")
    path.unlink()
    operated.tick("keep_fresh")
    assert [told["details"].split(":")[1] for told in operated.tell()] == [
        " broken experiment",
        " no experiment for this corpus",
    ]


def test_wrong_operations_leave_out_the_schedule_and_nothing_else(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    graph = graphs.build(project)
    for wrong, problem in (
        ('cron = "99 2 * * *"', "nightly"),
        ('corpora = ["smal"]', "did you mean 'small'"),
        ('cronn = "x"', "did you mean 'cron'"),
    ):
        (project.home / "operations.toml").write_text(f'[nightly]\ncorpora = ["small"]\n{wrong}\n')
        if wrong.startswith("corpora"):
            (project.home / "operations.toml").write_text(f"[nightly]\n{wrong}\n")
        found = automation.build(project, graph)
        assert found.schedules == []
        assert {job.name for job in found.jobs} == {"run_small", "run_everything"}
        with pytest.raises(InputError, match=problem):
            _nightly(project)


def _nightly(project: Project) -> None:
    settings = operations.load(project)
    job = automation.nightly_job(project, graphs.build(project), settings)
    automation.nightly_schedule(settings, job)


@pytest.mark.parametrize(("value", "running"), [("1", True), ("", False), (None, False)])
def test_what_runs_from_the_start(
    project: Project, monkeypatch: pytest.MonkeyPatch, value: str | None, running: bool
):
    monkeypatch.delenv(automation.NIGHTLY_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(automation.NIGHTLY_VARIABLE, value)
    found = automation.build(project, graphs.build(project))
    states = [s.default_status.value for s in (*found.schedules, *found.sensors)]
    assert states == 4 * ["RUNNING" if running else "STOPPED"]


def test_no_nightly_corpora_mean_no_schedule_and_no_requests(
    make_project: Callable[..., Project], small: Project, instance: dg.DagsterInstance
):
    (small.home / "operations.toml").unlink()
    operated = Operated(small, instance)
    assert operated.automatic.schedules == []
    assert operated.tick("keep_fresh") == ([], "no corpora under [nightly] in operations.toml")
