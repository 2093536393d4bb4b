"""The fields of a ranking's entry, read from parsed JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats.strict_json import Number, cut, shown, text, whole

PLACES = ("doc_id", "start", "end", "start_char", "end_char")
ENTRY = (*PLACES, "chunk_id", "score", "text", "rank")
"""The keys of an entry that say something to score; every other is left alone."""


def statements(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what an entry says of itself, by field of ``Entry``; None for what it leaves open."""
    rank = value.get("rank")
    return {
        **{key: text(value, key, where) for key in ("doc_id", "chunk_id", "text")},
        **{key: offset(value, key, where) for key in ("start", "end")},
        "score": score(value, where),
        "rank": None if rank is None else whole(rank, "rank", where),
    }


def others(value: Mapping[str, Any], known: Collection[str], where: str) -> set[str]:
    """Return the keys that are not ``known``; InputError for one that is a known key in other
    letters.

    ``docId`` beside ``doc_id`` may say something else, and left alone nobody would see it.
    """
    found = set(value) - set(known)
    by_letters = {_letters(key): key for key in known}
    for key in sorted(found):
        if (meant := by_letters.get(_letters(key))) is not None:
            raise InputError(f"{where}: unknown key {key!r}; did you mean {meant!r}?")
    return found


def _letters(key: str) -> str:
    return "".join(c for c in key.lower() if c.isalnum())


def offset(given: Mapping[str, Any], key: str, where: str) -> int | None:
    """Return the offset under ``start`` or ``start_char`` (``end`` alike), not both; None for
    neither.
    """
    names = [name for name in (key, f"{key}_char") if given.get(name) is not None]
    if len(names) > 1:
        raise InputError(f"{where}: give one of {key} and {key}_char, not both")
    return whole(given[names[0]], names[0], where) if names else None


def score(given: Mapping[str, Any], where: str) -> float | None:
    """Return the number under ``score``; None where it is absent or null."""
    value = given.get("score")
    if value is None:
        return None
    if not isinstance(value, Number):
        raise InputError(f"{where}: score must be a number, not {shown(value)}")
    found = float(value.text)
    if not math.isfinite(found):
        raise InputError(f"{where}: score {cut(value.text)} is beyond any number that could order")
    return found
