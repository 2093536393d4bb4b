"""Recall: the share of all relevant chunks that are in the top k."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import Metric

METRICS = (
    Metric(
        name="recall",
        meaning="share of all relevant chunks of the corpus that are in the top {k}. Undefined, "
        "and left out, where there is none.",
        formula="relevant chunks in the top k / relevant chunks of the corpus",
        depths=(10,),
        undefined="the corpus has no relevant chunk for the query",
        counts_chunks=True,
        needs_chunks=True,
        printed=True,
        position=20,
    ),
)
