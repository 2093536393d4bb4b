"""One configuration's rankings joined with gold spans and chunks: what every measure reads.

Tables come in keyed by ids; here ids become positions in arrays, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core import spans
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.joins import (
    Bools,
    Ints,
    first_of_each,
    numbered,
    positions,
    require_one,
    sorted_values,
    table_spans,
)


@dataclass(frozen=True)
class Entries:
    """Ranked chunks by position, sorted by query, then rank; ranks run 1, 2, ... in each list."""

    query: Ints
    chunk: Ints
    rank: Ints

    def top(self, k: int) -> Entries:
        """Return the first ``k`` of each list."""
        return self.where(self.rank <= k)

    def where(self, kept: Bools) -> Entries:
        """Return the entries for which ``kept`` is true, with their ranks."""
        return Entries(self.query[kept], self.chunk[kept], self.rank[kept])


@dataclass(frozen=True)
class ScoredRun:
    """q queries with m gold spans, c chunks of one chunker, and a list a query.

    A chunk is relevant to a query when it shares a character with one of its gold spans, in that
    span's document. Queries and documents are named by position in ``query_ids`` and ``doc_ids``
    (sorted), gold spans and chunks by position in the stored order of their tables.
    """

    query_ids: pa.Array
    doc_ids: pa.Array
    chunk_ids: pa.Array
    gold_table: pa.Table
    """The gold spans by query and number, m rows."""
    gold: spans.Spans
    """The same, shape (m,); the group is the document."""
    gold_query: Ints
    """The query of each gold span, shape (m,)."""
    chunks: spans.Spans
    """Shape (c,); the group is the document."""
    has_chunks: bool
    """Whether ``chunks`` are all of the chunker; else they are the ranked ones alone."""
    touch_gold: Ints
    """With ``touch_chunk``, every gold span and chunk that meet, sorted: shape (t,)."""
    touch_chunk: Ints
    pair_query: Ints
    """With ``pair_chunk``, every query and chunk relevant to it, once, sorted: shape (p,)."""
    pair_chunk: Ints
    given: Entries
    """The lists as they came, repeats included."""
    foreign: bool = False
    """Whether LegalBench-RAG's scoring takes lists as given, repeats included."""
    _memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def listed(self) -> Entries:
        """The lists with each chunk once: the first occurrence stays, the rest close up."""
        return _closed_up(self.given, first_of_each(self.keys(self.given.query, self.given.chunk)))

    @cached_property
    def places(self) -> Entries:
        """The lists with each place once, whatever the ids of the chunks that lie there."""
        at = self.chunks.take(self.given.chunk)
        place = (at.end, at.start, at.group, self.given.query)
        order = np.lexsort((self.given.rank, *place))
        new = np.ones(len(order), dtype=bool)
        new[1:] = np.any([np.diff(column[order]) != 0 for column in place], axis=0)
        return _closed_up(self.given, np.sort(order[new]))

    @cached_property
    def relevant(self) -> Bools:
        """Whether each entry of ``listed`` is relevant to its query."""
        pairs = self.keys(self.pair_query, self.pair_chunk)
        return np.isin(self.keys(self.listed.query, self.listed.chunk), pairs)

    @cached_property
    def gold_by_query(self) -> spans.Spans:
        """The gold spans, grouped by (query, document), so that queries never meet."""
        return self._of_query(self.gold, self.gold_query)

    @cached_property
    def relevant_counts(self) -> Ints:
        """The number of relevant chunks of each query, shape (q,)."""
        return self.count(self.pair_query)

    @cached_property
    def touch_counts(self) -> Ints:
        """The number of chunks that each gold span meets, shape (m,)."""
        return np.bincount(self.touch_gold, minlength=len(self.gold))

    def hits(self, k: int) -> Ints:
        """Return the number of relevant chunks among the first ``k``, shape (q,)."""
        return self.count(self.listed.query[self.relevant & (self.listed.rank <= k)])

    def covered(self, k: int) -> Ints:
        """Return the distinct characters of each gold span in the first ``k`` chunks: (m,)."""
        covered: Ints = self.once(
            ("covered", k),
            lambda: spans.covered_chars(self.gold_by_query, self.spans_of(self.listed.top(k))),
        )
        return covered

    def reached(self, k: int) -> Bools:
        """Return whether the first ``k`` chunks hold half of each gold span, in integers: (m,)."""
        return is_reached(self.covered(k), self)

    def spans_of(self, entries: Entries) -> spans.Spans:
        """Return the places of entries, grouped by (query, document)."""
        return self._of_query(self.chunks.take(entries.chunk), entries.query)

    def union_chars(self, of: spans.Spans) -> Ints:
        """Return the distinct characters in spans grouped by (query, document), shape (q,)."""
        union = spans.merge(of)
        return self.total(union.length, self.query_of(union))

    def query_of(self, of: spans.Spans) -> Ints:
        """Return the query of each span that is grouped by (query, document)."""
        return of.group // len(self.doc_ids)

    def count(self, query: Ints) -> Ints:
        """Return how often each query occurs in ``query``, shape (q,)."""
        return np.bincount(query, minlength=len(self.query_ids))

    def total(self, values: Ints, query: Ints) -> Ints:
        """Return the sum of each query's ``values``, shape (q,)."""
        total = np.zeros(len(self.query_ids), dtype=np.int64)
        np.add.at(total, query, values)
        return total

    def keys(self, query: Ints, chunk: Ints) -> Ints:
        """Return one number a (query, chunk), in the order of query, then chunk."""
        return query * len(self.chunk_ids) + chunk

    def rank_of(self, query: Ints, chunk: Ints) -> Ints:
        """Return the rank of ``chunk[i]`` in the list of ``query[i]``, 0 where it is not in it."""
        lists = self.listed
        if not len(lists.rank):
            return np.zeros(len(query), dtype=np.int64)
        keys = self.keys(lists.query, lists.chunk)
        order = np.argsort(keys)
        wanted = self.keys(query, chunk)
        at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where(keys[order][at] == wanted, lists.rank[order][at], 0)

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return what ``compute`` gives, which is asked once for each ``key``."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def cut(self, depth: int) -> ScoredRun:
        """Return the same with lists of the first ``depth`` chunks, each with its repeats."""
        ranks = self.rank_of(self.given.query, self.given.chunk)
        return replace(self, given=self.given.where(ranks <= depth))

    def with_lists(self, rankings: pa.Table) -> ScoredRun:
        """Return the same with other lists. Raise InputError as ``scored_run`` does."""
        return replace(self, given=_entries(rankings, self))

    def _of_query(self, of_document: spans.Spans, query: Ints) -> spans.Spans:
        group = query * len(self.doc_ids) + of_document.group
        return spans.make(group, of_document.start, of_document.end)


