"""What every fusion of two lists shares: what there is to order, and how ties are broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists


@dataclass(frozen=True)
class Pairs:
    """Each (query, row) of either of two lists, once, with its rank in both: 0 where absent.

    ``query`` and ``row`` have shape (n,), sorted by query, then row; ``ranks`` has shape (n, 2).
    """

    query: Ints
    row: Ints
    ranks: Ints


def pairs(one: Lists, other: Lists) -> Pairs:
    """Return the pairs of two lists a query."""
    width = 1 + max(int(lists.row.max(initial=0)) for lists in (one, other))
    keys = [lists.query * width + lists.row for lists in (one, other)]
    query, row = np.divmod(np.unique(np.concatenate(keys)), width)
    ranks = np.stack([one.ranks_of(query, row), other.ranks_of(query, row)], axis=1)
    return Pairs(query, row, ranks)


def ordered(
    found: Pairs, place: npt.NDArray[np.generic], score: Floats, ids: pa.Array, depth: int
) -> Lists:
    """Return one list a query: its ``depth`` pairs of the lowest ``place``, with their scores.

    Ties by best single rank, then id as a string, by code point: ``ids[row]``.
    """
    ranks = found.ranks
    best_rank = np.where(ranks == 0, ranks.max(initial=0) + 1, ranks).min(axis=1)
    order = np.lexsort((_order_of(ids)[found.row], best_rank, place, found.query))
    query, row, score = found.query[order], found.row[order], score[order]
    rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
    kept = rank <= depth
    return Lists(query[kept], rank[kept], row[kept], score[kept])


def _order_of(ids: pa.Array) -> Ints:
    """Return the place of each id in the order of all of them as strings."""
    place = np.empty(len(ids), np.int64)
    place[np.asarray(pc.sort_indices(ids))] = np.arange(len(ids))
    return place
