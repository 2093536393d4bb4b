"""Rankings as Parquet: the columns of the table ``rankings``, as far as a ranking needs them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import Entry, GivenList, Rankings, columns, stamp, strict_json
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.storage.folders import Files

_NEEDED = {
    "query_id": columns.TEXT,
    "rank": columns.WHOLE,
    "doc_id": columns.TEXT,
    "start_char": columns.WHOLE,
    "end_char": columns.WHOLE,
}
_OPTIONAL = {
    **dict.fromkeys(("corpus", "config", "chunk_id", "query", "text"), columns.TEXT),
    **dict.fromkeys(("start", "end"), columns.WHOLE),
    "score": columns.NUMBER,
}


def recognizes(given: Given) -> bool:
    """Return whether a file opens as Parquet does, whatever its name."""
    return given.is_parquet


def parse(given: Given, config: str | None, corpus: str) -> Rankings:
    """Return the rankings of a Parquet file; raise InputError as ``read`` does."""
    table = read(given, config, corpus)
    return Rankings(lambda evalset, chunks: lists(table, given.where), stamp_of(table, given.where))


def write(results: Results) -> Files:
    """Yield a file a declared table, all its configurations together.

    Rankings say in the metadata what they are of.
    """
    of = {c.name: results.stamps[c.chunker].said() for c in results.measured}
    said = {"rankings": {stamp.KEY: json.dumps(of, ensure_ascii=False)}}
    for name in sorted(set(results.tables.values())):
        keys = sorted(key[1:] for key, table in results.tables.items() if table == name)
        whole = pa.concat_tables([results.store.table(*key) for key in keys])
        yield f"{name}.parquet", [content(name, whole, said.get(name))]


def content(name: str, table: pa.Table, said: Mapping[str, str] | None = None) -> bytes:
    """Return a declared table as a Parquet file, with what is ``said`` of it as metadata."""
    sink = pa.BufferOutputStream()
    made = tables.conform(name, table).replace_schema_metadata(said)
    pq.write_table(made, sink, compression="zstd")
    written: bytes = sink.getvalue().to_pybytes()
    return written


def read(given: Given, config: str | None, corpus: str) -> pa.Table:
    """Return the rows of a Parquet file that are rankings of ``corpus``; of ``config`` of several.

    Raises InputError naming the file for what is no ranking: columns missing or of another type, a
    null, another corpus, several configurations of which none is named, or one that is not the
    named one.
    """
    table = columns.read(given, "a ranking", _NEEDED, _OPTIONAL)
    table = _one(table, "corpus", corpus, given.where)
    return _one(table, "config", config, given.where)


def stamp_of(table: pa.Table, where: str) -> Stamp | None:
    """Return what the file says that its one configuration ranks."""
    written = (table.schema.metadata or {}).get(stamp.KEY.encode())
    if written is None:
        return None
    at = f"{where}, metadata of the schema"
    value = strict_json.parse(strict_json.decode(written, at), at)
    if not isinstance(value, dict):
        raise InputError(f"{at}: {stamp.KEY} must be an object, not {strict_json.kind(value)}")
    names = pc.unique(table["config"]).to_pylist() if "config" in table.column_names else []
    return stamp.of_json(value.get(names[0]), at) if len(names) == 1 else None


def lists(table: pa.Table, where: str) -> list[GivenList]:
    """Return the lists of the rows, each by rank.

    Raises InputError naming file, query and rank for a rank given twice, a score that is no number
    and a query that is given in two words.
    """
    rows = table.sort_by([("query_id", "ascending"), ("rank", "ascending")]).to_pylist()
    of_query: dict[str, dict[int, Entry]] = defaultdict(dict)
    asked: dict[str, str | None] = {}
    for row in rows:
        at = f"{where}, query {row['query_id']}, rank {row['rank']}"
        score = row.get("score")
        if row["rank"] in of_query[row["query_id"]]:
            raise InputError(f"{at}: given twice; number the ranks of each query, from 1")
        if score is not None and not math.isfinite(score):
            raise InputError(f"{at}: score {score} is no number that could order anything")
        for end in ("start", "end"):
            if row.get(end) not in (None, row[f"{end}_char"]):
                raise InputError(f"{at}: columns {end!r} and '{end}_char' differ; give one of them")
        if asked.setdefault(row["query_id"], row.get("query")) != row.get("query"):
            raise InputError(f"{at}: column 'query' has other words than at the query's first rank")
        of_query[row["query_id"]][row["rank"]] = Entry(
            row["rank"],
            row["doc_id"],
            row["start_char"],
            row["end_char"],
            row.get("chunk_id"),
            score,
            row.get("text"),
        )
    return [
        GivenList(q, tuple(e.values()), where, "rank", query=asked[q]) for q, e in of_query.items()
    ]


_SAID_WITH = {"corpus": ("corpora", "--corpus"), "config": ("configurations", "--name")}
"""What a column holds several of, and the option that says which is meant."""


def _one(table: pa.Table, column: str, wanted: str | None, where: str) -> pa.Table:
    """Return the rows of the one value of a column, which must be ``wanted`` where that is
    given.
    """
    if column not in table.column_names or not table.num_rows:
        return table
    several, option = _SAID_WITH[column]
    names = sorted(pc.unique(table[column]).to_pylist(), key=str)
    if len(names) == 1 and (wanted is None or names[0] in (None, wanted)):
        return table
    if wanted in names and None not in names:
        return table.filter(pc.equal(table[column], wanted))
    if len(names) > 1:
        raise InputError(
            f"{where}: rankings of {len(names)} {several}; say with {option} which: "
            + ", ".join("null" if name is None else name for name in names)
        )
    raise InputError(
        f"{where}: column {column!r} says {names[0]!r}, which is not {option} {wanted!r}; give "
        "what the file says, or leave the column out"
    )
