"""Choosing documents before their chunks: which of the corpus's documents a query is about.

Documents are ranked by their cards (see ``cards``), by cosine and by BM25, and fused by convex
combination. One index holds the cards of the whole corpus, pooled or not: nothing but a query's
text says where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.retrieval import bm25, convex, dense
from spanbench_pipeline.retrieval.dense import Vectors
from spanbench_pipeline.retrieval.lists import Lists, best, collect

BLOCK = 512
"""Queries ranked at once: each ranks every document."""


def route(
    cards: Sequence[str],
    card_vectors: Vectors,
    asked: Sequence[str],
    query_vectors: Vectors,
    *,
    doc_ids: Sequence[str],
    alpha: float,
    keep: int,
    **settings: Any,
) -> Lists:
    """Return the ``keep`` best documents of each query; a row is a place in ``cards`` and
    ``doc_ids``.

    Every document with a vector is a candidate of the dense channel, every one whose card holds a
    token of the query one of BM25's; score = alpha * BM25 + (1 - alpha) * cosine, each min-max
    scaled over them, see :func:`convex.fuse`. Ties by best single rank, then doc_id. A query with
    neither a word piece nor a token keeps no document. ``settings`` are those of ``bm25.build``.
    """
    index, ids, everything = (
        bm25.build(cards, **settings),
        pa.array(doc_ids, pa.string()),
        len(cards),
    )
    found: list[Lists] = []
    for start in range(0, len(asked), BLOCK):
        part = slice(start, start + BLOCK)
        near = _nearest(card_vectors, query_vectors, range(len(asked))[part])
        texts = list(asked[part])
        worded = bm25.search(index, texts, [None] * len(texts), everything)
        fused = convex.fuse(near, worded, chunk_ids=ids, alpha=alpha, depth=keep)
        found.append(Lists(fused.query + start, fused.rank, fused.row, fused.score))
    return _joined(found)


def routed_documents(
    found: Lists, queries: pa.Table, doc_ids: Sequence[str], *, corpus: str, config: str
) -> pa.Table:
    """Return the table ``routed_documents`` of one configuration, from what :func:`route` gave."""
    n = len(found.row)
    return tables.from_columns(
        "routed_documents",
        {
            "corpus": [corpus] * n,
            "config": [config] * n,
            "query_id": queries["query_id"].take(pa.array(found.query)),
            "rank": found.rank,
            "doc_id": pa.array(doc_ids, pa.string()).take(pa.array(found.row)),
            "score": found.score,
        },
    )


def _nearest(cards: Vectors, asked: Vectors, numbers: range) -> Lists:
    """Return every document by its cosine with each query, counted from the first of
    ``numbers``.
    """
    rows = np.flatnonzero(cards.present)
    matrix = cards.matrix[rows]
    lists = []
    for query in numbers:
        if asked.present[query]:
            scores = dense.cosines(matrix, asked.matrix[query])
            lists.append((query - numbers.start, *best(rows, scores, len(rows))))
    return collect(lists)


def _joined(parts: Sequence[Lists]) -> Lists:
    """Return lists of one query after another, as one."""
    if not parts:
        return collect([])
    names = ("query", "rank", "row", "score")
    return Lists(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))
