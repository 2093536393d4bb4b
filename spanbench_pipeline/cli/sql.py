"""``spanbench sql``: a query over the warehouse's views, printed."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline.cli import sql_output, terminal
from spanbench_pipeline.cli.commands import DONE, path_argument
from spanbench_pipeline.cli.places import command
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.home_state import HomeState, stored_corpora
from spanbench_pipeline.storage import disk
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.storage import views as duckdb_views

log = logging.getLogger("spanbench")
_AS_TEXT = re.compile(r"\b(BIT|BIGNUM|VARIANT|TIME WITH TIME ZONE)\b")
"""Types that Arrow has no value for, in a list or a struct as well: DuckDB itself writes them."""


def sql(
    project: Project,
    query: str,
    shape: str | None,
    output: str | None,
    *,
    safe: bool = False,
    allow_files: bool = False,
) -> None:
    """Run ``query`` on views over what exists now and write the result as ``shape``.

    Without a shape the ending of ``output`` says which, where it names one; else it is a table.
    Nothing but the files behind the views can be read, unless ``allow_files``. Raises InputError
    with DuckDB's own message where the query is wrong.
    """
    if output is not None:
        writing.require_file(output, "--output")
    if shape is None:
        ending = "" if output is None else Path(output).suffix.lower().removeprefix(".")
        shape = ending if ending in sql_output.WRITERS else "table"
    if safe and shape != "csv":
        raise InputError("sql: --safe-csv goes with --format csv")
    result = _answer(project, _views(project), query, shape, allow_files)
    try:
        content = (sql_output.safe_csv if safe else sql_output.WRITERS[shape])(result)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise InputError(
            f"SQL: the answer holds a value that {shape} cannot take ({error}); CAST it to VARCHAR"
        ) from error
    if output is not None:
        writing.write_to(output, content)
    elif shape == "table":  # for reading: in the terminal's encoding, with escapes where it must
        sys.stdout.write(content.decode())
    elif sys.stdout.isatty() and shape != "parquet":
        sys.stdout.write(terminal.visible(content.decode()))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _views(project: Project) -> Mapping[str, Sequence[Path]]:
    """Return the files of each table that a view reads; warn of what is stale or left out."""
    home = HomeState(project)
    experiments = home.index.experiments
    corpora = stored_corpora(project, experiments.files) if experiments else []
    index = home.index.of(corpora, shared=False)
    if index is None or index.views.left_out:
        return _views_of_graph(home)
    for corpus in corpora:
        _warn_of_stale(home, corpus)
    return index.views.files


def _views_of_graph(home: HomeState) -> Mapping[str, Sequence[Path]]:
    from spanbench_pipeline.pipeline.stages import views

    home.graph.warn_of_broken()
    for corpus in home.graph.experiments:
        _warn_of_stale(home, corpus)
    for said in views.left_out(home.project, home.graph.stages):
        log.warning("left out: %s", said)
    return views.files(home.project, home.graph.stages)


def _answer(
    project: Project,
    files: Mapping[str, Sequence[Path]],
    query: str,
    shape: str,
    allow_files: bool,
) -> pa.Table:
    import duckdb

    try:
        connection = duckdb_views.connect(files, allow_files=allow_files)
        statements = connection.extract_statements(query)
        if _kinds(statements) != [duckdb.StatementType.SELECT]:
            raise InputError("SQL: one SELECT and nothing else; the warehouse is only read")
        return _as_text(connection.sql(query), shape).to_arrow_table()
    except duckdb.PermissionException as error:
        hint = "" if allow_files else "; --allow-files lets it read other files of this machine"
        raise InputError(
            f"SQL: {str(error).splitlines()[0]}: a query reads the views alone{hint} "
            "(never the network)"
        ) from error
    except duckdb.Error as error:
        if disk.explain(error, project.home):
            raise
        said = str(error)
        if "INSTALL " in said:  # DuckDB's advice, which cannot be followed here
            said = f"{said.splitlines()[0]}: no extension is loaded, and the network never reached"
        raise InputError(f"SQL: {said}") from error


def _kinds(statements: list[Any]) -> list[Any]:
    """Return the type of each statement; None where DuckDB's own list of types lacks it."""
    kinds = []
    for statement in statements:
        try:
            kinds.append(statement.type)
        except ValueError:
            kinds.append(None)
    return kinds


def _as_text(relation: Any, shape: str) -> Any:
    """Return the relation with each column that Arrow cannot hold as text; Parquet gets what there
    is.
    """
    if shape == "parquet" or not any(_AS_TEXT.search(str(kind)) for kind in relation.types):
        return relation
    columns = [
        f'CAST(#{i} AS VARCHAR) AS "{name.replace(chr(34), 2 * chr(34))}"'
        if _AS_TEXT.search(str(kind))
        else f"#{i}"
        for i, (name, kind) in enumerate(zip(relation.columns, relation.types, strict=True), 1)
    ]
    return relation.project(", ".join(columns))


def _warn_of_stale(home: HomeState, corpus: str) -> None:
    """Warn where stored tables of a corpus are out of date; one never made does not count."""
    if not (home.project.parquet / corpus).is_dir():
        return
    state = home.state([corpus], shared=False)
    if stale := [key for key in state.stale if key in state.records]:
        log.warning(
            "%s: %d assets are out of date, and what is read of them may be old: %s status %s",
            corpus,
            len(stale),
            command(home.project),
            corpus,
        )


EXAMPLES = """\
  spanbench sql "SELECT corpus, config, state FROM configs"
  spanbench sql --file warehouse/sql/worst_clause_types.sql
  spanbench sql "SELECT * FROM chunks" --format parquet --output chunks.parquet"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench sql``."""
    parser.add_argument(
        "query", nargs="?", help="one SELECT; docs/architecture.md lists the tables"
    )
    parser.add_argument("--file", type=path_argument, help="read the query from a file")
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json", "parquet"),
        help="default: from the ending of --output (.csv, .json, .parquet), else table",
    )
    parser.add_argument("--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="with --format csv: protect texts that a spreadsheet would run as formulas",
    )
    parser.add_argument(
        "--allow-files",
        action="store_true",
        help="allow the query to read any local file (read_csv and similar), but not the "
        "network; without it, the views alone",
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench sql``; return the exit code."""
    if (parsed.query is None) == (parsed.file is None):
        raise InputError("sql: give a query or --file FILE, one of the two")
    query = parsed.query if parsed.file is None else _read(parsed.file)
    sql(
        project,
        query,
        parsed.format,
        parsed.output,
        safe=parsed.safe_csv,
        allow_files=parsed.allow_files,
    )
    return DONE


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # a byte order mark is no SQL
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
