"""kill -9 in the middle of anything: the next run completes, and nothing half-made is used."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline.storage import locks
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT, edit, names, run, stored

KILLED = -signal.SIGKILL
POINTS: list[list[Any]] = [
    ["produce", "small/documents"],
    ["write", "small/documents"],
    ["check", "small/chunks/clause"],
    ["record", "small/gold_spans"],
    ["write", "small/rankings/clause_bm25"],
    ["check", "small/query_metrics/naive_bm25"],
    ["record", "small/config_metrics"],
    ["report", 3],
    ["record", "small/reports"],
    ["views", ""],
    ["record", "warehouse"],
]


@contextmanager
def runs(project: Project) -> Iterator[Callable[[Any], int]]:
    """Runs the corpus in a process that is killed at a point; gives its exit code."""
    command = [sys.executable, "-m", "spanbench_pipeline_tests.end_to_end.killing"]
    with subprocess.Popen(
        [*command, str(project.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    ) as process:

        def run_killed(when: Any) -> int:
            process.stdin.write(json.dumps(when) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run_killed
        process.stdin.close()


def whole(project: Project) -> dict[str, bytes]:
    """Every file that a reader would take, each of them readable to its end."""
    found = {p: b for p, b in stored(project).items() if not Path(p).name.startswith(".")}
    for path in found:
        if path.endswith(".parquet"):
            pq.read_table(project.home / path, page_checksum_verification=True, partitioning=None)
    return found


def stale(project: Project) -> set[str]:
    with open_instance(project) as instance:
        stages = graphs.build(project).of(["small"])
        return {name(key) for key in Runner(project, instance, stages).stale()}


def under_way(project: Project) -> int:
    with open_instance(project) as instance:
        statuses = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED]
        return len(instance.get_runs(dg.RunsFilter(statuses=statuses)))


def leftovers(project: Project) -> list[str]:
    return [p.name for p in project.home.rglob(".*.tmp*") if "dagster" not in p.parts]


@pytest.mark.integration
def test_killed_at_every_point_of_the_way(finished: Project, tmp_path: Path):
    clean = stored(finished)
    shutil.copytree(finished.root, tmp_path / "p", ignore=shutil.ignore_patterns("warehouse"))
    project = Project(tmp_path / "p", tmp_path / "p" / "warehouse")
    with runs(project) as run_killed:
        for point in POINTS:
            assert run_killed(point) == KILLED, point
            assert under_way(project) == 1
            assert locks.holder(project.locks, "small") is None
            # What is in its place is what a clean run puts there, to the byte.
            assert {p: clean[p] for p in whole(project)} == whole(project), point
            asset = {"views": "warehouse", "report": "small/reports"}.get(point[0], point[1])
            assert asset in stale(project), point
        assert run_killed(None) == 0
    assert stored(project) == clean
    assert stale(project) == set()
    assert leftovers(project) == []
    assert under_way(project) == 0
    assert names(run(project)) == set()


@pytest.mark.integration
def test_killed_at_random_after_an_edit(ran: Project, tmp_path: Path):
    before = stored(ran)
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    clean = Project(ran.root, tmp_path / "clean")
    run(clean)
    after = stored(clean)
    assert before != after
    drawn = random.Random(7)
    with runs(ran) as run_killed:
        codes = []
        while len(codes) < 5 and 0 not in codes:
            codes.append(run_killed(drawn.uniform(0.05, 1.5)))
            assert codes[-1] in (KILLED, 0)
            for path, content in whole(ran).items():
                assert content in (before[path], after[path]), path
        assert KILLED in codes
        assert run_killed(None) == 0
    assert stored(ran) == after
    assert stale(ran) == set()
    assert leftovers(ran) == []


def test_a_file_that_was_not_recorded_is_no_ones_input(ran: Project):
    """Killed between the file and its record, then edited back: the old figures must not return.

    The file in place is the edit's, the record is the one before. Its users were made from the
    record's file, so they are fresh once that is back; and it must come back.
    """
    before = stored(ran)
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    with runs(ran) as run_killed:
        assert run_killed(["record", "small/chunks/clause"]) == KILLED
    assert stored(ran) != before
    edit(ran, "small", "max_chars = 150", "max_chars = 300")
    assert stale(ran) == {"small/chunks/clause"}
    assert names(run(ran)) == {"small/chunks/clause"}
    assert stored(ran) == before
