"""The ``rankings`` table of one configuration, from the lists that its channels gave.

What retrieves, fuses or reranks is handed in: this module knows none of it, so that a change to one
of them concerns only the configurations that use it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import tables
from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists, collect

Fuse = Callable[[Lists, Lists], Lists]
Rerank = Callable[[int, Ints], Any]
"""(row of the queries table, rows of the chunks table) -> a finite score a chunk, best highest."""


FUSIONS = {"rrf": ("fusion", "k"), "cc": ("convex", "alpha")}
"""Each fusion's module, and what its function ``fuse`` calls its constant.

The modules are named, not imported: a change to one concerns only the configurations that use it.
"""
_COPIED = ("chunk_id", "doc_id", "start_char", "end_char")


def fusion_of(used: tuple[str, float] | None, chunk_ids: pa.Array, depth: int) -> Fuse | None:
    """Return the fusion of two channels' lists by name and constant; None where there is none."""
    if used is None:
        return None
    module, called = FUSIONS[used[0]]
    fuse = importlib.import_module(f"{__package__}.{module}").fuse
    return partial(fuse, chunk_ids=chunk_ids, depth=depth, **{called: used[1]})


def candidates(
    lists: Lists, *, corpus: str, source: str, channel: str, queries: pa.Table, chunks: pa.Table
) -> pa.Table:
    """Return the ``candidates`` table of one channel's lists."""
    row = pa.array(lists.row)
    columns = {
        "corpus": [corpus] * len(row),
        "source": [source] * len(row),
        "channel": [channel] * len(row),
        "query_id": queries["query_id"].take(pa.array(lists.query)),
        "rank": lists.rank,
        "score": lists.score,
    }
    return tables.from_columns("candidates", columns | {c: chunks[c].take(row) for c in _COPIED})


def read_candidates(table: pa.Table, queries: pa.Table, chunks: pa.Table) -> Lists:
    """Return the lists of a ``candidates`` table, by the rows of the two tables that it was made
    from.

    Raises ValueError where it names a query or a chunk that is in neither.
    """
    query = _rows(table["query_id"], queries["query_id"])
    row = _rows(table["chunk_id"], chunks["chunk_id"])
    order = np.lexsort((table["rank"].to_numpy(), query))
    rank, score = table["rank"].to_numpy()[order], table["score"].to_numpy()[order]
    return Lists(query[order], rank, row[order], score)


def _rows(values: pa.ChunkedArray, among: pa.ChunkedArray) -> Ints:
    found = pc.index_in(values, value_set=among.combine_chunks())
    if found.null_count:
        unknown = values.filter(pc.is_null(found))[0].as_py()
        raise ValueError(f"candidates name {unknown!r}, which is in no table")
    rows: Ints = found.to_numpy().astype(np.int64)
    return rows


def rank(
    *,
    corpus: str,
    config: str,
    queries: pa.Table,
    chunks: pa.Table,
    channels: Mapping[str, Lists],
    fuse: Fuse | None = None,
    rerank: Rerank | None = None,
) -> pa.Table:
    """Return the ``rankings`` table: the final list of each query, with the rank each channel gave.

    ``channels`` are the lists by the name of what retrieved them: one is the ranking, two are
    fused; ``rerank`` then reorders each list as a whole. Lists come cut at the experiment's depth.
    A query with an empty list has no rows. Only the channels ``dense`` and ``bm25`` have a column
    for their ranks. Raises ValueError where channels and ``fuse`` do not fit.
    """
    candidates, fused = _candidates(list(channels.values()), fuse)
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
        "dense_rank": _ranks(channels.get("dense"), final),
        "bm25_rank": _ranks(channels.get("bm25"), final),
        "fused_rank": _ranks(fused, final),
    }
    return tables.from_columns("rankings", columns | {c: chunks[c].take(row) for c in _COPIED})


def reordered(lists: Lists, rerank: Rerank) -> Lists:
    """Return each list sorted by the score that ``rerank`` gives; ties keep their order.

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


def _candidates(lists: Sequence[Lists], fuse: Fuse | None) -> tuple[Lists, Lists | None]:
    """Return the lists before any reranking, and the fused lists where two were fused."""
    if len(lists) == 1 and fuse is None:
        return lists[0], None
    if len(lists) == 2 and fuse is not None:
        fused = fuse(*lists)
        return fused, fused
    raise ValueError("a ranking takes one channel, or two and a fusion")


def _ranks(lists: Lists | None, final: Lists) -> pa.Array:
    """Return the rank each entry of ``final`` has in ``lists``; null: not in it, or no such
    channel.
    """
    if lists is None:
        return pa.nulls(len(final.row), pa.int64())
    ranks = lists.ranks_of(final.query, final.row)
    return pa.array(ranks, mask=ranks == 0)
