"""Routing recall: what routing keeps of the documents that hold gold."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import Metric

METRICS = (
    Metric(
        name="routing_recall",
        meaning="whether the right documents are searched at all: share of the query's gold "
        "documents among the documents that routing keeps, as many as the number behind the @.",
        formula="gold documents among the kept ones / gold documents",
        shown="documents",
        position=200,
    ),
)