def scored_run(
    rankings: pa.Table | None,
    gold_spans: pa.Table,
    chunks: pa.Table | None,
    queries: pa.Table,
    *,
    foreign: bool = False,
) -> ScoredRun:
    """Return one configuration's rankings (None: no list), gold spans and chunks as arrays.

    A list is ordered by rank; equal ranks by chunk id, then place. The order of the tables' rows
    changes nothing. Without ``chunks`` the ranked places stand for them.

    Raise InputError where a query has no gold span, a gold span or a ranking no query, or a ranked
    chunk is not a chunk, lies elsewhere or has no characters; ValueError where a table holds more
    than one corpus, chunker or configuration.
    """
    require_one(queries, "corpus")
    require_one(gold_spans, "corpus")
    places = _places(rankings) if chunks is None else _chunk_places(chunks)
    gold_table = gold_spans.sort_by([("query_id", "ascending"), ("span_no", "ascending")])
    query_ids = sorted_values(queries["query_id"])
    gold_query = positions(gold_table["query_id"], query_ids, "gold span", "query")
    lonely = np.flatnonzero(np.bincount(gold_query, minlength=len(query_ids)) == 0)
    if len(lonely):
        raise InputError(f"query {query_ids[int(lonely[0])]}: no gold span, nothing to measure")
    doc_ids = sorted_values(gold_table["doc_id"], places["doc_id"])
    gold, pieces = table_spans(gold_table, doc_ids), table_spans(places, doc_ids)
    touch_gold, touch_chunk = spans.overlapping_pairs(gold, pieces)
    keys = np.unique(gold_query[touch_gold] * len(pieces) + touch_chunk)
    pair_query, pair_chunk = np.divmod(keys, max(len(pieces), 1))
    nothing = np.empty(0, np.int64)
    run = ScoredRun(
        query_ids=query_ids,
        doc_ids=doc_ids,
        chunk_ids=places["chunk_id"].combine_chunks(),
        gold_table=gold_table,
        gold=gold,
        gold_query=gold_query,
        chunks=pieces,
        has_chunks=chunks is not None,
        touch_gold=touch_gold,
        touch_chunk=touch_chunk,
        pair_query=pair_query,
        pair_chunk=pair_chunk,
        given=Entries(nothing, nothing, nothing),
        foreign=foreign,
    )
    return run if rankings is None else run.with_lists(rankings)


