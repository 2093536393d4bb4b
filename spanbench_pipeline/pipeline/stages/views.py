"""warehouse: the DuckDB file with a view a table, over whatever exists."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline.stage import Outcome, Reader, Stage
from spanbench_pipeline.pipeline.stages import history
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.pipeline.state import WAREHOUSE
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage import views as duckdb_views

KEY = WAREHOUSE


def stage(stages: Sequence[Stage]) -> Stage:
    """Return the one stage that all corpora share."""
    return Stage(
        key=KEY,
        table="warehouse_views",
        description="spanbench.duckdb: one view a table, over the Parquet files of all corpora.",
        compute=lambda reader: _compute(reader, stages),
        deps=_last(stages),
        modules=("spanbench_pipeline.storage.views",),
        kinds=("duckdb",),
        partial=True,
        damage=partial(_damage, stages),
    )


def _last(stages: Sequence[Stage]) -> tuple[Key, ...]:
    """Return the assets that no other reads: behind them lies everything, and the graph stays
    legible.

    Views read their files when they are asked, so nothing else need be known of an asset but that
    it was made.
    """
    read = {dep for s in stages for dep in s.deps}
    return tuple(s.key for s in stages if s.key not in read)


def files(project: Project, stages: Sequence[Stage]) -> dict[str, list[Path]]:
    """Return declared table -> the files of it that are defined now, exist and can be opened.

    One file that cannot be would stop every view of every corpus; ``left_out`` names it.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for s in stages:
        if s.key != KEY and (sound := [p for p in _existing(project, s) if _opens(s, p)]):
            found[s.table] += sound
    return dict(found)


def left_out(project: Project, stages: Sequence[Stage]) -> list[str]:
    """Return what is said of each file that exists and no view reads."""
    said = [
        f"{path}: damaged, or not the columns of table {s.table}; its figures are left out: "
        f"spanbench run {s.corpus} computes it again"
        for s in stages
        if s.key != KEY
        for path in _existing(project, s)
        if not _opens(s, path)
    ]
    for s in stages:
        if s.table == history.TABLE:
            said += history.left_out(s.corpus, project)
    return said


def _existing(project: Project, s: Stage) -> list[Path]:
    return s.view_files(project) if tables.TABLES[s.table].has_view else []


def _opens(s: Stage, path: Path) -> bool:
    return parquet.has_columns(path, s.table)


def _compute(reader: Reader, stages: Sequence[Stage]) -> Outcome:
    project = reader.project
    existing = files(project, stages)
    writing.remove_leftovers(project.database)
    with (
        writing.staged(project.database) as temporary,
        duckdb.connect(str(temporary)) as connection,
    ):
        for statement in duckdb_views.view_statements(existing):
            connection.execute(statement)
        made = _definitions(connection, project)
    rows = [
        {"view": name, "n_files": len(existing.get(name, ())), "definition": made.get(name)}
        for name in tables.TABLES
    ]
    return Outcome(
        tables.from_rows("warehouse_views", rows),
        data_version=duckdb_views.views_digest(existing, project.home),
        warnings=tuple(left_out(project, stages)),
    )


def _definitions(connection: Any, project: Project) -> dict[str, str]:
    """Return each view with the sha256 of its SQL as DuckDB holds it, free of where the home
    lies.
    """
    home = str(project.home).replace("'", "''") + "/"
    return {
        view: hashlib.sha256(sql.replace(home, "").encode()).hexdigest()
        for view, sql in _views(connection)
    }


def _views(connection: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = connection.execute(
        "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    return found


def _damage(stages: Sequence[Stage], project: Project, listed: pa.Table) -> str:
    """Return what is wrong with the DuckDB file; empty where its views read this home's files.

    A file that was copied with its home still reads the other home's tables. That an asset's own
    file is there is that asset's matter; of the several that another may have, it is this one's.
    """
    if not project.database.is_file():
        return "spanbench.duckdb is gone"
    try:
        with duckdb.connect(str(project.database), read_only=True) as connection:
            found = dict(_views(connection))
            made = _definitions(connection, project)
    except duckdb.Error:
        return "spanbench.duckdb cannot be read"
    below = str(project.home).replace("'", "''") + "/"
    if any("read_parquet" in sql and below not in sql for sql in found.values()):
        return "spanbench.duckdb reads the files of another home"
    noted = {row["view"]: row for row in listed.to_pylist()}
    wrong = {view for view, row in noted.items() if made.get(view) != row["definition"]}
    if wrong:
        return f"the view {min(wrong)} is not the one that was made"
    wrong = set(_that_read_others(stages, project, found))
    return f"the view {min(wrong)} reads other files than there are" if wrong else ""


def _that_read_others(
    stages: Sequence[Stage], project: Project, found: Mapping[str, str]
) -> Iterator[str]:
    """Yield the views that do not read a file that they should, or read one of several that is
    gone.
    """
    several = {s.table for s in stages if s.shown is not None}
    for table, paths in files(project, stages).items():
        named = found.get(table, "")
        if not all(_quoted(path) in named for path in paths):
            yield table
    for table in several:
        sound = files(project, [s for s in stages if s.table == table]).get(table, [])
        if found.get(table, "").count(".parquet'") != len(sound):
            yield table


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
