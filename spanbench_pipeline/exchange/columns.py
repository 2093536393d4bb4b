"""Columns of a Parquet file, held to what they must be: nothing is read as what it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spanbench_pipeline.errors import InputError


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_it(kind) for is_it in texts)


def _is_number(kind: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_it(kind) for is_it in numbers)


TEXT, WHOLE, NUMBER = "text", "whole numbers", "numbers"
_KINDS: dict[str, tuple[pa.DataType, Callable[[pa.DataType], bool]]] = {
    TEXT: (pa.string(), _is_text),
    WHOLE: (pa.int64(), pa.types.is_integer),
    NUMBER: (pa.float64(), _is_number),
}
"""What a column holds -> the type that it gets, and whether a file's type is of that kind."""


def read(
    path: Path, what: str, needed: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> pa.Table:
    """The columns ``needed``, without a null, and those of ``optional`` that the file has.

    Both map a column's name to TEXT, WHOLE or NUMBER; ``what`` says what a row is. Raises
    InputError naming file and column for one that is missing, holds another kind (a truth value is
    no number, a number in quotes neither), or has a null where it must not.
    """
    try:
        table = pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: no Parquet file: {str(error).splitlines()[0]}") from error
    for name in needed:
        if name not in table.column_names:
            raise InputError(f"{path}: no column {name!r}; {what} has {', '.join(needed)}")
    present = {n: kind for n, kind in (optional or {}).items() if n in table.column_names}
    kinds = {**needed, **present}
    for name, kind in kinds.items():
        found = table.schema.field(name).type
        empty = pa.types.is_null(found) and name in present
        if not empty and not _KINDS[kind][1](found):
            raise InputError(f"{path}: column {name!r} is {found}, but must hold {kind}")
    try:
        schema = pa.schema([(name, _KINDS[kind][0]) for name, kind in kinds.items()])
        table = table.select(list(kinds)).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    for name in needed:
        if table[name].null_count:
            raise InputError(f"{path}: a null in column {name!r}")
    return table
