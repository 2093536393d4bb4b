"""The gold spans at a depth: how much of them is shown, and how many are."""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import CONTEXT, Metric

METRICS = (
    Metric(
        name="span_coverage",
        meaning="how much of the answer is retrieved: characters of the gold passages inside the "
        "top {k}, divided by all of them.",
        formula="distinct gold characters in the top k / the query's gold characters",
        depths=(CONTEXT,),
        printed=True,
        position=40,
    ),
    Metric(
        name="span_recall",
        meaning="how many passages of the answer are retrieved: share of the query's gold passages "
        "with at least half of their characters inside the top {k}.",
        formula="gold spans with at least half of their characters in the top k / gold spans",
        depths=(CONTEXT,),
        printed=True,
        position=50,
    ),
    Metric(
        name="complete_grounding",
        meaning="whether the whole answer is retrieved: 1 if every gold passage of the query "
        "has at least half of its characters inside the top {k}, else 0.",
        formula="1 if every gold span has at least half of its characters in the top k, else 0",
        depths=(CONTEXT,),
        printed=True,
        position=60,
    ),
)
