"""Stored results are read with their state; a snapshot refuses what is in doubt or replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.results import ResultsStore

METRIC = {"corpus": "c", "query_id": "q", "metric": "mrr", "k": None, "value": 0.5}
KEYS = [("c", "query_metrics", "a"), ("c", "query_metrics", "b")]


def write(project: Project, config: str, state: str = parquet.MEASURED) -> None:
    rows = [METRIC | {"config": config}]
    table = tables.from_rows("query_metrics", rows if state == parquet.MEASURED else [])
    path = project.parquet / "c" / "query_metrics" / f"{config}.parquet"
    parquet.write(path, "query_metrics", table, state)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, tmp_path / "home")
    write(project, "a")
    write(project, "b", "not measured: no weights")
    return project


def test_tables_are_read_by_the_names_of_their_assets(project: Project) -> None:
    store = ResultsStore(project, "c")
    assert store.has("query_metrics", "a")
    assert not store.has("query_metrics", "other")
    assert store.table("query_metrics", "a").to_pylist() == [METRIC | {"config": "a"}]
    assert store.stored("query_metrics", "b").state == "not measured: no weights"
    assert store.all("query_metrics", ["a", "b"]).num_rows == 1
    with pytest.raises(InputError, match="tune: not measured: no weights"):
        store.measured("query_metrics", "b", action="tune: ")
    with pytest.raises(InputError, match=r"chunks/x\.parquet"):
        store.table("chunks", "x")


def test_a_stage_may_have_a_table_of_another_name(project: Project) -> None:
    rows = [{"corpus": "c", "file": "client.md", "sha256": "0" * 64, "baseline": "a"}]
    table = tables.from_rows("report_files", rows)
    parquet.write(project.parquet / "c" / "reports.parquet", "report_files", table)
    assert ResultsStore(project, "c").table("reports").equals(table)


def test_states_of_configurations(project: Project) -> None:
    rows = [
        {c.name: None for c in tables.TABLES["configs"].columns}
        | {"corpus": "c", "config": config, "chunker": "n", "retriever": "bm25", "state": state}
        | {"doc_scope": True, "metadata_filters": False}
        for config, state in (("a", "measured"), ("b", "not measured: no weights"))
    ]
    path = project.parquet / "c" / "configs.parquet"
    parquet.write(path, "configs", tables.from_rows("configs", rows))
    expected = {"a": "measured", "b": "not measured: no weights"}
    assert ResultsStore(project, "c").states == expected


def test_a_snapshot_refuses_what_is_in_doubt_and_names_five(project: Project) -> None:
    asked = []

    def doubts(keys: object) -> list[str]:
        asked.append(keys)
        return [f"c/x{i}: stale" for i in range(7)]

    store = ResultsStore(project, "c", doubts, "spanbench --home h")
    with pytest.raises(InputError) as refused:
        store.snapshot(KEYS, "export")
    lines = str(refused.value).splitlines()
    assert "spanbench --home h run c" in lines[0]
    assert lines[1:] == [*(f"  c/x{i}: stale" for i in range(5)), "  and 2 more"]
    assert asked == [KEYS]


@pytest.mark.parametrize("replaced", ["a", "b", "other", None])
def test_a_snapshot_notices_what_is_replaced(project: Project, replaced: str | None) -> None:
    snapshot = ResultsStore(project, "c").snapshot(KEYS, "export")
    if replaced:
        write(project, replaced)
    if replaced in ("a", "b"):
        with pytest.raises(InputError, match="export again"):
            snapshot.require_unchanged()
    else:
        snapshot.require_unchanged()


def test_a_snapshot_notices_a_table_that_is_gone(project: Project) -> None:
    store = ResultsStore(project, "c")
    snapshot = store.snapshot(KEYS, "export")
    store.path("query_metrics", "a").unlink()
    with pytest.raises(InputError, match="export again"):
        snapshot.require_unchanged()
