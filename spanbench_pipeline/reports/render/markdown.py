"""A report as GitHub-flavoured Markdown.

Every character that could start markup is escaped, and words of a document stand in fenced blocks
whose fence is longer than any run of backticks in them: text stays text.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from spanbench_pipeline.reports.render.blocks import (
    FORMATS,
    Block,
    Code,
    Heading,
    Inline,
    Items,
    Panel,
    Paragraph,
    Picture,
    Quote,
    Report,
    Strong,
    Table,
    Value,
    fold,
    write,
)

_WIDTH = 96
_BAR_WIDTH = 40
_MARKUP = re.compile(
    r"[\\`*\[\]<>|~$]"  # markup wherever it stands
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore inside a word is only itself
    r"|&(?=[#A-Za-z])"  # what would read as an entity
    r"|:(?=//)|(?<=[Ww]{3})\.|@(?!\d)"  # what would become a link or a mention; not precision@5
)
_BLOCK_START = re.compile(r"^(\d+(?=[.)])|(?=[-+=#]))")


def render(report: Report) -> str:
    """Return the report as Markdown, ending in one newline."""
    parts = [_heading(Heading(report.title, 1)), *(_block(block) for block in report.blocks)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Return ``text`` on one line, without anything that Markdown would take for markup in a
    line.
    """
    return _MARKUP.sub(lambda found: "\\" + found.group(), fold(text))


def code(text: str) -> str:
    """Return ``text`` as an inline code span, whatever it holds."""
    folded = fold(text)
    fence = "`" * (_longest_run(folded) + 1)
    pad = " " if folded.startswith("`") or folded.endswith("`") else ""
    return f"{fence}{pad}{folded}{pad}{fence}" if folded else ""


def _block(block: Block) -> str:
    return _RENDERERS[type(block)](block)


def _inline(parts: Sequence[Inline]) -> str:
    return "".join(_piece(part) for part in parts)


def _piece(part: Inline) -> str:
    if isinstance(part, Code):
        return code(part.text)
    if isinstance(part, Strong):
        return f"**{escape(part.text)}**"
    lead = " " if part[:1].isspace() else ""
    tail = " " if part[-1:].isspace() and part.strip() else ""
    return f"{lead}{escape(part)}{tail}"


def _heading(block: Heading) -> str:
    # A heading may end in number signs, which belong to the markup.
    text = escape(block.text).replace("#", "\\#")
    return f"{'#' * block.level} {text}"


def _line(parts: Sequence[Inline]) -> str:
    """Return pieces as a line of their own, which must not open a list or a heading."""
    return _BLOCK_START.sub(r"\1\\", _inline(parts).strip())


def _paragraph(block: Paragraph) -> str:
    return _line(block.parts)


def _items(block: Items) -> str:
    return "\n".join(f"- {_line(item)}" for item in block.items)


def _quote(block: Quote) -> str:
    folded = fold(block.text)
    fence = "`" * max(3, _longest_run(folded) + 1)
    lines = textwrap.wrap(folded, _WIDTH, break_long_words=False, break_on_hyphens=False)
    quoted = "\n".join([f"{fence}text", *lines, fence])
    return f"{_line((block.source,))}:\n\n{quoted}" if block.source else quoted


def _table(block: Table) -> str:
    rule = ["---:" if FORMATS[c.format].figures else "---" for c in block.columns]
    lines = [_row([escape(c.title) for c in block.columns]), _row(rule)]
    for number, row in enumerate(block.rows):
        cells = [_cell(v, c.format) for v, c in zip(row, block.columns, strict=True)]
        lines.append(_row([_mark(cell) for cell in cells] if number in block.marked else cells))
    caption = [_line((block.caption,)), ""] if block.caption else []
    return "\n".join([*caption, *lines])


def _cell(value: Value, format_name: str) -> str:
    # A table splits at a pipe even inside a code span, unless one backslash stands before it.
    if format_name == "code" and value is not None and "\\|" not in str(value):
        return code(str(value)).replace("|", "\\|")
    return escape(write(value, format_name))


def _mark(cell: str) -> str:
    return f"**{cell}**" if cell else cell


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _picture(block: Picture) -> str:
    lines = [line for panel in block.panels for line in (*_panel(panel), "")][:-1]
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    drawn = "\n".join([f"{fence}text", *lines, fence])
    return f"{_line((block.caption,))}\n\n{drawn}"


def _panel(panel: Panel) -> list[str]:
    width = max((len(fold(bar.name)) for bar in panel.bars), default=0)
    lines = [fold(panel.title)]
    for bar in panel.bars:
        left = round(_BAR_WIDTH * bar.start / panel.maximum)
        right = round(_BAR_WIDTH * (bar.start + (bar.value or 0.0)) / panel.maximum)
        drawn = "·" * left + ("█" if bar.marked else "▒") * (right - left)
        shown = f"{drawn} {write(bar.value, panel.format)}".strip()
        lines.append(f"  {fold(bar.name):<{width}}  {shown}")
    return lines


def _longest_run(text: str) -> int:
    """Length of the longest run of backticks."""
    return max((len(run) for run in re.findall("`+", text)), default=0)


_RENDERERS: dict[type, Callable[[Any], str]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Items: _items,
    Quote: _quote,
    Table: _table,
    Picture: _picture,
}
