"""Text as whole code points: surrogates joined, halves refused or shown, blank text told."""

from __future__ import annotations

import re
import unicodedata

from spanbench_pipeline.errors import InputError

BLANK_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
"""Control and format characters, spaces and separators."""
BLANK_OTHERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # joiner, fillers, an empty Braille cell
    "\u180b\u180c\u180d\u180f"  # variation selectors, as are the next ones
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
"""Characters that show nothing although their category is that of letters, marks or symbols."""
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
    """Whether ``text`` shows nothing to a reader, the empty text included.

    White space, a byte order mark, zero-width characters, soft hyphens, and control and format
    characters are blank; a letter, digit, mark, symbol or punctuation sign of any script is not.
    """
    return all(
        unicodedata.category(character) in BLANK_CATEGORIES or character in BLANK_OTHERS
        for character in text
    )


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
        raise InputError(
            f"{where}: character {len(before)} is U+{lone:04X}, half of a UTF-16 surrogate pair "
            f"(after {before[-20:]!r}); it stands for no character, so remove it or restore its "
            "other half"
        ) from error
