"""Parquet files, one an asset, and the DuckDB views over them.

Parquet is the truth. A file is written under a temporary name and renamed, so a reader meets the
old table or the new one, never half of one. ``spanbench.duckdb`` holds views alone and can be
deleted at any time.
"""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import files as writing

MEASURED = "measured"
_STATE = b"spanbench.state"
_CONFINED = (
    "python_enable_replacements = false",
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "allow_community_extensions = false",
    "allow_persistent_secrets = false",
)
"""What no query of a person gets: other variables than views, and what reaches the network."""


@dataclass(frozen=True)
class Stored:
    """A table as read back, with the state it was stored under."""

    table: pa.Table
    state: str


@dataclass(frozen=True)
class Written:
    """What a write left: the file's sha256 and the table's state."""

    sha256: str
    state: str


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write(path: Path, name: str, table: pa.Table, state: str = MEASURED) -> Written:
    """Stores ``table`` as the declared table ``name``; atomic, and the same bytes every time.

    Only one process at a time may write ``path``; what one that was killed left of it is removed.
    """
    conformed = tables.conform(name, table).replace_schema_metadata({_STATE: state.encode()})
    writing.remove_leftovers(path)
    with writing.staged(path) as temporary:
        pq.write_table(conformed, temporary, compression="zstd", write_page_checksum=True)
        digest = file_sha256(temporary)
    return Written(digest, state)


def read(path: Path, name: str) -> Stored:
    """The declared table ``name`` from its file.

    Raises InputError where the file is missing, damaged, or of another schema.
    """
    if not path.is_file():
        raise InputError(f"{path}: this table is not there; spanbench run makes it")
    try:
        table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: the stored table is damaged ({str(error).splitlines()[0]}); "
            "spanbench run makes it anew"
        ) from error
    state = (table.schema.metadata or {}).get(_STATE, MEASURED.encode()).decode()
    wanted = tables.TABLES[name].schema
    table = table.replace_schema_metadata(None)
    if not table.schema.equals(wanted):
        raise InputError(f"{path}: not the columns of table {name}; spanbench run makes it anew")
    return Stored(table, state)


def has_columns(path: Path, name: str) -> bool:
    """Whether a file can be opened as the declared table ``name``; its rows are not read."""
    try:
        schema = pq.read_schema(path).remove_metadata()
    except (OSError, pa.ArrowException):
        return False
    return bool(schema.equals(tables.TABLES[name].schema))


def relative_path(key: Sequence[str]) -> str:
    """Where the table of an asset lies under ``parquet/``: ``corpus/stage/name.parquet``."""
    return "/".join(key) + ".parquet"


def view_statements(files: Mapping[str, Sequence[Path]]) -> list[str]:
    """One CREATE VIEW a declared table over its files; an empty view where it has none yet."""
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
    """A hash of what the views say, free of where the home lies."""
    below = {name: [path.relative_to(home) for path in paths] for name, paths in files.items()}
    text = "\n".join(view_statements(below))
    return hashlib.sha256(text.encode()).hexdigest()


def connect(files: Mapping[str, Sequence[Path]], *, allow_files: bool = False) -> Any:
    """A DuckDB connection in memory with the views over ``files``.

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
