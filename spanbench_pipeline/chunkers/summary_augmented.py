"""The pieces of ``recursive``, each of which is embedded behind a card of its document.

The card (the document's name, title and opening words) tells an encoder what a clause belongs to
that many contracts have in the same words. It is no part of the piece: offsets, BM25 and rerankers
see the piece alone.
"""

from __future__ import annotations

from spanbench_pipeline.chunkers import recursive

TILES = recursive.TILES
OVERLAPS = recursive.OVERLAPS
CARD = True


def chunk(text: str, *, size: int = 500) -> list[tuple[int, int]]:
    """Return ``[start, end)`` of each piece, in code points, as ``recursive`` cuts them."""
    return recursive.chunk(text, size=size)


def sizes(*, size: int) -> tuple[int, int]:
    """Return fewest and most characters of a piece."""
    return recursive.sizes(size=size)


def problem(*, size: int) -> str | None:
    """Return what is wrong with the parameters, for the person who set them; None if nothing is."""
    return recursive.problem(size=size)
