"""Columns of a Parquet file, held to what they must be: nothing is read as what it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import fields
from spanbench_pipeline.formats.given_file import Given


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
    given: Given, what: str, needed: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> pa.Table:
    """Return the columns ``needed``, without a null, and those of ``optional`` that the file has.

    Both map a column's name to TEXT, WHOLE or NUMBER; ``what`` says what a row is. Raises
    InputError naming file and column for one that is missing, holds another kind (a truth value is
    no number, a number in quotes neither), is there twice, or has a null where it must not. What
    the file says of itself stays in the schema's metadata.
    """
    table = _table(given)
    path, names = given.where, table.column_names
    fields.others(dict.fromkeys(names), (*needed, *(optional or ())), path)
    for name in needed:
        if name not in names:
            raise InputError(f"{path}: no column {name!r}; {what} has {', '.join(needed)}")
    kinds = {**needed, **{n: kind for n, kind in (optional or {}).items() if n in names}}
    for name, kind in kinds.items():
        if names.count(name) > 1:
            raise InputError(f"{path}: column {name!r} is there twice")
        found = table.schema.field(name).type
        empty = pa.types.is_null(found) and name not in needed
        if not empty and not _KINDS[kind][1](found):
            raise InputError(f"{path}: column {name!r} is {found}, but must hold {kind}")
    table = _cast(table, kinds, path)
    for name in needed:
        if table[name].null_count:
            raise InputError(f"{path}: a null in column {name!r}")
    return table


def _table(given: Given) -> pa.Table:
    try:
        table = pq.read_table(pa.BufferReader(given.data), partitioning=None)
        _ = table.column_names  # names that are no text fail where they are first looked at
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{given.where}: no Parquet file: {_first_line(error)}") from error
    return table


def _cast(table: pa.Table, kinds: Mapping[str, str], path: str) -> pa.Table:
    schema = pa.schema([(n, _KINDS[kind][0]) for n, kind in kinds.items()], table.schema.metadata)
    try:
        made = table.select(list(kinds)).cast(schema)
        made.validate(full=True)  # text that is not UTF-8 would fail where it is first looked at
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: {_first_line(error)}") from error
    return made


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
