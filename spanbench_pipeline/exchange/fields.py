"""Fields of parsed JSON, held to what an entry of a ranking needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from spanbench_pipeline.corpora.strict_json import Number, kind
from spanbench_pipeline.errors import InputError

_WHOLE_DIGITS = 15


def text(given: Mapping[str, Any], key: str, where: str) -> str | None:
    """Text under ``key``; None where it is absent or null."""
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: {key} must be text, not {kind(value)}")
    return value


def required(given: Mapping[str, Any], key: str, where: str) -> str:
    """Text under ``key``, which must be there and not be empty."""
    value = text(given, key, where)
    if not value:
        raise InputError(f"{where}: key {key!r} is {'missing' if value is None else 'empty'}")
    return value


def whole(value: Any, what: str, where: str) -> int:
    """A whole number, written as one: 10.0 and "10" are refused."""
    if not isinstance(value, Number) or not value.text.removeprefix("-").isdigit():
        raise InputError(f"{where}: {what} must be a whole number, not {shown(value)}")
    if len(value.text) > _WHOLE_DIGITS:
        raise InputError(f"{where}: {what} {value.text[:_WHOLE_DIGITS]}… is beyond any text")
    return int(value.text)


def offset(given: Mapping[str, Any], key: str, where: str) -> int | None:
    """The offset under ``start`` or ``start_char`` (``end`` alike), not both; None for neither."""
    names = [name for name in (key, f"{key}_char") if given.get(name) is not None]
    if len(names) > 1:
        raise InputError(f"{where}: give one of {key} and {key}_char, not both")
    return whole(given[names[0]], names[0], where) if names else None


def score(given: Mapping[str, Any], where: str) -> float | None:
    """The number under ``score``; None where it is absent or null."""
    value = given.get("score")
    if value is None:
        return None
    if not isinstance(value, Number):
        raise InputError(f"{where}: score must be a number, not {shown(value)}")
    found = float(value.text)
    if not math.isfinite(found):
        raise InputError(f"{where}: score {value.text} is beyond any number that could order")
    return found


def shown(value: Any) -> str:
    """A value as a message quotes it."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "…")
    return value.text if isinstance(value, Number) else kind(value)
