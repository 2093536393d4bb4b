"""What must hold between the tables of a run, each looked at again after the fact.

Every function gives the offending rows as dicts, [] where the invariant holds; each row says what
is wrong with it, where its columns alone do not. None of them uses the code that it checks.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import spans
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.metric import MetricAt

Rows = list[dict[str, Any]]
Cell = tuple[Any, ...]
"""(config, subset, metric, k)"""
Mean = tuple[float | None, int]
"""(mean, how many values)"""

TOLERANCE = 1e-12
"""How far a recomputed mean may be from the stored one."""

UNIT_TOLERANCE = 1e-5
"""How far the length of a unit vector of float32 may be from 1."""


def chunks_outside_text(chunks: pa.Table, documents: pa.Table) -> Rows:
    """Return chunks without characters, outside their document's text, or of no document."""
    joined = chunks.join(documents.select(["doc_id", "n_chars"]), "doc_id")
    start, end = joined["start_char"], joined["end_char"]
    holds = pc.and_(
        pc.and_(pc.greater_equal(start, 0), pc.less(start, end)),
        pc.less_equal(end, pc.fill_null(joined["n_chars"], -1)),
    )
    return _offending(joined, holds, "chunk_id")


def wrong_chunk_ids(chunks: pa.Table) -> Rows:
    """Return chunks whose id is not ``<doc_id>:<chunker>:<chunk_no>``, is not unique, or leaves a
    hole.

    ``chunk_no`` must run 0, 1, ... within each document.
    """
    wrong: Rows = []
    seen: set[str] = set()
    expected: dict[str, int] = defaultdict(int)
    columns = ["chunk_id", "chunker", "doc_id", "chunk_no"]
    for row in chunks.select(columns).sort_by([(c, "ascending") for c in columns[2:]]).to_pylist():
        form = f"{row['doc_id']}:{row['chunker']}:{expected[row['doc_id']]}"
        if row["chunk_id"] != form or row["chunk_id"] in seen:
            wrong.append(row | {"expected": form})
        seen.add(row["chunk_id"])
        expected[row["doc_id"]] += 1
    return wrong


def untiled_documents(chunks: pa.Table, documents: pa.Table) -> Rows:
    """Return documents with characters in no chunk, and how many: for a chunker that tiles."""
    doc_ids, lengths = documents["doc_id"].to_pylist(), documents["n_chars"].to_numpy()
    filled = np.flatnonzero(lengths > 0)
    of_document, of_chunk = spans.group_codes(doc_ids, chunks["doc_id"].to_pylist())
    whole = spans.make(of_document[filled], np.zeros(len(filled), np.int64), lengths[filled])
    start, end = chunks["start_char"].to_numpy(), chunks["end_char"].to_numpy()
    sound = (start >= 0) & (start < end)  # chunks_outside_text tells of the others
    pieces = spans.make(of_chunk[sound], start[sound], end[sound])
    missing = whole.length - spans.covered_chars(whole, pieces)
    return [
        {"doc_id": doc_ids[filled[i]], "uncovered_chars": int(missing[i])}
        for i in np.flatnonzero(missing)
    ]


def list_name(lists: pa.Table) -> str:
    """Return the column that says whose list it is: ``config`` in rankings, ``source`` in
    candidates.
    """
    return "config" if "config" in lists.column_names else "source"


def repeated_chunks(rankings: pa.Table) -> Rows:
    """Return chunks that a list holds more than once, and how often."""
    key = ["corpus", list_name(rankings), "query_id", "chunk_id"]
    counted = rankings.select(key).group_by(key).aggregate([([], "count_all")])
    counted = counted.rename_columns([*key, "times"])
    return _offending(counted, pc.equal(counted["times"], 1), *key)


def wrong_ranks(rankings: pa.Table, depth: int) -> Rows:
    """Return lists whose ranks are not 1, 2, ..., n with n at most ``depth``."""
    key = ["corpus", list_name(rankings), "query_id"]
    counted = rankings.group_by(key).aggregate(
        [("rank", "min"), ("rank", "max"), ("rank", "count_distinct"), ([], "count_all")]
    )
    n = counted["count_all"]
    holds = pc.and_(
        pc.and_(pc.equal(counted["rank_min"], 1), pc.equal(counted["rank_max"], n)),
        pc.and_(pc.equal(counted["rank_count_distinct"], n), pc.less_equal(n, depth)),
    )
    return _offending(counted, holds, *key)


def wrong_ranking_offsets(rankings: pa.Table, chunks: pa.Table) -> Rows:
    """Return ranked chunks that do not exist, or that the ranking places elsewhere than they
    are.
    """
    place = ["doc_id", "start_char", "end_char"]
    which = list_name(rankings)
    stated = rankings.select([which, "query_id", "rank", "chunk_id", *place])
    true = chunks.select(["chunk_id", *place]).rename_columns(
        ["chunk_id", *(f"chunk_{column}" for column in place)]
    )
    joined = stated.join(true, "chunk_id")
    same = [pc.equal(joined[column], joined[f"chunk_{column}"]) for column in place]
    holds = pc.fill_null(pc.and_(pc.and_(same[0], same[1]), same[2]), False)
    return _offending(joined, holds, which, "query_id", "rank")


