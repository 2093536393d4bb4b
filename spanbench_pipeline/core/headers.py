"""Where the headers of a contract stand.

White space in and before a header is spaces and tabs, never a newline: with newlines allowed, the
number in a page's footer and the capital that opens the next page would make a header. Headers do
not overlap: in ``1.   Section 2`` the number is the header, and what it took begins no other.
"""

from __future__ import annotations

import re

_ROMAN = "[IVXLC]{1,6}"
_DOTTED = r"[0-9]+(?:\.[0-9]+)*"
_FORMS = (
    rf"(?:ARTICLE|Article)[ \t]+(?:{_ROMAN}|[0-9]+)\b",
    rf"(?:SECTION|Section)[ \t]+{_DOTTED}\b",
    # One run of white space, or two with a period between: two side by side would share a run in
    # as many ways as it is long.
    rf'{_DOTTED}[ \t]*(?:\.[ \t]*)?["“(]?[A-Z]',
    rf"{_ROMAN}\.[ \t]+[A-Z]",
)
_PLACE = r"(?:^[ \t]*|(?<=[.;:\]])[ \t]{2,})"
_HEADER = re.compile(rf"{_PLACE}(?:{'|'.join(_FORMS)})", re.MULTILINE)


def headers(text: str) -> list[int]:
    """Return where headers start, their indentation included, ascending; [] in a text that has
    none.
    """
    return [match.start() for match in _HEADER.finditer(text)]
