"""Counts and means of a corpus's stored tables: each is computed here and nowhere else.

Reports, the web UI's pictures, the terminal and ``score``'s JSON show these facts. A table may hold
one configuration or several; every function gives its facts by configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.aggregate import MACRO
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL
from spanbench_pipeline.metrics.metric import metric_label

USUAL_DEPTH = 8
"""The depth that is shown of what is measured at several, where nothing else is said."""

Counts = dict[str, Counter[str | None]]
"""Configuration -> value -> how many rows have it, in the order of the table."""

NO_CHUNKS = "not measured: no chunk table"
"""What is said of a value None: only a chunk table could tell it."""


def deepest(table: pa.Table, wanted: int = USUAL_DEPTH) -> int | None:
    """Return the largest k of ``table`` up to ``wanted``; None where there is none."""
    return max((k for k in pc.unique(table["k"]).to_pylist() if k <= wanted), default=None)


def failure_labels(table: pa.Table) -> dict[str, Counter[str]]:
    """Count the failing queries by failure label.

    Most frequent first; equally frequent ones in the order in which labels are tried.
    """
    tried = list(EVERY_LABEL)
    found: dict[str, Counter[str]] = {}
    for config, counts in _counts(table, "label").items():
        named = [(str(label), n) for label, n in counts.items()]
        found[config] = Counter(dict(sorted(named, key=lambda x: (-x[1], tried.index(x[0])))))
    return found


def forensic_labels(table: pa.Table, k: int) -> Counts:
    """Count the queries by forensic label at ``k``."""
    return _counts(_at(table, k), "label")


def forensic_labels_by_depth(table: pa.Table) -> Counter[tuple[str | None, int]]:
    """Count the rows by forensic label and k, over all configurations."""
    return Counter(zip(table["label"].to_pylist(), table["k"].to_pylist(), strict=True))


def label_pairs(label_cross: pa.Table) -> dict[tuple[str, str | None], Counter[str | None]]:
    """Return (configuration, failure label) -> forensic label -> queries that have both."""
    pairs: dict[tuple[str, str | None], Counter[str | None]] = {}
    for row in label_cross.to_pylist():
        counts = pairs.setdefault((row["config"], row["failure_label"]), Counter())
        counts[row["forensic_label"]] += row["n_queries"]
    return pairs


def span_states(table: pa.Table, k: int) -> Counts:
    """Count the gold spans by state at ``k``."""
    return _counts(_at(table, k), "state")


def lost_spans(table: pa.Table, k: int) -> Counts:
    """Count the gold spans that are not covered at ``k`` by the stage that lost them.

    Every configuration of the table has an entry. The stage is None where only a chunk table could
    tell it.
    """
    at_k = _at(table, k)
    lost = _counts(at_k.filter(pc.not_equal(at_k["state"], "covered")), "lost_stage")
    return {config: lost.get(config, Counter()) for config in _configs(at_k)}


def bounds(headroom: pa.Table, k: int, subset: str | None = None) -> dict[str, dict[str, float]]:
    """Return configuration -> bound -> complete grounding at ``k``, of one part of the corpus."""
    found: dict[str, dict[str, float]] = {}
    for row in _of_part(_at(headroom, k), subset).to_pylist():
        found.setdefault(row["config"], {})[row["bound"]] = row["value"]
    return found


def means(
    config_metrics: pa.Table, subset: str | None = None
) -> dict[str, dict[str, float | None]]:
    """Return configuration -> metric (``precision@5``) -> mean, of one part of the corpus."""
    found: dict[str, dict[str, float | None]] = {}
    for row in _of_part(config_metrics, subset).to_pylist():
        label = metric_label(row["metric"], row["k"])
        found.setdefault(row["config"], {})[label] = row["value"]
    return found


def parts_of(table: pa.Table) -> list[str]:
    """Return the parts of a pooled corpus that a table of means has, the mean over them last."""
    parts = set(pc.unique(table["subset"]).to_pylist()) - {None}
    return sorted(parts, key=lambda part: (part == MACRO, part))


def total(counts: Iterable[Counter[Any]]) -> Counter[Any]:
    """Return the sum of counts, values in the order in which they first come."""
    summed: Counter[Any] = Counter()
    for one in counts:
        summed.update(one)
    return summed


def _counts(table: pa.Table, column: str) -> Counts:
    counts: Counts = {}
    for config, value in zip(table["config"].to_pylist(), table[column].to_pylist(), strict=True):
        counts.setdefault(config, Counter())[value] += 1
    return counts


def _configs(table: pa.Table) -> list[str]:
    configs: list[str] = pc.unique(table["config"]).to_pylist()
    return configs


def _at(table: pa.Table, k: int) -> pa.Table:
    return table.filter(pc.equal(table["k"], k))


def _of_part(table: pa.Table, subset: str | None) -> pa.Table:
    column = table["subset"]
    return table.filter(pc.is_null(column) if subset is None else pc.equal(column, subset))
