"""The developer report's sections on what was measured: metrics, chunkers, clause types."""

from __future__ import annotations

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.explanations import CHUNK_STATS, metric_lines
from spanbench_pipeline.reports.inputs import ReportInputs, indexed, rows_of
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Code,
    Column,
    Heading,
    Items,
    Strong,
    Table,
    paragraph,
)
from spanbench_pipeline.reports.sections.comparability import chunk_groups, short_lists
from spanbench_pipeline.reports.sections.shared import (
    marked_rows,
    metric_bars,
    metric_names,
    metric_table,
    no_top,
)

Blocks = list[Block]
_NOT_MEASURED = "A dash means not measured, or undefined; it never stands for zero."


def metrics(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return every configuration and every metric, with what the metrics say."""
    names = metric_names(facts.means(inputs.config_metrics).values(), experiment.context)
    if not names:
        return [Heading("Metrics"), paragraph("No configuration was measured.")]
    table = metric_table(experiment, inputs, experiment.baseline, "Means over the queries.")
    return [
        Heading("Metrics"),
        table,
        paragraph(_NOT_MEASURED),
        *short_lists(experiment),
        *chunk_groups(experiment, inputs),
        *_partly_defined(inputs),
        metric_bars(experiment, inputs, experiment.baseline),
        Heading("What the metrics say", 3),
        metric_lines(names, experiment.context),
        *_attained(experiment, inputs),
    ]


def chunkers(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return what each chunker makes possible, and its settings."""
    rows_by_stat = indexed(inputs.chunk_stats.to_pylist(), "chunker", "stat")
    found = {stat for _, stat in rows_by_stat}
    k = experiment.context
    shown = {name: stat.at(k) for name, stat in CHUNK_STATS.items() if name in found}
    rows = tuple(
        (chunker, *(rows_by_stat.get((chunker, name)) for name in shown))
        for chunker in experiment.chunkers
    )
    settings = tuple(
        (Code(name), ": " + (", ".join(f"{k} {v}" for k, v in c.params.items()) or "no settings"))
        for name, c in experiment.chunkers.items()
    )
    columns = (
        Column("chunker", "code"),
        *(Column(stat.title, stat.format) for stat in shown.values()),
    )
    return [
        Heading("Chunkers"),
        Table(columns, rows, "What each chunker makes possible, before any retrieval."),
        Items(tuple((Strong(stat.title), f": {stat.meaning}") for stat in shown.values())),
        Heading("Settings", 3),
        Items(settings),
    ]


def clause_types(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return the mean of mrr by clause type, a column a configuration."""
    measured = inputs.measured(experiment)
    values: dict[str, dict[str, float | None]] = {}
    n_queries: dict[str, int] = {}
    for row in rows_of(inputs.clause_type_metrics, metric="mrr"):
        values.setdefault(row["clause_type"], {})[row["config"]] = row["value"]
        n_queries[row["clause_type"]] = row["n_queries"]
    rows = tuple(
        (kind, n_queries[kind], *(values[kind].get(config) for config in measured))
        for kind in sorted(values)
    )
    columns = (
        Column("clause type"),
        Column("queries", "count"),
        *(Column(config, "number") for config in measured),
    )
    table: Block = Table(columns, rows, "Mean MRR by clause type; mind how few queries a type has.")
    return [
        Heading("Mean MRR by clause type"),
        table if rows else paragraph("No query has a clause type, or nothing was measured."),
    ]


def _partly_defined(inputs: ReportInputs) -> Blocks:
    """Return the means that leave queries out because their value is undefined there."""
    rows = tuple(
        (row["config"], metric_label(row["metric"], row["k"]), row["n_queries"])
        for row in rows_of(inputs.config_metrics, subset=None)
        if row["n_queries"] < inputs.queries.num_rows
    )
    if not rows:
        return []
    columns = (Column("configuration"), Column("metric", "code"), Column("queries", "count"))
    return [Table(columns, rows, "Means over fewer queries: in the others they are undefined.")]


def _attained(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return precision against what the chunker makes possible."""
    head = Heading("Attained share of the precision ceiling", 3)
    if why := no_top(experiment):
        return [head, paragraph(why)]
    means = facts.means(inputs.config_metrics)
    precision = f"precision@{experiment.context}"
    ceiling = indexed(inputs.chunk_stats.to_pylist(), "chunker", "stat")
    stats = indexed(inputs.config_stats.to_pylist(), "config", "stat")
    rows = tuple(
        (
            c.name,
            means.get(c.name, {}).get(precision),
            ceiling.get((c.chunker, "precision_ceiling")),
            stats.get((c.name, "precision_attained")),
        )
        for c in experiment.configurations
    )
    columns = (
        Column("configuration"),
        Column(precision, "number"),
        Column("ceiling", "number"),
        Column("attained", "share"),
    )
    return [
        head,
        paragraph(
            f"A query with fewer than {experiment.context} relevant chunks cannot reach a "
            f"{precision} of 1, however they are ranked. The ceiling is the best mean "
            "that the chunker allows; the attained "
            f"share is the mean {precision} divided by it."
        ),
        Table(columns, rows, "", marked_rows(experiment, experiment.baseline)),
    ]
