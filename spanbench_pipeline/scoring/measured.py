"""Every measure of a ranking from elsewhere: what needs all chunks only where they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from spanbench_pipeline.metrics.character_metrics import character_metrics
from spanbench_pipeline.metrics.chunk_metrics import query_metrics, span_outcomes
from spanbench_pipeline.metrics.depths import absent, unreached
from spanbench_pipeline.metrics.failure_labels import failure_labels
from spanbench_pipeline.metrics.forensic_labels import forensic_labels, span_states
from spanbench_pipeline.metrics.lists import deduplicate
from spanbench_pipeline.metrics.metric import MetricAt, metric_label
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
_PLACES = "places"
"""Stands for the chunker's name where no chunk table gives one."""


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
    closed = deduplicate(rankings)
    cut = closed.filter(pc.less_equal(closed["rank"], depth))
    known = _ranked_places(rankings) if chunks is None else chunks
    named = {"corpus": corpus, "config": config}
    given = (cut, evalset.gold_spans, known, evalset.queries)
    ks = [k for k in registry.label_ks(context, further) if k <= depth]
    whole = (rankings, evalset.gold_spans, chunks, evalset.queries)
    counted = character_metrics(
        rankings,
        evalset.gold_spans,
        evalset.queries,
        depth=depth,
        foreign=True,
        ks=registry.character_ks(further),
        **named,
    )
    scores = query_metrics(
        *given,
        depth=depth,
        corpus=corpus,
        config=config,
        metrics=registry.of_results(context, further),
    )
    if chunks is None:
        scores = _without(scores, "metric", registry.names(lambda metric: metric.needs_chunks))
    metrics = tables.conform("query_metrics", pa.concat_tables([scores, counted]))
    found = {
        "rankings": rankings,
        "query_metrics": metrics,
        "config_metrics": config_metrics(metrics, evalset.queries),
        "clause_type_metrics": clause_type_metrics(metrics, evalset.queries),
        "forensic_labels": forensic_labels(*whole, depth=depth, ks=ks, **named),
        "span_states": span_states(*whole, depth=depth, ks=ks, **named),
        "headroom": headroom(cut, *given, ks=ks, **named),
    }
    missing = _past(depth, context, further)
    if FAILURE_LABELS not in missing:
        found["span_outcomes"] = span_outcomes(
            *given, corpus=corpus, config=config, context=context
        )
    if chunks is None:
        found["headroom"] = _without(found["headroom"], "bound", ["chunks"])
        return Measured(found, dict.fromkeys(needs_chunks(context, further), NO_CHUNKS) | missing)
    chunker = next(iter(pc.unique(chunks["chunker"]).to_pylist()), _PLACES)
    found |= {
        "span_states": _with_stages(found["span_states"], given, ks),
        "chunk_stats": chunk_stats(
            chunks,
            evalset.gold_spans,
            evalset.queries,
            corpus=corpus,
            chunker=chunker,
            context=context,
        ),
    }
    if FAILURE_LABELS not in missing:
        deep = label_depth or depth
        shown = closed.filter(pc.less_equal(closed["rank"], deep))
        # Repeats stay: whether a list was cut depends on how many entries it has.
        listed = _of_pairs(rankings, shown)
        labels = failure_labels(listed, *given[1:], depth=depth, context=context, **named)
        found["failure_labels"] = labels
        found["label_cross"] = label_cross(
            labels, found["forensic_labels"], corpus=corpus, context=context
        )
    return Measured(found, missing)


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


def _ranked_places(rankings: pa.Table) -> pa.Table:
    """Return the places that were ranked as a chunk table: enough for what asks of those alone."""
    places = rankings.select(["corpus", "chunk_id", "doc_id", "start_char", "end_char"])
    distinct = places.group_by(places.column_names).aggregate([])
    n = distinct.num_rows
    numbered = distinct.append_column("chunker", pa.repeat(_PLACES, n)).append_column(
        "chunk_no", pa.array(range(n), pa.int64())
    )
    return tables.conform("chunks", numbered)


def _with_stages(
    states: pa.Table, given: tuple[pa.Table, pa.Table, pa.Table, pa.Table], ks: Sequence[int]
) -> pa.Table:
    """Return ``span_states`` with the stage that lost each span; the list is its own candidates."""
    cut, gold, chunks, queries = given
    lost = lost_stages(
        cut, cut, None, gold, chunks, queries, has_fusion=False, has_reranker=False, ks=ks
    )
    joined = states.drop_columns(["lost_stage"]).join(lost, ["query_id", "span_no", "k"])
    return tables.conform("span_states", joined)


def _of_pairs(rankings: pa.Table, shown: pa.Table) -> pa.Table:
    """Return the rows of a query and chunk that are in ``shown``, in the order in which they
    came.
    """

    def pairs(table: pa.Table) -> Iterator[tuple[str, str]]:
        columns = (table[name].to_pylist() for name in ("query_id", "chunk_id"))
        return zip(*columns, strict=True)

    kept = set(pairs(shown))
    return rankings.filter(pa.array([pair in kept for pair in pairs(rankings)], pa.bool_()))


def _without(table: pa.Table, column: str, values: Sequence[str]) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table[column], pa.array(values, pa.string()))))
