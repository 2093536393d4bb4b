"""Every picture that is drawn: bars, histograms and lines, as SVG.

Inside a report's page a panel takes the page's colours. A picture that must stand alone, as an
image in the web UI does, brings its own, which read on a light and on a dark ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as _escape

from spanbench_pipeline.reports.render.blocks import Bar, Panel, fold, write

PANEL_WIDTH = 320
_ROW_HEIGHT = 34
_TITLE_HEIGHT = 24
_NAME_CHARS = 40
_GAP = 24

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#7d8696}.title{font-weight:600;font-size:13px}"
    ".track{fill:#7d869633}.bar{fill:#7b93b8}.marked{fill:#d0662a}"
)
"""The colours of a picture that stands alone: mid tones, legible on white and on black."""

_LINE_COLOURS = ("#d0662a", "#5b7fc4", "#3f9c74", "#a66bbf", "#b8932e", "#4f9fb5", "#c2577a")
"""One a line of a chart, in turn; the marked line has the first."""


@dataclass(frozen=True)
class Histogram:
    """Counts in equal steps from ``low`` to ``high``; ``mark`` is a place on the same scale."""

    counts: tuple[int, ...]
    low: str
    high: str
    mark: float
    """From 0 (the left end) to 1 (the right end)."""
    marked: str
    """What stands at the mark."""


@dataclass(frozen=True)
class Line:
    """Values from 0 to 1 in the order of the runs; None where a run has none."""

    name: str
    values: tuple[float | None, ...]


def escape(text: str) -> str:
    """Return ``text`` on one line, for an element's content or an attribute in double quotes."""
    return _escape(fold(text), quote=True)


def panel(drawn: Panel) -> str:
    """Return bars on one scale, as an element of a page that has styles for them."""
    said = "; ".join(f"{bar.name}: {write(bar.value, drawn.format)}" for bar in drawn.bars)
    label = escape(f"{drawn.title}. {said}")
    return (
        f'<svg viewBox="0 0 {PANEL_WIDTH} {_height(drawn)}" role="img" aria-label="{label}">'
        f"{_bars(drawn)}</svg>"
    )


def panels(drawn: Sequence[Panel], columns: int = 2) -> str:
    """Panels in rows of ``columns``, as a picture that stands alone."""
    parts = []
    top = 0
    for start in range(0, len(drawn), columns):
        row = drawn[start : start + columns]
        for number, one in enumerate(row):
            left = number * (PANEL_WIDTH + _GAP)
            parts.append(f'<g transform="translate({left} {top})">{_bars(one)}</g>')
        top += max(_height(one) for one in row) + _GAP
    wide = min(columns, len(drawn))
    return alone("".join(parts), wide * PANEL_WIDTH + (wide - 1) * _GAP, top - _GAP, _STYLE)


def histogram(drawn: Histogram, width: int = 440, height: int = 90) -> str:
    """Return columns side by side above their scale, the mark as a line; small enough to inline."""
    step = width / len(drawn.counts)
    most = max(drawn.counts) or 1
    columns = "".join(
        f"M{n * step:.0f} {height}v-{_tall(count, most, height)}h{step - 1:.0f}V{height}z"
        for n, count in enumerate(drawn.counts)
        if count
    )
    at = round(width * min(max(drawn.mark, 0.0), 1.0))
    side = "end" if drawn.mark > 0.5 else "start"
    shift = -4 if side == "end" else 4
    body = (
        f"<path fill='#7b93b8' d='{columns}'/>"
        f"<path stroke='gray' d='M0 {height}h{width}'/>"
        f"<path stroke='#d0662a' stroke-width='2' d='M{at} 0v{height}'/>"
        f"<g font-family='sans-serif' font-size='12' fill='gray'>"
        f"<text x='{at + shift}' y='11' text-anchor='{side}'>{escape(drawn.marked)}</text>"
        f"<text y='{height + 14}'>{escape(drawn.low)}</text>"
        f"<text x='{width}' y='{height + 14}' text-anchor='end'>{escape(drawn.high)}</text></g>"
    )
    return alone(body, width, height + 18)