def is_reached(covered: Ints, run: ScoredRun) -> Bools:
    """Return whether each gold span has half of its characters in ``covered``, in integers."""
    return 2 * covered >= run.gold.length


def _chunk_places(chunks: pa.Table) -> pa.Table:
    """Return the chunks in stored order."""
    require_one(chunks, "corpus", "chunker")
    return chunks.sort_by([("doc_id", "ascending"), ("chunk_no", "ascending")])


def _places(rankings: pa.Table | None) -> pa.Table:
    """Return the places that were ranked, each once."""
    if rankings is None:
        raise ValueError("neither rankings nor chunks: nothing to measure")
    _require_characters(rankings)
    places = rankings.select(["chunk_id", "doc_id", "start_char", "end_char"])
    return places.group_by(places.column_names).aggregate([])


def _entries(rankings: pa.Table, run: ScoredRun) -> Entries:
    require_one(rankings, "corpus", "config")
    _require_characters(rankings)
    query = positions(rankings["query_id"], run.query_ids, "ranking", "query")
    chunk = positions(rankings["chunk_id"], run.chunk_ids, "ranking", "chunk")
    _check_offsets(rankings, chunk, run)
    ids = rankings["chunk_id"]
    by_id = positions(ids, sorted_values(ids), "ranking", "chunk")
    order = np.lexsort((by_id, rankings["rank"].to_numpy(), query))
    query = query[order]
    return Entries(query, chunk[order], numbered(query))


def _closed_up(entries: Entries, kept: Ints) -> Entries:
    query = entries.query[kept]
    return Entries(query, entries.chunk[kept], numbered(query))


def _require_characters(rankings: pa.Table) -> None:
    start, end = rankings["start_char"].to_numpy(), rankings["end_char"].to_numpy()
    for i in np.flatnonzero((start < 0) | (end <= start))[:1]:
        row = rankings.slice(int(i), 1).to_pylist()[0]
        raise InputError(
            f"configuration {row['config']}, query {row['query_id']}, rank {row['rank']}: "
            f"{row['doc_id']} [{row['start_char']}, {row['end_char']}) has no characters; offsets "
            "must satisfy 0 <= start < end"
        )


def _check_offsets(rankings: pa.Table, chunk: Ints, run: ScoredRun) -> None:
    stated, true = table_spans(rankings, run.doc_ids), run.chunks.take(chunk)
    same = (stated.group == true.group) & (stated.start == true.start) & (stated.end == true.end)
    for i in np.flatnonzero(~same)[:1]:
        row = rankings.slice(int(i), 1).to_pylist()[0]
        raise InputError(
            f"configuration {row['config']}, query {row['query_id']}: the ranking places chunk "
            f"{row['chunk_id']} at {row['doc_id']} [{row['start_char']}, {row['end_char']}), "
            f"but the chunk is [{true.start[i]}, {true.end[i]}) of "
            f"{run.doc_ids[int(true.group[i])]}"
        )
