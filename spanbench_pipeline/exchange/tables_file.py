"""Rankings as Parquet: the columns of the table ``rankings``, as far as a ranking needs them."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.errors import InputError
from spanbench_pipeline.exchange import Entry, GivenList, columns

_NEEDED = {
    "query_id": columns.TEXT,
    "rank": columns.WHOLE,
    "doc_id": columns.TEXT,
    "start_char": columns.WHOLE,
    "end_char": columns.WHOLE,
}
_OPTIONAL = {"config": columns.TEXT, "chunk_id": columns.TEXT, "score": columns.NUMBER}


def read(path: Path, config: str | None) -> list[GivenList]:
    """The lists of a Parquet file, each by rank; of ``config`` where it holds several.

    Raises InputError naming file, query and rank for what is no ranking: columns missing or of
    another type, a null, a rank given twice, a score that is no number, several configurations.
    """
    table = columns.read(path, "a ranking", _NEEDED, _OPTIONAL)
    table = _one_configuration(table, config, path)
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
