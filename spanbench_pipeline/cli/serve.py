"""``spanbench serve``: web server and daemon that keep running, as one process to a supervisor.

Where one of the two ends, the other is stopped and serve ends with an error: whatever keeps serve
running (systemd, a container) starts both anew, and knows that something happened.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spanbench_pipeline.cli import processes
from spanbench_pipeline.cli.address import Address, add_address, address_of, checked
from spanbench_pipeline.cli.processes import commands as _commands
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring import channels
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import automation
from spanbench_pipeline.pipeline.dagster.code_location import check_definitions
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.storage import locks

_FORGETS = "spanbench forget"


def serve(project: Project, address: Address) -> int:
    """Run web server and daemon until SIGTERM or SIGINT; return the exit code.

    Raises InputError where operations.toml is wrong, the port is taken, or serve already runs on
    this home.
    """
    address = _checked(project, address)
    with only_one(project) as lock:
        with open_instance(project):
            pass  # writes dagster.yaml where it is missing

        def start() -> Mapping[str, processes.Process]:
            nightly = {automation.NIGHTLY_VARIABLE: "1"}
            started = {
                name: processes.start(project, command, nightly, (lock,))
                for name, command in _commands(project, address).items()
            }
            pids = {name: process.pid for name, process in started.items()}
            _note_holders(lock, {"serve": os.getpid(), **pids})
            sys.stderr.write(f"the web UI: {address.url}  (stop with Ctrl-C or SIGTERM)\n")
            return started

        return processes.keep(start)


def _checked(project: Project, address: Address) -> Address:
    """Refuse what would otherwise be found out at three in the morning."""
    settings = operations.load(project)
    for channel in channels.configured(settings.alerts):
        channels.open_channel(channel, settings.alerts, project.home)
    found = graphs.build(project, automation.dense_engine())
    if settings.nightly.corpora:
        job = automation.nightly_job(project, found, settings)
        automation.nightly_schedule(settings, job)
    automation.require_ticks()
    whole = checked(address, settings.web)
    # A broken experiment is told and not refused: the other corpora run, and the daemon sends an
    # alert for a nightly one.
    check_definitions(project)
    return whole


@contextmanager
def only_one(project: Project, *, forgetting: bool = False) -> Iterator[int]:
    """Hold the home's lock: two daemons on one state would run everything twice.

    ``forgetting``: it is ``spanbench forget`` that holds it, and who is refused is told so.

    Yields its descriptor for the two processes to inherit: where serve is killed and they live on,
    they hold it still.
    """
    project.home.mkdir(parents=True, exist_ok=True)
    with (project.home / "serve.lock").open("a+") as stream:
        try:
            locks.lock(stream, wait=False)
        except OSError as error:
            stream.seek(0)
            held = stream.read().strip() or "it has just begun"
            if held.startswith(_FORGETS):
                raise InputError(
                    f"{project.home}: at work there: {held}; try again once it has ended"
                ) from error
            raise InputError(
                f"spanbench serve already runs on {project.home} ({held}); stop it, or where it "
                "was killed, end with kill those of these processes that live on"
            ) from error
        stream.truncate(0)
        if forgetting:
            stream.write(f"{_FORGETS}, process {os.getpid()}")
            stream.flush()
        yield stream.fileno()


def _note_holders(lock: int, processes: Mapping[str, int]) -> None:
    """Write into the lock's file who holds it, for whoever is refused."""
    os.write(lock, ", ".join(f"{name}: process {pid}" for name, pid in processes.items()).encode())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench serve``."""
    add_address(parser)


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench serve``; return the exit code."""
    return serve(project, address_of(parsed))
