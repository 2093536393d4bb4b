"""Rankings as JSON lines: a query a line, with the list of what was retrieved for it, best first.

Written: ``query_id``, ``query``, ``metrics``, ``ranking``, a list of ``{"doc_id", "start", "end",
"score", "chunk_id"}``, and the stamp. Read: ``query_id`` and one list, whatever its key is called.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import Entry, GivenList, Rankings, fields, stamp, strict_json
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.json_file import Value
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.formats.strict_json import kind, shown
from spanbench_pipeline.storage.folders import Files

Fields = dict[str, Any]

# JSON leaves these bare, yet many readers of lines would break a line at them.
KEYS = ("query_id", "query", "corpus", "config", "metrics", stamp.KEY)
"""Keys of a line beside its list."""
_OF_THE_LINE = ("query_id", "query", "corpus", "config")
"""Keys that an entry may repeat, if they say there what the line says."""
_LINE_BREAKS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"})


def recognizes(given: Given) -> bool:
    """Return whether a file opens as JSON does."""
    return given.is_json


def parse(given: Given, config: str | None, corpus: str) -> Rankings:
    """Return the rankings of a file's JSON values."""
    values = given.json_values
    return Rankings(lambda evalset, chunks: lists(values), stamp_of(values))


def write(results: Results) -> Files:
    """Yield a file a configuration, a line a query."""
    for config in results.measured:
        made = lines(
            results.rankings(config),
            results.evalset.queries,
            results.query_metrics(config),
            results.stamps[config.chunker],
        )
        yield f"{config.slug}.jsonl", made


def lines(
    rankings: pa.Table, queries: pa.Table, query_metrics: pa.Table, of: Stamp | None = None
) -> Iterator[bytes]:
    """Yield a line a query of one configuration, in the order of the query ids; empty lists
    included.

    Each line has the stamp ``of`` what was ranked, if there is one: lines are easily taken apart.
    """
    stamped = {} if of is None else {stamp.KEY: of.said()}
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
        found = {"metrics": metrics[query_id], "ranking": ranked[query_id], **stamped}
        yield line({"query_id": query_id, "query": text, **found})


def line(value: Fields) -> bytes:
    """Return one line of JSON, with nothing in it that a reader of lines could take for its end."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return (written.translate(_LINE_BREAKS) + "\n").encode()


def lists(values: Sequence[Value]) -> list[GivenList]:
    """Return the lists of a file's JSON values, in its order.

    Each has ``query_id`` and exactly one array, the ranking, best first. What was asked may stand
    under ``query``, of which corpus under ``corpus``, and of which configuration under ``config``,
    one a file; other keys are left alone, and named. An entry is an object with ``doc_id``,
    ``start`` and ``end`` (or ``start_char`` and ``end_char``), or with ``chunk_id``; with
    ``score``, ``rank`` and ``text`` where it has them. Raises InputError naming file, line and
    query.
    """
    found = [_list(value, where) for where, value in values]
    configs = {
        value["config"]: where
        for where, value in values
        if strict_json.text(value, "config", where) is not None
    }
    if len(configs) > 1:
        named = ", ".join(f"{config!r} ({where})" for config, where in sorted(configs.items())[:5])
        raise InputError(
            f"the file holds rankings of {len(configs)} configurations: {named}; score each alone"
        )
    return found


def stamp_of(values: Sequence[Value]) -> Stamp | None:
    """Return what the file says that it ranks; InputError where two of its lines differ in it."""
    first: tuple[str, Stamp | None] | None = None
    for where, value in values:
        if not isinstance(value, dict):
            continue
        found = stamp.of_json(value.get(stamp.KEY), where)
        if first is not None and found != first[1]:
            raise InputError(
                f"{where}: its {stamp.KEY!r} is not that of {first[0]}: the file holds rankings of "
                "two exports, or of one and of something else; score them apart"
            )
        first = where, found
    return None if first is None else first[1]


def _list(value: Any, where: str) -> GivenList:
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be an object with query_id and a list, not {kind(value)}")
    query_id = strict_json.required(value, "query_id", where)
    arrays = [key for key, inner in value.items() if isinstance(inner, list)]
    at = f"{where}, query {query_id}"
    if len(arrays) != 1:
        named = f" ({', '.join(arrays)})" if arrays else ""
        raise InputError(f"{at}: {len(arrays)} arrays{named}, not the one that is the ranking")
    entries = value[arrays[0]]
    others = fields.others({k: v for k, v in value.items() if k != arrays[0]}, KEYS, at)
    made = []
    for number, entry in enumerate(entries, 1):
        made.append(_entry(entry, f"{at}, entry {number}", number, others))
        _require_same(entry, value, f"{at}, entry {number}")
    query, corpus = (strict_json.text(value, key, at) for key in ("query", "corpus"))
    return GivenList(
        query_id, tuple(made), where, query=query, corpus=corpus, others=frozenset(others)
    )


def _require_same(entry: Fields, line: Fields, where: str) -> None:
    """Refuse an entry that says of its query, corpus or configuration what its line does not."""
    for key in _OF_THE_LINE:
        if key in entry and key in line and entry[key] != line[key]:
            raise InputError(
                f"{where}: its {key} is {shown(entry[key])}, but its list is of {shown(line[key])}"
            )


def _entry(value: Any, where: str, number: int, others: set[str]) -> Entry:
    if not isinstance(value, dict):
        what = "a bare span belongs to no document" if isinstance(value, list) else ""
        raise InputError(
            f"{where}: must be an object with doc_id, start and end, not {kind(value)}"
            + (f": {what}" if what else "")
        )
    others |= fields.others(value, (*fields.ENTRY, *_OF_THE_LINE), where)
    said = fields.statements(value, where)
    if said["chunk_id"] is None:
        has_place = said["start"] is not None or said["end"] is not None
        if has_place and said["doc_id"] is None:
            raise InputError(f"{where}: offsets without doc_id: a bare span belongs to no document")
        if said["start"] is None or said["end"] is None:
            raise InputError(f"{where}: give doc_id, start and end, or chunk_id")
    return Entry(number, **said)
