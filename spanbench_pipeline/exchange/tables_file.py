"""Rankings as Parquet: the columns of the table ``rankings``, as far as a ranking needs them."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spanbench_pipeline.errors import InputError
from spanbench_pipeline.exchange import Entry, GivenList

_NEEDED = {
    "query_id": pa.string(),
    "rank": pa.int64(),
    "doc_id": pa.string(),
    "start_char": pa.int64(),
    "end_char": pa.int64(),
}
_OPTIONAL = {"config": pa.string(), "chunk_id": pa.string(), "score": pa.float64()}


def read(path: Path, config: str | None) -> list[GivenList]:
    """The lists of a Parquet file, each by rank; of ``config`` where it holds several.

    Raises InputError naming file, query and rank for what is no ranking: columns missing or of
    another type, a null, a rank given twice, a score that is no number, several configurations.
    """
    table = _one_configuration(_columns(path), config, path)
    rows = table.sort_by([("query_id", "ascending"), ("rank", "ascending")]).to_pylist()
    of_query: dict[str, dict[int, Entry]] = defaultdict(dict)
    for row in rows:
        at = f"{path}, query {row['query_id']}, rank {row['rank']}"
        score = row.get("score")
        if row["rank"] in of_query[row["query_id"]]:
            raise InputError(f"{at}: given twice; number the ranks of each query, from 1")
        if score is not None and not math.isfinite(score):
            raise InputError(f"{at}: score {score} is no number that could order anything")
        of_query[row["query_id"]][row["rank"]] = Entry(
            row["rank"],
            row["doc_id"],
            row["start_char"],
            row["end_char"],
            row.get("chunk_id"),
            score,
        )
    return [GivenList(q, tuple(e.values()), str(path), "rank") for q, e in of_query.items()]


def _columns(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: no Parquet file: {str(error).splitlines()[0]}") from error
    for name in _NEEDED:
        if name not in table.column_names:
            raise InputError(f"{path}: no column {name!r}; a ranking has {', '.join(_NEEDED)}")
    kept = _NEEDED | {n: kind for n, kind in _OPTIONAL.items() if n in table.column_names}
    try:
        table = table.select(list(kept)).cast(pa.schema(list(kept.items())))
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    for name in _NEEDED:
        if table[name].null_count:
            raise InputError(f"{path}: a null in column {name!r}")
    return table


def _one_configuration(table: pa.Table, config: str | None, path: Path) -> pa.Table:
    if "config" not in table.column_names:
        return table
    names = sorted(pc.unique(table["config"]).to_pylist(), key=str)
    if len(names) > 1 and config not in names:
        raise InputError(
            f"{path}: rankings of {len(names)} configurations; say with --name which: "
            + ", ".join(map(str, names))
        )
    return table.filter(pc.equal(table["config"], config)) if len(names) > 1 else table
