"""Reciprocal rank: how early the first relevant chunk comes."""

from __future__ import annotations

import numpy as np

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import Metric
from spanbench_pipeline.metrics.scored_run import ScoredRun


def reciprocal_rank(run: ScoredRun, _: None = None) -> Reals:
    """Return 1 / rank of the first relevant chunk, as deep as the list goes: shape (q,).

    No relevant chunk in the list, or an empty list: 0. Its mean over queries is the MRR.
    """
    lists = run.listed.where(run.relevant)
    value = np.zeros(len(run.query_ids))
    query, first = np.unique(lists.query, return_index=True)
    value[query] = 1 / lists.rank[first]
    return value


METRICS = (
    Metric(
        name="mrr",
        values=reciprocal_rank,
        meaning="how early the first relevant chunk comes: 1 divided by its rank, 0 if it is not "
        "in the list.",
        formula="1 / rank of the first relevant chunk",
        depths=(None,),
        counts_chunks=True,
        printed=True,
        position=30,
    ),
)
