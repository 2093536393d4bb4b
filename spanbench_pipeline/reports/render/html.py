"""A report as one HTML page that needs nothing else: no script, no font, no file, no network.

The page is a template and a style sheet beside this module. Every text and attribute is escaped.
Pictures are inline SVG; colours follow the reader's light or dark setting, and on paper the page is
black on white.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from spanbench_pipeline.reports.render.blocks import (
    FORMATS,
    Block,
    Code,
    Column,
    Heading,
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
from spanbench_pipeline.reports.render.svg import panel

TEMPLATE, STYLE = "page.html.j2", "page.css"
"""Files beside this module."""

_KINDS = {
    "code": Code,
    "heading": Heading,
    "items": Items,
    "paragraph": Paragraph,
    "picture": Picture,
    "quote": Quote,
    "strong": Strong,
    "table": Table,
}
"""What the template calls a kind of block or of words -> its class."""


def render(report: Report) -> str:
    """Return the report as one self-contained page."""
    environment = _environment()
    style, _, _ = environment.loader.get_source(environment, STYLE)  # type: ignore[union-attr]
    sections = [block for block in report.blocks if _is_section(block)]
    page = environment.get_template(TEMPLATE)
    return page.render(report=report, sections=sections, style=Markup(style)) + "\n"


def fingerprint() -> str:
    """Return a hash of the template and the style sheet: what decides a page beside Python code."""
    folder = Path(__file__).parent
    texts = [(folder / name).read_bytes() for name in (TEMPLATE, STYLE)]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.PackageLoader(__package__, "."),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"line": _line, "written": _written, "drawn": _drawn}
    environment.tests |= {name: _is_a(kind) for name, kind in _KINDS.items()}
    environment.tests |= {"section": _is_section, "figures": _has_figures}
    return environment


def _is_a(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_section(block: Block) -> bool:
    return isinstance(block, Heading) and block.level == 2


def _has_figures(column: Column) -> bool:
    return FORMATS[column.format].figures


def _line(text: str, keep_ends: bool = False) -> str:
    """Return ``text`` on one line; with ``keep_ends`` a space stays at either end."""
    if not keep_ends:
        return fold(text)
    lead = " " if text[:1].isspace() else ""
    tail = " " if text[-1:].isspace() and text.strip() else ""
    return f"{lead}{fold(text)}{tail}"


def _written(value: Value, column: Column) -> str:
    return write(value, column.format)


def _drawn(one: Panel) -> Markup:
    """Return a panel as SVG, which has been escaped where it was drawn."""
    return Markup(panel(one))
