"""The developer report's section on forensic labels: counts, stability, and beside the others."""

from __future__ import annotations

import json

import pyarrow as pa

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import CHANGED
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.explanations import FORENSIC_LABELS, LABELS
from spanbench_pipeline.reports.inputs import ReportInputs, rows_of
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Block,
    Column,
    Heading,
    Items,
    Panel,
    Picture,
    Strong,
    Table,
    Value,
    paragraph,
)
from spanbench_pipeline.reports.sections.shared import marked_rows, shown_depth

Blocks = list[Block]
SUCCESS = "none: the query does not fail"
"""What stands for no failure label in the cross table."""


def forensic(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return labels at the usual depth, how stable they are, and how they relate to failure
    labels.
    """
    k, note = shown_depth(
        experiment.depth, registry.label_ks(experiment.context, experiment.further)
    )
    labels = inputs.forensic_labels.select(["config", "k", "label", "stability"])
    counts = facts.forensic_labels(labels, k)
    return [
        Heading("Forensic labels"),
        paragraph(
            f"What became of each query in its first {k} chunks, by characters alone, also where "
            "it succeeds: the first label that holds. Labels of different k are never compared."
        ),
        *([paragraph(note)] if note else []),
        _table(experiment, counts, k),
        *_picture(counts, k),
        Items(tuple((Strong(label), f": {text}") for label, text in FORENSIC_LABELS.items())),
        *_stability(experiment, labels, k),
        *_cross(experiment, inputs),
    ]


def _table(experiment: Experiment, counts: facts.Counts, k: int) -> Table:
    shown = [*FORENSIC_LABELS, *([None] if any(c[None] for c in counts.values()) else [])]
    rows: list[tuple[Value, ...]] = [
        (
            config.name,
            *(counts[config.name][label] if config.name in counts else None for label in shown),
        )
        for config in experiment.configurations
    ]
    columns = (
        Column("configuration"),
        *(Column(label or facts.NO_CHUNKS, "count") for label in shown),
    )
    marked = marked_rows(experiment, experiment.baseline)
    return Table(columns, tuple(rows), f"Queries by forensic label at k = {k}.", marked)


def _picture(counts: facts.Counts, k: int) -> Blocks:
    """Return a panel a configuration, all on one scale: the number of queries."""
    most = max((found.total() for found in counts.values()), default=0)
    panels = tuple(
        Panel(
            config,
            tuple(Bar(label, found[label], label == "OK") for label in FORENSIC_LABELS),
            maximum=most,
            format="count",
        )
        for config, found in counts.items()
    )
    caption = f"Queries by forensic label at k = {k}, OK marked."
    return [Picture(caption, panels)] if panels else []


def _stability(experiment: Experiment, labels: pa.Table, k: int) -> Blocks:
    """Return how many queries have the same label under other settings."""
    rows: dict[str, list[dict[str, str | None]]] = {}
    for row in rows_of(labels, k=k):
        if row["label"] is None:
            continue
        under = {"": row["label"], **json.loads(row["stability"])}
        rows.setdefault(row["config"], []).append(under)
    columns = (
        Column("configuration"),
        Column("queries with a label", "count"),
        Column("label always the same", "count"),
        *(Column(setting, "count") for setting in CHANGED),
    )
    return [
        Heading("How stable the labels are", 3),
        paragraph(
            "A label rests on two conventions: half of a span covers it, and 3 times the gold is "
            "too much. With one of them changed, this many queries have the same label still:"
        ),
        Table(
            columns,
            tuple(_stable(c.name, rows.get(c.name)) for c in experiment.configurations),
            f"Queries with the same label at k = {k}, under every changed setting and under each.",
            marked_rows(experiment, experiment.baseline),
        ),
    ]


def _stable(config: str, queries: list[dict[str, str | None]] | None) -> tuple[Value, ...]:
    if queries is None:
        return (config, *[None] * (2 + len(CHANGED)))
    always = sum(len(set(under.values())) == 1 for under in queries)
    each = (sum(under[setting] == under[""] for under in queries) for setting in CHANGED)
    return (config, len(queries), always, *each)


def _cross(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return a row a configuration and failure label, a column a forensic label."""
    head = Heading("Beside the failure labels", 3)
    if experiment.depth < experiment.context:
        why = f"Not measured: failure labels look at the top {experiment.context}, and "
        return [head, paragraph(f"{why}rankings are {experiment.depth} deep.")]
    counts = facts.label_pairs(inputs.label_cross)
    shown = [*FORENSIC_LABELS, *([None] if any(c[None] for c in counts.values()) else [])]
    keys = [
        (config.name, label)
        for config in experiment.configurations
        for label in (*LABELS, None)
        if (config.name, label) in counts
    ]
    rows: list[tuple[Value, ...]] = [
        (config, label or SUCCESS, *(counts[config, label][s] for s in shown))
        for config, label in keys
    ]
    columns = (
        Column("configuration"),
        Column("failure label"),
        *(Column(label or facts.NO_CHUNKS, "count") for label in shown),
    )
    marked = frozenset(n for n, (c, _) in enumerate(keys) if c == experiment.baseline)
    k = experiment.context
    caption = f"Queries that have both labels, each at k = {k}; pairs sum to the queries."
    return [
        head,
        paragraph(
            "Failure labels name a lever and exist only for queries that fail; forensic labels say "
            f"what happened to every query. Both look at the top {experiment.context} here."
        ),
        Table(columns, tuple(rows), caption, marked)
        if rows
        else paragraph("No configuration was measured."),
    ]
