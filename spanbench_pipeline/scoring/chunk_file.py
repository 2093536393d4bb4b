"""A table of chunks from a file: every piece that the retriever behind a ranking could return."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline import tables
from spanbench_pipeline.corpora import strict_json
from spanbench_pipeline.corpora.strict_json import kind
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.exchange import columns, fields
from spanbench_pipeline.exchange.ids import closest
from spanbench_pipeline.scoring.places import outside

GIVEN = "given"
"""The chunker's name in the tables where the chunks come from a file."""

_PARQUET = {
    "chunk_id": columns.TEXT,
    "doc_id": columns.TEXT,
    "start_char": columns.WHOLE,
    "end_char": columns.WHOLE,
}
Row = tuple[str, str, str, int, int]
"""where it stands, chunk id, document, start, end"""


def read(path: Path, documents: pa.Table, *, corpus: str) -> pa.Table:
    """The table ``chunks`` of a file: JSON lines or Parquet, chunk numbers by place.

    A line is ``{"chunk_id", "doc_id", "start", "end"}``, ``start_char`` and ``end_char`` as well;
    other keys are left alone. Parquet has the columns of ``chunks``. Raises InputError naming file,
    line and chunk for an id given twice, two chunks of one place, an unknown document, and offsets
    that are not in its text.
    """
    rows = _parquet(path) if path.suffix == ".parquet" else _lines(path)
    if not rows:
        raise InputError(f"{path}: it holds no chunks")
    n_chars = dict(
        zip(documents["doc_id"].to_pylist(), documents["n_chars"].to_pylist(), strict=True)
    )
    ids: dict[str, str] = {}
    places: dict[tuple[str, int, int], str] = {}
    for where, chunk_id, doc_id, start, end in rows:
        at = f"{where}, chunk {chunk_id}"
        if doc_id not in n_chars:
            raise InputError(f"{at}: unknown document {doc_id!r}{closest(doc_id, n_chars)}")
        if problem := outside(start, end, n_chars[doc_id], doc_id):
            raise InputError(f"{at}: {problem}")
        if chunk_id in ids:
            raise InputError(f"{at}: the id is given twice, first in {ids[chunk_id]}")
        if (doc_id, start, end) in places:
            twin = places[doc_id, start, end]
            raise InputError(
                f"{at}: chunk {twin} is the same place; a place must be one chunk, or no ranking "
                "says which it holds"
            )
        ids[chunk_id], places[doc_id, start, end] = where, chunk_id
    return _table(places, corpus)


def _table(places: dict[tuple[str, int, int], str], corpus: str) -> pa.Table:
    numbers: dict[str, int] = {}
    rows = []
    for doc_id, start, end in sorted(places):
        number = numbers[doc_id] = numbers.get(doc_id, -1) + 1
        rows.append(
            {
                "corpus": corpus,
                "chunker": GIVEN,
                "chunk_id": places[doc_id, start, end],
                "doc_id": doc_id,
                "chunk_no": number,
                "start_char": start,
                "end_char": end,
            }
        )
    return tables.from_rows("chunks", rows)


def _lines(path: Path) -> list[Row]:
    text = strict_json.decode(read_bytes(path), str(path)).removeprefix(strict_json.BOM)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t\r"):
            continue
        where = f"{path} line {number}"
        value = strict_json.parse(line, where)
        if not isinstance(value, dict):
            raise InputError(f"{where}: a chunk must be an object, not {kind(value)}")
        chunk_id, doc_id = (fields.required(value, key, where) for key in ("chunk_id", "doc_id"))
        start, end = (_offset(value, key, where) for key in ("start", "end"))
        rows.append((where, chunk_id, doc_id, start, end))
    return rows


def _offset(value: Mapping[str, Any], key: str, where: str) -> int:
    found = fields.offset(value, key, where)
    if found is None:
        raise InputError(f"{where}: key {key!r} is missing")
    return found


def _parquet(path: Path) -> list[Row]:
    table = columns.read(path, "a chunk", _PARQUET)
    return [(f"{path} row {n}", *row.values()) for n, row in enumerate(table.to_pylist(), 1)]


def read_bytes(path: Path) -> bytes:
    """A file's bytes; InputError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
