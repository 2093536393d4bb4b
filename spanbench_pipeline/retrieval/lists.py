"""Ranked lists of chunks for many queries, and the one rule that orders a list.

A query and a chunk are numbers here: their rows in the ``queries`` and ``chunks`` tables. Those
tables are stored in order, so that a chunk's row number *is* its place in chunk order (doc_id by
code point, then chunk_no).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """One ranked list a query, as four arrays of one length, sorted by query, then rank.

    ``query`` is a row of the queries table, ``rank`` counts from 1, ``row`` is a row of the chunks
    table, ``score`` is what ordered the list. A query whose list is empty does not occur.
    """

    query: Ints
    rank: Ints
    row: Ints
    score: Floats

    def ranks_of(self, query: Ints, row: Ints) -> Ints:
        """Return the rank each (query, chunk row) has here, 0 where it is in no list: shape as
        given.
        """
        if not len(self.query):
            return np.zeros(len(query), np.int64)
        width = int(max(self.row.max(), row.max(initial=0))) + 1
        known, asked = self.query * width + self.row, query * width + row
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
        return np.where(known[at] == asked, self.rank[at], 0)

    def by_query(self) -> Iterator[tuple[int, slice]]:
        """Yield each query that has a list, with the positions of its list."""
        queries, starts = np.unique(self.query, return_index=True)
        stops = np.searchsorted(self.query, queries, side="right")
        for query, start, stop in zip(queries, starts, stops, strict=True):
            yield int(query), slice(int(start), int(stop))


def collect(found: Iterable[tuple[int, Ints, Floats]]) -> Lists:
    """Return lists from (query, rows best first, their scores), given in any order of queries."""
    lists = sorted(found, key=lambda one: one[0])
    lengths = [len(rows) for _, rows, _ in lists]
    return Lists(
        np.repeat(np.array([query for query, _, _ in lists], np.int64), lengths),
        np.concatenate([np.arange(1, n + 1) for n in lengths] or [np.empty(0, np.int64)]),
        np.concatenate([rows for _, rows, _ in lists] or [np.empty(0, np.int64)]),
        np.concatenate([scores for _, _, scores in lists] or [np.empty(0)]),
    )


def best(rows: Ints, scores: Floats, depth: int) -> tuple[Ints, Floats]:
    """Return the ``depth`` best of ``rows``, highest score first, ties in chunk order; all if
    fewer.
    """
    if len(rows) > depth:
        # Everything that ties with the score at the depth stays until the tie is broken.
        keep = scores >= np.partition(scores, -depth)[-depth]
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:depth]
    return rows[order], scores[order]
