"""JSON as people write it for measurement: nothing given twice, numbers by their text.

Python's own reading keeps the last of two equal keys, turns 7.0 into a float whose text is lost,
and lets half of a surrogate pair pass for text. Each of them would end as a wrong figure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from spanbench_pipeline.core.codepoints import refuse_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import filetypes

BOM = "\ufeff"


@dataclass(frozen=True)
class Number:
    """A JSON number by its text: ``7``, ``7.0`` and ``1e3`` are three values."""

    text: str

    def __repr__(self) -> str:
        return self.text


def decode(data: bytes, where: str) -> str:
    """UTF-8 bytes as text, strictly.

    Raises InputError for bytes that are not UTF-8, naming the first wrong one by offset from 0, and
    for those that are no text all the same, such as UTF-16 without a mark; either says what the
    file seems to be.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where}: not UTF-8: byte {error.start} (0x{data[error.start]:02x}, line {line}) "
            f"cannot be decoded ({error.reason}). "
            + (filetypes.seems(data) or "Save the file as UTF-8.")
        ) from error
    if why := filetypes.why_no_text(data):
        raise InputError(f"{where}: {why}")
    return text


def parse(text: str, where: str) -> Any:
    """A JSON value: objects as dict, arrays as list, numbers as :class:`Number`.

    Raises InputError, opening with ``where``, for invalid JSON, a key given twice in one object,
    NaN and the infinities, half of a surrogate pair, or nesting too deep to read.
    """

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise InputError(f"{where}: key {twice!r} is given twice in one object")
        return found

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{where}: {constant} is not valid JSON")

    try:
        value = json.loads(
            text,
            object_pairs_hook=object_of,
            parse_int=Number,
            parse_float=Number,
            parse_constant=refuse,
        )
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if "\n" not in text else f"line {error.lineno}"
        raise InputError(f"{where}: not valid JSON, {at}: {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deep") from error
    if "\\u" in text:
        for inner in _strings(value):
            refuse_halves(inner, where)
    return value


def field_text(value: Any) -> str | None:
    """A metadata or filter value as text: a string as it is, a number or bool by its JSON text.

    None for null, an array or an object: they are no value of a field.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, str) else None


def kind(value: Any) -> str:
    """What a parsed value is, in JSON's own words."""
    names = {bool: "a bool", Number: "a number", str: "text", list: "an array", dict: "an object"}
    return names.get(type(value), "null")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
