"""The client report on lost text: at which step it was lost, and the most that could be won."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Column,
    Heading,
    Items,
    Strong,
    Table,
    Value,
    paragraph,
)
from spanbench_pipeline.reports.sections.losses import (
    stages_by_config,
)
from spanbench_pipeline.reports.sections.shared import no_top, shown_depth

STEPS: dict[str, tuple[str, str]] = {
    "corpus": ("cutting", "No chunk contains the passage: cutting the documents left it out."),
    "chunking": (
        "cutting",
        "The passage was cut into so many chunks that no {k} of them hold half of it.",
    ),
    "routing": ("choice of documents", "The document with the passage was not searched."),
    "candidates": ("search", "The document was searched, and the passage was not found."),
    "fusion": ("merging", "One of the searches found the passage; merging them dropped it."),
    "reranking": (
        "second ranking",
        "The passage was among the first {k} chunks until they were ranked a second time.",
    ),
    "cut": ("ranking", "The passage was found, but ranked below the first {k} chunks."),
}
"""Each stage by the name of the step in plain words, and what happened there."""

WON: dict[str, tuple[str, str]] = {
    "actual": ("as it is", "The result of this configuration."),
    "candidates": (
        "better ranking",
        "The same search, with the chunks that it found in the best possible order.",
    ),
    "chunks": (
        "better search",
        "The same chunks, with the best ones of the right documents found and ranked first.",
    ),
    "perfect": ("better cutting", "Documents cut so that {k} chunks can hold every answer."),
}
"""Each bound as what would have to become perfect to reach it, in the order of the steps."""


def lost_words(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Iterator[Block]:
    """Yield where the baseline lost what it does not show: the first step that did, counted."""
    k, note = shown_depth(
        experiment.depth, registry.label_ks(experiment.context), experiment.context
    )
    counts = facts.lost_spans(inputs.span_states, k).get(baseline)
    if counts is None:
        return
    yield Heading("Where the lost text was lost", 3)
    if note:
        yield paragraph(note)
    n_spans = inputs.gold_spans.num_rows
    if not counts.total():
        yield paragraph(f"Nothing was lost: the first {k} chunks cover all {n_spans:,} passages.")
        return
    yield paragraph(
        Strong(f"{counts.total():,} of {n_spans:,} passages"),
        f" are lost: fewer than half of the characters are in the first {k} chunks. The table "
        "counts them by the first step that lost them.",
    )
    rows: list[tuple[Value, ...]] = [
        (STEPS[stage][0], counts[stage], STEPS[stage][1].format(k=k))
        for stage in stages_by_config(experiment)[baseline]
        if counts[stage]
    ]
    if counts[None]:
        rows.append(
            (
                "not measured",
                counts[None],
                "The step cannot be told without the table of all chunks.",
            )
        )
    columns = (Column("step"), Column("passages lost", "count"), Column("what happened"))
    yield Table(columns, tuple(rows))
    if no_top(experiment):  # then there are no labels above
        return
    yield paragraph(
        "A passage can be both cut in two and ranked too low. The label names the first (cutting), "
        "this table the second (ranking); where they disagree, trust the table What could be won "
        "at most, above."
    )


def headroom_words(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Iterator[Block]:
    """Yield the most that ranking, search and cutting could win, one after the other."""
    k, note = shown_depth(
        experiment.depth, registry.label_ks(experiment.context), experiment.context
    )
    bounds = facts.bounds(inputs.headroom, k).get(baseline)
    if bounds is None:
        return
    yield Heading("What could be won at most", 3)
    if note:
        yield paragraph(note)
    yield paragraph(
        "A chunk is a piece of a document, as it was cut for the search. The table gives the share "
        f"of queries for which the first {k} chunks hold at least half of every passage of the "
        "answer: as measured, and with one step after the other made perfect."
    )
    values = [bounds[bound] for bound in WON]
    gains = [None, *(after - before for before, after in pairwise(values))]
    rows = tuple(
        (name, value, gain, text.format(k=k))
        for (name, text), value, gain in zip(WON.values(), values, gains, strict=True)
    )
    columns = (
        Column("with"),
        Column("queries with all passages", "share"),
        Column("won at most", "share"),
        Column("what that would take"),
    )
    yield Table(columns, rows)
    yield Items(
        (
            (
                Strong("A ceiling, not a promise."),
                " The bounds use the marked answers, which no retriever knows. Work can pay where "
                "the figure is large; it cannot where the figure is small.",
            ),
        )
    )
