"""Measures: tables in, tables out.

They know of no retriever and no model, so that anybody's rankings can be scored. The constants
below are one for every corpus and configuration; they are never tuned.
"""

from __future__ import annotations

TOP = 5
"""How many chunks a reader is given: the depth of every metric but recall and mrr."""

RECALL_DEPTH = 10
"""The depth of recall."""

METRICS: tuple[tuple[str, int | None], ...] = (
    ("precision", TOP),
    ("recall", RECALL_DEPTH),
    ("mrr", None),
    ("span_coverage", TOP),
    ("span_recall", TOP),
    ("complete_grounding", TOP),
)
"""Each metric with its depth; None where it has none."""
