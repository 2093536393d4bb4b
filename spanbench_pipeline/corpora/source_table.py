"""Another [source] table in an experiment file that a person may have edited, the rest untouched.

Comments, order, quotes and line ends stay; only the lines of settings that differ change.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, Item, Table, Whitespace

from spanbench_pipeline.core.errors import InputError

Values = Mapping[str, tuple[Any, str]]
"""Each setting with its value, and with that value as TOML writes it."""
BOM = "\ufeff"
_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_SOURCE = re.compile(r"""^[ \t]*\[[ \t]*["']?source["']?[ \t]*\]""", re.MULTILINE)


def replaced(text: str, source: Values, path: Path) -> str:
    """Return ``text``, the content of the file at ``path``, with ``source`` as its [source] table.

    Raises InputError, saying what to write by hand, where that cannot be done without touching
    the rest.
    """
    bom = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(bom)
    wanted = {key: value for key, (value, _) in source.items()}
    try:
        before = tomllib.loads(text)
        nested = any(isinstance(value, dict) for value in dict(before.get("source", {})).values())
        made = None if nested else _edited(text, source, before)
        if made is not None and tomllib.loads(made) == {**before, "source": wanted}:
            return bom + made
    except (TOMLKitError, tomllib.TOMLDecodeError):
        pass  # as where the table is in no place of its own
    table = "\n".join(f"{key} = {written}" for key, (_, written) in source.items())
    raise InputError(
        f"{path}: its source settings are not one table under [source], which alone could be "
        f"replaced; write it so, and register the corpus again:\n[source]\n{table}"
    )


def _edited(text: str, source: Values, before: Mapping[str, Any]) -> str | None:
    """Return ``text`` with its [source] table edited; None where it has none in one piece."""
    place = _place(text, before)
    if place is None:
        return None
    start, end = place
    # Of the table alone: the library would bring arrays of tables that lie apart together.
    table = tomlkit.parse(text[start:end])
    line_end = "\r\n" if "\r\n" in text else "\n"
    _update(cast("Table", table["source"]), source, line_end)
    made = tomlkit.dumps(table)
    apart = "" if made.endswith("\n") or end == len(text) else line_end
    return text[:start] + made + apart + text[end:]


def _place(text: str, before: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return where [source] stands, header included, up to the next header or the end.

    A line that looks like a header may be one of a text over several lines; so both the table and
    the rest are held to what the whole text says.
    """
    headers = [match.start() for match in _HEADER.finditer(text)]
    rest = {key: value for key, value in before.items() if key != "source"}
    for start in (match.start() for match in _SOURCE.finditer(text)):
        for end in [at for at in headers if at > start] + [len(text)]:
            without = text[:start] + text[end:]
            if _is(text[start:end], {"source": before.get("source")}) and _is(without, rest):
                return start, end
    return None


def _is(text: str, value: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == value
    except tomllib.TOMLDecodeError:
        return False


def _update(table: Table, source: Values, line_end: str) -> None:
    """Write changed settings in place, and new ones at the end."""
    for key in [key for key in table if key not in source]:
        del table[key]
    for key, (value, written) in source.items():
        if key not in table:
            _add(table, key, tomlkit.value(written), line_end)
        elif type(table.unwrap()[key]) is not type(value) or table[key] != value:
            table[key] = tomlkit.value(written)


def _add(table: Table, key: str, item: Item, line_end: str) -> None:
    """Behind the last setting: blank lines and comments at the end belong to what follows."""
    body = table.value.body
    behind = []
    while body and body[-1][0] is None:
        behind.append(body.pop()[1])
    item.trivia.trail = line_end
    table.add(key, item)
    for other in reversed(behind):
        if isinstance(other, Comment | Whitespace):  # not what a setting that went left behind
            table.append(None, other)
