"""The calibration page: what was compared with what, how often, and how far apart they were."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from spanbench_pipeline.calibration.tally import Tally
from spanbench_pipeline.calibration.worked_cases import CASES, facts
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Column,
    Heading,
    Items,
    Report,
    Strong,
    Table,
    Value,
    paragraph,
)


def difference(tally: Tally) -> str:
    """The largest difference as it is written: exact ones as 0."""
    if not tally.n:
        return ""
    return "0" if tally.largest == 0 else f"{tally.largest:.1e}"


def report(tallies: Sequence[Tally], settings: Mapping[str, str]) -> Report:
    """The whole page."""
    blocks: list[Block] = [
        Heading("What this page is"),
        paragraph(
            "Every figure that spanbench reports comes from the functions that were called here, "
            "in the same way. They were held to cases worked out by hand, to a brute force that "
            "counts characters one by one, to a published formula, to another library, and to "
            "themselves: a mean to its parts."
        ),
        Table(
            (Column("what"), Column("value", "code")),
            tuple((name, value) for name, value in settings.items()),
        ),
    ]
    for against, of_kind in itertools.groupby(tallies, key=lambda tally: tally.against):
        blocks += _section(against, list(of_kind))
    return Report("Calibration of the ruler", (*blocks, *_vectors()), contents=True)


def _section(against: str, tallies: Sequence[Tally]) -> list[Block]:
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (t.what, t.n, difference(t), f"{t.tolerance:g}", t.result) for t in tallies
    )
    columns = (
        Column("compared"),
        Column("cases", "count"),
        Column("largest difference"),
        Column("allowed"),
        Column("result"),
    )
    blocks: list[Block] = [Heading(f"Against {against}"), Table(columns, rows)]
    wrong = [(t.what, line) for t in tallies for line in t.wrong]
    if wrong:
        blocks.append(Items(tuple((Strong(what), f": {line}") for what, line in wrong)))
    return blocks


def _vectors() -> list[Block]:
    rows: list[tuple[Value, ...]] = []
    for case in CASES:
        found = facts(case)
        for name, expected in case.expected.items():
            shown = (_shown(expected), _shown(found[name]))
            rows.append((case.ranked, case.gold, name, *shown, case.why))
    columns = (
        Column("ranked", "code"),
        Column("gold", "code"),
        Column("what", "code"),
        Column("by hand"),
        Column("measured"),
        Column("why"),
    )
    return [Heading("The golden vectors"), Table(columns, tuple(rows))]


def _shown(value: float | str | None) -> str:
    return "none" if value is None else value if isinstance(value, str) else f"{value:.6g}"
