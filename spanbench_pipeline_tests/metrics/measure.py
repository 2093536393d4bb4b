"""The measures on tables as tests make them: rankings, gold spans, chunks and queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis import chunk_stats as stats_measures
from spanbench_pipeline.analysis import headroom as headroom_measures
from spanbench_pipeline.metrics import failure_labels as failures
from spanbench_pipeline.metrics import forensic_labels as forensics
from spanbench_pipeline.metrics import query_metrics as metrics
from spanbench_pipeline.metrics import registry, stages
from spanbench_pipeline.metrics import span_outcomes as outcomes
from spanbench_pipeline.metrics.metric import MetricAt
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.metrics.scored_run import scored_run

Table = pa.Table


def plant(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[[Any], Any]) -> None:
    """Put a fault into a metric: ``wrong`` of its function is called in its place."""
    true = registry.metrics()
    planted = dataclasses.replace(true[name], values=wrong(true[name].values))
    monkeypatch.setattr(registry, "metrics", lambda: {**true, name: planted})


def all_metrics(
    ranked: Table, gold: Table, chunks: Table | None, asked: Table, **more: Any
) -> Table:
    """Return every standard metric, or those of ``metrics``."""
    return metrics.query_metrics(scored_run(ranked, gold, chunks, asked), **more)


def query_metrics(
    ranked: Table,
    gold: Table,
    chunks: Table | None,
    asked: Table,
    *,
    metrics: Sequence[MetricAt] | None = None,
    **more: Any,
) -> Table:
    """Return the metrics of the table of results, or those of ``metrics``."""
    wanted = registry.of_results() if metrics is None else metrics
    return all_metrics(ranked, gold, chunks, asked, metrics=wanted, **more)


def character_metrics(
    ranked: Table,
    gold: Table,
    asked: Table,
    *,
    foreign: bool = False,
    ks: Sequence[int] = DEPTHS,
    **more: Any,
) -> Table:
    """Return the metrics that count characters, at each of ``ks``, without a chunk table."""
    wanted = [(name, k) for k in ks for name in registry.characters()]
    run = scored_run(ranked, gold, None, asked, foreign=foreign)
    return metrics.query_metrics(run, metrics=wanted, **more)


def span_outcomes(ranked: Table, gold: Table, chunks: Table, asked: Table, **more: Any) -> Table:
    return outcomes.span_outcomes(scored_run(ranked, gold, chunks, asked), **more)


def failure_labels(ranked: Table, gold: Table, chunks: Table, asked: Table, **more: Any) -> Table:
    return failures.failure_labels(scored_run(ranked, gold, chunks, asked), **more)


def forensic_labels(
    ranked: Table, gold: Table, chunks: Table | None, asked: Table, **more: Any
) -> Table:
    return forensics.forensic_labels(scored_run(ranked, gold, chunks, asked), **more)


def span_states(
    ranked: Table, gold: Table, chunks: Table | None, asked: Table, **more: Any
) -> Table:
    return forensics.span_states(scored_run(ranked, gold, chunks, asked), **more)


def lost_stages(
    ranked: Table,
    candidates: Table,
    routed: Table | None,
    gold: Table,
    chunks: Table,
    asked: Table,
    *,
    has_fusion: bool,
    has_reranker: bool,
    ks: Sequence[int],
) -> Table:
    run, before = scored_run(ranked, gold, chunks, asked), None
    if has_reranker:
        before = stages.before_reranking(run, ranked, candidates, has_fusion=has_fusion)
    offered = run.with_lists(candidates)
    return stages.lost_stages(run, offered, routed, before=before, has_fusion=has_fusion, ks=ks)


def headroom(
    ranked: Table, candidates: Table, gold: Table, chunks: Table, asked: Table, **more: Any
) -> Table:
    run = scored_run(ranked, gold, chunks, asked)
    return headroom_measures.headroom(run, run.with_lists(candidates), asked, **more)


def chunk_stats(chunks: Table, gold: Table, asked: Table, **more: Any) -> Table:
    return stats_measures.chunk_stats(scored_run(None, gold, chunks, asked), **more)
