"""Precision and recall in characters, in two scorings that are never mixed.

``union`` counts every character once, so it always lies in [0, 1]. ``paper`` is the scoring of
LegalBench-RAG: it sums over chunks, so that its recall may exceed 1 where chunks overlap. They are
equal where the chunks are disjoint.

Characters of a wrong document count in the denominator of both precisions.
"""

from __future__ import annotations

import numpy as np

from spanbench_pipeline.core import spans
from spanbench_pipeline.metrics.joins import Ints, Reals
from spanbench_pipeline.metrics.metric import Metric
from spanbench_pipeline.metrics.scored_run import Entries, ScoredRun

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""The depths of all of them; one past an experiment's depth is left out."""

BUDGET = "chars_retrieved"
"""The name of what a recall costs: the amount of text."""

PAPER = "LegalBench-RAG, arXiv 2408.10343"


def chars_retrieved(run: ScoredRun, k: int) -> Reals:
    """Return the distinct characters in the first k places: shape (q,). Nothing retrieved: 0."""
    return _union(run, k)[1].astype(np.float64)


def char_precision_union(run: ScoredRun, k: int) -> Reals:
    """Return the distinct gold characters in the first k places / the characters there: (q,).

    Characters of the union of gold are counted. Nothing retrieved: 0.
    """
    return ratio(*_union(run, k))


def char_recall_union(run: ScoredRun, k: int) -> Reals:
    """Return the distinct gold characters in the first k places / the distinct gold ones: (q,)."""
    return ratio(_union(run, k)[0], run.union_chars(run.gold_by_query))


def char_precision_paper(run: ScoredRun, k: int) -> Reals:
    """Return the characters shared, summed over (place, gold span) / the places' lengths: (q,).

    Nothing retrieved: 0. A foreign list is taken as given, repeats included.
    """
    top = _summed(run).top(k)
    return ratio(_shared(run, k), run.total(run.chunks.length[top.chunk], top.query))


def char_recall_paper(run: ScoredRun, k: int) -> Reals:
    """Return the same sum / the sum of the gold spans' lengths: shape (q,)."""
    return ratio(_shared(run, k), run.total(run.gold.length, run.gold_query))


def ratio(part: Ints, whole: Ints) -> Reals:
    """Return part / whole, 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _union(run: ScoredRun, k: int) -> tuple[Ints, Ints]:
    """Return the gold characters in the union of the first k places, and all there: (q,) each."""

    def compute() -> tuple[Ints, Ints]:
        retrieved = spans.merge(run.spans_of(run.places.top(k)))
        gold = spans.merge(run.gold_by_query)
        gold_chars = run.total(spans.covered_chars(gold, retrieved), run.query_of(gold))
        return gold_chars, run.union_chars(retrieved)

    found: tuple[Ints, Ints] = run.once(("union", k), compute)
    return found


def _summed(run: ScoredRun) -> Entries:
    return run.given if run.foreign else run.places


def _shared(run: ScoredRun, k: int) -> Ints:
    """Return the characters that each query's first k places share with gold, summed: (q,)."""

    def compute() -> Ints:
        lists = _summed(run)
        places = run.spans_of(lists)
        gold, place = spans.overlapping_pairs(run.gold_by_query, places)
        shared = np.zeros(len(places), dtype=np.int64)
        np.add.at(shared, place, spans.shared_chars(run.gold_by_query, places, gold, place))
        return shared

    lists = _summed(run)
    top = lists.rank <= k
    return run.total(run.once("shared", compute)[top], lists.query[top])


METRICS = (
    Metric(
        name=BUDGET,
        values=chars_retrieved,
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
        values=char_precision_union,
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
        values=char_recall_union,
        meaning="how much of the gold is there: the same, divided by the query's gold characters.",
        formula="distinct gold characters in the first k chunks / distinct gold characters",
        depths=DEPTHS,
        shown="characters",
        title="recall, union",
        position=130,
    ),
    Metric(
        name="char_precision_paper",
        values=char_precision_paper,
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
        values=char_recall_paper,
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
