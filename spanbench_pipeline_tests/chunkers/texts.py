"""Texts that chunkers must survive: separators in every order, other scripts, odd line ends."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = (
    "a",
    "The",
    "Fee",
    "shall",
    "end",
    "x" * 30,
    "(a)",
    "(iv)",
    "1.",
    "2.3",
    "Inc.",
    "e.g.",
    "J.",
)
MARKS = (
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\r\n\r\n",
    "\t",
    ".",
    "!",
    "?",
    ":",
    ";",
    ",",
    ". ",
    "; ",
)
HEADS = ("ARTICLE I", "TERM AND FEES", "Exhibit A", "SCHEDULE 1.2 - Fees", "Section 4.", "ÉTÉ ÎLE")
ODD = ("é", "e\u0301", "律", "🙂", "\u00a0", "\ufeff", "\u2028", "“", "”", "İ", "\x0c")

TEXTS = (
    st.lists(st.sampled_from(WORDS + MARKS + HEADS + ODD), max_size=120).map("".join) | st.text()
)
"""Contract-like texts of up to some hundred characters, and any text at all."""


def held(pieces: list[tuple[int, int]]) -> list[set[int]]:
    """The characters of each piece, one by one."""
    return [set(range(start, end)) for start, end in pieces]
