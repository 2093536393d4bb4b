"""Precision and recall in characters, at several depths, in two scorings that are never mixed.

``union`` counts every character once, so it always lies in [0, 1]. ``paper`` is the scoring of
LegalBench-RAG (arXiv 2408.10343): it sums over chunks, so that its recall may exceed 1 where chunks
overlap. They are equal where the chunks are disjoint.

Characters of a wrong document count in the denominator of both precisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.metrics.ranked_spans import RankedSpans, read
from spanbench_pipeline.metrics.relevance import Ints

Reals = npt.NDArray[np.float64]


def character_metrics(
    rankings: pa.Table,
    gold_spans: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    depth: int,
    foreign: bool = False,
    ks: Sequence[int] = DEPTHS,
) -> pa.Table:
    """Return rows of ``query_metrics``: the metrics that count characters, at each of ``ks``.

    A k past ``depth`` is left out; a list shorter than k is used whole. A place that a list holds
    twice counts at its first rank and the rest close up; with ``foreign`` the paper scoring takes
    the list as it stands, repeats included. No value is null. Refuses what ``ranked_spans.read``
    does.
    """
    given = read(rankings, gold_spans, queries)
    lists = given.without_repeats()
    summed = given if foreign else lists
    shared = gold_overlap(summed)
    ks = [k for k in ks if k <= depth]
    values = [(*union_scores(lists, k), *paper_scores(summed, shared, k)) for k in ks]
    n = len(lists.query_ids)
    per_cell = len(ks) * len(registry.characters())
    return tables.from_columns(
        "query_metrics",
        {
            "corpus": pa.repeat(corpus, n * per_cell),
            "config": pa.repeat(config, n * per_cell),
            "query_id": lists.query_ids.take(np.tile(np.arange(n), per_cell)),
            "metric": pa.array(registry.characters()).take(
                np.tile(np.repeat(np.arange(len(registry.characters())), n), len(ks))
            ),
            "k": pa.array(np.repeat(np.array(ks, np.int64), n * len(registry.characters()))),
            "value": pa.array(np.concatenate([np.concatenate(of_k) for of_k in values])),
        },
    )


def union_scores(lists: RankedSpans, k: int) -> tuple[Reals, Reals, Reals]:
    """Characters retrieved, precision and recall of the first ``k`` chunks, each of shape (q,).

    Characters retrieved: those of the union of the chunks. Precision: characters of (union of
    chunks and union of gold) / characters retrieved; nothing retrieved: 0. Recall: the same /
    characters of the union of gold.
    """
    retrieved, gold = spans.merge(lists.chunks.take(lists.top(k))), spans.merge(lists.gold)
    found = lists.per_query(spans.covered_chars(gold, retrieved), gold.group // lists.n_docs)
    n_retrieved = lists.union_chars(retrieved)
    scores = ratio(found, n_retrieved), ratio(found, lists.union_chars(gold))
    return n_retrieved.astype(np.float64), *scores


def paper_scores(lists: RankedSpans, shared: Ints, k: int) -> tuple[Reals, Reals]:
    """Precision and recall of the first ``k`` chunks, each of shape (q,).

    Precision: the sum over pairs (chunk, gold span) of the characters they share / the sum of the
    chunks' lengths; nothing retrieved: 0. Recall: the same / the sum of the gold spans' lengths.
    ``shared`` is ``gold_overlap(lists)``.
    """
    top = lists.top(k)
    found = lists.per_query(shared[top], lists.query[top])
    retrieved = lists.per_query(lists.chunks.length[top], lists.query[top])
    gold = lists.per_query(lists.gold.length, lists.gold_query)
    return ratio(found, retrieved), ratio(found, gold)


def gold_overlap(lists: RankedSpans) -> Ints:
    """Of each ranked chunk, the characters shared with each gold span, summed: shape (r,)."""
    gold, chunk = spans.overlapping_pairs(lists.gold, lists.chunks)
    total = np.zeros(len(lists.chunks), dtype=np.int64)
    np.add.at(total, chunk, spans.shared_chars(lists.gold, lists.chunks, gold, chunk))
    return total


def ratio(part: Ints, whole: Ints) -> Reals:
    """part / whole, 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
