"""A report as one HTML page that needs nothing else: no script, no font, no file, no network.

Every text and attribute is escaped. Pictures are inline SVG; colours follow the reader's light or
dark setting, and on paper the page is black on white.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spanbench_pipeline.reports.render.blocks import (
    FORMATS,
    Block,
    Code,
    Column,
    Heading,
    Inline,
    Items,
    Paragraph,
    Picture,
    Quote,
    Report,
    Strong,
    Table,
    Value,
    write,
)
from spanbench_pipeline.reports.render.svg import escape, panel

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5a6473; --paper: #fff; --line: #d5dae2;
  --shade: #f3f5f8; --bar: #9fb0c8; --mark: #b4521e; --marked: #fbeee6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #a0aaba; --paper: #14181f;
  --line: #343c49; --shade: #1d232d; --bar: #5b6f8f; --mark: #f09a66; --marked: #35261d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 80rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; }
h2 { font-size: 1.3rem; margin-top: 2.4rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin-top: 1.6rem; }
p, li { max-width: 46rem; }
a { color: inherit; }
nav ul { columns: 16rem; padding-left: 1.2rem; }
code { font: .9em ui-monospace, monospace; }
td code, th code { white-space: nowrap; }
blockquote { margin: .5rem 0 1rem; padding: .5rem 1rem; border-left: 3px solid var(--bar);
  background: var(--shade); max-width: 46rem; }
.source { margin-bottom: .25rem; color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem;
  position: sticky; left: 0; max-width: calc(100vw - 2rem); }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { background: var(--shade); white-space: nowrap; }
tbody th { white-space: nowrap; }
td:last-child:not(.figures) { min-width: 15rem; }
th.figures, td.figures { text-align: right; white-space: nowrap; }
tr.marked > * { background: var(--marked); font-weight: 600; }
figure { margin: 1.2rem 0; }
figcaption { color: var(--soft); margin-bottom: .6rem; }
.panels { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); }
svg { width: 100%; max-width: 26rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .title { font-weight: 600; font-size: 13px; }
svg .track { fill: var(--shade); }
svg .bar { fill: var(--bar); }
svg .bar.marked { fill: var(--mark); }
@media screen and (max-width: 60rem) {
  td:last-child:not(.figures) { min-width: 24rem; }
  tr > :first-child { position: sticky; left: 0; background: var(--paper); }
  thead tr > :first-child { background: var(--shade); }
  tr.marked > :first-child { background: var(--marked); }
  tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; max-width: 11rem; }
}
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --paper: #fff; --line: #999;
    --shade: #f0f0f0; --bar: #999; --mark: #333; --marked: #e8e8e8; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll { overflow: visible; }
  table { font-size: 8.5pt; }
  th, td { padding: .2rem .4rem; }
  thead { display: table-header-group; }
  tr, svg, blockquote { break-inside: avoid; }
  h2, h3, figcaption, .source { break-after: avoid; }
  svg, th, tr { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def render(report: Report) -> str:
    """The report as one self-contained page."""
    title = escape(report.title)
    body = [f"<h1>{title}</h1>"]
    if report.contents:
        body.append(_contents(report.blocks))
    section = 0
    for block in report.blocks:
        if isinstance(block, Heading) and block.level == 2:
            section += 1
            body.append(f'<h2 id="section-{section}">{escape(block.text)}</h2>')
        else:
            body.append(_RENDERERS[type(block)](block))
    return _PAGE.format(title=title, style=_STYLE, body="\n".join(body))


def _contents(blocks: Sequence[Block]) -> str:
    sections = [b.text for b in blocks if isinstance(b, Heading) and b.level == 2]
    links = "".join(
        f'<li><a href="#section-{n}">{escape(text)}</a></li>' for n, text in enumerate(sections, 1)
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _inline(parts: Sequence[Inline]) -> str:
    return "".join(_piece(part) for part in parts)


def _piece(part: Inline) -> str:
    if isinstance(part, Code):
        return f"<code>{escape(part.text)}</code>"
    if isinstance(part, Strong):
        return f"<strong>{escape(part.text)}</strong>"
    lead = " " if part[:1].isspace() else ""
    tail = " " if part[-1:].isspace() and part.strip() else ""
    return f"{lead}{escape(part)}{tail}"


def _heading(block: Heading) -> str:
    return f"<h{block.level}>{escape(block.text)}</h{block.level}>"


def _paragraph(block: Paragraph) -> str:
    return f"<p>{_inline(block.parts).strip()}</p>"


def _items(block: Items) -> str:
    return "<ul>" + "".join(f"<li>{_inline(item).strip()}</li>" for item in block.items) + "</ul>"


def _quote(block: Quote) -> str:
    source = f'<p class="source">{escape(block.source)}:</p>\n' if block.source else ""
    return f"{source}<blockquote>{escape(block.text)}</blockquote>"


def _table(block: Table) -> str:
    heads = "".join(f'<th scope="col"{_side(c)}>{escape(c.title)}</th>' for c in block.columns)
    rows = "\n".join(
        _row(row, block.columns, number in block.marked) for number, row in enumerate(block.rows)
    )
    caption = f"<caption>{escape(block.caption)}</caption>" if block.caption else ""
    label = escape(block.caption or ", ".join(c.title for c in block.columns))
    return (
        # A region that can take the focus, so that the keyboard can scroll it too.
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">\n'
        f"<table>{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n"
        "</div>"
    )


def _row(row: Sequence[Value], columns: Sequence[Column], marked: bool) -> str:
    cells = [_cell(v, c, i == 0) for i, (v, c) in enumerate(zip(row, columns, strict=True))]
    kind = ' class="marked"' if marked else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _cell(value: Value, column: Column, first: bool) -> str:
    text = escape(write(value, column.format))
    if column.format == "code" and value is not None:
        text = f"<code>{text}</code>"
    tag = ("th", ' scope="row"') if first else ("td", "")
    return f"<{tag[0]}{tag[1]}{_side(column)}>{text}</{tag[0]}>"


def _side(column: Column) -> str:
    return ' class="figures"' if FORMATS[column.format].figures else ""


def _picture(block: Picture) -> str:
    panels = "\n".join(panel(one) for one in block.panels)
    caption = escape(block.caption)
    return (
        f"<figure><figcaption>{caption}</figcaption>\n"
        f'<div class="panels">\n{panels}\n</div></figure>'
    )


_RENDERERS: dict[type, Callable[[Any], str]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Items: _items,
    Quote: _quote,
    Table: _table,
    Picture: _picture,
}
