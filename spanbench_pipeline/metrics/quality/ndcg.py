"""Normalized discounted cumulative gain: how early all relevant chunks come."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import Metric

METRICS = (
    Metric(
        name="ndcg",
        meaning="how early all relevant chunks come: the sum of 1 / log2(rank + 1) over those in "
        "the top {k}, divided by that of the best possible order. Undefined, and left out, where "
        "there is none.",
        formula="sum of 1 / log2(rank + 1) over relevant chunks in the top k / that of the best "
        "order of all chunks",
        depths=(10,),
        undefined="the corpus has no relevant chunk for the query",
        counts_chunks=True,
        needs_chunks=True,
        position=70,
    ),
)
