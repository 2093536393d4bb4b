"""Connections that stay open, over the databases that Dagster itself would read and write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.dagster.instance import open_instance

KEY = dg.AssetKey(["a", "b"])


@dg.asset(key=KEY)
def made() -> None:
    """Make nothing."""


def materialize(instance: dg.DagsterInstance) -> str:
    """Materialize the asset; return the run's id."""
    result = dg.materialize([made], instance=instance)
    assert result.success
    return result.run_id


def recorded_runs(instance: dg.DagsterInstance) -> list[str]:
    records = instance.fetch_materializations(KEY, limit=100).records
    return [record.run_id for record in records]


def test_few_connections_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    real = sqlite3.dbapi2.connect

    def connect(database: str, *given: object, **named: object) -> sqlite3.Connection:
        opened.append(str(database))
        return real(database, *given, **named)  # type: ignore[call-overload,no-any-return]

    with open_instance(Project(tmp_path, tmp_path)) as instance:
        materialize(instance)
        monkeypatch.setattr(sqlite3.dbapi2, "connect", connect)
        first = materialize(instance)
        second = materialize(instance)
    # A run has a database of its own; that of all runs, and the list of runs, are open already.
    assert {first, second} <= {Path(path).stem for path in opened}
    assert len(opened) < 10  # over 100 where each event opens one


def test_dagster_reads_what_was_written_and_goes_on(tmp_path: Path):
    project = Project(tmp_path, tmp_path)
    with open_instance(project) as instance:
        first = materialize(instance)
    with dg.DagsterInstance.from_config(str(project.dagster)) as instance:
        assert recorded_runs(instance) == [first]
        second = materialize(instance)
    with open_instance(project) as instance:
        assert recorded_runs(instance) == [second, first]
        assert {run.run_id for run in instance.get_runs()} == {first, second}
        logged = [e.dagster_event_type for e in instance.all_logs(second) if e.is_dagster_event]
    assert dg.DagsterEventType.ASSET_MATERIALIZATION in logged


def test_a_closed_instance_leaves_no_journal(tmp_path: Path):
    project = Project(tmp_path, tmp_path)
    with open_instance(project) as instance:
        materialize(instance)
        assert list(project.dagster.rglob("*.db-wal"))
    assert list(project.dagster.rglob("*.db-wal")) == []
