"""Warnings of the BM25 statistics in ``config_stats``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from spanbench_pipeline.analysis.bm25_stats import AVERAGE_IDF, MOST_OUTSIDE, SHARES, is_one
from spanbench_pipeline.checks.invariants import Rows


def backward(config_stats: pa.Table) -> Rows:
    """Return configurations where the average token weighs less than nothing."""
    return _where(config_stats, (AVERAGE_IDF,), lambda value: value < 0)


def by_order(config_stats: pa.Table) -> Rows:
    """Return configurations with queries whose first place in the BM25 list goes by chunk order
    alone.
    """
    return _where(config_stats, ("first_by_order",), lambda value: value > 0)


def unread(config_stats: pa.Table) -> Rows:
    """Return configurations whose tokens leave out more than ``MOST_OUTSIDE`` of the letters."""
    return _where(config_stats, SHARES, lambda value: value > MOST_OUTSIDE)


def _where(
    config_stats: pa.Table, names: tuple[str, ...], holds: Callable[[float], bool]
) -> list[dict[str, Any]]:
    return [
        {key: row[key] for key in ("config", "stat", "value")}
        for row in config_stats.to_pylist()
        if is_one(row["stat"], names) and row["value"] is not None and holds(row["value"])
    ]
