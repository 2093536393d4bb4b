"""Ids to positions: tables are keyed by ids, measures work on arrays.

What does not fit together is refused, since it would give a wrong figure that looks right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import spans
from spanbench_pipeline.core.errors import InputError

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]


def require_one(table: pa.Table, *columns: str) -> None:
    """Raise ValueError where a column holds two values: figures of two would be mixed."""
    for column in columns:
        values = pc.unique(table[column]).to_pylist()
        if len(values) > 1:
            raise ValueError(f"one {column} at a time, not {', '.join(map(str, sorted(values)))}")


def sorted_values(*columns: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values of all ``columns``, by code point."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    values = pc.unique(pa.chunked_array(chunks, pa.string()))
    return values.take(pc.sort_indices(values))


def positions(values: pa.ChunkedArray, among: pa.Array, what: str, of: str) -> Ints:
    """Return where each of ``values`` stands in ``among``: shape (len(values),).

    Raise InputError (``<what> of unknown <of> 'x'``) for a value that does not.
    """
    found = pc.index_in(values, value_set=among)
    if found.null_count:
        unknown = values.filter(pc.is_null(found))[0].as_py()
        raise InputError(f"{what} of unknown {of} {unknown!r}")
    where: Ints = found.to_numpy().astype(np.int64)
    return where


def table_spans(table: pa.Table, doc_ids: pa.Array) -> spans.Spans:
    """Return the spans of a table with doc_id, start_char and end_char, grouped by document."""
    group = positions(table["doc_id"], doc_ids, "characters", "document")
    return spans.make(group, table["start_char"].to_numpy(), table["end_char"].to_numpy())


def spans_by_query(*of: pa.Table) -> list[spans.Spans]:
    """Return the spans of tables with query_id as well, grouped by (query, document) over all."""
    query_ids = sorted_values(*(table["query_id"] for table in of))
    doc_ids = sorted_values(*(table["doc_id"] for table in of))
    found = []
    for table in of:
        query = positions(table["query_id"], query_ids, "characters", "query")
        by_document = table_spans(table, doc_ids)
        group = query * len(doc_ids) + by_document.group
        found.append(spans.make(group, by_document.start, by_document.end))
    return found


def deduplicate(rankings: pa.Table) -> pa.Table:
    """Return rankings in which a list holds a chunk once, at its first rank; the rest close up.

    Takes any number of corpora and configurations; every list is ordered by rank (equal ranks: by
    chunk id) and numbered from 1 again.
    """
    if not rankings.num_rows:
        return rankings
    lists = ["corpus", "config", "query_id"]
    order = [(column, "ascending") for column in [*lists, "rank", "chunk_id"]]
    ordered = rankings.sort_by(order).combine_chunks()
    number = _list_numbers(ordered, lists)
    chunk = ordered["chunk_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    kept = first_of_each(number * len(chunk) + chunk)
    rank = numbered(number[kept])
    column = ordered.schema.get_field_index("rank")
    return ordered.take(kept).set_column(column, ordered.field(column), pa.array(rank, pa.int64()))


def first_of_each(keys: Ints) -> Ints:
    """Return where each key stands first, ascending."""
    _, first = np.unique(keys, return_index=True)
    return np.sort(first)


def numbered(group: Ints) -> Ints:
    """Return 1, 2, ... within each run of one group; ``group`` ascends."""
    return np.arange(1, len(group) + 1) - np.searchsorted(group, group, side="left")


def _list_numbers(ordered: pa.Table, columns: list[str]) -> Ints:
    """Return a number a row that grows by one where one of the columns changes."""
    changes = np.zeros(ordered.num_rows, dtype=np.int64)
    for column in columns:
        values = ordered[column].combine_chunks()
        changes[1:] |= pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    return np.cumsum(changes)
