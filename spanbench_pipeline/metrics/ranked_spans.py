"""Anybody's rankings as spans: all that the measures counting characters need.

A ranked chunk is a place (document, start, end), so no chunk table is asked for. Every span's group
is its (query, document): what lies in another document, or was retrieved for another query, can
never meet.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core import spans
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.relevance import (
    Bools,
    Ints,
    positions,
    require_one,
    sorted_values,
    table_spans,
)


@dataclass(frozen=True)
class RankedSpans:
    """q queries with m gold spans, and the r ranked chunks of one configuration.

    Queries are named by their position in ``query_ids`` (sorted). Chunks are sorted by query, then
    rank; ranks run 1, 2, ... without holes. Gold spans stand in the order of their table.
    """

    query_ids: pa.Array
    gold: spans.Spans
    """Shape (m,); the group is (query, document)."""
    gold_query: Ints
    chunks: spans.Spans
    """Shape (r,); the group is (query, document)."""
    query: Ints
    rank: Ints
    n_docs: int
    """Documents behind the groups: a group's query is group // n_docs."""

    def without_repeats(self) -> RankedSpans:
        """Each list with every place once: the first occurrence stays, the rest close up."""
        place = (self.chunks.end, self.chunks.start, self.chunks.group)
        order = np.lexsort((self.rank, *place))
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.any([np.diff(column[order]) != 0 for column in place], axis=0)
        kept = np.sort(order[new])
        query = self.query[kept]
        return dataclasses.replace(
            self, chunks=self.chunks.take(kept), query=query, rank=_numbered(query)
        )

    def top(self, k: int) -> Bools:
        """Whether each ranked chunk is among its list's first ``k``, shape (r,)."""
        return self.rank <= k

    def union_chars(self, of: spans.Spans) -> Ints:
        """Distinct characters in the spans of each query, shape (q,); groups as here."""
        union = spans.merge(of)
        return self.per_query(union.length, union.group // self.n_docs)

    def per_query(self, values: Ints, query: Ints) -> Ints:
        """The sum of each query's ``values``, shape (q,)."""
        total = np.zeros(len(self.query_ids), dtype=np.int64)
        np.add.at(total, query, values)
        return total

    def has(self, query: Ints) -> Bools:
        """Whether each query occurs in ``query``, shape (q,)."""
        return np.bincount(query, minlength=len(self.query_ids)) > 0


def read(rankings: pa.Table, gold_spans: pa.Table, queries: pa.Table) -> RankedSpans:
    """One configuration's rankings, as they stand, with the gold spans of their queries.

    A list is ordered by rank; equal ranks by chunk id, then place. The order of the tables' rows
    changes nothing. Raises InputError where a ranking or a gold span is of an unknown query, a
    query has no gold span, or a ranked chunk no characters; ValueError where a table holds more
    than one corpus or configuration.
    """
    require_one(rankings, "corpus", "config")
    require_one(gold_spans, "corpus")
    require_one(queries, "corpus")
    _require_characters(rankings)
    query_ids = sorted_values(queries["query_id"])
    gold_query = positions(gold_spans["query_id"], query_ids, "gold span", "query")
    lonely = np.flatnonzero(np.bincount(gold_query, minlength=len(query_ids)) == 0)
    if len(lonely):
        raise InputError(f"query {query_ids[int(lonely[0])]}: no gold span, nothing to measure")
    doc_ids = sorted_values(rankings["doc_id"], gold_spans["doc_id"])
    chunks = table_spans(rankings, doc_ids)
    query = positions(rankings["query_id"], query_ids, "ranking", "query")
    order = _list_order(rankings, query, chunks)
    query, chunks = query[order], chunks.take(order)
    return RankedSpans(
        query_ids=query_ids,
        gold=_of_query(table_spans(gold_spans, doc_ids), gold_query, len(doc_ids)),
        gold_query=gold_query,
        chunks=_of_query(chunks, query, len(doc_ids)),
        query=query,
        rank=_numbered(query),
        n_docs=len(doc_ids),
    )


def _list_order(rankings: pa.Table, query: Ints, chunks: spans.Spans) -> Ints:
    """The rows by query, rank, chunk id and place."""
    chunk_ids = rankings["chunk_id"]
    chunk = positions(chunk_ids, sorted_values(chunk_ids), "ranking", "chunk")
    place = (chunks.end, chunks.start, chunks.group)
    return np.lexsort((*place, chunk, rankings["rank"].to_numpy(), query))


def _numbered(query: Ints) -> Ints:
    """1, 2, ... within each run of one query."""
    return np.arange(1, len(query) + 1) - np.searchsorted(query, query, side="left")


def _of_query(of_document: spans.Spans, query: Ints, n_docs: int) -> spans.Spans:
    """The same spans, grouped by (query, document), so that queries never meet."""
    return spans.make(query * n_docs + of_document.group, of_document.start, of_document.end)


def _require_characters(rankings: pa.Table) -> None:
    start, end = rankings["start_char"].to_numpy(), rankings["end_char"].to_numpy()
    for i in np.flatnonzero((start < 0) | (end <= start))[:1]:
        row = rankings.slice(int(i), 1).to_pylist()[0]
        raise InputError(
            f"configuration {row['config']}, query {row['query_id']}, rank {row['rank']}: "
            f"{row['doc_id']} [{row['start_char']}, {row['end_char']}) has no characters; offsets "
            "must satisfy 0 <= start < end"
        )
