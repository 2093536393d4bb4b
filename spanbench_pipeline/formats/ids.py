"""Ids for formats that part columns by white space: percent-encoded, so that no id is cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import quote, unquote

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import suggested

_PLAIN = "/:,;@&=+!*'()"


def encode(name: str) -> str:
    """Return an id as one word of ASCII: every other character as the percent-encoded bytes of
    UTF-8.
    """
    return quote(name, safe=_PLAIN)


def closest(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown id: the nearest known one, and how many there
    are.
    """
    return f"{suggested(name, known)} ({len(known):,} known)"


def decoder(names: Iterable[str], known: Collection[str], what: str, where: str) -> dict[str, str]:
    """Return each id of a file -> the known id that it stands for.

    A file has all its ids encoded, as :func:`encode` does, or none: the first where every decoded
    id is known, else the second. Raises InputError for an id that is not known in either reading,
    and for a file that both readings fit with other ids.
    """
    given = dict.fromkeys(names)
    encoded = {name: unquote(name) for name in given}
    plain = {name: name for name in given}
    fits = [reading for reading in (encoded, plain) if _all(reading, known)]
    if len(fits) == 2 and fits[0] != fits[1]:
        odd = next(name for name in given if encoded[name] != name)
        raise InputError(
            f"{where}: {what} {odd!r} is one {what} as it stands and another one percent-decoded; "
            "give the rankings as JSON lines, where ids are never encoded"
        )
    if fits:
        return fits[0]
    for name in given:
        if name not in known and encoded[name] not in known:
            raise InputError(f"{where}: {unknown(what, name, known, encoded[name])}")
    odd = next(name for name in given if encoded[name] not in known)
    raise InputError(f"{where}: {what} {odd!r} is not percent-encoded, but others are")


def _all(reading: dict[str, str], known: Collection[str]) -> bool:
    return all(name in known for name in reading.values())


MOST_SHOWN = 200
"""Characters of an id that a message quotes, and compares with others."""


def unknown(what: str, name: str, known: Collection[str], meant: str | None = None) -> str:
    """Return a message about an id that is not known, with the nearest to it, or to what it
    ``meant``.
    """
    near = closest((meant or name)[:MOST_SHOWN], known)
    return f"unknown {what} {name[:MOST_SHOWN]!r}{near}"
