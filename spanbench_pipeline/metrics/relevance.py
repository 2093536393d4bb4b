"""Which chunks answer which queries: what every measure starts from.

Tables come in keyed by ids; here ids become positions in arrays, once. What does not fit together
is refused, since it would give a wrong figure that looks right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import spans
from spanbench_pipeline.core.errors import InputError

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Relevance:
    """The gold spans of q queries, the chunks of one chunker, and which of them meet.

    A chunk is relevant to a query when it shares a character with one of its gold spans, in that
    span's document. Queries, documents, gold spans and chunks are named by position: in
    ``query_ids`` and ``doc_ids`` (sorted), and in their tables.
    """

    query_ids: pa.Array
    doc_ids: pa.Array
    chunk_ids: pa.Array
    gold: spans.Spans
    """The gold spans, shape (m,); the group is the document."""
    gold_query: Ints
    """The query of each gold span, shape (m,)."""
    chunks: spans.Spans
    """The chunks, shape (c,); the group is the document."""
    touch_gold: Ints
    """With ``touch_chunk``, every gold span and chunk that meet, sorted: shape (t,)."""
    touch_chunk: Ints
    pair_query: Ints
    """With ``pair_chunk``, every query and chunk relevant to it, once, sorted: shape (p,)."""
    pair_chunk: Ints

    def per_query(self, query: Ints) -> Ints:
        """How often each query occurs in ``query``, shape (q,)."""
        return np.bincount(query, minlength=len(self.query_ids))

    @property
    def relevant_counts(self) -> Ints:
        """The number of relevant chunks of each query, shape (q,)."""
        return self.per_query(self.pair_query)

    @property
    def touch_counts(self) -> Ints:
        """The number of chunks that each gold span meets, shape (m,)."""
        return np.bincount(self.touch_gold, minlength=len(self.gold))

    def keys(self, query: Ints, chunk: Ints) -> Ints:
        """One number a (query, chunk), in the order of query, then chunk."""
        return query * len(self.chunk_ids) + chunk

    def is_relevant(self, query: Ints, chunk: Ints) -> Bools:
        """Whether ``chunk[i]`` is relevant to ``query[i]``: the shape of both."""
        pairs = self.keys(self.pair_query, self.pair_chunk)
        return np.isin(self.keys(query, chunk), pairs)


def judge(queries: pa.Table, gold_spans: pa.Table, chunks: pa.Table) -> Relevance:
    """Relevance of one chunker's chunks to one corpus's queries.

    Raises InputError where a query has no gold span or a gold span no query, and ValueError where
    a table holds more than one corpus or chunker.
    """
    require_one(queries, "corpus")
    require_one(gold_spans, "corpus")
    require_one(chunks, "corpus", "chunker")
    query_ids = sorted_values(queries["query_id"])
    gold_query = positions(gold_spans["query_id"], query_ids, "gold span", "query")
    lonely = np.flatnonzero(np.bincount(gold_query, minlength=len(query_ids)) == 0)
    if len(lonely):
        raise InputError(f"query {query_ids[int(lonely[0])]}: no gold span, nothing to measure")
    doc_ids = sorted_values(gold_spans["doc_id"], chunks["doc_id"])
    gold, pieces = table_spans(gold_spans, doc_ids), table_spans(chunks, doc_ids)
    touch_gold, touch_chunk = spans.overlapping_pairs(gold, pieces)
    keys = np.unique(gold_query[touch_gold] * len(pieces) + touch_chunk)
    pair_query, pair_chunk = np.divmod(keys, max(len(pieces), 1))
    return Relevance(
        query_ids=query_ids,
        doc_ids=doc_ids,
        chunk_ids=chunks["chunk_id"].combine_chunks(),
        gold=gold,
        gold_query=gold_query,
        chunks=pieces,
        touch_gold=touch_gold,
        touch_chunk=touch_chunk,
        pair_query=pair_query,
        pair_chunk=pair_chunk,
    )


def require_one(table: pa.Table, *columns: str) -> None:
    """ValueError where one of the columns holds two values: figures of two would be mixed."""
    for column in columns:
        values = pc.unique(table[column]).to_pylist()
        if len(values) > 1:
            raise ValueError(f"one {column} at a time, not {', '.join(map(str, sorted(values)))}")


def sorted_values(*columns: pa.ChunkedArray) -> pa.Array:
    """The distinct values of all ``columns``, by code point."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    values = pc.unique(pa.chunked_array(chunks, pa.string()))
    return values.take(pc.sort_indices(values))


def positions(values: pa.ChunkedArray, among: pa.Array, what: str, of: str) -> Ints:
    """Where each of ``values`` stands in ``among``: shape (len(values),).

    Raises InputError (``<what> of unknown <of> 'x'``) for a value that does not.
    """
    found = pc.index_in(values, value_set=among)
    if found.null_count:
        unknown = values.filter(pc.is_null(found))[0].as_py()
        raise InputError(f"{what} of unknown {of} {unknown!r}")
    where: Ints = found.to_numpy().astype(np.int64)
    return where


def table_spans(table: pa.Table, doc_ids: pa.Array) -> spans.Spans:
    """The spans of a table with doc_id, start_char and end_char; the group is the document."""
    group = positions(table["doc_id"], doc_ids, "characters", "document")
    return spans.make(group, table["start_char"].to_numpy(), table["end_char"].to_numpy())


def spans_by_query(*of: pa.Table) -> list[spans.Spans]:
    """The spans of tables with query_id as well; the group is (query, document), one over all."""
    query_ids = sorted_values(*(table["query_id"] for table in of))
    doc_ids = sorted_values(*(table["doc_id"] for table in of))
    found = []
    for table in of:
        query = positions(table["query_id"], query_ids, "characters", "query")
        by_document = table_spans(table, doc_ids)
        group = query * len(doc_ids) + by_document.group
        found.append(spans.make(group, by_document.start, by_document.end))
    return found
