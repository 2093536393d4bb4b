"""Reciprocal rank: how early the first relevant chunk comes."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import Metric

METRICS = (
    Metric(
        name="mrr",
        meaning="how early the first relevant chunk comes: 1 divided by its rank, 0 if it is not "
        "in the list.",
        formula="1 / rank of the first relevant chunk",
        depths=(None,),
        counts_chunks=True,
        printed=True,
        position=30,
    ),
)
