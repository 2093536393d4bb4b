"""span_states, forensic_labels and headroom of each configuration: what happened, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.headroom import headroom
from spanbench_pipeline.checks import character_metrics, forensic_labels, invariants, metamorphic
from spanbench_pipeline.checks import lost_stages as loss_checks
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import forensic_labels as forensics
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.metrics.stages import before_reranking, lost_stages, stages_of
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.stages import routing
from spanbench_pipeline.pipeline.staleness import Key

_MEASURES = "spanbench_pipeline.metrics"


def stages(experiment: Experiment) -> list[Stage]:
    """Return three stages a configuration."""
    made = (_states_stage, _labels_stage, _headroom_stage)
    return [make(experiment, config) for config in experiment.configurations for make in made]


def depths(experiment: Experiment) -> list[int]:
    """Return the depths at which labels, states and bounds stand."""
    ks = registry.label_ks(experiment.context, experiment.further)
    return [k for k in ks if k <= experiment.depth]


def lists_of(experiment: Experiment, config: Configuration, reader: Reader) -> pa.Table:
    """Return all that the channels of a configuration listed, as of that configuration."""
    parts = [reader.table(*key[1:]) for key in asset_keys.list_keys(experiment, config)]
    table = pa.concat_tables(parts)
    return table.append_column("config", pa.repeat(config.name, table.num_rows))


def _states_stage(experiment: Experiment, config: Configuration) -> Stage:
    ks = depths(experiment)
    outcomes = _same_as_outcomes(experiment, config)
    found = stages_of(
        routing=bool(config.routing),
        fusion=config.fusion_used is not None,
        reranker=config.reranker is not None,
    )
    return _stage(
        experiment,
        config,
        "span_states",
        partial(_states, experiment, config),
        extra=[
            *asset_keys.list_keys(experiment, config),
            *([routing.key(experiment, config)] if config.routing else []),
            *((experiment.corpus, "span_outcomes", config.slug) for _ in outcomes),
            (experiment.corpus, "query_metrics", config.slug),
        ],
        modules=(f"{_MEASURES}.forensic_labels", f"{_MEASURES}.stages"),
        checks=(
            Check(
                "states_follow_from_characters",
                "Each gold span has one state at each k, the one that its covered characters give.",
                lambda reader: forensic_labels.wrong_states(
                    reader.own(), reader.table("gold_spans"), ks=ks
                ),
            ),
            *outcomes,
            Check(
                "stages_fit_the_lost_spans",
                "A span has a stage that lost it exactly where it is not covered, one that the "
                "configuration has; the counts per stage sum to the lost spans.",
                lambda reader: [
                    *loss_checks.wrong_lost_stages(
                        reader.own(), reader.table("gold_spans"), found, ks
                    ),
                    *loss_checks.wrong_stage_counts(reader.own(), reader.table("gold_spans")),
                ],
            ),
            Check(
                "recall_follows_from_states",
                "char_recall_union is the covered share of each query's gold characters.",
                lambda reader: character_metrics.recall_unlike_states(
                    reader.table("query_metrics", config.slug),
                    reader.own(),
                    reader.table("gold_spans"),
                ),
            ),
        ),
    )


def _same_as_outcomes(experiment: Experiment, config: Configuration) -> tuple[Check, ...]:
    """Return the check that states and span_outcomes agree, where lists reach the k that
    outcomes have.
    """
    if unreached(experiment.context, experiment.depth):
        return ()
    return (
        Check(
            "same_characters_as_outcomes",
            f"At k = {experiment.context} the top chunks hold as many characters of each span as "
            "span_outcomes.",
            lambda reader: forensic_labels.states_unlike_outcomes(
                reader.own(), reader.table("span_outcomes", config.slug), experiment.context
            ),
        ),
    )


def _states(experiment: Experiment, config: Configuration, reader: Reader) -> Outcome:
    rankings, gold, chunks, queries = _inputs(config, reader)
    run = scored_run(rankings, gold, chunks, queries)
    states = forensics.span_states(
        run,
        corpus=experiment.corpus,
        config=config.name,
        depth=experiment.depth,
        ks=depths(experiment),
    )
    listed, has_fusion = lists_of(experiment, config, reader), config.fusion_used is not None
    before = None
    if config.reranker is not None:
        before = before_reranking(run, rankings, listed, has_fusion=has_fusion)
    lost = lost_stages(
        run,
        run.with_lists(listed),
        reader.stored(routing.key(experiment, config)).table if config.routing else None,
        before=before,
        has_fusion=has_fusion,
        ks=depths(experiment),
    )
    key = ["query_id", "span_no", "k"]
    order = [(column, "ascending") for column in key]
    states, lost = states.sort_by(order), lost.sort_by(order)
    if not states.select(key).equals(lost.select(key)):
        raise ValueError("span states and lost stages are not of the same spans")
    at = states.schema.get_field_index("lost_stage")
    joined = states.set_column(at, states.schema.field(at), lost["lost_stage"])
    return Outcome(tables.conform("span_states", joined))


def _labels_stage(experiment: Experiment, config: Configuration) -> Stage:
    slug, ks = config.slug, depths(experiment)
    metrics = (experiment.corpus, "query_metrics", slug)
    states = (experiment.corpus, "span_states", slug)
    return _stage(
        experiment,
        config,
        "forensic_labels",
        partial(_labels, experiment, config),
        extra=[metrics, states],
        modules=(f"{_MEASURES}.forensic_labels",),
        checks=(
            Check(
                "one_label_a_query_and_k",
                "Each query has one label at each k: the counts sum to the queries.",
                lambda reader: forensic_labels.missing_labels(
                    reader.own(), reader.table("queries"), ks=ks
                ),
            ),
            Check(
                "labels_follow_from_states",
                "Every label, and every one under another setting, follows from the states of the "
                "query's gold spans.",
                lambda reader: forensic_labels.labels_unlike_states(
                    reader.own(),
                    reader.table("span_states", slug),
                    reader.table("rankings", slug),
                    reader.table("gold_spans"),
                ),
            ),
            Check(
                "no_hit_beside_a_missed_document",
                "Where no gold document was reached (DRM), precision and recall are 0, and the "
                "mean recall is at most 1 - the share of DRM.",
                lambda reader: _beside_drm(reader, slug),
            ),
            Check(
                "ok_is_complete_grounding",
                f"At k = {experiment.context} the queries labelled OK or OVR are those that are "
                "completely grounded.",
                lambda reader: forensic_labels.labels_unlike_grounding(
                    reader.own(), reader.table("query_metrics", slug), experiment.context
                ),
            ),
            Check(
                "one_span_has_no_gap",
                "A query with one gold span is never labelled SGP.",
                lambda reader: forensic_labels.single_span_gaps(
                    reader.own(), reader.table("gold_spans")
                ),
            ),
            Check(
                "excess_within_bounds",
                "The relevant chunks hold all gold that was retrieved, and no more than was.",
                lambda reader: forensic_labels.excess_out_of_bounds(
                    reader.own(), reader.table("query_metrics", slug), reader.table("gold_spans")
                ),
            ),
            Check(
                "survives_the_two_traps",
                "With every ranked document renamed, all labels are DRM and all figures 0; with "
                "every table's rows in reverse, nothing changes.",
                lambda reader: _traps(experiment, config, reader),
            ),
        ),
    )


def _labels(experiment: Experiment, config: Configuration, reader: Reader) -> Outcome:
    return Outcome(
        forensics.forensic_labels(
            scored_run(*_inputs(config, reader)),
            corpus=experiment.corpus,
            config=config.name,
            depth=experiment.depth,
            ks=depths(experiment),
        )
    )


def _beside_drm(reader: Reader, slug: str) -> Rows:
    metrics = reader.table("query_metrics", slug)
    return [
        *character_metrics.hits_beside_drm(metrics, reader.own()),
        *character_metrics.recall_above_reach(metrics, reader.own()),
    ]


def _traps(experiment: Experiment, config: Configuration, reader: Reader) -> Rows:
    given = _inputs(config, reader)
    return [
        *metamorphic.blind_to_documents(*given, depth=experiment.depth),
        *metamorphic.moved_by_row_order(*given, depth=experiment.depth),
    ]


def _headroom_stage(experiment: Experiment, config: Configuration) -> Stage:
    metrics = (experiment.corpus, "query_metrics", config.slug)
    return _stage(
        experiment,
        config,
        "headroom",
        partial(_headroom, experiment, config),
        extra=[*asset_keys.list_keys(experiment, config), metrics],
        modules=("spanbench_pipeline.analysis.headroom",),
        checks=(
            Check(
                "bounds_in_order",
                "Each bound is at least the one before and at least that of a smaller k; the last "
                "is 1; none is at a k that the lists do not reach.",
                lambda reader: [
                    *loss_checks.unordered_bounds(reader.own()),
                    *invariants.past_depth(reader.own(), experiment.depth),
                ],
            ),
            Check(
                "means_of_the_parts",
                "The whole and the macro mean follow from the parts.",
                lambda reader: loss_checks.wrong_headroom_means(
                    reader.own(), reader.table("queries")
                ),
            ),
            Check(
                "actual_is_what_was_measured",
                f"At k = {experiment.context} the actual bound is the mean complete grounding.",
                lambda reader: _unlike_grounding(
                    reader.own(), reader.table("query_metrics", config.slug), experiment.context
                ),
            ),
        ),
    )


def _headroom(experiment: Experiment, config: Configuration, reader: Reader) -> Outcome:
    rankings, gold, chunks, queries = _inputs(config, reader)
    run = scored_run(rankings, gold, chunks, queries)
    return Outcome(
        headroom(
            run,
            run.with_lists(lists_of(experiment, config, reader)),
            queries,
            corpus=experiment.corpus,
            config=config.name,
            ks=depths(experiment),
        )
    )


def _unlike_grounding(headroom_of: pa.Table, query_metrics: pa.Table, context: int) -> Rows:
    """Return ``actual`` at ``context`` against the mean of what each query has."""
    is_grounding = pc.field("metric") == "complete_grounding"
    grounded = query_metrics.filter(is_grounding & (pc.field("k") == context))
    mean = pc.mean(grounded["value"]).as_py()
    rows = [
        {"config": row["config"], "subset": None, "k": row["k"], "metric": row["metric"]}
        | {"value": mean}
        for row in grounded.slice(0, 1).to_pylist()
    ]
    schema = tables.TABLES["config_metrics"].schema
    return loss_checks.actual_not_as_measured(
        headroom_of,
        pa.Table.from_pylist(rows, pa.schema([f for f in schema if f.name in _MEAN])),
    )


_MEAN = ("config", "subset", "k", "metric", "value")


def _inputs(config: Configuration, reader: Reader) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    """Rankings, gold spans, chunks and queries, as every measure takes them."""
    return (
        reader.table("rankings", config.slug),
        reader.table("gold_spans"),
        reader.table("chunks", config.chunker),
        reader.table("queries"),
    )


def _stage(
    experiment: Experiment,
    config: Configuration,
    table: str,
    compute: Callable[[Reader], Outcome],
    *,
    extra: Sequence[Key],
    modules: tuple[str, ...],
    checks: tuple[Check, ...],
) -> Stage:
    corpus = experiment.corpus
    inputs = (("gold_spans",), ("queries",), ("chunks", config.chunker))
    deps = ((corpus, "rankings", config.slug), *((corpus, *names) for names in inputs), *extra)
    return Stage(
        key=(corpus, table, config.slug),
        table=table,
        description=f"{table.replace('_', ' ').capitalize()} of the configuration {config.name}.",
        compute=compute,
        deps=deps,
        modules=modules,
        params={"config": config.name, "depth": experiment.depth, **experiment.measured_at},
        owns={"corpus": corpus, "config": config.name},
        checks=checks,
        tags={"corpus": corpus, "config": config.slug, "chunker": config.chunker},
    )
