"""Every measure of a ranking from elsewhere: what needs all chunks only where they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.aggregate import clause_type_metrics, config_metrics
from spanbench_pipeline.analysis.chunk_stats import chunk_stats
from spanbench_pipeline.analysis.headroom import headroom
from spanbench_pipeline.analysis.label_cross import label_cross
from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import absent, unreached
from spanbench_pipeline.metrics.failure_labels import failure_labels
from spanbench_pipeline.metrics.forensic_labels import forensic_labels, span_states
from spanbench_pipeline.metrics.metric import MetricAt, metric_label
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import ScoredRun, scored_run
from spanbench_pipeline.metrics.span_outcomes import span_outcomes
from spanbench_pipeline.metrics.stages import lost_stages, stages_of

NO_CHUNKS = "not measured: no chunk table"
STAGES = stages_of(routing=False, fusion=False, reranker=False)
"""The stages that a ranking from elsewhere has: nothing is known of what made it."""
FAILURE_LABELS = "failure labels"
NEEDS_CHUNKS = (
    "severed",
    FAILURE_LABELS,
    "CBF among the forensic labels",
    "lost_stage",
    "headroom, bound chunks",
    "chunk statistics",
)
"""What beside some metrics takes every chunk of the chunker to know."""
Named = dict[str, Any]
"""Corpus and configuration, by the names of their columns."""


@dataclass(frozen=True)
class Measured:
    """Everything that was measured of one configuration, by name of its declared table."""

    tables: Mapping[str, pa.Table]
    not_measured: Mapping[str, str]
    """What was not, and why."""


def measure(
    rankings: pa.Table,
    evalset: EvalSet,
    chunks: pa.Table | None,
    *,
    corpus: str,
    config: str,
    depth: int,
    label_depth: int | None = None,
    context: int = CONTEXT,
    further: Sequence[MetricAt] = (),
) -> Measured:
    """Return all measures of one configuration's rankings, which may repeat places and lack chunks.

    Lists are looked at to ``depth``; nothing is measured at a k past it. Failure labels ask what
    stands below the context, and look at a list that goes on to ``label_depth`` (None: ``depth``).
    The character metrics take a list as given, so that the paper's scoring counts repeats; every
    other measure counts a place at its first rank and closes up. Without ``chunks`` what
    ``needs_chunks`` names is left out or null, and said to be not measured: never 0.
    """
    named: Named = {"corpus": corpus, "config": config}
    run = scored_run(rankings, evalset.gold_spans, chunks, evalset.queries, foreign=True)
    first, ks = run.cut(depth), [k for k in registry.label_ks(context, further) if k <= depth]
    wanted = registry.measured(context, further)
    metrics = _query_metrics(run, first, wanted, depth, named)
    found = {
        "rankings": rankings,
        "query_metrics": metrics,
        "config_metrics": config_metrics(metrics, evalset.queries),
        "clause_type_metrics": clause_type_metrics(metrics, evalset.queries),
        "forensic_labels": forensic_labels(run, depth=depth, ks=ks, **named),
        "span_states": span_states(run, depth=depth, ks=ks, **named),
        "headroom": headroom(first, first, evalset.queries, ks=ks, **named),
    }
    missing = _past(depth, context, further)
    if FAILURE_LABELS not in missing:
        found["span_outcomes"] = span_outcomes(first, context=context, **named)
    if chunks is None:
        found["headroom"] = _without(found["headroom"], "bound", ["chunks"])
        return Measured(found, dict.fromkeys(needs_chunks(context, further), NO_CHUNKS) | missing)
    found["span_states"] = _with_stages(found["span_states"], first, ks)
    chunker = next(iter(pc.unique(chunks["chunker"]).to_pylist()), "")
    found["chunk_stats"] = chunk_stats(first, corpus=corpus, chunker=chunker, context=context)
    if FAILURE_LABELS not in missing:
        deep = first if label_depth in (None, depth) else run.cut(label_depth or depth)
        labels = failure_labels(deep, depth=depth, context=context, **named)
        found["failure_labels"] = labels
        found["label_cross"] = label_cross(
            labels, found["forensic_labels"], corpus=corpus, context=context
        )
    return Measured(found, missing)


def _query_metrics(
    run: ScoredRun, first: ScoredRun, wanted: Sequence[MetricAt], depth: int, named: Named
) -> pa.Table:
    """Return the metrics of the first ``depth`` chunks; those of characters of the list as given.

    A place may have several chunks: the first k places may go deeper than the first k chunks.
    """
    counted = registry.characters()
    parts = [
        query_metrics(
            of, depth=depth, metrics=[m for m in wanted if (m[0] in counted) == counts], **named
        )
        for of, counts in ((first, False), (run, True))
    ]
    return tables.conform("query_metrics", pa.concat_tables(parts))


def needs_chunks(context: int = CONTEXT, further: Sequence[MetricAt] = ()) -> tuple[str, ...]:
    """Return what takes every chunk of the chunker to know: metrics, and ``NEEDS_CHUNKS``."""
    needing = registry.names(lambda metric: metric.needs_chunks)
    asked = (metric for metric in registry.of_results(context, further) if metric[0] in needing)
    return (*(metric_label(*metric) for metric in asked), *NEEDS_CHUNKS)


def _past(depth: int, context: int, further: Sequence[MetricAt]) -> dict[str, str]:
    """Return what lists looked at to ``depth`` do not reach, and why it is not measured."""
    why = unreached(context, depth)
    wanted = (*registry.of_results(context), *further)
    return absent(depth, dict.fromkeys(wanted)) | (
        {FAILURE_LABELS: f"not measured: {why}"} if why else {}
    )


def _with_stages(states: pa.Table, run: ScoredRun, ks: Sequence[int]) -> pa.Table:
    """Return ``span_states`` with the stage that lost each span; the list is its own candidates."""
    lost = lost_stages(run, run, has_fusion=False, ks=ks)
    joined = states.drop_columns(["lost_stage"]).join(lost, ["query_id", "span_no", "k"])
    return tables.conform("span_states", joined)


def _without(table: pa.Table, column: str, values: Sequence[str]) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table[column], pa.array(values, pa.string()))))
