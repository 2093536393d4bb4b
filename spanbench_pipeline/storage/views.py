"""The DuckDB views over stored tables, and a connection on which a query can reach nothing else.

``spanbench.duckdb`` holds views alone and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core import tables

_CONFINED = (
    "python_enable_replacements = false",
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "allow_community_extensions = false",
    "allow_persistent_secrets = false",
)
"""What no query of a person gets: other variables than views, and what reaches the network."""


def view_statements(files: Mapping[str, Sequence[Path]]) -> list[str]:
    """Return one CREATE VIEW a declared table over its files; an empty view where it has none
    yet.
    """
    statements = []
    shown = {name: spec for name, spec in sorted(tables.TABLES.items()) if spec.has_view}
    for name, spec in shown.items():
        paths = sorted(files.get(name, ()))
        columns = ", ".join(f'"{c.name}"' for c in spec.columns)
        if paths:
            listed = ", ".join(map(_quoted, paths))
            body = f"SELECT {columns} FROM read_parquet([{listed}], hive_partitioning = false)"
        else:
            typed = ", ".join(
                f'CAST(NULL AS {_sql_type(c.type)}) AS "{c.name}"' for c in spec.columns
            )
            body = f"SELECT {typed} WHERE false"
        statements.append(f'CREATE OR REPLACE VIEW "{name}" AS {body}')
        statements.append(f'COMMENT ON VIEW "{name}" IS {_quoted(spec.description)}')
    return statements


def views_digest(files: Mapping[str, Sequence[Path]], home: Path) -> str:
    """Return a hash of what the views say, free of where the home lies."""
    below = {name: [path.relative_to(home) for path in paths] for name, paths in files.items()}
    text = "\n".join(view_statements(below))
    return hashlib.sha256(text.encode()).hexdigest()


def connect(files: Mapping[str, Sequence[Path]], *, allow_files: bool = False) -> Any:
    """Return a DuckDB connection in memory with the views over ``files``.

    A query on it reaches those files and nothing else, or with ``allow_files`` every file that this
    process can read; no network, no extension, no variable of Python, and no setting changes that.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    for statement in view_statements(files):
        connection.execute(statement)
    behind = sorted({str(path) for paths in files.values() for path in paths})
    connection.execute(f"SET allowed_paths = [{', '.join(map(_quoted, behind))}]")
    # Private: a name that others could foresee in a shared folder may be theirs already.
    spill = tempfile.TemporaryDirectory(prefix="spanbench-sql-")
    weakref.finalize(connection, spill.cleanup)
    connection.execute(f"SET temp_directory = {_quoted(spill.name)}")
    for setting in _CONFINED:
        connection.execute(f"SET {setting}")
    if not allow_files:
        connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _quoted(text: str | Path) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _sql_type(kind: pa.DataType) -> str:
    """DuckDB's name for an Arrow type that tables use."""
    if pa.types.is_map(kind):
        return f"MAP({_sql_type(kind.key_type)}, {_sql_type(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP WITH TIME ZONE"
    names = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "float": "FLOAT"}
    return names.get(str(kind), str(kind).upper())
