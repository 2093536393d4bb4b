"""The figures of a scored ranking as rows, for the terminal, the report and JSON alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.forensic_labels import LABELS
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.reports import facts
from spanbench_pipeline.scoring.measured import Measured

Value = float | None
V = TypeVar("V")


def means(measured: Measured) -> dict[str | None, dict[str, Value]]:
    """Part of the corpus (None: the whole) -> metric -> mean; the whole first, macro last."""
    table = measured.tables["config_metrics"]
    parts = (None, *facts.parts_of(table))
    return {part: _only(facts.means(table, part)) for part in parts}


def printed(context: int = CONTEXT) -> list[str]:
    """Return the metrics of the results table, in its order."""
    return [metric_label(metric, k) for metric, k in registry.printed(context)]


def characters(measured: Measured) -> list[tuple[int, list[Value]]]:
    """Return k -> the metrics of ``registry.characters`` over the whole corpus, for every k
    measured.
    """
    of_whole = means(measured)[None]
    counted = registry.characters()
    ks = sorted(int(m.partition("@")[2]) for m in of_whole if m.startswith(f"{counted[0]}@"))
    return [(k, [of_whole[metric_label(metric, k)] for metric in counted]) for k in ks]


def ks_past(depth: int) -> dict[int, str]:
    """Return k -> why nothing is measured there, of what is measured at every k of ``DEPTHS``."""
    return {k: f"not measured: {why}" for k in DEPTHS if (why := unreached(k, depth))}


def ks_past_said(depth: int) -> str:
    """Return the same in one line; "" where the lists reach every k."""
    ks = ", ".join(str(k) for k in ks_past(depth))
    return f"k = {ks}: not measured: depth = {depth} does not reach that far" if ks else ""


def label_k(measured: Measured) -> int:
    """Return the usual depth, or the deepest k that labels have where that is less."""
    table = measured.tables["forensic_labels"]
    return facts.deepest(table) or min(table["k"].to_pylist())


def label_counts(measured: Measured, k: int) -> dict[str, int]:
    """Forensic label -> queries at ``k``, in the order of the labels; undecided ones last."""
    counts = facts.total(facts.forensic_labels(measured.tables["forensic_labels"], k).values())
    named = {label: counts[label] for label in LABELS if counts[label]}
    return named | ({"undecided": counts[None]} if counts[None] else {})


def state_counts(measured: Measured, k: int) -> dict[str, int]:
    """State -> gold spans at ``k``."""
    counts = facts.total(facts.span_states(measured.tables["span_states"], k).values())
    return {str(state): counts[state] for state in ("covered", "partial", "missed")}


def failure_counts(measured: Measured) -> dict[str, int] | None:
    """Return failure label -> queries, most frequent first; None where they were not measured."""
    if "failure_labels" not in measured.tables:
        return None
    return dict(facts.total(facts.failure_labels(measured.tables["failure_labels"]).values()))


def bounds(measured: Measured, k: int) -> dict[str, float]:
    """Bound of the headroom -> complete grounding over the whole corpus at ``k``."""
    return _only(facts.bounds(measured.tables["headroom"], k))


def _only(by_config: Mapping[str, dict[str, V]]) -> dict[str, V]:
    """Return the facts of the one configuration; {} where its tables are empty."""
    return next(iter(by_config.values()), {})
