"""Names as keys: what asset keys, tags, files and folders are called after names that people chose.

A key is a name's *slug* wherever no other name of its kind has the same one; else the slug, ``__``
and a hash of the name. No slug holds ``__``, so a hashed key is never another name's slug.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NewType, Self, TypeVar

from spanbench_pipeline.core.codepoints import (
    BLANK_WIDE,
    DIRECTION_CONTROLS,
    DIRECTION_MARKS,
    has_no_width,
)

SLUG = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
MAX_KEY = 200
"""Characters of a key: with an ending, file systems take 255 bytes."""
MAX_TAG = 63
"""Characters of a tag's value, of which Dagster takes no more."""
_DIGITS = (8, 16, 64)
"""Hexadecimal digits of a hash: the first number that tells the keys apart."""
_UNSEEN = {"Cc": "a control character", "Cs": "half a character", "Zl": "a line break"}
_UNSEEN["Zp"] = _UNSEEN["Zl"]
_TURNING = re.compile(f"[{DIRECTION_MARKS}{DIRECTION_CONTROLS}]")
_NAMELESS = "name"
"""Stands for the slug of a name that has none."""

Key = NewType("Key", str)
Named = TypeVar("Named", bound=Hashable)


class Name(str):
    """A name that knows its key, where that is not its slug; equal to the text that it is."""

    __slots__ = ("key",)
    key: Key

    def __new__(cls, name: str, key: Key) -> Self:
        """Return the name with the key that it has among its kind."""
        found = super().__new__(cls, name)
        found.key = key
        return found

    def __reduce__(self) -> tuple[type[Self], tuple[str, Key]]:
        """Return what a copy is made of."""
        return type(self), (str(self), self.key)


def slug(name: str) -> str:
    """Return ``clause + hybrid`` -> ``clause_hybrid``: runs of other characters become one ``_``.

    Empty where a name has no ASCII letter or digit; two names may have one slug.
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def keys(names: Iterable[str]) -> dict[str, Key]:
    """Return a key for each of some names: the slug where it is one's alone.

    Of names with one slug, the one that is its own slug keeps it, else the first in the order of
    code points. So the order in a file changes no key.
    """
    return told_apart({name: slug(name) for name in names})


def with_keys(names: Iterable[str]) -> dict[str, str]:
    """Return the names, and those whose key is not their slug as names that know it."""
    return {
        name: name if key == slug(name) else Name(name, key) for name, key in keys(names).items()
    }


def told_apart(slugs: Mapping[Named, str]) -> dict[Named, Key]:
    """Return a key for each thing that is named, given its slug; no two are alike.

    A thing is a name, or a tuple of what JSON can express.
    """
    owners: dict[str, list[Named]] = {}
    for thing, plain in slugs.items():
        owners.setdefault(plain, []).append(thing)
    found: dict[Named, Key] = {}
    for plain, things in owners.items():
        first, *others = sorted(things, key=lambda thing: (thing != plain, _text(thing)))
        found[first] = Key(plain) if _fits(plain) else hashed(plain, first, ())
        found |= {thing: hashed(plain, thing, ()) for thing in others}
    return _lengthened(slugs, found)


def key_of(thing: Named, plain: str, known: Mapping[Named, Key]) -> Key:
    """Return the key of a thing that may be none of the ``known`` ones; never one of theirs."""
    if thing in known:
        return known[thing]
    taken = set(known.values())
    return Key(plain) if _fits(plain) and plain not in taken else hashed(plain, thing, taken)


def choices(name: str) -> list[Key]:
    """Return what one name may be called where the others are not known, the best first."""
    plain = slug(name)
    return [*([Key(plain)] if _fits(plain) else []), *_hashed(plain, name)]


def hashed(plain: str, thing: Hashable, taken: Collection[str]) -> Key:
    """Return the slug with a hash of what is named, as long as it takes to be none of ``taken``."""
    return next(key for key in _hashed(plain, thing) if key not in taken)


def _hashed(plain: str, thing: Hashable) -> list[Key]:
    digits = hashlib.sha256(_text(thing).encode("utf-8", "surrogatepass")).hexdigest()
    return [Key(_with(plain, digits[:n], MAX_KEY)) for n in _DIGITS]


def _fits(plain: str) -> bool:
    return 0 < len(plain) <= MAX_KEY


def _lengthened(slugs: Mapping[Named, str], found: dict[Named, Key]) -> dict[Named, Key]:
    """Return ``found`` with a longer hash where two hashes begin alike."""
    taken: set[str] = set()
    for thing in sorted(found, key=_text):
        if found[thing] in taken:
            found[thing] = hashed(slugs[thing], thing, taken)
        taken.add(found[thing])
    return found


def tag(key: str) -> str:
    """Return a key as a tag's value: cut, with a hash, where it is longer than a tag may be."""
    if len(key) <= MAX_TAG:
        return key
    return _with(key, hashlib.sha256(key.encode()).hexdigest()[:8], MAX_TAG)


def _with(plain: str, digits: str, most: int) -> str:
    kept = plain[: most - len(digits) - 2].rstrip("_") or _NAMELESS
    return f"{kept}__{digits}"


def _text(thing: Hashable) -> str:
    return thing if isinstance(thing, str) else json.dumps(thing, ensure_ascii=False)


def tidy(name: str) -> str:
    """Return a name with its letters composed (NFC) and one space for each run of white space."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def seen_as(name: str) -> str:
    """Return what a reader sees of a name: tidy, without what has no width, blanks as spaces.

    Two names that are seen as one cannot be told apart in any table.
    """
    shown = (" " if c in BLANK_WIDE else c for c in name if not has_no_width(c))
    return tidy("".join(shown))


def problem(name: str) -> str:
    """Return why a text cannot be a name; empty where it can."""
    for character in name:
        if _TURNING.match(character):
            return f"name {name!r} holds a control of text direction ({character!a})"
        if what := _UNSEEN.get(unicodedata.category(character)):
            return f"name {name!r} holds {what} ({character!r})"
    if not any(character.isalnum() for character in name):
        return f"name {name!r} has no letter or digit"
    return ""
