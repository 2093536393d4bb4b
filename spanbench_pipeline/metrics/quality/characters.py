"""Precision and recall in characters, in two scorings that are never mixed.

``union`` counts every character once, so it always lies in [0, 1]. ``paper`` is the scoring of
LegalBench-RAG: it sums over chunks, so that its recall may exceed 1 where chunks overlap. They are
equal where the chunks are disjoint.

Characters of a wrong document count in the denominator of both precisions.
"""

from __future__ import annotations

from spanbench_pipeline.metrics.metric import Metric

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""The depths of all of them; one past an experiment's depth is left out."""

PAPER = "LegalBench-RAG, arXiv 2408.10343"

METRICS = (
    Metric(
        name="chars_retrieved",
        meaning="how much there is to read: distinct characters in the first k chunks. A "
        "recall says nothing without it.",
        formula="distinct characters in the first k chunks",
        depths=DEPTHS,
        unit="characters",
        bounds=(0.0, None),
        is_quality=False,
        shown="characters",
        title="characters retrieved",
        position=110,
    ),
    Metric(
        name="char_precision_union",
        meaning="how much of what is to be read is gold: distinct gold characters in "
        "the first k chunks, divided by all distinct characters there, those of wrong documents "
        "included.",
        formula="distinct gold characters in the first k chunks / distinct characters there",
        depths=DEPTHS,
        shown="characters",
        title="precision, union",
        position=120,
    ),
    Metric(
        name="char_recall_union",
        meaning="how much of the gold is there: the same, divided by the query's gold characters.",
        formula="distinct gold characters in the first k chunks / distinct gold characters",
        depths=DEPTHS,
        shown="characters",
        title="recall, union",
        position=130,
    ),
    Metric(
        name="char_precision_paper",
        meaning="LegalBench-RAG's precision: characters shared by each chunk and each "
        "gold span, summed over the pairs, divided by the sum of the chunks' lengths.",
        formula="sum over (chunk, gold span) of shared characters / sum of the chunks' lengths",
        depths=DEPTHS,
        shown="characters",
        title="precision, paper",
        source=PAPER,
        position=140,
    ),
    Metric(
        name="char_recall_paper",
        meaning="LegalBench-RAG's recall: the same sum, divided by the sum of the gold "
        "spans' lengths. Above 1 where overlapping chunks bring a character more than once.",
        formula="sum over (chunk, gold span) of shared characters / sum of the spans' lengths",
        depths=DEPTHS,
        bounds=(0.0, None),
        shown="characters",
        title="recall, paper",
        source=PAPER,
        position=150,
    ),
)
