"""The developer report's sections on causes: what levers do, filters, failure labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanbench_pipeline.analysis.bm25_stats import AVERAGE_IDF, CARDS, CHUNKS
from spanbench_pipeline.analysis.comparisons import filter_pairs
from spanbench_pipeline.config.experiment import Experiment, bm25_text
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL as LEVER_OF_LABEL
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.explanations import LABELS
from spanbench_pipeline.reports.inputs import ReportInputs, indexed, rows_of
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Code,
    Column,
    Heading,
    Items,
    Picture,
    Strong,
    Table,
    paragraph,
)
from spanbench_pipeline.reports.sections.comparability import other_chunks
from spanbench_pipeline.reports.sections.shared import (
    label_bars,
    labels_at,
    marked_rows,
    no_top,
)

Blocks = list[Block]
_MATCHING: tuple[Callable[[str], str], ...] = (
    lambda prefix: prefix + AVERAGE_IDF,
    lambda prefix: f"{prefix}texts_without_token",
    lambda prefix: f"{prefix}letters_outside",
    lambda _: f"{CHUNKS}queries_without_token",
    lambda _: f"{CHUNKS}query_letters_outside",
    lambda prefix: f"{prefix}first_by_order",
)
"""The stats of a row of :func:`matching`, by what its names begin with."""


def levers(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return every two configurations that differ in one lever, in the direction of the
    experiment.
    """
    if why := no_top(experiment):
        return [Heading("What one lever does"), paragraph(why)]
    order = _positions(experiment)
    rows = tuple(
        (p["lever"], p["from_config"], p["to_config"], p["delta"], p["fixed"], p["broken"])
        for p in _pairs(experiment, inputs)
        if order[p["from_config"]] < order[p["to_config"]]
    )
    columns = (
        Column("lever"),
        Column("from"),
        Column("to"),
        Column(f"change in complete_grounding@{experiment.context}", "signed"),
        Column("queries fixed", "count"),
        Column("queries broken", "count"),
    )
    table: Block = Table(columns, rows, "Two configurations that differ in that lever alone.")
    return [
        Heading("What one lever does"),
        table if rows else paragraph("No two measured configurations differ in one lever alone."),
        *other_chunks(experiment, inputs, [(before, after) for _, before, after, *_ in rows]),
    ]


