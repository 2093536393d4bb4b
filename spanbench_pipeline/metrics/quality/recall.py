"""Recall: the share of all relevant chunks that are in the top k."""

from __future__ import annotations

import numpy as np

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import Metric
from spanbench_pipeline.metrics.scored_run import ScoredRun


def recall(run: ScoredRun, k: int) -> Reals:
    """Return the relevant chunks among the first k, divided by all of the corpus: shape (q,).

    Empty list: 0. No relevant chunk in the corpus: undefined, NaN.
    """
    relevant = run.relevant_counts
    share = np.full(len(relevant), np.nan)
    np.divide(run.hits(k), relevant, out=share, where=relevant > 0)
    return share


METRICS = (
    Metric(
        name="recall",
        values=recall,
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