def metrics_out_of_range(metrics: pa.Table) -> Rows:
    """Return rows of query_metrics or of means of it outside their metric's bounds, NaN included.

    Without an upper bound a value must be finite. A metric that is not known has [0, 1].
    """
    value = metrics["value"]
    holds = _within(value, 0.0, 1.0)
    for name, metric in registry.metrics().items():
        if metric.bounds != (0.0, 1.0):
            within = _within(value, *metric.bounds)
            holds = pc.if_else(pc.equal(metrics["metric"], name), within, holds)
    return _offending(metrics, pc.fill_null(holds, True), "config", "metric", "k")


def _within(value: pa.ChunkedArray, least: float, most: float | None) -> Any:
    below = pc.is_finite(value) if most is None else pc.less_equal(value, most)
    return pc.and_(pc.greater_equal(value, least), below)


def missing_metrics(
    query_metrics: pa.Table,
    queries: pa.Table,
    depth: int | None = None,
    also: Sequence[MetricAt] = (),
    context: int = CONTEXT,
    further: Sequence[MetricAt] = (),
) -> Rows:
    """Return queries without a metric, metrics of no query, and nulls where a metric is defined.

    With the ``depth`` of the lists, the metrics that count characters must be there too, at every
    k that they have, but nothing at a k past the depth, and no other metric. ``also`` are metrics,
    with their k, that this configuration has beside them, whatever the depth; ``further`` are those
    that the experiment asks for.
    """
    asked = set(queries["query_id"].to_pylist())
    wanted_metrics = list(registry.of_results(context, further))
    if depth is not None:
        wanted_metrics = list(registry.measured(context, further))
        wanted_metrics = [(m, k) for m, k in wanted_metrics if k is None or k <= depth]
    has: dict[tuple[Any, ...], set[str]] = {metric: set() for metric in (*wanted_metrics, *also)}
    expected = set(has)
    named = query_metrics.select(["metric", "k", "query_id", "value"])
    for metric, k, query in zip(*(c.to_pylist() for c in named.columns[:3]), strict=True):
        has.setdefault((metric, k), set()).add(query)
    may_be_undefined = registry.names(lambda metric: bool(metric.undefined))
    defined = pc.is_in(named["metric"], pa.array(may_be_undefined, pa.string()))
    nulls: Rows = named.filter(pc.and_not(named["value"].is_null(), defined)).to_pylist()
    return nulls + [
        {"metric": metric, "k": k, "query_id": query}
        for (metric, k), found in has.items()
        for wanted in [asked if depth is None or (metric, k) in expected else set()]
        for query in sorted(wanted ^ found)
    ]


def past_depth(table: pa.Table, depth: int) -> Rows:
    """Return rows at a k that lists of ``depth`` do not reach; documents are not lists."""
    holds = pc.fill_null(pc.less_equal(table["k"], depth), True)
    if "metric" in table.column_names:
        holds = pc.or_(
            holds, pc.is_in(table["metric"], value_set=pa.array(registry.of_documents()))
        )
    key = [
        c for c in ("config", "query_id", "subset", "metric", "bound") if c in table.column_names
    ]
    return _offending(table, holds, *key, "k")


def undeclared_sizes(chunks: pa.Table, fewest: int, most: int) -> Rows:
    """Return chunks longer than ``most``, or shorter than ``fewest`` but for the last of a
    document.
    """
    length = pc.subtract(chunks["end_char"], chunks["start_char"])
    last = chunks.group_by("doc_id").aggregate([("chunk_no", "max")])
    at = pc.index_in(chunks["doc_id"], value_set=last["doc_id"].combine_chunks())
    is_last = pc.equal(chunks["chunk_no"], last["chunk_no_max"].take(at))
    long_enough = pc.or_(pc.greater_equal(length, fewest), is_last)
    holds = pc.and_(pc.less_equal(length, most), long_enough)
    return _offending(chunks, holds, "doc_id", "chunk_no")


def undeclared_overlaps(chunks: pa.Table) -> Rows:
    """Return chunks that share characters with the one before them: for a chunker without
    overlap.
    """
    order = ["doc_id", "start_char", "end_char"]
    rows = (
        chunks.select([*order, "chunk_id"]).sort_by([(c, "ascending") for c in order]).to_pylist()
    )
    return [
        row | {"previous": before["chunk_id"]}
        for before, row in itertools.pairwise(rows)
        if before["doc_id"] == row["doc_id"] and row["start_char"] < before["end_char"]
    ]


