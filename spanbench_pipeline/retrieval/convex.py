"""Convex combination of the two lists that two channels give each query: scores, not ranks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spanbench_pipeline.retrieval import merging
from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists

DECIMALS = 12
"""Scores are rounded to these before they are compared, and given so."""
ROUNDING = 10.0**-DECIMALS
"""Scores of a channel no further apart, of 1 or of the larger one, differ by rounding alone."""


def fuse(one: Lists, other: Lists, *, chunk_ids: pa.Array, alpha: float, depth: int) -> Lists:
    """Return one list a query, the ``depth`` chunks of the highest score, from the two lists given.

    score = alpha * other + (1 - alpha) * one, each channel's score min-max scaled over the query's
    list in that channel: its best chunk has 1, its worst 0; all of them 0.5 where all scores are
    equal, or differ by ``ROUNDING`` alone; a chunk that the list does not hold has 0. So for the
    channels dense and BM25, ``alpha`` is what BM25 weighs.

    Ties by best single rank, then chunk id as a string. Scores are in floating point, whose last
    bits would decide between sums that are equal in truth: they are rounded to 12 decimals first,
    and equal after that is a tie. ``chunk_ids`` is a column of the chunks table. A query with one
    list keeps that list's order, at an ``alpha`` that gives it no weight as well (by best rank).
    """
    pairs = merging.pairs(one, other)
    first, second = (
        _scaled(lists, pairs.ranks[:, column], pairs.query)
        for column, lists in enumerate((one, other))
    )
    score = np.round(alpha * second + (1 - alpha) * first, DECIMALS)
    return merging.ordered(pairs, -score, score, chunk_ids, depth)


def _scaled(lists: Lists, ranks: Ints, query: Ints) -> Floats:
    """Return the scaled score of each pair in ``lists``, 0 where its rank says that it is in
    none.
    """
    scaled = np.zeros(len(ranks))
    if not len(lists.query):
        return scaled
    queries, starts = np.unique(lists.query, return_index=True)
    stops = np.append(starts[1:], len(lists.query))
    # Lists are sorted by rank: the best score stands first, the worst last.
    high, low = lists.score[starts], lists.score[stops - 1]
    held = ranks > 0
    of = np.searchsorted(queries, query[held])
    score = lists.score[starts[of] + ranks[held] - 1]
    span = high[of] - low[of]
    magnitude = np.maximum(1.0, np.maximum(np.abs(high), np.abs(low)))[of]
    same = span <= ROUNDING * magnitude
    scaled[held] = np.where(same, 0.5, (score - low[of]) / np.where(same, 1.0, span))
    return scaled
