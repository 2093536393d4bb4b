"""The JSON values of a file: a value a line, values printed over many lines, or an array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import strict_json

Value = tuple[str, Any]
"""where it stands, and what it is"""
_BLANK = " \t\r\n"
_ENDS = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds where a value ends; what it holds is read strictly afterwards."""


def values(text: str, where: str) -> list[Value]:
    """Return every value of the text with its place; an array's items stand for themselves.

    A line is a value where the first line is one. Else values may span lines, one after another.
    Raises InputError naming the line for what is not JSON.
    """
    found = _by_line(text, where) if _first_line_is_whole(text) else _by_value(text, where)
    return [item for place, value in found for item in _items(place, value)]


def _items(where: str, value: Any) -> list[Value]:
    if not isinstance(value, list):
        return [(where, value)]
    return [(f"{where} item {number}", item) for number, item in enumerate(value, 1)]


def _first_line_is_whole(text: str) -> bool:
    first = text.lstrip(_BLANK).partition("\n")[0]
    try:
        return _end(first, 0) == len(first.rstrip(_BLANK))
    except (ValueError, RecursionError):
        return False


def _by_line(text: str, where: str) -> Iterator[Value]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(_BLANK):
            at = f"{where} line {number}"
            if line.rstrip(_BLANK).endswith("},"):
                raise InputError(f"{at}: a comma after the object; JSON lines have none")
            yield at, strict_json.parse(line, at + _asked(line))


def _by_value(text: str, where: str) -> Iterator[Value]:
    at, line = _past_blanks(text, 0), 1
    line += text.count("\n", 0, at)
    while at < len(text):
        place = f"{where} line {line}"
        try:
            end = _end(text, at)
        except json.JSONDecodeError as error:
            told = f"line {error.lineno}, column {error.colno}: {error.msg}"
            begun = f"; the value begins in line {line}" if error.lineno > line else ""
            raise InputError(f"{where}: not valid JSON, {told}{begun}") from error
        except RecursionError as error:
            raise InputError(f"{place}: nested too deep") from error
        yield place, strict_json.parse(text[at:end], place + _asked(text[at:end]))
        before, at = at, _past_blanks(text, end)
        line += text.count("\n", before, at)
        if text[at : at + 1] == ",":
            raise InputError(
                f"{where} line {line}: a comma after the object; JSON lines have none, and an "
                "array stands in [ ]"
            )


_SURROGATE = re.compile(r"\\u[dD]")
_QUERY_ID = re.compile(r'"query_id"\s*:\s*"([^"\\]*)"')


def _asked(text: str) -> str:
    """Return the query that a message about half a surrogate is to name; empty where none can be
    seen.
    """
    found = _QUERY_ID.findall(text) if _SURROGATE.search(text) else []
    return f", query {found[0]}" if len(found) == 1 else ""


def _end(text: str, at: int) -> int:
    return _ENDS.raw_decode(text, at)[1]


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
