"""Whether offsets name characters of a document."""

from __future__ import annotations


def outside(start: int, end: int, n_chars: int, doc_id: str) -> str:
    """What is wrong with ``[start, end)`` in a text of ``n_chars`` characters; empty: nothing."""
    if 0 <= start < end <= n_chars:
        return ""
    return (
        f"[{start}, {end}) must satisfy 0 <= start < end <= {n_chars}, the number of characters of "
        f"document {doc_id!r}"
    )
