"""The two processes of the web UI, Dagster's web server behind our guard and Dagster's daemon.

Where one of the two ends, the other is stopped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Self

from spanbench_pipeline.cli.address import Address
from spanbench_pipeline.config.project import Project

LOOK_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long the two processes may take to end before they are killed."""
GROUP_SECONDS = 5.0
"""How long what they started may take, before it is told to end and before it is killed."""
DONE, DIED = 0, 3

Process = subprocess.Popen[bytes]


def commands(project: Project, address: Address) -> dict[str, list[str]]:
    """Return what to run as Python modules, by what each is called."""
    workspace = str(project.root / "workspace.yaml")
    web = ["spanbench_pipeline.pipeline.ui.webserver", "--workspace", workspace, *address.arguments]
    return {"the web server": web, "the daemon": ["dagster._daemon", "run", "-w", workspace]}


def keep(start: Callable[[], Mapping[str, Process]]) -> int:
    """Start processes and wait until SIGTERM, SIGINT or the end of one; return the exit code.

    All of them, and what they started, have ended when it returns.
    """
    with _Signals() as asked:
        processes = start()
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


def start(
    project: Project,
    command: list[str],
    environment: Mapping[str, str],
    inherited: tuple[int, ...] = (),
) -> Process:
    """Start one in a session of its own, so that Ctrl-C reaches the command line alone."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        env={
            **os.environ,
            "DAGSTER_HOME": str(project.dagster),
            "SPANBENCH_HOME": str(project.home),
            **environment,
        },
        cwd=project.root,
        start_new_session=True,
        pass_fds=inherited,
    )


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


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End both, and then what they started: code servers, and runs in progress.

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
    """Return whether no process of these groups is left, after waiting for it a while."""
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
