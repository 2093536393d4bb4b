"""Parquet files, one an asset, written whole and read with a check of their columns.

A file is written under a temporary name and renamed, so a reader meets the old table or the new
one, never half of one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import Code, InputError
from spanbench_pipeline.storage import files as writing

MEASURED = "measured"
_STATE = b"spanbench.state"
_COMPUTE_AGAIN = "spanbench run computes it again"


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
    """Return sha256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write(path: Path, name: str, table: pa.Table, state: str = MEASURED) -> Written:
    """Store ``table`` as the declared table ``name``; atomic, and the same bytes every time.

    Only one process at a time may write ``path``; what one that was killed left of it is removed.
    """
    conformed = tables.conform(name, table).replace_schema_metadata({_STATE: state.encode()})
    writing.remove_leftovers(path)
    with writing.staged(path) as temporary:
        pq.write_table(conformed, temporary, compression="zstd", write_page_checksum=True)
        digest = file_sha256(temporary)
    return Written(digest, state)


def read(path: Path, name: str) -> Stored:
    """Return the declared table ``name`` from its file.

    Raises InputError where the file is missing, damaged, or of another schema.
    """
    if not path.is_file():
        raise InputError(f"{path}: this table is not there; spanbench run makes it")
    try:
        table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"the stored table is damaged ({str(error).splitlines()[0]})",
            code=Code.MISMATCH,
            place=path,
            hint=_COMPUTE_AGAIN,
        ) from error
    state = (table.schema.metadata or {}).get(_STATE, MEASURED.encode()).decode()
    wanted = tables.TABLES[name].schema
    table = table.replace_schema_metadata(None)
    if not table.schema.equals(wanted):
        raise InputError(
            f"not the columns of table {name}",
            code=Code.MISMATCH,
            place=path,
            hint=_COMPUTE_AGAIN,
        )
    return Stored(table, state)


def has_columns(path: Path, name: str) -> bool:
    """Return whether a file can be opened as the declared table ``name``; its rows are not read."""
    try:
        schema = pq.read_schema(path).remove_metadata()
    except (OSError, pa.ArrowException):
        return False
    return bool(schema.equals(tables.TABLES[name].schema))


def relative_path(key: Sequence[str]) -> str:
    """Return where the table of an asset lies under ``parquet/``: ``corpus/stage/name.parquet``."""
    return "/".join(key) + ".parquet"
