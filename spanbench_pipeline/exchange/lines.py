"""Rankings as JSON lines: a query a line, with the list of what was retrieved for it, best first.

Written: ``query_id``, ``query``, ``metrics`` and ``ranking``, a list of ``{"doc_id", "start",
"end", "score", "chunk_id"}``. Read: ``query_id`` and one list, whatever its key is called.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spanbench_pipeline.corpora import strict_json
from spanbench_pipeline.corpora.strict_json import kind
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.exchange import Entry, GivenList, fields

Fields = dict[str, Any]

# JSON leaves these bare, yet many readers of lines would break a line at them.
_LINE_BREAKS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"})


def write(rankings: pa.Table, queries: pa.Table, query_metrics: pa.Table) -> Iterator[bytes]:
    """A line a query of one configuration, in the order of the query ids; empty lists included."""
    ranked: dict[str, list[Fields]] = defaultdict(list)
    metrics: dict[str, Fields] = defaultdict(dict)
    columns = ["query_id", "rank", "doc_id", "start_char", "end_char", "score", "chunk_id"]
    order = [("query_id", "ascending"), ("rank", "ascending")]
    for row in rankings.select(columns).sort_by(order).to_pylist():
        ranked[row["query_id"]].append(
            {
                "doc_id": row["doc_id"],
                "start": row["start_char"],
                "end": row["end_char"],
                "score": row["score"],
                "chunk_id": row["chunk_id"],
            }
        )
    for row in query_metrics.select(["query_id", "metric", "k", "value"]).to_pylist():
        name = row["metric"] if row["k"] is None else f"{row['metric']}@{row['k']}"
        metrics[row["query_id"]][name] = row["value"]
    for query_id, text in zip(
        queries["query_id"].to_pylist(), queries["query"].to_pylist(), strict=True
    ):
        found = {"metrics": metrics[query_id], "ranking": ranked[query_id]}
        yield line({"query_id": query_id, "query": text, **found})


def line(value: Fields) -> bytes:
    """One line of JSON, with nothing in it that a reader of lines could take for its end."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return (written.translate(_LINE_BREAKS) + "\n").encode()


def read(text: str, where: str) -> list[GivenList]:
    """The lists of a file of JSON lines, in its order; blank lines are none.

    A line has ``query_id`` and exactly one array, the ranking, best first; its other keys are left
    alone. An entry is an object with ``doc_id``, ``start`` and ``end`` (or ``start_char`` and
    ``end_char``), or with ``chunk_id``; with ``score`` and ``text`` where it has them. Raises
    InputError naming file, line and query.
    """
    lines = text.removeprefix(strict_json.BOM).split("\n")
    return [
        _list(found, f"{where} line {number}")
        for number, found in enumerate(lines, 1)
        if found.strip(" \t\r")
    ]


def _list(found: str, where: str) -> GivenList:
    value = strict_json.parse(found, where)
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be an object with query_id and a list, not {kind(value)}")
    query_id = fields.required(value, "query_id", where)
    arrays = [key for key, inner in value.items() if isinstance(inner, list)]
    at = f"{where}, query {query_id}"
    if len(arrays) != 1:
        named = f" ({', '.join(arrays)})" if arrays else ""
        raise InputError(f"{at}: {len(arrays)} arrays{named}, not the one that is the ranking")
    entries = value[arrays[0]]
    made = [_entry(entry, f"{at}, entry {n}", n) for n, entry in enumerate(entries, 1)]
    return GivenList(query_id, tuple(made), where)


def _entry(value: Any, where: str, number: int) -> Entry:
    if not isinstance(value, dict):
        what = "a bare span belongs to no document" if isinstance(value, list) else ""
        raise InputError(
            f"{where}: must be an object with doc_id, start and end, not {kind(value)}"
            + (f": {what}" if what else "")
        )
    chunk_id, doc_id = (fields.text(value, key, where) for key in ("chunk_id", "doc_id"))
    start, end = (fields.offset(value, key, where) for key in ("start", "end"))
    has_place = start is not None or end is not None
    if has_place and doc_id is None:
        raise InputError(f"{where}: offsets without doc_id: a bare span belongs to no document")
    if (start is None) != (end is None) or (not has_place and chunk_id is None):
        raise InputError(f"{where}: give doc_id, start and end, or chunk_id")
    score, text = fields.score(value, where), fields.text(value, "text", where)
    return Entry(number, doc_id, start, end, chunk_id, score, text)
