"""The ``rankings`` table of one configuration, from the lists that its channels gave.

What retrieves, fuses or reranks is handed in: this module knows none of it, so that a change to one
of them concerns only the configurations that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline import tables
from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists, collect

Fuse = Callable[[Lists, Lists], Lists]
Rerank = Callable[[int, Ints], Any]
"""(row of the queries table, rows of the chunks table) -> a finite score a chunk, best highest."""


def rank(
    *,
    corpus: str,
    config: str,
    queries: pa.Table,
    chunks: pa.Table,
    dense: Lists | None = None,
    bm25: Lists | None = None,
    fuse: Fuse | None = None,
    rerank: Rerank | None = None,
) -> pa.Table:
    """The ``rankings`` table: the final list of each query, with the rank each channel gave.

    One of ``dense`` and ``bm25`` is the ranking, or both with ``fuse``; ``rerank`` then reorders
    each list as a whole. Lists come cut at the experiment's depth. A query with an empty list has
    no rows.
    """
    candidates, fused = _candidates(dense, bm25, fuse)
    final = candidates
    if rerank is not None:
        final = reordered(candidates, rerank)
    row = pa.array(final.row)
    columns = {
        "corpus": [corpus] * len(row),
        "config": [config] * len(row),
        "query_id": queries["query_id"].take(pa.array(final.query)),
        "rank": final.rank,
        "score": final.score,
        "dense_rank": _ranks(dense, final),
        "bm25_rank": _ranks(bm25, final),
        "fused_rank": _ranks(fused, final),
    }
    copied = ("chunk_id", "doc_id", "start_char", "end_char")
    return tables.from_columns("rankings", columns | {c: chunks[c].take(row) for c in copied})


def reordered(lists: Lists, rerank: Rerank) -> Lists:
    """Each list sorted by the score that ``rerank`` gives; ties keep their order.

    Raises ValueError where it does not give one finite score a row.
    """
    found: list[tuple[int, Ints, Floats]] = []
    for query, part in lists.by_query():
        rows = lists.row[part]
        scores = np.asarray(rerank(query, rows), dtype=np.float64)
        if scores.shape != rows.shape or not np.isfinite(scores).all():
            raise ValueError(f"the reranker gave no finite score a chunk for query row {query}")
        order = np.argsort(-scores, kind="stable")
        found.append((query, rows[order], scores[order]))
    return collect(found)


def _candidates(
    dense: Lists | None, bm25: Lists | None, fuse: Fuse | None
) -> tuple[Lists, Lists | None]:
    """The lists before any reranking, and the fused lists where two were fused."""
    if (dense is not None and bm25 is not None) != (fuse is not None):
        raise ValueError("two channels need a fusion, and a fusion needs two channels")
    if dense is not None and bm25 is not None and fuse is not None:
        fused = fuse(dense, bm25)
        return fused, fused
    only = bm25 if dense is None else dense
    if only is None:
        raise ValueError("a ranking needs a dense or a BM25 channel")
    return only, None


def _ranks(lists: Lists | None, final: Lists) -> pa.Array:
    """The rank each entry of ``final`` has in ``lists``; null: not in it, or no such channel."""
    if lists is None:
        return pa.nulls(len(final.row), pa.int64())
    ranks = lists.ranks_of(final.query, final.row)
    return pa.array(ranks, mask=ranks == 0)
