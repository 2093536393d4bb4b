"""The figures of a scored ranking as rows, for the terminal, the report and JSON alike."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.aggregate import MACRO
from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.forensic_labels import LABELS
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.scoring.measured import Measured

SHOWN_K = 8
"""The depth of labels where nothing else is said."""

Value = float | None


def means(measured: Measured) -> dict[str | None, dict[str, Value]]:
    """Part of the corpus (None: the whole) -> metric -> mean; the whole first, macro last."""
    found: dict[str | None, dict[str, Value]] = {None: {}}
    for row in measured.tables["config_metrics"].to_pylist():
        of_part = found.setdefault(row["subset"], {})
        of_part[metric_label(row["metric"], row["k"])] = row["value"]
    if MACRO in found:
        found[MACRO] = found.pop(MACRO)
    return found


def printed(context: int = CONTEXT) -> list[str]:
    """The metrics of the results table, in its order."""
    return [metric_label(metric, k) for metric, k in registry.printed(context)]


def characters(measured: Measured) -> list[tuple[int, list[Value]]]:
    """k -> the metrics of ``registry.characters`` over the whole corpus, for every k measured."""
    of_whole = means(measured)[None]
    counted = registry.characters()
    ks = sorted(int(m.partition("@")[2]) for m in of_whole if m.startswith(f"{counted[0]}@"))
    return [(k, [of_whole[metric_label(metric, k)] for metric in counted]) for k in ks]


def ks_past(depth: int) -> dict[int, str]:
    """k -> why nothing is measured there, of what is measured at every k of ``DEPTHS``."""
    return {k: f"not measured: {why}" for k in DEPTHS if (why := unreached(k, depth))}


def ks_past_said(depth: int) -> str:
    """The same in one line; "" where the lists reach every k."""
    ks = ", ".join(str(k) for k in ks_past(depth))
    return f"k = {ks}: not measured: depth = {depth} does not reach that far" if ks else ""


def label_k(measured: Measured) -> int:
    """``SHOWN_K``, or the deepest k that labels have where that is less."""
    ks: list[int] = pc.unique(measured.tables["forensic_labels"]["k"]).to_pylist()
    return SHOWN_K if SHOWN_K in ks else max(ks)


def label_counts(measured: Measured, k: int) -> dict[str, int]:
    """Forensic label -> queries at ``k``, in the order of the labels; undecided ones last."""
    counts = _counts(measured.tables["forensic_labels"], "label", k)
    named = {label: counts[label] for label in LABELS if counts[label]}
    return named | ({"undecided": counts[None]} if counts[None] else {})


def state_counts(measured: Measured, k: int) -> dict[str, int]:
    """State -> gold spans at ``k``."""
    counts = _counts(measured.tables["span_states"], "state", k)
    return {str(state): counts[state] for state in ("covered", "partial", "missed")}


def failure_counts(measured: Measured) -> dict[str, int] | None:
    """Failure label -> queries, most frequent first; None where they were not measured."""
    if "failure_labels" not in measured.tables:
        return None
    labels = measured.tables["failure_labels"]["label"].to_pylist()
    return dict(sorted(Counter(labels).items(), key=lambda item: (-item[1], item[0])))


def bounds(measured: Measured, k: int) -> dict[str, float]:
    """Bound of the headroom -> complete grounding over the whole corpus at ``k``."""
    return {
        row["bound"]: row["value"]
        for row in measured.tables["headroom"].to_pylist()
        if row["k"] == k and row["subset"] is None
    }


def _counts(table: pa.Table, column: str, k: int) -> Counter[Any]:
    return Counter(table.filter(pc.equal(table["k"], k))[column].to_pylist())
