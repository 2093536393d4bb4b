"""Precision: the share of the top k chunks that are relevant."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import CONTEXT, Metric

METRICS = (
    Metric(
        name="precision",
        meaning="share of the top {k} chunks that are relevant: their number, divided by {k}.",
        formula="relevant chunks in the top k / k",
        depths=(CONTEXT,),
        counts_chunks=True,
        printed=True,
        position=10,
    ),
)
