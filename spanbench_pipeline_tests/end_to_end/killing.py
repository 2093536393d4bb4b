"""A process that runs the corpus ``small`` again and again, in children that are killed.

``python -m spanbench_pipeline_tests.end_to_end.killing ROOT`` reads one JSON value a line and
answers each with the child's exit code:

- ``["produce", "small/documents"]``: killed when it begins to compute the asset;
- ``["write", "small/documents"]``: when the table is stored under its temporary name;
- ``["record", "small/documents"]``: when the file is in its place and nothing is recorded;
- ``["check", "small/documents"]``: when the asset is recorded and a check looks at it;
- ``["report", 3]``: when three files of the reports are written;
- ``["views", ""]``: when the DuckDB file is stored under its temporary name;
- ``0.5``: after so many seconds; ``null``: never.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline.storage import files, parquet


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(owner: Any, function: str, here: Callable[..., bool]) -> None:
    original = getattr(owner, function)

    def wrapped(*arguments: Any) -> Any:
        if here(*arguments):
            die()
        return original(*arguments)

    setattr(owner, function, wrapped)


def dies_after(owner: Any, function: str, here: Callable[..., bool]) -> None:
    original = getattr(owner, function)

    def wrapped(*arguments: Any) -> Any:
        made = original(*arguments)
        if here(*arguments):
            die()
        return made

    setattr(owner, function, wrapped)


def plant(project: Project, kind: str, where: Any) -> None:
    """Makes this process die at a point; nothing that code versions see is changed."""
    path = project.parquet / f"{where}.parquet"
    reports = iter(range(100))

    def one_too_many(target: Path, _: bytes) -> bool:
        return project.reports in target.parents and next(reports) == where

    if kind == "produce":
        dies_before(assets, "produce", lambda reader: name(reader.stage.key) == where)
    elif kind == "check":
        dies_before(assets, "_evaluated", lambda _, reader: name(reader.stage.key) == where)
    elif kind == "write":
        dies_before(Path, "replace", lambda _, target: target == path)
    elif kind == "views":
        dies_before(Path, "replace", lambda _, target: target == project.database)
    elif kind == "record":
        dies_after(parquet, "write", lambda target, *_: target == path)
    elif kind == "report":
        dies_before(files, "write_whole", one_too_many)


def child(project: Project, when: Any) -> None:
    if isinstance(when, float):
        threading.Timer(when, die).start()
    elif when is not None:
        plant(project, *when)
    graph = graphs.build(project)
    with open_instance(project) as instance:
        result = Runner(project, instance, graph.of(["small"])).run()
    os._exit(1 if result.failures or result.failed_checks or result.held else 0)


def main(root: Path) -> None:
    project = Project(root, root / "warehouse")
    for line in sys.stdin:
        process = os.fork()
        if not process:
            try:
                child(project, json.loads(line))
            finally:
                os._exit(2)
        status = os.waitpid(process, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
