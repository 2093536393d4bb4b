"""Whether offsets name characters of a document, and those that a file says they name."""

from __future__ import annotations


def outside(start: int, end: int, n_chars: int, doc_id: str) -> str:
    """Return what is wrong with ``[start, end)`` in a text of ``n_chars`` characters; empty:
    nothing.
    """
    if 0 <= start < end <= n_chars:
        return ""
    return (
        f"[{start}, {end}) must satisfy 0 <= start < end <= {n_chars}, the number of characters of "
        f"document {doc_id!r}"
    )


def differing(said: str | None, text: str, place: tuple[str, int, int]) -> str:
    """Return how what a file says stands at a place differs from the text there; empty: not at
    all.
    """
    doc_id, start, end = place
    if said is None or said == text[start:end]:
        return ""
    there = text[start : min(end, start + 60)]
    return (
        f"the text at {doc_id} [{start}, {end}) begins {there!r}, but the file says {said[:60]!r}. "
        "Offsets count Unicode code points, a BOM and both characters of a CR LF included"
    )
