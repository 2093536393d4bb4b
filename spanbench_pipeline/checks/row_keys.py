"""Rows of several tables matched by the values of their key columns, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


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
