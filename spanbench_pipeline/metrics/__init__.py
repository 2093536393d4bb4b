"""Measures: tables in, tables out.

They know of no retriever and no model, so that anybody's rankings can be scored. The constants
below are one for every corpus and configuration; they are never tuned.
"""

from __future__ import annotations

TOP = 5
"""How many chunks a reader is given: the depth of every metric but recall, mrr and ndcg."""

RECALL_DEPTH = 10
"""The depth of recall."""

NDCG_DEPTH = 10
"""The depth of ndcg."""

PRINTED: tuple[tuple[str, int | None], ...] = (
    ("precision", TOP),
    ("recall", RECALL_DEPTH),
    ("mrr", None),
    ("span_coverage", TOP),
    ("span_recall", TOP),
    ("complete_grounding", TOP),
)
"""The metrics of the results table that a terminal shows, each with its depth or None: those of the
published figures."""

METRICS: tuple[tuple[str, int | None], ...] = (*PRINTED, ("ndcg", NDCG_DEPTH))
"""Each metric with its depth; None where it has none."""

MAY_BE_UNDEFINED = ("recall", "ndcg")
"""The metrics that are undefined, null, where the corpus has no relevant chunk for a query."""

KS = (1, 2, 4, 8, 16, 32, 64)
"""The depths of the metrics that count characters; one past an experiment's depth is left out."""

OF_DOCUMENTS = ("routing_recall",)
"""The metrics whose k counts documents: how deep the lists go says nothing of them."""

LABEL_KS = tuple(sorted({*KS, TOP}))
"""The depths of forensic labels and span states: ``KS``, and the one of the failure labels."""

CHAR_METRICS = (
    "chars_retrieved",
    "char_precision_union",
    "char_recall_union",
    "char_precision_paper",
    "char_recall_paper",
)
"""The metrics that count characters, each at every k of ``KS``; the first is no quality."""
