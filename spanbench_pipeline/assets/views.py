"""warehouse: the DuckDB file with a view a table, over whatever exists."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
from dagster_duckdb import DuckDBResource

from spanbench_pipeline import tables, warehouse
from spanbench_pipeline.assets.stage import Outcome, Reader, Stage
from spanbench_pipeline.freshness import Key
from spanbench_pipeline.project import Project

KEY = ("warehouse",)


def stage(stages: Sequence[Stage]) -> Stage:
    """The one stage that all corpora share."""
    return Stage(
        key=KEY,
        table="warehouse_views",
        description="spanbench.duckdb: one view a table, over the Parquet files of all corpora.",
        compute=lambda reader: _compute(reader, stages),
        deps=_last(stages),
        modules=("spanbench_pipeline.warehouse",),
        kinds=("duckdb",),
        partial=True,
        damage=partial(_damage, stages),
    )


def _last(stages: Sequence[Stage]) -> tuple[Key, ...]:
    """The assets that no other reads: behind them lies everything, and the graph stays legible.

    Views read their files when they are asked, so nothing else need be known of an asset but that
    it was made.
    """
    read = {dep for s in stages for dep in s.deps}
    return tuple(s.key for s in stages if s.key not in read)


def files(project: Project, stages: Sequence[Stage]) -> dict[str, list[Path]]:
    """Declared table -> the files of it that are defined now and exist."""
    found: dict[str, list[Path]] = defaultdict(list)
    for s in stages:
        if s.key != KEY and (existing := s.view_files(project)):
            found[s.table] += existing
    return dict(found)


def _compute(reader: Reader, stages: Sequence[Stage]) -> Outcome:
    project = reader.project
    existing = files(project, stages)
    temporary = project.database.with_name(f".{project.database.name}.{os.getpid()}.tmp")
    warehouse.remove_leftovers(project.database)
    try:
        with DuckDBResource(database=str(temporary)).get_connection() as connection:
            for statement in warehouse.view_statements(existing):
                connection.execute(statement)
        temporary.replace(project.database)
    finally:
        temporary.unlink(missing_ok=True)
    rows = [{"view": name, "n_files": len(existing.get(name, ()))} for name in tables.TABLES]
    return Outcome(
        tables.from_rows("warehouse_views", rows),
        data_version=warehouse.views_digest(existing, project.home),
    )


def _damage(stages: Sequence[Stage], project: Project, listed: pa.Table) -> str:
    """What is wrong with the DuckDB file; empty where its views read this home's files.

    A file that was copied with its home still reads the other home's tables. That an asset's own
    file is there is that asset's matter; of the several that another may have, it is this one's.
    """
    if not project.database.is_file():
        return "spanbench.duckdb is gone"
    try:
        with duckdb.connect(str(project.database), read_only=True) as connection:
            found = connection.execute(
                "SELECT sql FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
    except duckdb.Error:
        return "spanbench.duckdb cannot be read"
    below = str(project.home).replace("'", "''") + "/"
    if any("read_parquet" in sql and below not in sql for (sql,) in found):
        return "spanbench.duckdb reads the files of another home"
    counts = dict(zip(listed["view"].to_pylist(), listed["n_files"].to_pylist(), strict=True))
    several = [s for s in stages if s.shown is not None]
    existing = files(project, several)
    wrong = {s.table for s in several if len(existing.get(s.table, ())) != counts.get(s.table)}
    return f"the view {min(wrong)} reads other files than there are" if wrong else ""
