"""Precision: how much of what is shown is relevant."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import CONTEXT, Metric

METRICS = (
    Metric(
        name="precision",
        meaning="how much of what is shown is relevant: relevant chunks in the top {k}, "
        "divided by {k}.",
        formula="relevant chunks in the top k / k",
        depths=(CONTEXT,),
        counts_chunks=True,
        printed=True,
        position=10,
    ),
)
