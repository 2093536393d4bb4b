"""Rankings, anybody's, made ready for measuring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import spans
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.relevance import (
    Bools,
    Ints,
    Relevance,
    positions,
    require_one,
    table_spans,
)


@dataclass(frozen=True)
class Lists:
    """One configuration's rankings as arrays, an entry a row, sorted by query, then rank.

    ``query`` and ``chunk`` are positions as in :class:`Relevance`. No query has a chunk twice;
    ranks run 1, 2, ... without holes.
    """

    query: Ints
    chunk: Ints
    rank: Ints
    relevant: Bools

    def rank_of(self, query: Ints, chunk: Ints, relevance: Relevance) -> Ints:
        """The rank of ``chunk[i]`` in the list of ``query[i]``, 0 where it is not in it."""
        if not len(self.rank):
            return np.zeros(len(query), dtype=np.int64)
        listed = relevance.keys(self.query, self.chunk)
        order = np.argsort(listed)
        wanted = relevance.keys(query, chunk)
        at = np.minimum(np.searchsorted(listed[order], wanted), len(listed) - 1)
        return np.where(listed[order][at] == wanted, self.rank[order][at], 0)


def read_lists(rankings: pa.Table, relevance: Relevance) -> Lists:
    """The rankings of one configuration, repeats taken out as :func:`deduplicate` does.

    Raises InputError where a row names an unknown query or chunk, or states other offsets than the
    chunk has; ValueError where the table holds more than one corpus or configuration.
    """
    require_one(rankings, "corpus", "config")
    rankings = deduplicate(rankings)
    query = positions(rankings["query_id"], relevance.query_ids, "ranking", "query")
    chunk = positions(rankings["chunk_id"], relevance.chunk_ids, "ranking", "chunk")
    _check_offsets(rankings, chunk, relevance)
    rank = rankings["rank"].to_numpy()
    return Lists(query, chunk, rank, relevance.is_relevant(query, chunk))


def covered_chars(lists: Lists, relevance: Relevance, k: int) -> Ints:
    """Distinct characters of each gold span inside its query's first ``k`` chunks: shape (m,)."""
    top = lists.rank <= k
    retrieved = relevance.chunks.take(lists.chunk[top])
    n_docs = len(relevance.doc_ids)
    gold = _of_query(relevance.gold, relevance.gold_query, n_docs)
    return spans.covered_chars(gold, _of_query(retrieved, lists.query[top], n_docs))


def deduplicate(rankings: pa.Table) -> pa.Table:
    """Rankings in which a list holds a chunk once: the first occurrence stays, the rest close up.

    Takes any number of corpora and configurations; every list is ordered by rank (equal ranks: by
    chunk id) and numbered from 1 anew.
    """
    if not rankings.num_rows:
        return rankings
    lists = ["corpus", "config", "query_id"]
    order = [(column, "ascending") for column in [*lists, "rank", "chunk_id"]]
    ordered = rankings.sort_by(order).combine_chunks()
    number = _list_numbers(ordered, lists)
    chunk = ordered["chunk_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(number * len(chunk) + chunk, return_index=True)
    kept = np.sort(first)
    begins = np.searchsorted(number[kept], number[kept], side="left")
    rank = np.arange(1, len(kept) + 1) - begins
    column = ordered.schema.get_field_index("rank")
    return ordered.take(kept).set_column(column, ordered.field(column), pa.array(rank, pa.int64()))


def _list_numbers(ordered: pa.Table, columns: list[str]) -> Ints:
    """A number a row that grows by one where one of the columns changes."""
    changes = np.zeros(ordered.num_rows, dtype=np.int64)
    for column in columns:
        values = ordered[column].combine_chunks()
        changes[1:] |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    return np.cumsum(changes)


def _of_query(of_document: spans.Spans, query: Ints, n_docs: int) -> spans.Spans:
    """The same spans, grouped by (query, document), so that queries never meet."""
    return spans.make(query * n_docs + of_document.group, of_document.start, of_document.end)


def _check_offsets(rankings: pa.Table, chunk: Ints, relevance: Relevance) -> None:
    stated, true = table_spans(rankings, relevance.doc_ids), relevance.chunks.take(chunk)
    same = (stated.group == true.group) & (stated.start == true.start) & (stated.end == true.end)
    for i in np.flatnonzero(~same)[:1]:
        row = rankings.slice(int(i), 1).to_pylist()[0]
        raise InputError(
            f"configuration {row['config']}, query {row['query_id']}: the ranking places chunk "
            f"{row['chunk_id']} at {row['doc_id']} [{row['start_char']}, {row['end_char']}), "
            f"but the chunk is [{true.start[i]}, {true.end[i]}) of "
            f"{relevance.doc_ids[int(true.group[i])]}"
        )
