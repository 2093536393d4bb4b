"""What a report is made of, before it is Markdown or HTML.

Text is plain: a renderer escapes all of it, so nothing that a document, a query or a name holds
can become markup. ``Code`` and ``Strong`` are the only markup there is inside a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from spanbench_pipeline.core.codepoints import CONTROL_CODES, DIRECTION_CONTROLS

Value = str | int | float | bool | None
"""What a table cell or a bar holds; None is shown as a dash, never as a zero."""

DASH = "–"
_CONTROL = re.compile(f"[{CONTROL_CODES}{DIRECTION_CONTROLS}]")


@dataclass(frozen=True)
class Code:
    """A name or an id, in type that shows every character apart."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Words that carry the line."""

    text: str


Inline = str | Code | Strong


@dataclass(frozen=True)
class Heading:
    """A section's title; level 2 opens a section, 3 a part of one."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of pieces that follow one another without a space of their own."""

    parts: tuple[Inline, ...]


@dataclass(frozen=True)
class Items:
    """A list, one line of pieces an item."""

    items: tuple[tuple[Inline, ...], ...]


@dataclass(frozen=True)
class Quote:
    """Words of a document, white space folded; ``source`` says where they stand."""

    text: str
    source: str = ""


@dataclass(frozen=True)
class Column:
    """A table's column: its title and how its values are written, a key of ``FORMATS``."""

    title: str
    format: str = "text"


@dataclass(frozen=True)
class Table:
    """Rows of values under columns; ``marked`` holds the positions of rows that stand out."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    marked: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.caption!r}: a row is not as wide as the columns")


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length in the panel's units (None: not measured), and its weight.

    ``start`` is where it begins on the scale: a bar of a waterfall begins where the last one ends.
    """

    name: str
    value: float | None
    marked: bool = False
    start: float = 0.0


@dataclass(frozen=True)
class Panel:
    """Bars on one scale from 0 to ``maximum``, values written in ``format``."""

    title: str
    bars: tuple[Bar, ...]
    maximum: float
    format: str = "number"

    def __post_init__(self) -> None:
        if self.maximum <= 0:
            raise ValueError(f"panel {self.title!r}: the scale ends at {self.maximum}")


@dataclass(frozen=True)
class Picture:
    """Panels side by side under one caption."""

    caption: str
    panels: tuple[Panel, ...]


Block = Heading | Paragraph | Items | Quote | Table | Picture


@dataclass(frozen=True)
class Report:
    """A titled sequence of blocks; ``contents``: an HTML page opens with links to the sections."""

    title: str
    blocks: tuple[Block, ...]
    contents: bool = False


@dataclass(frozen=True)
class Format:
    """How a column writes a value, and whether it is aligned right as figures are."""

    write: Callable[[Value], str]
    figures: bool


def paragraph(*parts: Inline) -> Paragraph:
    """Return a paragraph of these pieces."""
    return Paragraph(parts)


def fold(text: str) -> str:
    """Return ``text`` on one line: white space folded; control and direction marks become
    U+FFFD.
    """
    return _CONTROL.sub("\ufffd", " ".join(text.split()))


def write(value: Value, format_name: str) -> str:
    """Return ``value`` as a column of that format shows it; None is a dash."""
    return DASH if value is None else FORMATS[format_name].write(value)


def _number(value: Value) -> str:
    return f"{_real(value):.3f}"


def _signed(value: Value) -> str:
    text = f"{_real(value):+.3f}"
    return "0.000" if text in ("+0.000", "-0.000") else text


def _count(value: Value) -> str:
    return f"{_real(value):,.0f}"


def _share(value: Value) -> str:
    return f"{100 * _real(value):.1f} %"


def _percent(value: Value) -> str:
    return f"{100 * _real(value):.2f} %"


def _yes_no(value: Value) -> str:
    return "yes" if value else "no"


def _text(value: Value) -> str:
    return fold(str(value))


def _real(value: Value) -> float:
    if isinstance(value, str) or value is None:
        raise TypeError(f"a figure is needed, not {value!r}")
    return float(value)


FORMATS = {
    "text": Format(_text, figures=False),
    "code": Format(_text, figures=False),
    "yes/no": Format(_yes_no, figures=False),
    "number": Format(_number, figures=True),
    "signed": Format(_signed, figures=True),
    "count": Format(_count, figures=True),
    "share": Format(_share, figures=True),
    "percent": Format(_percent, figures=True),
}
"""How values are written: three decimals, shares in percent, to two decimals
where others publish them so, counts with thousands apart."""
