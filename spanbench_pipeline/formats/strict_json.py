"""Read JSON strictly: nothing given twice, numbers by their text, every field of its type.

Python's own reading keeps the last of two equal keys, turns 7.0 into a float whose text is lost,
and lets half of a surrogate pair pass for text. Each of them would end as a wrong figure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from spanbench_pipeline.core.codepoints import refuse_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.formats import filetypes

T = TypeVar("T")
BOM = "\ufeff"
_WHOLE_DIGITS = 15


@dataclass(frozen=True)
class Number:
    """A JSON number by its text: ``7``, ``7.0`` and ``1e3`` are three values."""

    text: str

    def __repr__(self) -> str:
        return self.text


def decode(data: bytes, where: str) -> str:
    """Return UTF-8 bytes as text, strictly.

    Raise InputError for bytes that are not UTF-8, naming the first wrong one by offset from 0, and
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
    """Return a JSON value: objects as dict, arrays as list, numbers as :class:`Number`.

    Raise InputError, opening with ``where``, for invalid JSON, a key given twice in one object,
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
    """Return a metadata or filter value as text: a number or bool by its JSON text.

    None for null, an array or an object: they are no value of a field.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, str) else None


def kind(value: Any) -> str:
    """Return what a parsed value is, in JSON's own words."""
    return _NAMES.get(type(value), "null")


_NAMES: dict[type, str] = {
    bool: "a bool",
    Number: "a number",
    int: "a number",
    float: "a number",
    str: "text",
    list: "an array",
    dict: "an object",
}


def field(entry: Any, key: str, wanted: type[T], where: str) -> T:
    """Return ``entry[key]``, which must be text, an array, an object or a whole number (int).

    Raise InputError where the entry is not an object, the key is missing, or its value is of
    another type.
    """
    if not isinstance(entry, dict):
        raise InputError(f"{where}: must be an object with key {key!r}, not {kind(entry)}")
    if key not in entry:
        raise InputError(f"{where}: key {key!r} is missing")
    value = entry[key]
    if wanted is int:
        return cast(T, whole(value, key, where))
    if type(value) is not wanted:
        raise InputError(f"{where}: {key} must be {_NAMES[wanted]}, not {kind(value)}")
    return value


def text(given: Mapping[str, Any], key: str, where: str) -> str | None:
    """Return the text under ``key``; None where it is absent or null."""
    return None if given.get(key) is None else field(given, key, str, where)


def required(given: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text under ``key``, which must be there and not be empty."""
    value = text(given, key, where)
    if not value:
        raise InputError(f"{where}: key {key!r} is {'missing' if value is None else 'empty'}")
    return value


def whole(value: Any, what: str, where: str) -> int:
    """Return a whole number, written as one: 10.0 and "10" are refused."""
    if type(value) is int:  # of a file that is read with Python's own numbers
        return value
    if not isinstance(value, Number):
        raise InputError(f"{where}: {what} must be a whole number, not {shown(value)}")
    return whole_text(value.text, what, where)


def whole_text(digits: str, what: str, where: str) -> int:
    """Return a whole number by its digits, ASCII alone."""
    if not digits.isascii() or not digits.removeprefix("-").isdigit():
        raise InputError(f"{where}: {what} must be a whole number, not {cut(digits)}")
    if len(digits) > _WHOLE_DIGITS:
        raise InputError(f"{where}: {what} {digits[:_WHOLE_DIGITS]}… is beyond any text or list")
    return int(digits)


def known(entry: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    """Raise InputError, with the nearest of ``keys``, for a key that is none of them."""
    for key in entry:
        if key not in keys:
            raise InputError(f"{where}: unknown key {key!r}{nearest(key, keys)}")


def shown(value: Any) -> str:
    """Return a value as a message quotes it."""
    if isinstance(value, str):
        return repr(cut(value))
    return cut(value.text) if isinstance(value, Number) else kind(value)


def cut(text: str) -> str:
    """Return the first 60 characters of a text, with an ellipsis where there are more."""
    return text if len(text) <= 60 else text[:60] + "…"


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
