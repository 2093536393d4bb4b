"""The rows of ``regression`` that a person must hear of, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from spanbench_pipeline.analysis.regression import (
    ACROSS,
    COMPARABLE,
    MISSING,
    NOT_COMPARABLE,
    REGRESSION,
)
from spanbench_pipeline.metrics.metric import metric_label

Rows = list[dict[str, Any]]
SHOWN = 20
"""Queries named in one row; the table names all."""


def regressions(regression: pa.Table) -> Rows:
    """Return each metric that regressed, the deepest fall first, with the queries behind it."""
    rows = [row for row in regression.to_pylist() if row["verdict"] == REGRESSION]
    rows.sort(key=lambda row: (row["difference"], row["config"], row["metric"]))
    return [
        {
            "config": row["config"],
            "metric": _metric(row),
            "n": row["n"],
            "accepted": round(row["accepted"], 4),
            "current": round(row["current"], 4),
            "difference": round(row["difference"], 4),
            "interval": f"[{row['low']:.4f}, {row['high']:.4f}]",
            "p": float(f"{row['p']:.2g}"),
            "broken": named(row["broken_queries"]),
            "fixed": named(row["fixed_queries"]),
        }
        for row in rows
    ]


def changes(regression: pa.Table) -> Rows:
    """Return each configuration with a changed value: which queries, and in which metrics."""
    queries: dict[str, set[str]] = defaultdict(set)
    metrics: dict[str, list[str]] = defaultdict(list)
    for row in regression.to_pylist():
        if row["n_changed"]:
            queries[row["config"]].update(row["changed_queries"])
            metrics[row["config"]].append(_metric(row))
    return [
        {
            "config": config,
            "queries": named(sorted(queries[config])),
            "metrics": ", ".join(metrics[config]),
        }
        for config in sorted(queries)
    ]


def not_compared(regression: pa.Table) -> Rows:
    """Return accepted values without a counterpart: one row a configuration and reason."""
    metrics: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in regression.to_pylist():
        if row["verdict"] in (NOT_COMPARABLE, MISSING):
            metrics[row["config"], row["verdict"], row["comparable"]].append(_metric(row))
    return [
        {"config": config, "verdict": verdict, "metrics": ", ".join(names), "why": why}
        for (config, verdict, why), names in sorted(metrics.items())
    ]


def across(regression: pa.Table) -> Rows:
    """Return values that were compared although something else differs: a row a configuration."""
    metrics: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in regression.to_pylist():
        if row["comparable"].startswith(COMPARABLE + ACROSS):
            metrics[row["config"], row["comparable"]].append(_metric(row))
    return [
        {"config": config, "metrics": named(names), "why": why}
        for (config, why), names in sorted(metrics.items())
    ]


def _metric(row: Mapping[str, Any]) -> str:
    return metric_label(row["metric"], row["k"])


def named(queries: list[str]) -> str:
    """Return how many queries, and the first of them by id."""
    if not queries:
        return "0"
    more = f" and {len(queries) - SHOWN} more" if len(queries) > SHOWN else ""
    return f"{len(queries)}: {', '.join(queries[:SHOWN])}{more}"
