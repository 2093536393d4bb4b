"""What both reports show: metrics by configuration, in a table and in pictures; label counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL, LABELS
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.inputs import MEASURED, ReportInputs
from spanbench_pipeline.reports.render.blocks import Bar, Column, Panel, Picture, Table, Value


def shown_depth(depth: int, ks: Iterable[int], wanted: int = facts.USUAL_DEPTH) -> tuple[int, str]:
    """Return the k of ``ks`` to show of rankings that are ``depth`` deep; "" or why it is not
    ``wanted``.

    A k past the depth was not measured: the deepest that was stands in for it, and it is said.
    """
    k = max(k for k in ks if k <= min(depth, wanted))
    if k == wanted:
        return k, ""
    return k, (
        f"Rankings are {depth:,} deep, so k = {wanted} was not measured; shown is k = {k}, the "
        "deepest that was."
    )


def no_top(experiment: Experiment) -> str:
    """Return why nothing is measured of the context, as a sentence; "" where rankings reach it."""
    why = unreached(experiment.context, experiment.depth)
    return f"Not measured: {why}." if why else ""


def labels_at(experiment: Experiment) -> list[str]:
    """Return the failure labels that lists cut at the depth can have, in the order they are
    tried.
    """
    return list(EVERY_LABEL if experiment.depth == experiment.context else LABELS)


def compared_parts(table: pa.Table) -> list[str]:
    """Return the same, of a corpus that has more than one part: else there is nothing to
    compare.
    """
    parts = facts.parts_of(table)
    return parts if len(parts) > 2 else []


def metric_names(means: Iterable[Mapping[str, float | None]], context: int) -> list[str]:
    """Return the metrics that ``means`` have: the standard ones in their order, then others by
    name.

    Those that count characters are left out: five at every k have tables of their own.
    """
    found = {
        name
        for of_config in means
        for name in of_config
        if name.partition("@")[0] not in registry.characters()
    }
    standard = [metric_label(metric, k) for metric, k in registry.of_results(context)]
    return [m for m in standard if m in found] + sorted(found - set(standard))


def metric_table(
    experiment: Experiment, inputs: ReportInputs, baseline: str, caption: str = ""
) -> Table:
    """Return every configuration and every metric, in the experiment's order.

    A configuration that was not measured has dashes and says why.
    """
    means = facts.means(inputs.config_metrics)
    names = metric_names(means.values(), experiment.context)
    states = inputs.states()
    rows: list[tuple[Value, ...]] = [
        (c.name, *(means.get(c.name, {}).get(name) for name in names), states[c.name])
        for c in experiment.configurations
    ]
    if all(state == MEASURED for state in states.values()):
        rows = [row[:-1] for row in rows]
        last: tuple[Column, ...] = ()
    else:
        last = (Column("state"),)
    columns = (Column("configuration"), *(Column(n, "number") for n in names), *last)
    return Table(columns, tuple(rows), caption, marked_rows(experiment, baseline))


def marked_rows(experiment: Experiment, baseline: str) -> frozenset[int]:
    """Return the position of the baseline among the configurations."""
    return frozenset(n for n, c in enumerate(experiment.configurations) if c.name == baseline)


def metric_bars(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Picture:
    """Return one panel a metric, one bar a configuration, all from 0 to 1."""
    means = facts.means(inputs.config_metrics)
    panels = tuple(
        Panel(
            name,
            tuple(
                Bar(c.name, means.get(c.name, {}).get(name), c.name == baseline)
                for c in experiment.configurations
            ),
            maximum=1.0,
        )
        for name in metric_names(means.values(), experiment.context)
    )
    return Picture(f"Each metric from 0 to 1, the baseline ({baseline}) marked.", panels)


def label_bars(title: str, counts: Sequence[tuple[str, int]], maximum: int) -> Panel:
    """Return one bar a label, on a scale that ends at ``maximum``."""
    bars = tuple(Bar(label, count) for label, count in counts)
    return Panel(title, bars, maximum=maximum, format="count")
