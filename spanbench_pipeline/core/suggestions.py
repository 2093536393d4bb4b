"""Texts that look alike and are not equal: which known one was meant, and what differs.

For messages alone. Nothing is ever taken for equal here: what was given is refused, and the
message says what would have been right.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice

from spanbench_pipeline.core.codepoints import without_width

MOST_COMPARED = 5000
"""Known names that are compared with an unknown one by similarity: no message may take seconds."""
MOST_FOLDED = 20_000
"""Known names that are compared with an unknown one after folding."""
MOST_PLACES = 100
"""Places of a folded text that are looked at."""
LONGEST = 200
"""Characters of a name that is compared by similarity."""

_LATIN = str.maketrans(
    "асеорхуѕіјһԛԝԁАВСЕНІЈКМОРЅТХУ" + "αονΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aceopxysijhqwdABCEHIJKMOPSTXY" + "aovABEZHIKMNOPTYX",
)
_QUOTES = str.maketrans("‘’‚‛′‵`´“”„‟″‶«»", "'" * 8 + '"' * 8)
_DASHES = str.maketrans("‐‑‒–—―−﹘﹣－", "-" * 10)
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n\r\x85\u2028\u2029]")


@lru_cache(maxsize=1)
def _marks() -> str:
    """Return the combining marks, which may follow a letter, for a class in a pattern."""
    blocks = (*range(0x300, 0x10000), *range(0x10000, 0x1E000))
    return re.escape("".join(chr(c) for c in blocks if unicodedata.combining(chr(c))))


FOLDS: dict[str, Callable[[str], str]] = {
    "invisible characters": lambda text: re.sub(f"[{without_width()}]", "", text),
    "line ends": lambda text: _LINE_ENDS.sub("\n", text),
    "kinds of space": lambda text: _SPACES.sub(" ", text),
    "line breaks and runs of white space": lambda text: re.sub(r"\s+", " ", text),
    "quotation marks": lambda text: text.translate(_QUOTES),
    "dashes": lambda text: text.translate(_DASHES),
    "composed or decomposed letters (NFC)": lambda text: unicodedata.normalize("NFD", text),
    "ligatures or compatibility characters (NFKC)": lambda text: unicodedata.normalize(
        "NFKD", text
    ),
    "look-alike letters of another script": lambda text: text.translate(_LATIN),
    "capitals": str.casefold,
}
"""What two texts may differ in and look alike, by its name, and how to make it no difference.

In the order in which they are applied, and of two that explain a difference the first does.
"""

EDGES = "white space at its edges"


@dataclass(frozen=True)
class Place:
    """Where a text would stand, ``[start, end)``, if ``differences`` were none.

    They are names of FOLDS, and EDGES.
    """

    start: int
    end: int
    differences: tuple[str, ...]


def folded(text: str, names: Collection[str] = tuple(FOLDS)) -> str:
    """Return ``text`` without the differences of these names."""
    for name, fold in FOLDS.items():
        if name in names:
            text = fold(text)
    return text


def differences(one: str, other: str) -> tuple[str, ...] | None:
    """Return the names of FOLDS that make two texts equal, as few as will do; None where none
    do.
    """
    if one == other:
        return ()
    if folded(one) != folded(other):
        return None
    for name in FOLDS:
        if folded(one, [name]) == folded(other, [name]):
            return (name,)
    names = list(FOLDS)
    for name in FOLDS:
        fewer = [other_name for other_name in names if other_name != name]
        if folded(one, fewer) == folded(other, fewer):
            names = fewer
    return tuple(names)


def find(part: str, text: str) -> Place | None:
    """Return where ``part`` would stand in ``text`` but for FOLDS.

    With the fewest of them; of equally many those that come first, then the first place. Where it
    stands nowhere with the white space at its edges, it is looked for without that.
    """
    found = _find(part, text)
    if found is None and part != part.strip():
        inner = _find(part.strip(), text)
        found = inner and Place(inner.start, inner.end, (EDGES, *inner.differences))
    return found


def _find(part: str, text: str) -> Place | None:
    wanted = folded(part)
    if not wanted.strip():
        return None
    whole, folded_starts, starts = _folded_with_offsets(text)
    found = []
    for at in islice(occurrences(wanted, whole), MOST_PLACES):
        start = starts[bisect_right(folded_starts, at) - 1]
        end = starts[bisect_right(folded_starts, at + len(wanted) - 1)]
        names = differences(part, text[start:end])
        if names is not None:
            found.append(Place(start, end, names))
    order = list(FOLDS)

    def rank(place: Place) -> tuple[int, list[int], int]:
        names = place.differences
        return len(names), [order.index(name) for name in names], place.start

    return min(found, key=rank, default=None)


def first_difference(given: str, there: str) -> str:
    """Return ``character 3 is U+00A0 there and U+0020 here``: where two texts part."""
    at = next(
        (i for i, (a, b) in enumerate(zip(given, there, strict=False)) if a != b),
        min(len(given), len(there)),
    )
    return f"character {at} is {_named(there, at)} there and {_named(given, at)} here"


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the nearest valid one, and all of them."""
    names = list(valid)
    return f"{suggested(name, names)} (valid: {', '.join(names) or 'none'})"


def suggested(name: str, known: Collection[str], here: str = "this") -> str:
    """Return the hint of a message about an unknown name: the known one that was meant; "" if none
    is.

    One that looks the same is shown with its code points escaped and what differs; else it is the
    most similar one.
    """
    whole = folded(name)
    alike = next((k for k in islice(known, MOST_FOLDED) if folded(k) == whole and k != name), None)
    if alike is not None:
        what = " and ".join(differences(name, alike) or ())
        return f"; did you mean {alike!r}? They differ in {what}: {alike!a}, but {here} is {name!a}"
    close = difflib.get_close_matches(name[:LONGEST], list(islice(known, MOST_COMPARED)), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


@lru_cache(maxsize=2)
def _folded_with_offsets(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the folded text; where each cluster of ``text`` starts in it, and in ``text``.

    A cluster is what folds apart from its neighbours: a run of white space and invisible
    characters, or a character with its combining marks. Both lists have the end as well.
    """
    cluster = re.compile(rf"[\s{without_width()}]+|.[{_marks()}]*", re.DOTALL)
    memo: dict[str, str] = {}
    pieces, lengths = [], []
    for piece in cluster.findall(text):
        if piece not in memo:
            memo[piece] = folded(piece)
        pieces.append(memo[piece])
        lengths.append(len(piece))
    starts = list(accumulate(lengths, initial=0))
    return "".join(pieces), list(accumulate(map(len, pieces), initial=0)), starts


def occurrences(part: str, text: str) -> Iterator[int]:
    """Yield where ``part`` stands in ``text``, ascending, overlapping ones included."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _named(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    name = unicodedata.name(text[at], "")
    return f"U+{ord(text[at]):04X}" + (f" ({name})" if name else "")