def lines(title: str, drawn: Sequence[Line], ends: tuple[str, str]) -> str:
    """Return one line a name, from 0 to 1 over the runs, the newest at the right; names below."""
    width, height, top = 640, 220, 24
    marks = "".join(
        f'<path stroke="#7d869655" d="M0 {top + height * (1 - v):.0f}h{width}"/>'
        f'<text x="{width + 6}" y="{top + height * (1 - v) + 4:.0f}">{v:g}</text>'
        for v in (0, 0.25, 0.5, 0.75, 1)
    )
    curves = "".join(
        _curve(line, _colour(n), width, height, top) + _legend(line, n, top + height + 44)
        for n, line in enumerate(drawn)
    )
    body = (
        f'<text class="title" x="0" y="13">{escape(title)}</text>{marks}{curves}'
        f'<text x="0" y="{top + height + 16}">{escape(ends[0])}</text>'
        f'<text x="{width}" y="{top + height + 16}" text-anchor="end">{escape(ends[1])}</text>'
    )
    return alone(body, width + 40, top + height + 40 + 18 * len(drawn), _STYLE)


def alone(body: str, width: int, height: int, style: str = "") -> str:
    """Return a picture that stands alone, with a size of its own."""
    styled = f"<style>{style}</style>" if style else ""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>{styled}{body}</svg>"
    )


def _height(drawn: Panel) -> int:
    return _TITLE_HEIGHT + _ROW_HEIGHT * len(drawn.bars)


def _bars(drawn: Panel) -> str:
    bars = "".join(
        _bar(bar, drawn, _TITLE_HEIGHT + _ROW_HEIGHT * n) for n, bar in enumerate(drawn.bars)
    )
    return f'<text class="title" x="0" y="13">{escape(drawn.title)}</text>{bars}'


def _bar(bar: Bar, drawn: Panel, top: int) -> str:
    name = fold(bar.name)
    shown = name if len(name) <= _NAME_CHARS else name[: _NAME_CHARS - 1] + "…"
    length = PANEL_WIDTH * (bar.value or 0.0) / drawn.maximum
    left = round(PANEL_WIDTH * bar.start / drawn.maximum, 1)
    kind = "bar marked" if bar.marked else "bar"
    return (
        f"<g><title>{escape(name)}</title>"
        f'<text x="0" y="{top + 12}">{escape(shown)}</text>'
        f'<text x="{PANEL_WIDTH}" y="{top + 12}" text-anchor="end">'
        f"{escape(write(bar.value, drawn.format))}</text>"
        f'<rect class="track" x="0" y="{top + 17}" width="{PANEL_WIDTH}" height="9"/>'
        f'<rect class="{kind}" x="{left:g}" y="{top + 17}" '
        f'width="{length:.1f}" height="9"/></g>'
    )


def _tall(count: int, most: int, height: int) -> int:
    """Height of a column; one that counts anything is seen."""
    return max(1, round((height - 18) * count / most))


def _colour(number: int) -> str:
    return _LINE_COLOURS[number % len(_LINE_COLOURS)]


def _curve(line: Line, colour: str, width: int, height: int, top: int) -> str:
    """Return a line with a dot a run; it breaks where a run has no value."""
    step = width / max(len(line.values) - 1, 1)
    path, dots, pen = "", "", "M"
    for number, value in enumerate(line.values):
        if value is None:
            pen = "M"
            continue
        x, y = f"{number * step:.1f}", f"{top + height * (1 - value):.1f}"
        path, pen = f"{path}{pen}{x} {y}", "L"
        dots += f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    return f'<path fill="none" stroke="{colour}" stroke-width="2" d="{path}"/>{dots}'


def _legend(line: Line, number: int, top: int) -> str:
    last = next((v for v in reversed(line.values) if v is not None), None)
    return (
        f'<circle cx="6" cy="{top + 18 * number - 4}" r="5" fill="{_colour(number)}"/>'
        f'<text x="18" y="{top + 18 * number}">{escape(line.name)}  '
        f"{escape(write(last, 'number'))}</text>"
    )
