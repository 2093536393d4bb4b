"""The gold spans at a depth: how much of them is shown, and how many are."""

from __future__ import annotations

import numpy as np

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import CONTEXT, Metric
from spanbench_pipeline.metrics.scored_run import ScoredRun


def span_coverage(run: ScoredRun, k: int) -> Reals:
    """Return the distinct gold characters in the first k chunks / the gold characters: shape (q,).

    A query's gold spans are disjoint, so that no character counts twice. Empty list: 0.
    """
    gold = run.total(run.gold.length, run.gold_query)
    share: Reals = run.total(run.covered(k), run.gold_query) / gold
    return share


def span_recall(run: ScoredRun, k: int) -> Reals:
    """Return the gold spans with half of their characters in the first k / all: shape (q,).

    Exactly half counts. Empty list: 0.
    """
    share: Reals = run.count(run.gold_query[run.reached(k)]) / run.count(run.gold_query)
    return share


def complete_grounding(run: ScoredRun, k: int) -> Reals:
    """Return 1 where each gold span has half of its characters in the first k, else 0: shape (q,).

    Exactly half counts. Empty list: 0.
    """
    return np.where(run.count(run.gold_query[~run.reached(k)]) == 0, 1.0, 0.0)


METRICS = (
    Metric(
        name="span_coverage",
        values=span_coverage,
        meaning="how much of the answer is retrieved: characters of the gold passages inside the "
        "top {k}, divided by all of them.",
        formula="distinct gold characters in the top k / the query's gold characters",
        depths=(CONTEXT,),
        printed=True,
        position=40,
    ),
    Metric(
        name="span_recall",
        values=span_recall,
        meaning="how many passages of the answer are retrieved: share of the query's gold passages "
        "with at least half of their characters inside the top {k}.",
        formula="gold spans with at least half of their characters in the top k / gold spans",
        depths=(CONTEXT,),
        printed=True,
        position=50,
    ),
    Metric(
        name="complete_grounding",
        values=complete_grounding,
        meaning="whether the whole answer is retrieved: 1 if every gold passage of the query "
        "has at least half of its characters inside the top {k}, else 0.",
        formula="1 if every gold span has at least half of its characters in the top k, else 0",
        depths=(CONTEXT,),
        printed=True,
        position=60,
    ),
)
