"""Pieces that follow a contract's structure: split at headers, fold short ones, cut long ones."""

from __future__ import annotations

from spanbench_pipeline.core.headers import headers

TILES = True
OVERLAPS = False


def chunk(text: str, *, min_chars: int = 200, max_chars: int = 2000) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each piece, in code points, end to end over the whole text.

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


def sizes(*, min_chars: int, max_chars: int) -> tuple[int, int]:
    """Return fewest and most characters of a piece: the first one, and what a cut leaves, may be
    short.
    """
    return 1, max_chars


def problem(*, min_chars: int, max_chars: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    if min_chars < 0:
        return f"min_chars = {min_chars} is below 0"
    if max_chars <= min_chars:
        return f"max_chars = {max_chars} is not above min_chars = {min_chars}"
    return None


def _fold(starts: list[int], end: int, min_chars: int) -> list[int]:
    """Return the starts that remain when short pieces join the one before; the first always
    does.
    """
    ends = [*starts[1:], end]
    long = [s for s, e in zip(starts[1:], ends[1:], strict=True) if e - s >= min_chars]
    return [starts[0], *long]


def _cut(text: str, start: int, min_chars: int, max_chars: int) -> int:
    """Return where to cut a piece that is too long.

    After the period of the last ``". "`` between ``min_chars`` and ``max_chars``, else after the
    last newline there, else at ``max_chars``.
    """
    low, high = start + min_chars, start + max_chars
    for mark in (". ", "\n"):
        at = text.rfind(mark, low, high)
        if at >= 0:
            return at + 1
    return high
