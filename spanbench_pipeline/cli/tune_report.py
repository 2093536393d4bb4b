"""What ``spanbench tune`` found, as a terminal shows it and as a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.reports.render import markdown
from spanbench_pipeline.reports.render.blocks import (
    FORMATS,
    Block,
    Code,
    Column,
    Heading,
    Items,
    Report,
    Table,
    Value,
    paragraph,
    write,
)
from spanbench_pipeline.tuning.routing_sweep import HARMS, HELPS, NO_QUERIES, OFF, OPEN

CAUTION = (
    "The held-out figures are the ones to report: a run over the corpus measures the tuned "
    "configuration on all queries, those it was tuned on included. Queries are drawn as if each "
    "were of a document of its own; where few documents are held out, the intervals are too narrow."
)
_VERDICTS = {
    OFF: "no: development chooses no routing",
    HELPS: "yes, with {routing} documents kept",
    HARMS: "no: development chooses {routing} documents, and held-out queries lose by it",
    OPEN: "not shown: development chooses {routing} documents, held-out queries do not confirm it",
    NO_QUERIES: "cannot be said: one side of the split has no query",
}
_CHANGE = (
    Column("difference", "signed"),
    Column("low", "signed"),
    Column("high", "signed"),
    Column("p"),
)
_HELD_OUT = (
    Column("queries"),
    Column("n", "count"),
    Column("untuned", "number"),
    Column("chosen", "number"),
    *_CHANGE,
)
_SWEEP = (
    Column("queries"),
    Column("routing"),
    Column("constants"),
    Column("side"),
    Column("n", "count"),
    Column("routing recall", "number"),
    Column("metric", "number"),
    Column("chars", "count"),
    *_CHANGE,
)
_SIDES = {"development": "development", "held_out": "held out"}


def text(results: Sequence[Mapping[str, Any]], files: Sequence[Path]) -> str:
    """Return all results as a terminal shows them, with the lines for the experiment file."""
    parts = [_split(results[0])]
    for result, path in zip(results, files, strict=True):
        parts.append(f"{result['configuration']}: {_chose(result)}")
        parts += [f"{table.caption}\n{_aligned(table)}" for table in _tables(result)]
        if result["routing"]:
            parts.append("\n".join(["does routing help?", *(f"  {v}" for v in _verdicts(result))]))
        parts.append(f"for the experiment file:\n{result['lines']}")
        parts.append(f"all of it: {near(path)} and .json beside it")
    return "\n\n".join([*parts, CAUTION])


def markdown_page(result: Mapping[str, Any]) -> str:
    """Return one result as Markdown, ending in the lines for the experiment file."""
    blocks: list[Block] = [paragraph(_split(result)), paragraph(_chose(result)), *_tables(result)]
    if result["routing"]:
        blocks.append(Heading("Does routing help?"))
        blocks.append(Items(tuple((line,) for line in _verdicts(result))))
    for side, title in (("development", "Tuned on"), ("held_out", "Held out")):
        blocks.append(Heading(f"{title}: the queries about"))
        blocks.append(Items(tuple((Code(d),) for d in result["split"][side]["documents"])))
    blocks.append(Heading("For the experiment file"))
    blocks.append(paragraph(CAUTION))
    title = f"{result['corpus']}: {result['configuration']}, tuned for {result['metric']}"
    fence = "`" * 3  # no line of TOML begins with one
    page = markdown.render(Report(title, tuple(blocks)))
    return f"{page}\n{fence}toml\n{result['lines']}\n{fence}\n"


def _split(result: Mapping[str, Any]) -> str:
    counts = {
        side: f"{len(part['queries'])} queries about {len(part['documents'])} documents"
        for side, part in result["split"].items()
    }
    return (
        f"{result['corpus']}, tuned for {result['metric']} on {counts['development']} "
        f"(share {result['share']}, seed {result['seed']}); held out: {counts['held_out']}"
    )


def _chose(result: Mapping[str, Any]) -> str:
    if result["chosen"] == result["untuned"]:
        return f"nothing on the grid is better than the untuned {_constants(result['untuned'])}"
    return f"chosen {_constants(result['chosen'])}; untuned {_constants(result['untuned'])}"


def _constants(settings: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in settings.items() if value is not None}
    return ", ".join(f"{key} = {value}" for key, value in shown.items())


def _tables(result: Mapping[str, Any]) -> list[Table]:
    held_out = tuple(
        (_of(row), row["n"], row["before"], row["after"], *_change(row))
        for row in result["held_out"]
    )
    tables = [Table(_HELD_OUT, held_out, f"{result['metric']} on held-out queries")]
    if result["sweep"]:
        rows = tuple(line for row in result["sweep"] for line in _swept(row))
        caption = f"routing: {result['metric']}, at each depth's best constants on development"
        tables.append(Table(_SWEEP, rows, caption))
    return tables


def _swept(row: Mapping[str, Any]) -> list[tuple[Value, ...]]:
    """Return two rows: a setting on both sides, and what it changed on the held-out one."""
    constants = {key: row.get(key) for key in ("routing_alpha", "alpha", "rrf_k")}
    names = (_of(row), str(row["routing"] or "off"), _constants(constants) or "none")
    rows: list[tuple[Value, ...]] = []
    for side, called in _SIDES.items():
        means = (row[side][key] for key in ("n", "routing_recall", "value", "chars"))
        changed = (row["change"] if side == "held_out" else None) or {}
        rows.append((*names, called, *means, *_change(changed)))
    return rows


def _change(row: Mapping[str, Any]) -> tuple[Value, ...]:
    p = row.get("p")
    moved = (row.get(key) for key in ("difference", "low", "high"))
    return (*moved, None if p is None else _p(p))


def _p(p: float) -> str:
    """Return p to three decimals; it is never 0."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _of(row: Mapping[str, Any]) -> str:
    return row["subset"] or "all"


def _verdicts(result: Mapping[str, Any]) -> list[str]:
    """Return a line for each subset: whether routing helps there."""
    lines = []
    for row in result["routing"]:
        line = f"{_of(row)}: {_VERDICTS[row['verdict']].format(routing=row['routing'])}"
        if row["routing"] and row["n"]:
            line += f" ({row['difference']:+.3f}, p {_p(row['p'])}, n {row['n']})"
        lines.append(line)
    return lines


def _aligned(table: Table) -> str:
    columns = table.columns
    rows = [
        [write(value, column.format) for value, column in zip(row, columns, strict=True)]
        for row in table.rows
    ]
    right = [i for i, column in enumerate(columns) if FORMATS[column.format].figures]
    return terminal.table([column.title for column in columns], rows, right)
