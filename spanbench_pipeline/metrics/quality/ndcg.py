"""Normalized discounted cumulative gain: how early all relevant chunks come."""

from __future__ import annotations

import numpy as np

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import Metric
from spanbench_pipeline.metrics.scored_run import ScoredRun


def ndcg(run: ScoredRun, k: int) -> Reals:
    """Return the discounted gain of the first k, divided by that of the best order: shape (q,).

    The gain of a relevant chunk at rank r is 1 / log2(r + 1), of any other 0: relevance is binary.
    The best order has as many of the corpus's relevant chunks first as k holds. Empty list: 0. No
    relevant chunk in the corpus: undefined, NaN. Ranks are the list's, so that there are no ties.
    """
    gain = 1 / np.log2(np.arange(2, k + 2))
    hits = run.listed.where(run.relevant & (run.listed.rank <= k))
    found = np.zeros(len(run.query_ids))
    np.add.at(found, hits.query, gain[hits.rank - 1])
    best = np.concatenate(([0.0], np.cumsum(gain)))[np.minimum(run.relevant_counts, k)]
    share = np.full(len(found), np.nan)
    np.divide(found, best, out=share, where=best > 0)
    return share


METRICS = (
    Metric(
        name="ndcg",
        values=ndcg,
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
