"""Measures: tables in, tables out.

They know of no retriever and no model, so that anybody's rankings can be scored. The constants
below are one for every corpus and configuration; they are never tuned.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanbench_pipeline.config.experiment import CONTEXT as CONTEXT

Metric = tuple[str, int | None]
"""(name, k); k is None where the metric looks as deep as the list goes"""


RECALL_DEPTH = 10
"""The depth of recall."""

NDCG_DEPTH = 10
"""The depth of ndcg."""


def printed(context: int = CONTEXT) -> tuple[Metric, ...]:
    """Return the metrics of the results table that a terminal shows, with their depths.

    Those that ask what a reader is given look at ``context`` chunks.
    """
    return (
        ("precision", context),
        ("recall", RECALL_DEPTH),
        ("mrr", None),
        ("span_coverage", context),
        ("span_recall", context),
        ("complete_grounding", context),
    )


def standard(context: int = CONTEXT) -> tuple[Metric, ...]:
    """Return the metrics that every configuration has beside ``CHAR_METRICS``."""
    return (*printed(context), ("ndcg", NDCG_DEPTH))


METRICS = standard()
"""The metrics of the default context: those of the published figures, and ndcg."""

MAY_BE_UNDEFINED = ("recall", "ndcg")
"""The metrics that are undefined, null, where the corpus has no relevant chunk for a query."""

KS = (1, 2, 4, 8, 16, 32, 64)
"""The depths of the metrics that count characters; one past an experiment's depth is left out."""

OF_DOCUMENTS = ("routing_recall",)
"""The metrics whose k counts documents: how deep the lists go says nothing of them."""

CHAR_METRICS = (
    "chars_retrieved",
    "char_precision_union",
    "char_recall_union",
    "char_precision_paper",
    "char_recall_paper",
)
"""The metrics that count characters, each at every k of ``KS``; the first is no quality."""


def chunk_metrics_at(context: int, further: Sequence[Metric] = ()) -> tuple[Metric, ...]:
    """Return ``standard(context)``, then those of ``further`` that count no characters."""
    named = (metric for metric in further if metric[0] not in CHAR_METRICS)
    return tuple(dict.fromkeys((*standard(context), *named)))


def character_ks(further: Sequence[Metric] = ()) -> tuple[int, ...]:
    """Return the depths of the character metrics: ``KS``, and those that ``further`` names.

    All of them stand at each: a recall says nothing without the characters retrieved.
    """
    named = {k for name, k in further if name in CHAR_METRICS and k is not None}
    return tuple(sorted({*KS, *named}))


def label_ks(context: int = CONTEXT, further: Sequence[Metric] = ()) -> tuple[int, ...]:
    """Return the depths of forensic labels, span states and headroom.

    Those of the character metrics, and ``context``, the depth of the failure labels.
    """
    return tuple(sorted({*character_ks(further), context}))


LABEL_KS = label_ks()
"""The depths of labels in the default context."""
