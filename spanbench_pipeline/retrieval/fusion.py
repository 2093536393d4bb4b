"""Reciprocal rank fusion of the two lists that two channels give each query."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from spanbench_pipeline.retrieval import merging
from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists


def fuse(one: Lists, other: Lists, *, chunk_ids: pa.Array, k: int, depth: int) -> Lists:
    """Return one list a query, the ``depth`` chunks of the highest score, from the two lists given.

    score = sum over the lists that hold the chunk of 1 / (k + rank), rank from 1. Ties by best
    single rank, then chunk id as a string. ``chunk_ids`` is a column of the chunks table. A query
    with one list keeps that list's order; with none it has none.
    """
    pairs = merging.pairs(one, other)
    place, score = _scores(pairs.ranks, k)
    return merging.ordered(pairs, place, score, chunk_ids, depth)


def _scores(ranks: Ints, k: int) -> tuple[Ints, Floats]:
    """Return, for ranks of shape (n, 2), 0 where absent, the place among all sums and the sum.

    Sums are compared as fractions: 1/63 + 1/84 and 1/72 + 1/72 are equal, but not in floating
    point. Few pairs of ranks are distinct, so few fractions are made.
    """
    distinct, which = np.unique(ranks, axis=0, return_inverse=True)
    sums = [
        sum((Fraction(1, k + rank) for rank in pair if rank), Fraction(0))
        for pair in distinct.tolist()
    ]
    places = {value: place for place, value in enumerate(sorted(set(sums), reverse=True))}
    which = which.reshape(-1)
    place = np.array([places[value] for value in sums], dtype=np.int64)
    return place[which], np.array([float(value) for value in sums])[which]
