"""The answer of ``spanbench sql`` as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from spanbench_pipeline.cli import terminal

_NUMBERS = ("int", "uint", "float", "double", "decimal", "halffloat")
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What a spreadsheet takes for the beginning of a formula (OWASP), the wide forms as well."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_PLAIN_BYTES = set(range(0x20, 0x7F)) - set(b"\\'\"")
_UNITS = (("year", 12), ("month", 1))


def table(result: pa.Table) -> bytes:
    """Aligned columns under a header; control characters are shown, never sent."""
    right = [i for i, f in enumerate(result.schema) if str(f.type).startswith(_NUMBERS)]
    rows = [[_text(v) for v in row.values()] for row in _rows(result)]
    return (terminal.table(_distinct(result.column_names), rows, right) + "\n").encode()


def as_json(result: pa.Table) -> bytes:
    """Return one array of objects.

    Control characters that JSON leaves as they are get its escapes.
    """
    text = json.dumps(
        [{k: _plain(v) for k, v in row.items()} for row in _rows(result)],
        ensure_ascii=False,
        default=str,
        allow_nan=False,
        indent=1,
    )
    return (terminal.visible(text) + "\n").encode()


def as_csv(result: pa.Table) -> bytes:
    """Commas, a header, the values as they are."""
    return _csv(result, lambda cell: cell)


def safe_csv(result: pa.Table) -> bytes:
    """CSV in which no text begins as a formula of a spreadsheet does: an apostrophe stands before.

    Numbers stay numbers, also those that are texts.
    """
    return _csv(result, _safe)


def parquet(result: pa.Table) -> bytes:
    """Return the bytes of a Parquet file."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(result.rename_columns(_distinct(result.column_names)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "table": table,
    "csv": as_csv,
    "json": as_json,
    "parquet": parquet,
}


def _csv(result: pa.Table, cell: Callable[[Any], Any]) -> bytes:
    lines = _Lines()
    # What the end of a line holds is quoted in a cell: so a lone \r is, too.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow([cell(name) for name in _distinct(result.column_names)])
    for row in _rows(result):
        writer.writerow([cell(_cell(value)) for value in row.values()])
    return "".join(lines).encode()


class _Lines(list[str]):
    """The lines that a CSV writer writes, each of which ends in a line feed alone."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    plain = _plain(value) if isinstance(value, bytes | pa.MonthDayNano) else value
    nested = isinstance(plain, dict | list)
    return json.dumps(_plain(plain), ensure_ascii=False, default=str) if nested else plain


def _safe(cell: Any) -> Any:
    if not isinstance(cell, str) or not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        plain = 1e-4 <= abs(value) < 1e15
        return f"{value:.6f}".rstrip("0").rstrip(".") if plain else f"{value:.6g}"
    return str(_cell(value))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: INTERVAL and BLOB as SQL writes them, NaN and infinity as
    text.

    A whole decimal, which DuckDB makes of every sum of integers, is a whole number.
    """
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return "".join(chr(b) if b in _PLAIN_BYTES else f"\\x{b:02X}" for b in value)
    if isinstance(value, pa.MonthDayNano):
        return _interval(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(_plain(k)): _plain(v) for k, v in value.items()}
    return value


def _interval(value: Any) -> str:
    """Return ``1 year 2 months -3 days 04:05:06.5``, as DuckDB casts an INTERVAL to text."""
    parts = []
    months = abs(value.months)
    for unit, size in _UNITS:
        count, months = divmod(months, size)
        parts.append((count if value.months > 0 else -count, unit))
    parts.append((value.days, "day"))
    shown = [f"{n} {unit}{'' if abs(n) == 1 else 's'}" for n, unit in parts if n]
    if value.nanoseconds or not shown:
        shown.append(_clock(value.nanoseconds))
    return " ".join(shown)


def _clock(nanoseconds: int) -> str:
    whole = timedelta(microseconds=abs(nanoseconds) // 1000)
    seconds = whole.days * 86_400 + whole.seconds
    hours, rest = divmod(seconds, 3600)
    parts = f"{hours:02}:{rest // 60:02}:{rest % 60:02}.{whole.microseconds:06}"
    return ("-" if nanoseconds < 0 else "") + parts.rstrip("0").rstrip(".")


def _rows(result: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dictionaries, maps as dictionaries too; equal column names get a number."""
    names = _distinct(result.column_names)
    renamed = result.rename_columns(names)
    return [
        {
            k: dict(v) if _is_map(renamed.schema.field(k)) and v is not None else v
            for k, v in r.items()
        }
        for r in renamed.to_pylist()
    ]


def _is_map(field: Any) -> bool:
    return str(field.type).startswith("map<")


def _distinct(names: list[str]) -> list[str]:
    """Return the names, each but the first of equal ones with the next number that is free."""
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found or (free != name and free in names):
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found
