"""Pieces that follow a contract's own structure: split at headers, fold short ones, cut long ones.

White space in and before a header is spaces and tabs, never a newline: with newlines allowed, the
number in a page's footer and the capital that opens the next page would make a header. Headers do
not overlap: in ``1.   Section 2`` the number is the header, and what it took begins no other.
"""

from __future__ import annotations

import re

TILES = True
OVERLAPS = False

_ROMAN = "[IVXLC]{1,6}"
_DOTTED = r"[0-9]+(?:\.[0-9]+)*"
_FORMS = (
    rf"(?:ARTICLE|Article)[ \t]+(?:{_ROMAN}|[0-9]+)\b",
    rf"(?:SECTION|Section)[ \t]+{_DOTTED}\b",
    rf'{_DOTTED}[ \t]*\.?[ \t]*["“(]?[A-Z]',
    rf"{_ROMAN}\.[ \t]+[A-Z]",
)
_PLACE = r"(?:^[ \t]*|(?<=[.;:\]])[ \t]{2,})"
_HEADER = re.compile(rf"{_PLACE}(?:{'|'.join(_FORMS)})", re.MULTILINE)


def chunk(text: str, *, min_chars: int = 200, max_chars: int = 2000) -> list[tuple[int, int]]:
    """``[start, end)`` of each piece, in code points, end to end over the whole text.

    A piece runs from one header to the next, the text before the first header being one too. A
    piece shorter than ``min_chars`` joins the piece before it; one longer than ``max_chars`` is cut
    by :func:`_cut` until it is not.
    """
    if not text:
        return []
    starts = _fold(sorted({0, *headers(text)}), len(text), min_chars)
    pieces: list[tuple[int, int]] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        while end - start > max_chars:
            cut = _cut(text, start, min_chars, max_chars)
            pieces.append((start, cut))
            start = cut
        pieces.append((start, end))
    return pieces


def headers(text: str) -> list[int]:
    """Where headers start, their indentation included, ascending; [] in a text that has none."""
    return [match.start() for match in _HEADER.finditer(text)]


def problem(*, min_chars: int, max_chars: int) -> str | None:
    """What is wrong with the parameters, for the person who set them; None if nothing is."""
    if min_chars < 0:
        return f"min_chars = {min_chars} is below 0"
    if max_chars <= min_chars:
        return f"max_chars = {max_chars} is not above min_chars = {min_chars}"
    return None


def _fold(starts: list[int], end: int, min_chars: int) -> list[int]:
    """The starts that remain when short pieces join the one before; the first always does."""
    ends = [*starts[1:], end]
    long = [s for s, e in zip(starts[1:], ends[1:], strict=True) if e - s >= min_chars]
    return [starts[0], *long]


def _cut(text: str, start: int, min_chars: int, max_chars: int) -> int:
    """Where to cut a piece that is too long.

    After the period of the last ``". "`` between ``min_chars`` and ``max_chars``, else after the
    last newline there, else at ``max_chars``.
    """
    low, high = start + min_chars, start + max_chars
    for mark in (". ", "\n"):
        at = text.rfind(mark, low, high)
        if at >= 0:
            return at + 1
    return high