def unlabelled_failures(failure_labels: pa.Table, query_metrics: pa.Table) -> Rows:
    """Return queries with a label that did not fail, or that failed without having exactly one."""
    labels: dict[tuple[str, str], int] = defaultdict(int)
    for row in failure_labels.select(["config", "query_id"]).to_pylist():
        labels[row["config"], row["query_id"]] += 1
    failed = pc.and_(
        pc.equal(query_metrics["metric"], "complete_grounding"),
        pc.equal(query_metrics["value"], 0.0),
    )
    failures = query_metrics.filter(failed).select(["config", "query_id"])
    failing = set(zip(*(column.to_pylist() for column in failures.columns), strict=True))
    return [
        {"config": config, "query_id": query, "failed": key in failing, "labels": labels[key]}
        for key in sorted(failing | labels.keys())
        for config, query in [key]
        if labels[key] != int(key in failing)
    ]


def wrong_means(config_metrics: pa.Table, query_metrics: pa.Table, queries: pa.Table) -> Rows:
    """Return rows of config_metrics that are not the mean of their queries' defined values, or are
    absent.

    ``macro`` must be the mean of the subsets' means.
    """
    stored = {
        (row["config"], row["subset"], row["metric"], row["k"]): (row["value"], row["n_queries"])
        for row in config_metrics.to_pylist()
    }
    expected = _expected_means(query_metrics, queries)
    names = ("config", "subset", "metric", "k")
    return [
        dict(zip(names, cell, strict=True))
        | {"stored": stored.get(cell), "expected": expected.get(cell)}
        for cell in dict.fromkeys([*expected, *stored])
        if not _same(stored.get(cell), expected.get(cell))
    ]


def unmatched_embeddings(embeddings: pa.Table, chunks: pa.Table) -> Rows:
    """Return chunks without a vector's row, and rows of no chunk."""
    chunk_ids, embedded = (set(t["chunk_id"].to_pylist()) for t in (chunks, embeddings))
    return [
        {"chunk_id": chunk_id, "in_chunks": chunk_id in chunk_ids}
        for chunk_id in sorted(chunk_ids ^ embedded)
    ]


def wrong_vectors(embeddings: pa.Table, *, unit: bool = True) -> Rows:
    """Return vectors that are not finite, differ in size from the first, or (``unit``) have not
    length 1.

    A null vector, of a text without word pieces, is none of these.
    """
    vectors = pc.drop_null(embeddings["vector"])
    ids = embeddings.filter(pc.is_valid(embeddings["vector"]))["chunk_id"].to_pylist()
    sizes = pc.list_value_length(vectors).to_numpy()
    lengths = _lengths(vectors, sizes)
    off = np.abs(lengths - 1) > UNIT_TOLERANCE if unit else lengths == 0
    wrong = ~np.isfinite(lengths) | off | (sizes != sizes[:1])
    return [
        {"chunk_id": ids[i], "length": float(lengths[i]), "size": int(sizes[i])}
        for i in np.flatnonzero(wrong)
    ]


def _offending(table: pa.Table, holds: Any, *order: str) -> Rows:
    """Return the rows where the mask ``holds`` is false, sorted."""
    rows: Rows = (
        table.filter(pc.invert(holds)).sort_by([(c, "ascending") for c in order]).to_pylist()
    )
    return rows


def _lengths(vectors: pa.ChunkedArray, sizes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the Euclidean length of each vector; NaN or infinite where a component is."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    components = pc.list_flatten(vectors).to_numpy().astype(np.float64)
    return np.sqrt(np.bincount(owner, components**2, len(sizes)))


def _expected_means(query_metrics: pa.Table, queries: pa.Table) -> dict[Cell, Mean]:
    values = query_metrics.select(["query_id", "config", "metric", "k", "value"])
    values = values.join(queries.select(["query_id", "subset"]), "query_id")
    whole = values.set_column(5, "subset", pa.nulls(values.num_rows, pa.string()))
    columns = ["config", "subset", "metric", "k"]
    means: dict[Cell, Mean] = {}
    for table in (whole, values.filter(values["subset"].is_valid())):
        of_cell = table.group_by(columns).aggregate([("value", "mean"), ("value", "count")])
        for row in of_cell.to_pylist():
            means[tuple(row[c] for c in columns)] = (row["value_mean"], row["value_count"])
    parts: dict[Cell, list[Mean]] = defaultdict(list)
    for (config, subset, metric, k), of_part in means.items():
        if subset is not None:
            parts[config, "macro", metric, k].append(of_part)
    for cell, of_parts in parts.items():
        defined = [value for value, _ in of_parts if value is not None]
        means[cell] = (fmean(defined) if defined else None, sum(n for _, n in of_parts))
    return means


def _same(stored: Mean | None, expected: Mean | None) -> bool:
    if stored is None or expected is None or stored[0] is None or expected[0] is None:
        return stored == expected
    close = math.isclose(stored[0], expected[0], rel_tol=0, abs_tol=TOLERANCE)
    return close and stored[1] == expected[1]
