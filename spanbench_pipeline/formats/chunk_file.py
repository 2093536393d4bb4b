"""A table of chunks from a file: every piece that the retriever behind a ranking could return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import texts
from spanbench_pipeline.formats import columns, fields, json_file, strict_json
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.ids import unknown
from spanbench_pipeline.formats.offsets import differing, outside
from spanbench_pipeline.formats.strict_json import kind, shown

GIVEN = "given"
"""The chunker's name in the tables where the chunks come from a file."""

_PARQUET = {
    "chunk_id": columns.TEXT,
    "doc_id": columns.TEXT,
    "start_char": columns.WHOLE,
    "end_char": columns.WHOLE,
}
_OPTIONAL = dict.fromkeys(("corpus", "chunker", "text"), columns.TEXT)
_KNOWN = ("chunk_id", *fields.PLACES, *_OPTIONAL)


@dataclass(frozen=True)
class _Row:
    where: str
    chunk_id: str
    place: tuple[str, int, int]
    said: Mapping[str, str | None]
    """corpus, chunker and text, where the file says them"""


def read(given: Given, documents: pa.Table, *, corpus: str, chunker: str | None = None) -> pa.Table:
    """Return the table ``chunks`` of a file: JSON lines or Parquet, chunk numbers by place.

    A line is ``{"chunk_id", "doc_id", "start", "end"}``, ``start_char`` and ``end_char`` as well,
    or a line of the ``corpus.jsonl`` that is exported for BEIR. ``text``, ``corpus`` and
    ``chunker`` are held to the rest; other keys are left alone. Parquet has the columns of
    ``chunks``. Of several chunkers those of ``chunker`` are taken.

    Raises InputError naming file, line and chunk for an id given twice, two chunks of one place, an
    unknown document, offsets that are not in its text, a text that is not there, another corpus, a
    chunk without chunker beside those of two, the chunks of one that is not ``chunker``, and those
    of several chunkers where none of them is ``chunker``.
    """
    rows = _parquet(given) if given.is_parquet else _lines(given)
    if not rows:
        raise InputError(f"{given.where}: it holds no chunks")
    rows = _of_one(rows, corpus, chunker)
    known = texts(documents)
    ids: dict[str, str] = {}
    places: dict[tuple[str, int, int], str] = {}
    for row in rows:
        at = f"{row.where}, chunk {row.chunk_id}"
        _check_place(row, at, known)
        if row.chunk_id in ids:
            raise InputError(f"{at}: the id is given twice, first in {ids[row.chunk_id]}")
        if row.place in places:
            twin = places[row.place]
            raise InputError(
                f"{at}: chunk {twin} is the same place; a place must be one chunk, or no ranking "
                "says which it holds"
            )
        ids[row.chunk_id], places[row.place] = row.where, row.chunk_id
    return _table(places, corpus)


def _of_one(rows: list[_Row], corpus: str, chunker: str | None) -> list[_Row]:
    """Return the rows of one chunker: nobody ranked the chunks of two together."""
    for row in rows:
        of = row.said.get("corpus")
        if of not in (None, corpus):
            raise InputError(f"{row.where}: a chunk of corpus {of!r}, but {corpus!r} is scored")
    there = sorted({str(row.said["chunker"]) for row in rows if row.said.get("chunker")})
    if len(there) < 2:
        if there and chunker not in (None, *there):
            raise InputError(
                f"{rows[0].where}: the file holds chunks of {there[0]!r}, but those of {chunker!r} "
                "were ranked; give these"
            )
        return rows
    if bare := next((row for row in rows if not row.said.get("chunker")), None):
        raise InputError(
            f"{bare.where}, chunk {bare.chunk_id}: no chunker, but others of the file name theirs "
            f"({', '.join(there)}); name it on each"
        )
    if chunker not in there:
        raise InputError(
            f"{rows[0].where}: the file holds chunks of {len(there)} chunkers "
            f"({', '.join(there)}), which nobody ranked together; give those of one"
        )
    return [row for row in rows if row.said.get("chunker") == chunker]


def _check_place(row: _Row, at: str, known: Mapping[str, str]) -> None:
    doc_id, start, end = row.place
    if doc_id not in known:
        raise InputError(f"{at}: {unknown('document', doc_id, known)}")
    problem = outside(start, end, len(known[doc_id]), doc_id) or differing(
        row.said.get("text"), known[doc_id], row.place
    )
    if problem:
        raise InputError(f"{at}: {problem}")


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


def _lines(given: Given) -> list[_Row]:
    text, rows = given.text(), []
    if text.strip() and not text.lstrip().startswith(("{", "[")):
        first = text.lstrip().partition("\n")[0].strip()
        raise InputError(
            f"{given.where} line 1: {shown(first)} is no JSON; chunks are given as JSON "
            "lines or Parquet"
        )
    for where, value in json_file.values(text, given.where):
        if not isinstance(value, dict):
            raise InputError(f"{where}: a chunk must be an object, not {kind(value)}")
        stated = _of_beir(value)
        fields.others(stated, _KNOWN, where)
        chunk_id, doc_id = (
            strict_json.required(stated, key, where) for key in ("chunk_id", "doc_id")
        )
        start, end = (_offset(stated, key, where) for key in ("start", "end"))
        said = {key: strict_json.text(stated, key, where) for key in _OPTIONAL}
        rows.append(_Row(where, chunk_id, (doc_id, start, end), said))
    return rows


def _of_beir(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line as it is; of a corpus exported for BEIR, the chunk that its metadata
    describes.
    """
    metadata = value.get("metadata")
    if "_id" not in value or "chunk_id" in value or not isinstance(metadata, dict):
        return value
    return {"text": value.get("text"), **metadata}


def _offset(value: Mapping[str, Any], key: str, where: str) -> int:
    found = fields.offset(value, key, where)
    if found is None:
        raise InputError(f"{where}: key {key!r} is missing")
    return found


def _parquet(given: Given) -> list[_Row]:
    table = columns.read(given, "a chunk", _PARQUET, _OPTIONAL)
    return [
        _Row(
            f"{given.where} row {n}",
            row["chunk_id"],
            (row["doc_id"], row["start_char"], row["end_char"]),
            {key: row.get(key) for key in _OPTIONAL},
        )
        for n, row in enumerate(table.to_pylist(), 1)
    ]
