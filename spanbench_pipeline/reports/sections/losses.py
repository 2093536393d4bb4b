"""Where gold spans were lost, and what each stage costs: tables and pictures of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from spanbench_pipeline.analysis.headroom import BOUNDS, COSTS, costs
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics.stages import STAGES, stages_of
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Block,
    Column,
    Heading,
    Items,
    Panel,
    Picture,
    Strong,
    Table,
    Value,
    paragraph,
)

STAGE_MEANING: dict[str, str] = {
    "corpus": "all chunks together do not hold half of the span.",
    "chunking": "no k chunks hold half of it.",
    "routing": "its document was not among those kept.",
    "candidates": "the chunks in the channels' lists do not hold half of it.",
    "fusion": "the fused list does not, though the channels' lists together do.",
    "reranking": "the top k held half of it before the reranker, and not after.",
    "cut": "the whole list holds half of it, its top k do not.",
}
"""Each stage in a line: what is true of a span that it lost, and of no stage before it."""

COST_MEANING: dict[str, str] = {
    "ranking": "what the best order of the same candidates would add.",
    "candidate generation": "what the best choice of all chunks of the gold documents would add "
    "to that.",
    "chunking": "what is left: no k chunks ground these queries.",
}
"""Each step of the waterfall in a line."""

Bounds = Mapping[str, float]


def stages_by_config(experiment: Experiment) -> dict[str, tuple[str, ...]]:
    """Return configuration -> the stages that it has, both in order."""
    return {
        c.name: stages_of(
            routing=bool(c.routing),
            fusion=c.fusion_used is not None,
            reranker=c.reranker is not None,
        )
        for c in experiment.configurations
    }


def waterfall_panel(title: str, bounds: Bounds, *, marked: bool = False) -> Panel:
    """From what is grounded up to 1, each cost beginning where the last one ended."""
    steps = costs(bounds)
    bars = [Bar("grounded", bounds["actual"], marked)]
    bars += [
        Bar(f"lost to {cost}", steps[cost], start=bounds[bound])
        for cost, bound in zip(COSTS, BOUNDS, strict=False)
    ]
    return Panel(title, tuple(bars), maximum=1.0)


def waterfall_panels(
    headroom: pa.Table,
    k: int,
    configs: Sequence[str],
    baseline: str = "",
    *,
    subset: str | None = None,
) -> list[Panel]:
    """Return a waterfall for each of ``configs`` that was measured, in their order."""
    found = facts.bounds(headroom, k, subset)
    return [
        waterfall_panel(config, found[config], marked=config == baseline)
        for config in configs
        if config in found
    ]


def headroom_table(
    headroom: pa.Table,
    k: int,
    configs: Sequence[str],
    baseline: str = "",
    *,
    subset: str | None = None,
) -> Table:
    """Return what is grounded and what each stage costs; a configuration not measured has
    dashes.
    """
    found = facts.bounds(headroom, k, subset)
    rows = tuple((config, *_row(found.get(config))) for config in configs)
    columns = (Column("configuration"), *_cost_columns(k))
    caption = f"Complete grounding at {k}, and what stands between it and 1. A row adds up to 1."
    return Table(columns, rows, caption, _marked(configs, baseline))


def parts_table(
    headroom: pa.Table, k: int, configs: Sequence[str], parts: Sequence[str], baseline: str = ""
) -> Table:
    """Return the same for each part of a pooled corpus; a configuration not measured has no
    rows.
    """
    by_part = {part: facts.bounds(headroom, k, part) for part in parts}
    shown = [(c, part) for c in configs for part in parts if c in by_part[part]]
    rows = tuple((config, part, *_row(by_part[part][config])) for config, part in shown)
    columns = (Column("configuration"), Column("part"), *_cost_columns(k))
    marked = frozenset(n for n, (config, _) in enumerate(shown) if config == baseline)
    return Table(columns, rows, f"Complete grounding at {k}, part by part.", marked)


def stage_panels(
    span_states: pa.Table, k: int, stages: Mapping[str, Sequence[str]], baseline: str = ""
) -> list[Panel]:
    """Return one panel a configuration that was measured, a bar a stage it has, all on one scale.

    ``stages`` says which stages each configuration has, in the order to show them.
    """
    counts = facts.lost_spans(span_states, k)
    highest = max((n for found in counts.values() for n in found.values()), default=0)
    return [
        Panel(
            config,
            tuple(Bar(stage, counts[config][stage], config == baseline) for stage in has),
            maximum=max(highest, 1),
            format="count",
        )
        for config, has in stages.items()
        if config in counts
    ]


def stage_table(
    span_states: pa.Table, k: int, stages: Mapping[str, Sequence[str]], baseline: str = ""
) -> Table:
    """Lost spans by stage; a dash where a configuration lacks the stage or was not measured."""
    counts = facts.lost_spans(span_states, k)
    shown = [*STAGES, *([None] if any(found[None] for found in counts.values()) else [])]
    rows = tuple(
        (config, *_counted(counts.get(config), has, shown)) for config, has in stages.items()
    )
    columns = (
        Column("configuration"),
        Column("lost spans", "count"),
        *(Column(stage or facts.NO_CHUNKS, "count") for stage in shown),
    )
    caption = f"Gold spans with less than half of their characters in the top {k}."
    return Table(columns, rows, caption, _marked(list(stages), baseline))


def losses(
    span_states: pa.Table,
    headroom: pa.Table,
    k: int,
    stages: Mapping[str, Sequence[str]],
    baseline: str = "",
    *,
    parts: Sequence[str] = (),
    note: str = "",
) -> list[Block]:
    """Return both, as sections of a report: the stage that lost each span, and the waterfalls.

    ``parts``: those of a pooled corpus; ``note``: what is to be said of k.
    """
    configs = list(stages)
    panels = {
        "Lost spans by stage, all configurations on one scale.": stage_panels(
            span_states, k, stages, baseline
        ),
        f"Complete grounding at {k}, from what is grounded up to 1.": waterfall_panels(
            headroom, k, configs, baseline
        ),
    }
    by_stage, by_cost = ([Picture(c, tuple(p))] if p else [] for c, p in panels.items())
    return [
        Heading("Where spans were lost"),
        *([paragraph(note)] if note else []),
        paragraph("The first stage that does not keep the span, for every span not covered."),
        stage_table(span_states, k, stages, baseline),
        *by_stage,
        Items(tuple((Strong(s), f": {m}") for s, m in STAGE_MEANING.items())),
        Heading("What each stage costs"),
        paragraph(
            "Against the best order and the best choice that there could have been, found exactly."
        ),
        headroom_table(headroom, k, configs, baseline),
        *by_cost,
        Items(tuple((Strong(c), f": {m}") for c, m in COST_MEANING.items())),
        *([parts_table(headroom, k, configs, parts, baseline)] if parts else []),
    ]


def _cost_columns(k: int) -> list[Column]:
    costs = (Column(f"lost to {cost}", "number") for cost in COSTS)
    return [Column(f"complete_grounding@{k}", "number"), *costs]


def _row(bounds: Bounds | None) -> list[Value]:
    if bounds is None:
        return [None] * (1 + len(COSTS))
    return [bounds["actual"], *costs(bounds).values()]


def _counted(
    counts: Counter[str | None] | None, has: Sequence[str], shown: Sequence[str | None]
) -> list[Value]:
    """Return all lost spans, then those of each stage shown; a dash where there is no such
    stage.
    """
    if counts is None:
        return [None] * (1 + len(shown))
    known = {*has, None}
    return [counts.total(), *(counts[stage] if stage in known else None for stage in shown)]


def _marked(configs: Sequence[str], baseline: str) -> frozenset[int]:
    return frozenset(n for n, config in enumerate(configs) if config == baseline)
