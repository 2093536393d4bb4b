"""Text as whole code points: surrogates joined, halves refused or shown, blank text told."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from spanbench_pipeline.core.errors import InputError

CONTROL_CODES = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters but for tab and line feed; like the next three for a class of a pattern."""
LINE_SEPARATORS = "\u2028\u2029"
DIRECTION_MARKS = "\u061c\u200e\u200f"
DIRECTION_CONTROLS = "\u202a-\u202e\u2066-\u2069"
"""With the marks what Unicode calls bidirectional controls: they turn the order in which others
are shown."""
BLANK_CATEGORIES = frozenset({"Cc", "Zs", "Zl", "Zp"})
"""Control characters, spaces and separators."""
BLANK_WIDE = frozenset("\u2800\u3164\uffa0")
"""An empty Braille cell and two fillers: as a space, but symbols and letters by their category."""
_NO_WIDTH_OTHERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5"  # joiner, fillers
    "\u180b\u180c\u180d\u180f"  # variation selectors, as are the next ones
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
"""What has no width although its category is that of letters or marks."""
NO_CHARACTER = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffd"
    + "".join(map(chr, range(0xFFFE, 0x110000, 0x10000)))
    + "".join(map(chr, range(0xFFFF, 0x110000, 0x10000)))
    + "]"
)
"""What a wrong conversion leaves behind and no text holds.

Control characters other than tabulators, line ends and page breaks; U+FFFD, which stands for what
could not be converted; noncharacters.
"""


def is_blank(text: str) -> bool:
    """Return whether ``text`` shows nothing to a reader, the empty text included.

    White space, a byte order mark, zero-width characters, soft hyphens, and control and format
    characters are blank; a letter, digit, mark, symbol or punctuation sign of any script is not.
    """
    return all(
        unicodedata.category(character) in BLANK_CATEGORIES
        or character in BLANK_WIDE
        or has_no_width(character)
        for character in text
    )


def has_no_width(character: str) -> bool:
    """Return whether a character leaves no trace between its neighbours.

    Format characters (zero-width ones, soft hyphens, byte order marks), variation selectors,
    joiners and fillers.
    """
    return unicodedata.category(character) == "Cf" or character in _NO_WIDTH_OTHERS


@lru_cache(maxsize=1)
def without_width() -> str:
    """Return every such character, for a class of a regular expression."""
    blocks = (*range(0x20000), *range(0xE0000, 0xE0200))
    return re.escape("".join(chr(code) for code in blocks if has_no_width(chr(code))))


def join_surrogates(text: str, where: str) -> str:
    """Return ``text`` with each UTF-16 surrogate pair joined into the character it stands for.

    JSON escapes, font maps and file names can hold surrogates one by one; UTF-8 cannot, so a lone
    one would fail wherever the text is first stored. Raises InputError, opening with ``where``, for
    a surrogate without its partner, naming its offset in the joined text.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _joined(text, where)
    return text


def refuse_halves(text: str, where: str) -> None:
    """Raise InputError, opening with ``where``, where ``text`` holds a surrogate, which UTF-8
    cannot.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _half(where, text[: error.start], ord(text[error.start])) from error


def without_halves(text: str) -> str:
    """Return ``text`` with each surrogate as an escape, ``\\udcff``, so that UTF-8 can hold it.

    For what is only shown: Python gives the bytes of a file's name that are no UTF-8 as halves of
    surrogate pairs. In a JSON document the escape is JSON's own.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _joined(text: str, where: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    try:
        return units.decode("utf-16-le")
    except UnicodeDecodeError as error:
        before = units[: error.start].decode("utf-16-le")
        lone = int.from_bytes(units[error.start : error.start + 2], "little")
        raise _half(where, before, lone) from error


def _half(where: str, before: str, lone: int) -> InputError:
    return InputError(
        f"{where}: character {len(before)} is U+{lone:04X}, half of a UTF-16 surrogate pair "
        f"(after {before[-20:]!r}); it stands for no character, so remove it or restore its "
        "other half"
    )
