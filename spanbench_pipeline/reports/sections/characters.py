"""The developer report's section on characters: precision and recall, beside their budget."""

from __future__ import annotations

from collections.abc import Sequence

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.reports.explanations import character_lines
from spanbench_pipeline.reports.inputs import ReportInputs, indexed
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Block,
    Column,
    Heading,
    Panel,
    Picture,
    Table,
    Value,
    paragraph,
)
from spanbench_pipeline.reports.sections.shared import compared_parts, marked_rows, shown_depth

Blocks = list[Block]
Values = dict[tuple[str, str | None, str, int | None], float | None]
"""(configuration, part or None for the whole, metric, k) -> mean."""

WHOLE = "all queries"
"""What stands for the whole corpus beside its parts."""


def _columns() -> tuple[Column, ...]:
    """Return a column for each metric that counts characters: the budget stands first."""
    declared = (registry.metrics()[name] for name in registry.characters())
    return tuple(Column(metric.title or metric.name, metric.format) for metric in declared)


def character_values(inputs: ReportInputs) -> Values:
    """Return the means of every metric that counts characters."""
    rows = (
        row for row in inputs.config_metrics.to_pylist() if row["metric"] in registry.characters()
    )
    return indexed(rows, "config", "subset", "metric", "k")


def characters(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return every configuration at the usual depth, part by part, and at every depth."""
    values = character_values(inputs)
    if not values:
        return [Heading("Characters"), paragraph("No configuration was measured.")]
    k, note = shown_depth(experiment.depth, registry.character_ks(experiment.further))
    parts = compared_parts(inputs.config_metrics)
    return [
        Heading("Characters"),
        paragraph(
            "A recall without its budget says nothing: a configuration with longer chunks has more "
            "characters in its first k and recalls more for that alone. Compare configurations "
            "where they retrieve about as many characters."
        ),
        *([paragraph(note)] if note else []),
        _all(experiment, values, k),
        _picture(experiment, values, k),
        character_lines(),
        *(_by_part(experiment, values, k, parts) if parts else []),
        *_by_k(experiment, values),
    ]


def _all(experiment: Experiment, values: Values, k: int) -> Table:
    rows = tuple((c.name, *_row(values, c.name, None, k)) for c in experiment.configurations)
    caption = f"The first {k} chunks, characters retrieved first. Means over the queries."
    marked = marked_rows(experiment, experiment.baseline)
    return Table((Column("configuration"), *_columns()), rows, caption, marked)


def _by_part(experiment: Experiment, values: Values, k: int, parts: Sequence[str]) -> Blocks:
    """Return a row a configuration and part; ``macro``, the parts' mean, and the whole behind
    them.
    """
    shown = [(config, part) for config in _measured(experiment, values) for part in (*parts, None)]
    rows = tuple((c, part or WHOLE, *_row(values, c, part, k)) for c, part in shown)
    marked = frozenset(n for n, (c, _) in enumerate(shown) if c == experiment.baseline)
    columns = (Column("configuration"), Column("part"), *_columns())
    caption = f"The first {k} chunks. macro: the mean of the parts' means, each weighing the same."
    return [Heading("Part by part", 3), Table(columns, rows, caption, marked)]


def _by_k(experiment: Experiment, values: Values) -> Blocks:
    """Return a row a configuration and depth; one past the experiment's depth is said to be
    absent.
    """
    ks = registry.character_ks(experiment.further)
    shown = [
        (config, k) for config in _measured(experiment, values) for k in ks if k <= experiment.depth
    ]
    rows = tuple((config, k, *_row(values, config, None, k)) for config, k in shown)
    marked = frozenset(n for n, (c, _) in enumerate(shown) if c == experiment.baseline)
    columns = (Column("configuration"), Column("k", "count"), *_columns())
    absent = [str(k) for k in ks if k > experiment.depth]
    why = (
        f"Not measured, since rankings are {experiment.depth:,} deep: k = {', '.join(absent)}."
        if absent
        else ""
    )
    table = Table(columns, rows, "Means over the queries.", marked)
    return [Heading("At every k", 3), table, *([paragraph(why)] if why else [])]


def _picture(experiment: Experiment, values: Values, k: int) -> Picture:
    """Return the budget beside what it bought: a panel each, a bar a configuration."""
    titles = {
        "chars_retrieved": f"characters retrieved at {k}",
        "char_precision_union": f"precision at {k}, union",
        "char_recall_union": f"recall at {k}, union",
    }
    panels = tuple(
        Panel(
            title,
            tuple(
                Bar(c.name, values.get((c.name, None, metric, k)), c.name == experiment.baseline)
                for c in experiment.configurations
            ),
            maximum=_highest(values, metric, k),
            format="count" if metric == "chars_retrieved" else "number",
        )
        for metric, title in titles.items()
    )
    return Picture("Recall beside the characters that it was bought with.", panels)


def _highest(values: Values, metric: str, k: int) -> float:
    """Return where the scale of a metric ends: 1, or the most characters that any retrieved."""
    if metric != "chars_retrieved":
        return 1.0
    found = (v for (_, subset, m, n), v in values.items() if (subset, m, n) == (None, metric, k))
    return max((v for v in found if v), default=1.0)


def _row(values: Values, config: str, part: str | None, k: int) -> list[Value]:
    return [values.get((config, part, metric, k)) for metric in registry.characters()]


def _measured(experiment: Experiment, values: Values) -> list[str]:
    """Return the configurations that have values, in the experiment's order."""
    found = {config for config, *_ in values}
    return [c.name for c in experiment.configurations if c.name in found]
