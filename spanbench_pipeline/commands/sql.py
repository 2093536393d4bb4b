"""``spanbench sql``: a query over the warehouse's views, printed."""

from __future__ import annotations

import json
import logging
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline import terminal, warehouse
from spanbench_pipeline.assets import graph as graphs
from spanbench_pipeline.assets import views
from spanbench_pipeline.assets.graph import Graph
from spanbench_pipeline.assets.instance import open_instance
from spanbench_pipeline.assets.run import Runner
from spanbench_pipeline.commands.results import command
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.project import Project

log = logging.getLogger("spanbench")
_NUMBERS = ("int", "uint", "float", "double", "decimal", "halffloat")


def sql(project: Project, query: str, shape: str, output: Path | None) -> None:
    """Runs ``query`` on views over what exists now and writes the result as ``shape``.

    Raises InputError with DuckDB's own message where the query is wrong.
    """
    import duckdb

    graph = graphs.build(project)
    graph.warn_of_broken()
    _warn_of_stale(project, graph)
    for said in views.left_out(project, graph.stages):
        log.warning("left out: %s", said)
    try:
        connection = warehouse.connect(views.files(project, graph.stages))
        statements = connection.extract_statements(query)
        if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
            raise InputError("SQL: one SELECT and nothing else; the warehouse is only read")
        result = connection.sql(query).to_arrow_table()
    except duckdb.Error as error:
        raise InputError(f"SQL: {error}") from error
    try:
        content = _WRITERS[shape](result)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise InputError(
            f"SQL: the answer holds a value that {shape} cannot take ({error}); CAST it to VARCHAR"
        ) from error
    if output is not None:
        warehouse.write_bytes(output, content)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _warn_of_stale(project: Project, graph: Graph) -> None:
    """Says on stderr of which corpora figures are out of date, or stand below a failed check."""
    if not project.dagster.is_dir():
        return
    with open_instance(project) as instance:
        for corpus in graph.experiments:
            runner = Runner(project, instance, [s for s in graph.stages if s.corpus == corpus])
            stale = runner.stale() if runner.records() else {}
            if stale:
                log.warning(
                    "%s: %d assets are out of date, and what is read of them may be old: "
                    "%s status %s",
                    corpus,
                    len(stale),
                    command(project),
                    corpus,
                )


def _table(result: Any) -> bytes:
    right = [i for i, f in enumerate(result.schema) if str(f.type).startswith(_NUMBERS)]
    rows = [[_text(v) for v in row.values()] for row in _rows(result)]
    return (terminal.table(_distinct(result.column_names), rows, right) + "\n").encode()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        plain = 1e-4 <= abs(value) < 1e15
        return f"{value:.6f}".rstrip("0").rstrip(".") if plain else f"{value:.6g}"
    if isinstance(value, dict | list):
        return json.dumps(_finite(value), ensure_ascii=False, default=str)
    return str(value).replace("\r", " ").replace("\n", " ")


def _json(result: Any) -> bytes:
    text = json.dumps(
        [{k: _finite(v) for k, v in row.items()} for row in _rows(result)],
        ensure_ascii=False,
        default=str,
        allow_nan=False,
        indent=1,
    )
    return (text + "\n").encode()


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are written as text, never as null.

    A whole decimal, which DuckDB makes of every sum of integers, is a whole number.
    """
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return {str(k): _finite(v) for k, v in value.items()} if isinstance(value, dict) else value


def _rows(result: Any) -> list[dict[str, Any]]:
    """Rows as dictionaries, maps as dictionaries too; equal column names get a number."""
    names = _distinct(result.column_names)
    renamed = result.rename_columns(names)
    return [
        {
            k: dict(v) if _is_map(renamed.schema.field(k)) and v is not None else v
            for k, v in r.items()
        }
        for r in renamed.to_pylist()
    ]


def _is_map(field: Any) -> bool:
    return str(field.type).startswith("map<")


def _distinct(names: list[str]) -> list[str]:
    """The names, each but the first of equal ones with the next number that is free."""
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found or (free != name and free in names):
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found


def _csv(result: Any) -> bytes:
    import csv
    import io

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    rows = _rows(result)
    writer.writerow(_distinct(result.column_names))
    for row in rows:
        writer.writerow(
            [
                json.dumps(_finite(v), ensure_ascii=False, default=str)
                if isinstance(v, dict | list)
                else v
                for v in row.values()
            ]
        )
    return stream.getvalue().encode()


def _parquet(result: Any) -> bytes:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(result.rename_columns(_distinct(result.column_names)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


_WRITERS = {"table": _table, "csv": _csv, "json": _json, "parquet": _parquet}
