"""Published figures beside ours, for the kinds of corpora that have any: context, never a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanbench_pipeline.analysis.aggregate import MACRO
from spanbench_pipeline.config.experiment import Experiment
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
from spanbench_pipeline.reports.sections.characters import Values, character_values

Blocks = list[Block]


@dataclass(frozen=True)
class Figure:
    """One published metric: ours of the same name and k, and its value by part, as shares."""

    title: str
    metric: str
    k: int
    by_part: Mapping[str, float]


@dataclass(frozen=True)
class Yardsticks:
    """What was published of one benchmark, by whom and with what."""

    source: str
    figures: tuple[Figure, ...]


PUBLISHED: dict[str, Yardsticks] = {
    "legalbenchrag": Yardsticks(
        "LegalBench-RAG (arXiv 2408.10343): its recursive splitter, the encoder "
        "text-embedding-3-large, no reranker",
        (
            Figure(
                "precision at 1",
                "char_precision_paper",
                1,
                {
                    "contractnli": 0.0663,
                    "cuad": 0.0197,
                    "maud": 0.0265,
                    "privacy_qa": 0.1438,
                    MACRO: 0.0641,
                },
            ),
            Figure(
                "recall at 8",
                "char_recall_paper",
                8,
                {
                    "contractnli": 0.2499,
                    "cuad": 0.3168,
                    "maud": 0.0618,
                    "privacy_qa": 0.4237,
                    MACRO: 0.2631,
                },
            ),
            Figure(
                "recall at 64",
                "char_recall_paper",
                64,
                {
                    "contractnli": 0.6172,
                    "cuad": 0.7470,
                    "maud": 0.2828,
                    "privacy_qa": 0.8419,
                    MACRO: 0.6222,
                },
            ),
        ),
    )
}
"""The kind of a corpus's source -> what was published of it."""

MEAN = "mean"
"""How a column titles the mean over the parts."""


def yardsticks(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return the published figures beside ours, in the published scoring; [] where there are
    none.
    """
    published = PUBLISHED.get(str(experiment.source.get("kind")))
    values = character_values(inputs)
    if published is None or not values:
        return []
    parts = _parts(published, facts.parts_of(inputs.config_metrics))
    return [
        Heading("Beside published figures"),
        paragraph(
            f"Published: {published.source}. Ours: the paper's scoring at the same k, which counts "
            "a character as often as chunks bring it. Context, not a test: no figure of ours is "
            "right or wrong by being near to one of these."
        ),
        *(_table(experiment, values, figure, parts) for figure in published.figures),
        _reading(experiment, inputs),
    ]


def _parts(published: Yardsticks, found: Sequence[str]) -> list[str]:
    """Return the published parts that the corpus has; the mean over them only where it has all."""
    named = list(published.figures[0].by_part)
    parts = [part for part in named if part in found and part != MACRO]
    return named if len(parts) == len(named) - 1 else parts


def _table(experiment: Experiment, values: Values, figure: Figure, parts: Sequence[str]) -> Table:
    """Return the published row first, then a row a configuration, with what its figures were bought
    with.

    A configuration that was not measured, and a k past the depth, has dashes.
    """
    rows: list[tuple[Value, ...]] = [
        ("published", *(figure.by_part[part] for part in parts), None),
    ]
    rows += [
        (
            c.name,
            *(values.get((c.name, part, figure.metric, figure.k)) for part in parts),
            values.get((c.name, None, "chars_retrieved", figure.k)),
        )
        for c in experiment.configurations
    ]
    columns = (
        Column("configuration"),
        *(Column(MEAN if part == MACRO else part, "percent") for part in parts),
        Column(f"characters retrieved at {figure.k}", "count"),
    )
    deep = figure.k <= experiment.depth
    why = "" if deep else f" Not measured here: rankings are {experiment.depth:,} deep."
    caption = f"{figure.title.capitalize()} ({figure.metric}@{figure.k}).{why}"
    return Table(columns, tuple(rows), caption, frozenset({0}))


def _reading(experiment: Experiment, inputs: ReportInputs) -> Items:
    """Return what the figures show, and what they do not."""
    encoders = sorted({c.encoder for c in experiment.configurations if c.encoder})
    ours = f"ours are {', '.join(encoders)}" if encoders else "ours use none"
    n_queries, n_documents = inputs.queries.num_rows, inputs.documents.num_rows
    lines = {
        "What they show": "which parts are hard and which are easy, for a published system and for "
        "these configurations alike, and whether ours are of the same order.",
        "Another encoder": f"theirs is text-embedding-3-large, {ours}. With another encoder "
        "the same chunks and queries give other figures.",
        "Other chunks": "our chunkers have settings of their own, stated under Chunkers. Longer "
        "chunks recall more and are less precise at the same k, so a recall counts only beside its "
        "characters retrieved, which the published figures come without.",
        "Other queries": f"ours are means over the {n_queries:,} queries of this corpus against "
        f"one index of its {n_documents:,} documents; more documents in an index make every figure "
        "harder to reach.",
        "What they do not show": "that one retriever is better than the other. That takes one "
        "index, one encoder and one budget with a single lever changed, as under What one lever "
        "does.",
    }
    return Items(tuple((Strong(f"{name}:"), f" {text}") for name, text in lines.items()))
