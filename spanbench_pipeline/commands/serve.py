"""``spanbench serve``: web server and daemon that keep running, as one process to a supervisor.

Where one of the two ends, the other is stopped and serve ends with an error: whatever keeps serve
running (systemd, a container) starts both anew, and knows that something happened.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Self

from spanbench_pipeline import alerts, automation, operations
from spanbench_pipeline.assets import graph as graphs
from spanbench_pipeline.assets.instance import open_instance
from spanbench_pipeline.code_location import check_definitions
from spanbench_pipeline.commands.address import require_free
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.project import Project

LOOK_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long the two processes may take to end before they are killed."""
GROUP_SECONDS = 5.0
"""How long what they started may take, before it is told to end and before it is killed."""
DONE, DIED = 0, 3


def serve(project: Project, host: str, port: int) -> int:
    """Runs web server and daemon until SIGTERM or SIGINT; returns the exit code.

    Raises InputError where operations.toml is wrong, the port is taken, or serve already runs on
    this home.
    """
    _check(project, host, port)
    with _only_one(project) as lock, _Signals() as asked:
        with open_instance(project):
            pass  # writes dagster.yaml where it is missing
        commands = _commands(project, host, port)
        processes = {name: _start(project, c, lock) for name, c in commands.items()}
        _note_holders(lock, {"serve": os.getpid(), **{n: p.pid for n, p in processes.items()}})
        sys.stderr.write(f"the web UI: http://{host}:{port}  (stop with Ctrl-C or SIGTERM)\n")
        ended: list[str] = []
        try:
            while not asked.stop and not ended:
                time.sleep(LOOK_SECONDS)
                ended = [name for name, p in processes.items() if p.poll() is not None]
        finally:
            _stop(list(processes.values()))
        if asked.stop:
            return DONE
        for name in ended:
            code = processes[name].returncode
            sys.stderr.write(f"spanbench: {name} ended (code {code}); stopped the rest\n")
        return DIED


def _check(project: Project, host: str, port: int) -> None:
    """Refuses what would otherwise be found out at three in the morning."""
    settings = operations.load(project)
    alerts.file_path(settings.alerts, project.home)
    found = graphs.build(project, automation.dense_engine())
    if settings.nightly.corpora:
        job = automation.nightly_job(project, found, settings)
        automation.nightly_schedule(settings, job)
    automation.require_ticks()
    require_free(host, port)
    # A broken experiment is told and not refused: the other corpora run, and the daemon sends an
    # alert for a nightly one.
    check_definitions(project)


@contextmanager
def _only_one(project: Project) -> Iterator[int]:
    """Holds the home's lock: two daemons on one state would run everything twice.

    Yields its descriptor for the two processes to inherit: where serve is killed and they live on,
    they hold it still.
    """
    import fcntl

    project.home.mkdir(parents=True, exist_ok=True)
    with (project.home / "serve.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            stream.seek(0)
            held = stream.read().strip() or "it has just begun"
            raise InputError(
                f"spanbench serve already runs on {project.home} ({held}); stop it, or where it "
                "was killed, end with kill those of these processes that live on"
            ) from error
        stream.truncate(0)
        yield stream.fileno()


def _note_holders(lock: int, processes: Mapping[str, int]) -> None:
    """Writes into the lock's file who holds it, for whoever is refused."""
    os.write(lock, ", ".join(f"{name}: process {pid}" for name, pid in processes.items()).encode())


class _Signals:
    """Notes that the process was asked to stop, as long as it is entered."""

    def __init__(self) -> None:
        self.stop = False

    def __enter__(self) -> Self:
        self._before = {n: signal.signal(n, self._note) for n in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.stop = True


def _commands(project: Project, host: str, port: int) -> dict[str, list[str]]:
    workspace = ["-w", str(project.root / "workspace.yaml")]
    web = ["dagster_webserver", *workspace, "-h", host, "-p", str(port)]
    return {"the web server": web, "the daemon": ["dagster._daemon", "run", *workspace]}


def _start(project: Project, command: list[str], lock: int) -> subprocess.Popen[bytes]:
    """Starts one in a session of its own, so that Ctrl-C reaches serve alone."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        env={
            **os.environ,
            "DAGSTER_HOME": str(project.dagster),
            "SPANBENCH_HOME": str(project.home),
            automation.NIGHTLY_VARIABLE: "1",
        },
        cwd=project.root,
        start_new_session=True,
        pass_fds=(lock,),
    )


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ends both, and then what they started: code servers, and runs in progress.

    A run that is cut off leaves nothing half-written; what it did not finish is still stale.
    """
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    groups = [process.pid for process in processes]
    if not _gone(groups):  # code servers end by themselves, unless they have a run
        _signal(groups, signal.SIGTERM)
        if not _gone(groups):
            _signal(groups, signal.SIGKILL)


def _gone(groups: list[int]) -> bool:
    """Whether no process of these groups is left, after waiting for it a while."""
    deadline = time.monotonic() + GROUP_SECONDS
    while time.monotonic() < deadline:
        if not any(_lives(group) for group in groups):
            return True
        time.sleep(0.1)
    return False


def _signal(groups: list[int], number: signal.Signals) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            continue


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
