"""Rows of several tables matched by the values of their key columns, without a loop over rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def key_codes(columns: Sequence[str], *parts: pa.Table) -> tuple[Ints, ...]:
    """Return a number for each row of each table, equal exactly where all ``columns`` are.

    The numbers are 0, 1, ... without a gap over all tables together; null equals null.
    """
    codes = np.zeros(sum(part.num_rows for part in parts), np.int64)
    for column in columns:
        kind = parts[0].schema.field(column).type
        pieces = [chunk.cast(kind) for part in parts for chunk in part[column].chunks]
        values = pa.chunked_array(pieces, kind).combine_chunks()
        encoded = values.dictionary_encode(null_encoding="encode")
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]
    ends = np.cumsum([part.num_rows for part in parts])
    return tuple(np.split(codes, ends[:-1]))


def n_codes(*codes: Ints) -> int:
    """Return how many numbers ``key_codes`` gave out."""
    return max((int(of_part.max()) + 1 for of_part in codes if len(of_part)), default=0)


def in_groups(groups: Ints, by: npt.NDArray[np.generic]) -> Ints:
    """Return the order that puts the rows of a group one after the other, ascending by ``by``."""
    return np.lexsort((by, groups))


def values_before(values: Floats, groups: Ints, first: float) -> Floats:
    """Return the value before each one in its group, ``first`` before a group's first.

    The rows of a group stand one after the other.
    """
    before = np.concatenate([[first], values[:-1]])
    before[np.flatnonzero(np.diff(groups, prepend=-1))] = first
    return before


def span_lengths(rows: pa.Table, gold_spans: pa.Table) -> Ints:
    """Return the characters of the gold span that each row is about; 0 where there is none."""
    of_row, of_gold = key_codes(["query_id", "span_no"], rows, gold_spans)
    length = np.zeros(n_codes(of_row, of_gold), np.int64)
    length[of_gold] = pc.subtract(gold_spans["end_char"], gold_spans["start_char"]).to_numpy()
    return length[of_row]


def not_once_at_each_k(
    rows: pa.Table, things: pa.Table, key: Sequence[str], ks: Iterable[int], counted_as: str
) -> list[dict[str, Any]]:
    """Return the key, k and number of rows of what has not exactly one row at each of ``ks``.

    Wanted are the keys of ``things``; rows of others, or at another k, are in the answer too.
    """
    columns = (rows[column].to_pylist() for column in (*key, "k"))
    counts = Counter(zip(*columns, strict=True))
    depths = list(ks)
    named = zip(*(things[column].to_pylist() for column in key), strict=True)
    wanted = {(*one, k) for one in named for k in depths}
    if counts.keys() == wanted and counts.total() == len(wanted):
        return []
    return [
        dict(zip((*key, "k"), one, strict=True)) | {counted_as: counts[one]}
        for one in sorted(wanted | counts.keys())
        if counts[one] != (one in wanted)
    ]
