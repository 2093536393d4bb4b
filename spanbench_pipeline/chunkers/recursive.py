"""Recursive character splitting, lossless: as few cuts as fit, at the coarsest separator there is.

A text is split at the first of the separators that it holds; what is still too long is split again
at the ones behind it, and neighbours are joined as long as they fit. This is what LegalBench-RAG's
recursive splitter does, with white space kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

TILES = True
OVERLAPS = False

SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ")
"""From the coarsest to the finest; behind the last one, between any two characters."""


def chunk(text: str, *, size: int = 500) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each piece, in code points, end to end; none is longer than
    ``size``.

    A separator begins the piece that follows it. A blank line is two newlines next to each other:
    with Windows line ends there is none, and lines are split at their newline. What is left of a
    part that was too long is not joined with the part behind it.
    """
    return list(_split(text, 0, len(text), size, SEPARATORS)) if text else []


def sizes(*, size: int) -> tuple[int, int]:
    """Return fewest and most characters of a piece."""
    return 1, size


def problem(*, size: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    return f"size = {size} is below 1" if size < 1 else None


def _split(
    text: str, start: int, end: int, size: int, separators: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    """Yield the pieces of ``text[start:end]``, which is not empty."""
    while separators and text.find(separators[0], start, end) < 0:
        separators = separators[1:]
    if not separators:
        yield from ((at, min(at + size, end)) for at in range(start, end, size))
        return
    bounds = [*_bounds(text, start, end, separators[0]), end]
    at = 0
    while at < len(bounds) - 1:
        last = bisect_right(bounds, bounds[at] + size, at) - 1
        if last > at:
            yield bounds[at], bounds[last]
            at = last
        else:
            yield from _split(text, bounds[at], bounds[at + 1], size, separators[1:])
            at += 1


def _bounds(text: str, start: int, end: int, separator: str) -> Iterator[int]:
    """Yield ``start`` and where each separator behind it stands, ascending; they do not overlap."""
    yield start
    found = text.find(separator, start, end)
    while found >= 0:
        if found > start:
            yield found
        found = text.find(separator, found + len(separator), end)
