"""Windows of one size, a fixed step apart, that know nothing of the text."""

from __future__ import annotations

TILES = True
OVERLAPS = True


def chunk(text: str, *, size: int = 1000, step: int = 850) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each window, in code points; [] for an empty text.

    A window starts every ``step`` characters and holds ``size``; the first one that reaches the
    end of the text is the last.
    """
    if not text:
        return []
    last = max(0, -((size - len(text)) // step))  # windows that end before the text does
    return [(i * step, min(i * step + size, len(text))) for i in range(last + 1)]


def sizes(*, size: int, step: int) -> tuple[int, int]:
    """Return fewest and most characters of a window; the last one of a text may be shorter."""
    return size, size


def problem(*, size: int, step: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    if step < 1:
        return f"step = {step} is below 1"
    if size < step:
        return f"size = {size} is below step = {step}, which would leave gaps"
    return None
