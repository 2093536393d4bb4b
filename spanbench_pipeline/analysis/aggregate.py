"""Means over queries: of a whole corpus, of its parts, of a clause type.

Undefined values are left out of a mean, never counted as 0; ``n_queries`` says how many were
defined. A mean's sum is exact before it is rounded (math.fsum), so that no order of rows matters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.joins import require_one

MACRO = "macro"
"""The subset that stands for the mean of the parts' means."""

Cell = tuple[Any, ...]


def config_metrics(query_metrics: pa.Table, queries: pa.Table) -> pa.Table:
    """Return the table ``config_metrics`` of every configuration in ``query_metrics``.

    ``subset`` null is the mean over all queries. Where queries name subsets, each has rows of its
    own, and ``macro`` is the mean of the subsets' means: every subset weighs the same, one without
    a defined value is left out, and ``n_queries`` counts the queries behind it. A mean over nothing
    is null. Raises InputError where a subset is called ``macro``, and ValueError where a
    configuration does not have each of its metrics for each query.
    """
    _require_complete(query_metrics, queries)
    subset_of = _column_by_query(queries, "subset")
    if MACRO in subset_of.values():
        raise InputError(f"subset {MACRO!r} is the name of the mean over subsets; rename it")
    whole = _means(query_metrics, dict.fromkeys(subset_of))
    parts = _means(query_metrics, {q: s for q, s in subset_of.items() if s is not None})
    macro: dict[Cell, list[tuple[float | None, int]]] = defaultdict(list)
    for (config, _, *metric), mean in parts.items():
        macro[config, MACRO, *metric].append(mean)
    averaged = {cell: _mean_of_means(means) for cell, means in macro.items()}
    return _table("config_metrics", "subset", query_metrics, whole | parts | averaged)


def clause_type_metrics(query_metrics: pa.Table, queries: pa.Table) -> pa.Table:
    """Return the table ``clause_type_metrics``; queries without a clause type are left out."""
    _require_complete(query_metrics, queries)
    type_of = _column_by_query(queries, "clause_type")
    means = _means(query_metrics, {q: t for q, t in type_of.items() if t is not None})
    return _table("clause_type_metrics", "clause_type", query_metrics, means)


def mean(values: list[float]) -> float | None:
    """Return the arithmetic mean; of no values: None."""
    return math.fsum(values) / len(values) if values else None


def values_by_query(
    query_metrics: pa.Table, metric: str, k: int
) -> dict[str, dict[str, float | None]]:
    """Return configuration -> query -> value of one metric; None where it is undefined."""
    wanted = (pc.field("metric") == metric) & (pc.field("k") == k)
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    columns = query_metrics.filter(wanted).select(["config", "query_id", "value"])
    for config, query, value in zip(*(c.to_pylist() for c in columns.columns), strict=True):
        found[config][query] = value
    return dict(found)


def _require_complete(query_metrics: pa.Table, queries: pa.Table) -> None:
    """Raise ValueError where a query lacks a metric, or a metric its query: n would be wrong."""
    require_one(query_metrics, "corpus")
    ids, cell = query_metrics["query_id"], ["config", "metric", "k"]
    counted = query_metrics.group_by(cell).aggregate([("query_id", "count_distinct")])
    asked = pc.unique(queries["query_id"])
    known = pc.is_in(ids, value_set=asked)
    whole = pc.equal(counted["query_id_count_distinct"], len(asked))
    if pc.all(known, min_count=0).as_py() and pc.all(whole, min_count=0).as_py():
        return
    wanted = set(asked.to_pylist())
    found: dict[Cell, set[str]] = defaultdict(set)
    for row in query_metrics.select([*cell, "query_id"]).to_pylist():
        found[row["config"], row["metric"], row["k"]].add(row["query_id"])
    config, metric, unlike = next(
        (c, m, q ^ wanted) for (c, m, _), q in found.items() if q != wanted
    )
    raise ValueError(f"{config}, {metric}: queries do not match, the first is {min(unlike)}")


def _column_by_query(queries: pa.Table, column: str) -> dict[str, Any]:
    return dict(zip(queries["query_id"].to_pylist(), queries[column].to_pylist(), strict=True))


def _means(
    query_metrics: pa.Table, part_of: Mapping[str, Any]
) -> dict[Cell, tuple[float | None, int]]:
    """Return (config, part, metric, k) -> (mean, how many values), over the queries in
    ``part_of``.
    """
    asked = pa.array(list(part_of), pa.string())
    rows = query_metrics.filter(pc.is_in(query_metrics["query_id"], value_set=asked))
    parts = pa.array(list(part_of.values()), pa.string())
    part = parts.take(pc.index_in(rows["query_id"], value_set=asked))
    columns = [rows["config"], part, rows["metric"], rows["k"]]
    cells, cell_of = _cells(columns)
    defined = pc.is_valid(rows["value"]).to_numpy()
    values, cell_of = rows["value"].to_numpy()[defined], cell_of[defined]
    order = np.argsort(cell_of, kind="stable")
    ends = np.cumsum(np.bincount(cell_of, minlength=len(cells)))
    per_cell = np.split(values[order], ends)[:-1]
    return {c: (mean(v.tolist()), len(v)) for c, v in zip(cells, per_cell, strict=True)}


def _cells(columns: list[pa.ChunkedArray]) -> tuple[list[Cell], npt.NDArray[np.int64]]:
    """Return the distinct rows of ``columns``, and which of them each row is, by position."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = pa.chunked_array(column).combine_chunks().dictionary_encode("encode")
        code = code * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, cell_of = np.unique(code, return_index=True, return_inverse=True)
    return list(zip(*(c.take(first).to_pylist() for c in columns), strict=True)), cell_of


def _mean_of_means(means: list[tuple[float | None, int]]) -> tuple[float | None, int]:
    return mean([m for m, _ in means if m is not None]), sum(n for _, n in means)


def _table(
    name: str, part: str, query_metrics: pa.Table, means: Mapping[Cell, tuple[float | None, int]]
) -> pa.Table:
    corpus = pc.min(query_metrics["corpus"]).as_py()  # the only one
    return tables.from_rows(
        name,
        [
            {
                "corpus": corpus,
                "config": config,
                part: value_of_part,
                "metric": metric,
                "k": k,
                "value": value,
                "n_queries": n,
            }
            for (config, value_of_part, metric, k), (value, n) in means.items()
        ],
    )
