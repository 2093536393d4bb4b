"""Windows of whole sentences, which repeat the last sentences of the window before them.

Where a sentence ends is told by rules: behind ``.``, ``!`` or ``?`` (with closing quotes and
brackets) and before white space, and at a blank line. A period ends none behind an abbreviation, an
initial or a number that opens a line, nor before a small letter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

TILES = True
OVERLAPS = True

_ABBREVIATIONS = frozenset(
    {"bros", "cf", "co", "corp", "dr", "esq", "etc", "inc", "jr", "ltd", "messrs", "mr", "mrs"}
    | {
        "ms",
        "prof",
        "sr",
        "st",
        "v",
        "vs",
        "e.g",
        "i.e",
        "u.s",
        "u.k",
        "n.a",
        "l.p",
        "l.l.c",
        "p.c",
    }
)
_BEFORE_NUMBERS = frozenset(
    {"art", "ch", "eq", "fig", "no", "nos", "p", "para", "pp", "sec", "vol"}
)
"""Abbreviations where a digit follows, and else words that may end a sentence."""
_END = re.compile(
    r"""(?P<mark>[.!?])["”’')\]]*(?=\s+(?P<next>\S)|\s*\Z)"""
    r"|(?<=\S)(?=[^\S\n]*\n[^\S\n]*\n)"
)
_WORD = re.compile(r"""(?P<opens>(?:\A|\n|[.!?;:])\s*)?(?P<word>[^\s(\["“]*)\Z""")
_NUMBER = re.compile(r"[0-9.]+|[IVXLC]+")
_LOOK_BACK = 24
"""How many characters before a period are looked at for the word it stands behind."""


def chunk(text: str, *, size: int = 512, overlap: int = 128) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each window, in code points; together they hold the whole text.

    A window holds as many whole sentences as fit in ``size`` characters and ends where one ends,
    white space going to the sentence behind it. It begins with the last sentences of the window
    before it, as many as ``overlap`` characters hold and as leave room for the next one. A sentence
    longer than ``size`` is cut before the last space or newline that keeps its parts within it,
    else at ``size``: only there does a window end inside a sentence.
    """
    if not text:
        return []
    bounds = [0, *_parts(text, size)]
    windows: list[tuple[int, int]] = []
    first = 0
    while True:
        last = bisect_right(bounds, bounds[first] + size) - 1
        windows.append((bounds[first], bounds[last]))
        if last == len(bounds) - 1:
            return windows
        reach = max(bounds[last] - overlap, bounds[last + 1] - size)
        first = max(first + 1, bisect_left(bounds, reach, 0, last))


def sizes(*, size: int, overlap: int) -> tuple[int, int]:
    """Return fewest and most characters of a piece."""
    return 1, size


def problem(*, size: int, overlap: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    if overlap < 0:
        return f"overlap = {overlap} is below 0"
    if size <= overlap:
        return f"size = {size} is not above overlap = {overlap}"
    return None


def sentence_ends(text: str) -> list[int]:
    """Return where sentences end, ascending and each once; the last one is the end of the text.

    White space at the end of the text belongs to its last sentence.
    """
    ends = {m.end() for m in _END.finditer(text) if m["mark"] != "." or _ends(text, m)}
    last = len(text.rstrip())
    return [*sorted(end for end in ends if 0 < end < last), len(text)]


def _ends(text: str, period: re.Match[str]) -> bool:
    """Return whether a sentence ends behind this period."""
    at = period.start()
    before = _WORD.search(text, max(0, at - _LOOK_BACK), at)
    word = before["word"] if before else ""
    numbered = before is not None and before["opens"] is not None and _NUMBER.fullmatch(word)
    initial = len(word) == 1 and word.isupper()
    following = period["next"] or ""
    known = _ABBREVIATIONS | _BEFORE_NUMBERS if following.isdigit() else _ABBREVIATIONS
    return not (following.islower() or initial or numbered or word.lower() in known)


def _parts(text: str, size: int) -> Iterator[int]:
    """Yield where sentences end, and where those longer than ``size`` are cut."""
    start = 0
    for end in sentence_ends(text):
        while end - start > size:
            start = _before_space(text, start, start + size)
            yield start
        if end > start:
            yield end
            start = end


def _before_space(text: str, start: int, high: int) -> int:
    """Return the place of the last space or newline in ``text[start + 1 : high + 1]``, else
    ``high``.
    """
    at = max(text.rfind(mark, start + 1, high + 1) for mark in (" ", "\n"))
    return at if at > 0 else high