def hybrid(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return what hybrid retrieval did against dense, all else equal."""
    if why := no_top(experiment):
        return [Heading("Hybrid against dense"), paragraph(why)]
    retriever = {c.name: c.retriever for c in experiment.configurations}
    rows = tuple(
        (
            *(p[key] for key in ("from_config", "to_config", "promoted", "fixed", "broken")),
            *(", ".join(p[key]) for key in ("fixed_queries", "broken_queries")),
        )
        for p in _pairs(experiment, inputs)
        if (retriever[p["from_config"]], retriever[p["to_config"]]) == ("dense", "hybrid")
    )
    columns = (
        Column("dense"),
        Column("hybrid"),
        Column(f"relevant chunks promoted into the top {experiment.context}", "count"),
        Column("queries fixed", "count"),
        Column("queries broken", "count"),
        Column("fixed"),
        Column("broken"),
    )
    table: Block = Table(columns, rows, "Fixed: grounded with hybrid and not with dense.")
    none = "No two measured configurations differ in dense or hybrid retrieval alone."
    return [Heading("Hybrid against dense"), table if rows else paragraph(none)]


def matching(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return how BM25 matches words, and what it cannot tell apart or does not read; [] without
    BM25.
    """
    stats = indexed(inputs.config_stats.to_pylist(), "config", "stat")
    users = [c for c in experiment.configurations if c.uses_bm25]
    if not any((c.name, "bm25_queries_without_token") in stats for c in users):
        return []
    rows = tuple(
        (c.name, searched, bm25_text(c), *(stats.get((c.name, stat(prefix))) for stat in _MATCHING))
        for c in users
        for searched, prefix in (("chunks", CHUNKS), ("document cards", CARDS))
        if (c.name, f"{prefix}{AVERAGE_IDF}") in stats
    )
    columns = (
        Column("configuration"),
        Column("BM25 over"),
        Column("rule and words"),
        Column("average idf", "signed"),
        Column("without a word", "count"),
        Column("letters in no word", "percent"),
        Column("queries without a word", "count"),
        Column("queries' letters in no word", "percent"),
        Column("ties at rank 1", "count"),
    )
    return [
        Heading("Words that BM25 finds"),
        Table(columns, rows, ""),
        paragraph(
            "Average idf: what a word weighs on average; below zero, what holds the words asked "
            "for ranks lower for it. Letters in no word, digits included, decide nothing. First "
            "place by chunk order: queries whose first two chunks in the BM25 list have one score."
        ),
    ]


def documents(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return documents without a header, chunks from wrong documents, and what the filters did."""
    stats = indexed(inputs.config_stats.to_pylist(), "config", "stat")
    rows = tuple(
        (c.name, stats.get((c.name, "wrong_document_share"))) for c in experiment.configurations
    )
    wrong = Column(f"top-{experiment.context} chunks from a wrong document", "share")
    columns = (Column("configuration"), wrong)
    headers = indexed(
        rows_of(inputs.chunk_stats, stat="documents_without_header"), "chunker", "stat"
    )
    without = tuple(
        (
            "Documents without any header for ",
            Code(chunker),
            ": ",
            Strong(f"{value:.0f}"),
            f" of {inputs.documents.num_rows:,}.",
        )
        for (chunker, _), value in headers.items()
    )
    head: Blocks = [Heading("Documents and filters"), *([Items(without)] if without else [])]
    if why := no_top(experiment):
        return [*head, paragraph(why)]
    return [
        *head,
        paragraph("A wrong document is one that holds no gold span of the query."),
        Table(columns, rows, "", marked_rows(experiment, experiment.baseline)),
        Heading("Queries grounded only through the filter", 3),
        *_filters(experiment, inputs),
    ]


def failures(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return failing queries by label, for every configuration."""
    if why := no_top(experiment):
        return [Heading("Failure labels"), paragraph(why)]
    labels = labels_at(experiment)
    of_label = facts.failure_labels(inputs.failure_labels)
    counts = {config: of_label.get(config, Counter()) for config in inputs.measured(experiment)}
    stats = indexed(inputs.config_stats.to_pylist(), "config", "stat")
    rows = tuple(
        (
            c.name,
            stats.get((c.name, "failing_queries")),
            *(counts[c.name].get(n, 0) if c.name in counts else None for n in labels),
        )
        for c in experiment.configurations
    )
    columns = (
        Column("configuration"),
        Column("failing queries", "count"),
        *(Column(name, "count") for name in labels),
    )
    return [
        Heading("Failure labels"),
        paragraph(
            f"A query fails when complete_grounding@{experiment.context} is 0. It gets the first "
            "label that holds."
        ),
        Table(columns, rows, "", marked_rows(experiment, experiment.baseline)),
        *_label_picture(counts, labels),
        Items(
            tuple(
                (
                    Strong(name),
                    f" (lever: {LEVER_OF_LABEL[name] or 'none'}): "
                    f"{LABELS[name].format(k=experiment.context)}",
                )
                for name in labels
            )
        ),
    ]


def _label_picture(counts: Mapping[str, Mapping[str, int]], labels: Sequence[str]) -> Blocks:
    """Return a panel a configuration, all on one scale."""
    highest = max((n for found in counts.values() for n in found.values()), default=0)
    if not highest:
        return []
    panels = tuple(
        label_bars(config, [(label, found.get(label, 0)) for label in labels], highest)
        for config, found in counts.items()
    )
    return [Picture("Failing queries by label, all configurations on one scale.", panels)]


def _filters(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    pairs = filter_pairs(experiment.configurations, inputs.config_pairs)
    if not pairs:
        return [paragraph("No two measured configurations differ in a filter alone.")]
    lines = tuple(
        (
            Code(pair["from_config"]),
            " → ",
            Code(pair["to_config"]),
            ": ",
            Strong(f"{pair['fixed']}"),
            _listed(pair["fixed_queries"]),
        )
        for pair in pairs
    )
    return [
        paragraph("Grounded with the filter and not without it, all else equal:"),
        Items(lines),
    ]


def _pairs(experiment: Experiment, inputs: ReportInputs) -> list[dict[str, Any]]:
    """Return the rows of config_pairs, in the experiment's order of configurations."""
    order = _positions(experiment)
    pairs = inputs.config_pairs.to_pylist()
    return sorted(pairs, key=lambda p: (order[p["from_config"]], order[p["to_config"]]))


def _positions(experiment: Experiment) -> dict[str, int]:
    return {c.name: n for n, c in enumerate(experiment.configurations)}


def _listed(queries: list[str]) -> str:
    return f" ({', '.join(queries)})." if queries else "."
