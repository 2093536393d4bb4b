"""The report of a scored ranking: what was given, every figure, and what could not be measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL as LEVERS
from spanbench_pipeline.reports.explanations import (
    FORENSIC_LABELS,
    LABELS,
    STATES,
    character_lines,
    limits,
    metric_lines,
)
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Block,
    Code,
    Column,
    Heading,
    Items,
    Panel,
    Picture,
    Quote,
    Report,
    Strong,
    Table,
    Value,
    paragraph,
)
from spanbench_pipeline.reports.sections import losses
from spanbench_pipeline.scoring import text as shown
from spanbench_pipeline.scoring.measured import FAILURE_LABELS, NO_CHUNKS, Measured
from spanbench_pipeline.scoring.measured import STAGES as HAS
from spanbench_pipeline.scoring.validated_run import Taken

EXAMPLES = 2
"""Queries shown for each failure label."""
NAMED = 50
"""Missing queries that are named in the report; the JSON names all."""

Blocks = list[Block]


@dataclass(frozen=True)
class Scored:
    """One ranking from elsewhere with everything that was said and measured of it."""

    corpus: str
    config: str
    depth: int
    evalset: EvalSet
    taken: Taken
    measured: Measured
    n_chunks: int | None
    """Chunks of the chunk table; None without one."""
    provenance: Mapping[str, str]
    remarks: tuple[str, ...] = ()
    """How the file stands to what it was scored with, a sentence each, where that must be known."""
    depth_from: str = "the corpus's depth"
    """What says how deep lists are looked at."""
    depth_note: str = ""
    """What else a reader must know of that."""
    context: int = CONTEXT
    """How many chunks a reader is given."""


def report(scored: Scored) -> Report:
    """Return the whole report of one ranking."""
    blocks: Blocks = [
        *_given(scored),
        *_metrics(scored),
        *_characters(scored),
        *_forensic(scored),
        *_failures(scored),
        *_losses(scored),
        Heading("Limits"),
        limits(
            scored.evalset.documents.num_rows,
            scored.evalset.queries.num_rows,
            scored.evalset.gold_spans.num_rows,
            scored.context,
        ),
    ]
    title = f"Rankings from elsewhere: {scored.config}, on {scored.corpus}"
    return Report(title, tuple(blocks), contents=True)


def notes(scored: Scored) -> list[str]:
    """Return what a reader must know of the file, a sentence each; [] where there is nothing."""
    taken, found = scored.taken, list(scored.remarks)
    if taken.missing:
        found.append(
            f"{len(taken.missing)} of {scored.evalset.queries.num_rows} queries have no list in "
            f"the file and count as empty lists: {_first(taken.missing)}"
        )
    if taken.empty:
        found.append(
            f"{len(taken.empty)} of {scored.evalset.queries.num_rows} queries have an empty list "
            f"in the file: {_first(taken.empty)}"
        )
    if taken.repeats:
        found.append(
            f"places given again in their list: {taken.repeats}; each counts at its first rank "
            "and the rest close up; the paper's scoring takes them as they stand"
        )
    if taken.longest > scored.depth:
        found.append(
            f"lists of up to {taken.longest} entries are looked at to {scored.depth}, "
            f"{scored.depth_from}"
        )
    if taken.left_alone:
        found.append(
            f"keys of the entries that say nothing to score: {_first(taken.left_alone)}; they were "
            "left alone"
        )
    if scored.depth_note:
        found.append(scored.depth_note)
    return found


def _first(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")


def _given(scored: Scored) -> Blocks:
    facts: list[tuple[Value, ...]] = [
        ("corpus", scored.corpus),
        ("queries", f"{scored.evalset.queries.num_rows:,}"),
        ("lists in the file", f"{scored.taken.n_lists:,}"),
        ("entries", f"{scored.taken.rankings.num_rows:,}"),
        ("depth", f"{scored.depth}, {scored.depth_from}"),
        ("chunk table", NO_CHUNKS if scored.n_chunks is None else f"{scored.n_chunks:,} chunks"),
        *scored.provenance.items(),
    ]
    said = notes(scored)
    blocks: Blocks = [
        Heading("What was scored"),
        Table((Column("what"), Column("value", "code")), tuple(facts)),
    ]
    if said:
        blocks.append(Items(tuple((note + ".",) for note in said)))
    if scored.taken.missing:
        rows = tuple((query_id,) for query_id in scored.taken.missing[:NAMED])
        caption = f"The first {len(rows)} of {len(scored.taken.missing)} queries without a list."
        blocks.append(Table((Column("query", "code"),), rows, caption))
    if scored.measured.not_measured:
        reasons = scored.measured.not_measured.items()
        blocks.append(Items(tuple((Strong(what), f": {why}.") for what, why in reasons)))
    return blocks


def _metrics(scored: Scored) -> Blocks:
    found = shown.means(scored.measured)
    printed = shown.printed(scored.context)
    names = [*printed, *(n for n in found[None] if _is_further(n, printed))]
    rows: list[tuple[Value, ...]] = [
        (part or "all queries", *(values.get(name) for name in names))
        for part, values in found.items()
    ]
    columns = (Column("queries"), *(Column(name, "number") for name in names))
    bars = tuple(
        Panel(
            name,
            tuple(Bar(part or "all queries", values[name]) for part, values in found.items()),
            maximum=1.0,
        )
        for name in names
        if name in found[None]
    )
    return [
        Heading("Metrics"),
        Table(columns, tuple(rows), "Means over the queries. macro: the mean of the parts' means."),
        paragraph("A dash means not measured, or undefined; it never stands for zero."),
        Picture("Each metric from 0 to 1.", bars),
        metric_lines(names, scored.context),
    ]


def _is_further(name: str, printed: Sequence[str]) -> bool:
    """Return whether it is a metric of chunks that the printed table leaves out."""
    return name.partition("@")[0] not in registry.characters() and name not in printed


def _characters(scored: Scored) -> Blocks:
    rows = tuple((k, *values) for k, values in shown.characters(scored.measured))
    columns = (
        Column("k", "count"),
        *(Column(name, registry.metrics()[name].format) for name in registry.characters()),
    )
    return [
        Heading("Characters at every k"),
        Table(columns, rows, "Means over the queries, of the first k entries."),
        *_past(scored.depth),
        character_lines(),
    ]


def _past(depth: int) -> Blocks:
    """Return which k the lists do not reach; [] where they reach all."""
    said = shown.ks_past_said(depth)
    return [paragraph(said, ".")] if said else []


def _forensic(scored: Scored) -> Blocks:
    k = shown.label_k(scored.measured)
    labels = shown.label_counts(scored.measured, k)
    states = shown.state_counts(scored.measured, k)
    meaning = FORENSIC_LABELS | {"undecided": f"{NO_CHUNKS}, and it could be CBF."}
    panels = (
        _bars(f"queries by label at k = {k}", labels),
        _bars(f"gold spans by state at k = {k}", states),
    )
    return [
        Heading("Forensic labels"),
        Table(
            (Column("label", "code"), Column("queries", "count"), Column("what it says")),
            tuple((label, n, meaning[label]) for label, n in labels.items()),
            f"One label a query at k = {k}.",
        ),
        Table(
            (Column("state", "code"), Column("gold spans", "count"), Column("what it says")),
            tuple((state, n, STATES[state]) for state, n in states.items()),
        ),
        Picture("How the queries and their gold spans fare.", panels),
        *_cross(scored),
    ]


def _bars(title: str, counts: Mapping[str, int]) -> Panel:
    bars = tuple(Bar(name, n) for name, n in counts.items())
    return Panel(title, bars, maximum=max([1, *counts.values()]), format="count")


def _cross(scored: Scored) -> Blocks:
    if "label_cross" not in scored.measured.tables:
        return []
    rows = tuple(
        (row["failure_label"] or "none: it does not fail", row["forensic_label"], row["n_queries"])
        for row in scored.measured.tables["label_cross"].to_pylist()
    )
    columns = (
        Column("failure label", "code"),
        Column("forensic label", "code"),
        Column("queries", "count"),
    )
    said = f"The two kinds of labels of the same queries, at k = {scored.context}."
    return [Table(columns, rows, said)]


def _failures(scored: Scored) -> Blocks:
    counts = shown.failure_counts(scored.measured)
    if counts is None:
        why = scored.measured.not_measured[FAILURE_LABELS]
        return [Heading("Failure labels"), paragraph(why[0].upper() + why[1:], ".")]
    if not counts:
        return [Heading("Failure labels"), paragraph("No query fails.")]
    blocks: Blocks = [
        Heading("Failure labels"),
        Table(
            (Column("label"), Column("queries", "count"), Column("lever"), Column("what it says")),
            tuple(
                (label, n, LEVERS[label], LABELS[label].format(k=scored.context))
                for label, n in counts.items()
            ),
            f"Queries whose complete_grounding@{scored.context} is 0, by the first label that "
            "holds.",
        ),
    ]
    rows = scored.measured.tables["failure_labels"].to_pylist()
    for label in counts:
        for row in [row for row in rows if row["label"] == label][:EXAMPLES]:
            blocks += _example(row)
    return blocks


def _example(row: Mapping[str, str]) -> Blocks:
    span = json.loads(row["evidence"])["failed_spans"][0]
    where = f"{span['doc_id']}, characters {span['start']} to {span['end']}"
    return [
        paragraph(Strong(row["label"]), ": query ", Code(row["query_id"]), " missed"),
        Quote(span["opening"], where),
    ]


def _losses(scored: Scored) -> Blocks:
    k = shown.label_k(scored.measured)
    tables = scored.measured.tables
    if scored.n_chunks is not None:
        return losses.losses(tables["span_states"], tables["headroom"], k, {scored.config: HAS})
    found = shown.bounds(scored.measured, k)
    rows: tuple[tuple[Value, ...], ...] = (
        ("actual", found["actual"], "complete grounding as it is"),
        ("candidates", found["candidates"], "with the best order of the same entries"),
        ("chunks", None, NO_CHUNKS),
    )
    return [
        Heading("Headroom"),
        Table((Column("bound"), Column(f"at k = {k}", "number"), Column("what it says")), rows),
        paragraph("The stage that lost each span is ", NO_CHUNKS, "."),
    ]
