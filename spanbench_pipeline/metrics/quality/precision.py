"""Precision: the share of the top k chunks that are relevant."""

from __future__ import annotations

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import CONTEXT, Metric
from spanbench_pipeline.metrics.scored_run import ScoredRun


def precision(run: ScoredRun, k: int) -> Reals:
    """Return the relevant chunks among the first k, divided by k: shape (q,).

    Always by k, however short the list is. Empty list: 0.
    """
    share: Reals = run.hits(k) / k
    return share


METRICS = (
    Metric(
        name="precision",
        values=precision,
        meaning="share of the top {k} chunks that are relevant: their number, divided by {k}.",
        formula="relevant chunks in the top k / k",
        depths=(CONTEXT,),
        counts_chunks=True,
        printed=True,
        position=10,
    ),
)
