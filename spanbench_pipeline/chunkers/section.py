"""Pieces that follow a contract's sections: from heading to heading, short ones joined, long cut.

Headings are those that ``headers`` knows (Article, Section, numbers), lines in capitals, items such
as ``(a)``, and the lines that open an Exhibit, Schedule, Annex, Appendix or Attachment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spanbench_pipeline.core.headers import headers

TILES = True
OVERLAPS = True

_ITEM = r"\((?:[a-z]{1,2}|[ivx]{1,5}|[A-Z]|[0-9]{1,2})\)[ \t]"
_ATTACHED = (
    r"(?:EXHIBIT|Exhibit|SCHEDULE|Schedule|ANNEX|Annex|APPENDIX|Appendix|ATTACHMENT|Attachment)"
    r'[ \t]+["“]?[A-Z0-9][A-Za-z0-9.()-]{0,9}["”]?[ \t]*(?:$|[\r:–—-])'
)
_HEADING = re.compile(rf"^[ \t]*(?:{_ITEM}|{_ATTACHED})|(?<=[.;:])[ \t]{{2,}}{_ITEM}", re.MULTILINE)
_SHORT_LINE = re.compile(r"^[^\r\n]{3,120}\r?$", re.MULTILINE)
_LETTER = re.compile(r"[^\W\d_]")


def chunk(
    text: str, *, cap: int = 512, floor: int = 200, overlap: int = 64
) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each piece, in code points; together they hold the whole text.

    A heading belongs to what it heads: a section shorter than ``floor`` is joined with the ones
    behind it until they reach it, the last one with the one before it. So no piece is shorter,
    unless the text is. One longer than ``cap`` is cut into pieces of at most ``cap``, each of which
    begins with the last ``overlap`` characters of the one before it; elsewhere no two share any.
    """
    if not text:
        return []
    starts = _joined(headings(text), len(text), floor)
    pieces: list[tuple[int, int]] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        pieces += _cut(text, start, end, cap, floor, overlap)
    return pieces


def sizes(*, cap: int, floor: int, overlap: int) -> tuple[int, int]:
    """Return fewest and most characters of a piece."""
    return max(1, min(floor, cap)), cap


def problem(*, cap: int, floor: int, overlap: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    for name, value in (("floor", floor), ("overlap", overlap)):
        if value < 0:
            return f"{name} = {value} is below 0"
    least = 2 * max(floor, overlap + 1)
    if cap < least:
        return (
            f"cap = {cap} is below {least}: a piece that is too long could not be cut into pieces "
            f"of floor = {floor} that share overlap = {overlap}"
        )
    return None


def headings(text: str) -> list[int]:
    """Return where headings start, their indentation included, ascending.

    A line in capitals has 3 to 120 characters, three letters at least and no small one; of several
    such lines in a row the first is the heading.
    """
    found = {match.start() for match in _HEADING.finditer(text)}
    return sorted(found | set(headers(text)) | set(_capitals(text)))


def _capitals(text: str) -> Iterator[int]:
    """Yield where lines in capitals start that no such line precedes."""
    behind = -1
    for match in _SHORT_LINE.finditer(text):
        line = match.group()
        if line.isupper() and len(_LETTER.findall(line)) >= 3:
            if match.start() != behind:
                yield match.start()
            behind = match.end() + 1  # where the next line starts


def _joined(starts: list[int], end: int, floor: int) -> list[int]:
    """Return the starts that remain when a piece shorter than ``floor`` takes in the one behind
    it.
    """
    kept = [0]
    for start in starts:
        if start - kept[-1] >= max(floor, 1):
            kept.append(start)
    if len(kept) > 1 and end - kept[-1] < floor:
        kept.pop()
    return kept


def _cut(
    text: str, start: int, end: int, cap: int, floor: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Yield ``text[start:end]`` as pieces of at most ``cap`` characters and at least ``floor``."""
    step = max(floor, overlap + 1)
    while end - start > cap:
        # Late enough for this piece to reach the floor, early enough for the one behind it.
        cut = _place(text, start + step, min(start + cap, end + overlap - step))
        yield start, cut
        start = cut - overlap
    yield start, end


def _place(text: str, low: int, high: int) -> int:
    """Return where to cut, within ``low`` and ``high``.

    Behind the last ``". "`` there, else behind the last ``"; "``, the last newline, the last space,
    else at ``high``.
    """
    for mark in (". ", "; ", "\n", " "):
        at = text.rfind(mark, low - 1, high + len(mark) - 1)
        if at >= 0:
            return at + 1
    return high
