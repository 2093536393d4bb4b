"""A card of a document: its name, its title and its opening words, taken from it as they stand.

No model writes them, so that a card is the same on every machine.
"""

from __future__ import annotations

import re

import pyarrow as pa

ROUTING_CHARS = 1000
"""A card that a document is chosen by: about what an encoder of 256 word pieces reads."""

PREFIX_CHARS = 300
"""A card in front of a chunk's text, to which it must leave room."""

_WORD = re.compile(r"\S+")
_TOKEN = re.compile(r"[^\W_]+")


def cards(documents: pa.Table, chars: int) -> dict[str, str]:
    """Return doc_id -> the card of each row of a ``documents`` table, of at most ``chars``
    characters.

    Three lines: the name (the last part of the doc_id, which is the file's name without its
    extension), the title where it is in other words, and as many words from the beginning of the
    text as fit. White space within a line is one space. A line that does not fit is cut.
    """
    columns = (documents[name].to_pylist() for name in ("doc_id", "title", "text"))
    rows = zip(*columns, strict=True)
    return {doc_id: card(doc_id, title, text, chars) for doc_id, title, text in rows}


def card(doc_id: str, title: str, text: str, chars: int) -> str:
    """Return the card of one document; see :func:`cards`."""
    name = doc_id.rpartition("/")[2]
    heads = [name] if _tokens(title) in ([], _tokens(name)) else [name, title]
    head = "\n".join(" ".join(line.split()) for line in heads)
    opening = _opening(text.removeprefix("\ufeff"), chars - len(head) - 1)
    return f"{head}\n{opening}"[:chars].rstrip()


def carded(texts: list[str], doc_ids: list[str], card_of: dict[str, str]) -> list[str]:
    """Return each text behind the card of its document, a blank line between the two."""
    return [f"{card_of[d]}\n\n{text}" for d, text in zip(doc_ids, texts, strict=True)]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _opening(text: str, chars: int) -> str:
    """Return the first words of a text that fit in ``chars``; at least a part of the first one."""
    words: list[str] = []
    length = -1
    for match in _WORD.finditer(text):
        length += 1 + match.end() - match.start()
        if words and length > chars:
            break
        words.append(match.group())
    return " ".join(words)
