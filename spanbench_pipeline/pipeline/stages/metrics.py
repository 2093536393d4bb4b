"""query_metrics, span_outcomes and failure_labels of each configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType

import pyarrow as pa

from spanbench_pipeline.checks import character_metrics, consistency, invariants, routing
from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import failure_labels, query_metrics, registry, span_outcomes
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.quality import routing_recall
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Stage
from spanbench_pipeline.pipeline.stages.routing import key as routed_documents
from spanbench_pipeline.pipeline.staleness import Key

Measure = Callable[..., pa.Table]

_RANGE = Check(
    "metrics_in_range",
    "Every metric lies in [0, 1].",
    lambda reader: invariants.metrics_out_of_range(reader.own()),
)
_GROW = Check(
    "recall_grows_with_depth",
    "Character recall and characters retrieved never fall as k grows.",
    lambda reader: character_metrics.falling_with_depth(reader.own()),
)
_PARTITION = Check(
    "labels_partition_failures",
    "Exactly the failing queries have a label, one each.",
    lambda reader: invariants.unlabelled_failures(reader.own(), reader.all("query_metrics")),
)


_OUTCOMES = Check(
    "outcomes_of_the_gold_spans",
    "Each gold span has one outcome, with no more characters covered than it has.",
    lambda reader: consistency.wrong_outcomes(reader.own(), reader.table("gold_spans")),
)
_FOLLOW = Check(
    "span_metrics_follow_from_outcomes",
    "Span coverage, span recall and complete grounding follow from the characters covered.",
    lambda reader: consistency.metrics_unlike_outcomes(reader.own(), reader.all("span_outcomes")),
)
_LABELS = Check(
    "labels_are_known",
    "Every label exists, has its own lever, and comes with readable evidence.",
    lambda reader: consistency.malformed_labels(reader.own(), failure_labels.EVERY_LABEL),
)


def stages(experiment: Experiment) -> list[Stage]:
    """Return three stages a configuration.

    Where the lists do not reach the context, ``span_outcomes`` and ``failure_labels`` are not
    measured, and no metric follows from them.
    """
    found = []
    to_top = not unreached(experiment.context, experiment.depth)
    for config in experiment.configurations:
        stage = partial(_stage, experiment, config)
        outcomes = stage(
            "span_outcomes",
            partial(span_outcomes.span_outcomes, context=experiment.context),
            span_outcomes,
            (_OUTCOMES,),
        )
        metrics = stage(
            "query_metrics",
            _measure(experiment),
            query_metrics,
            (_RANGE, *_of_lists(experiment, config), *((_FOLLOW,) if to_top else ()), _GROW),
            (outcomes.key,) if to_top else (),
        )
        if config.routing:
            metrics = _with_routing(metrics, experiment, config)
        labels = stage(
            "failure_labels",
            partial(failure_labels.failure_labels, context=experiment.context),
            failure_labels,
            (_PARTITION, _LABELS),
            (metrics.key,),
        )
        found += [outcomes, metrics, labels]
    return found


def _measure(experiment: Experiment) -> Measure:
    metrics = registry.measured(experiment.context, experiment.further)
    return partial(query_metrics.query_metrics, metrics=metrics)


def _of_lists(experiment: Experiment, config: Configuration) -> tuple[Check, ...]:
    """Return the checks of query_metrics that depend on how deep the lists go, or on what is in
    them.
    """
    also = ((routing_recall.ROUTING_RECALL, config.routing),) if config.routing else ()
    return (
        Check(
            "every_query_has_every_metric",
            "Each query of the corpus has each metric, an empty ranking's included, and no value "
            "at a k that the lists do not reach.",
            lambda reader: invariants.missing_metrics(
                reader.own(),
                reader.table("queries"),
                experiment.depth,
                also,
                experiment.context,
                experiment.further,
            ),
        ),
        Check(
            "scorings_agree_where_chunks_are_disjoint",
            "Where no two of the top k chunks overlap, paper and union scoring are equal, and as "
            "many characters are retrieved as the chunks have.",
            lambda reader: character_metrics.paper_unlike_union(
                reader.own(), reader.table("rankings", config.slug)
            ),
        ),
    )


def _stage(
    experiment: Experiment,
    config: Configuration,
    table: str,
    measure: Measure,
    module: ModuleType,
    checks: tuple[Check, ...],
    extra: tuple[tuple[str, ...], ...] = (),
) -> Stage:
    corpus = experiment.corpus
    inputs = (("gold_spans",), ("queries",), ("chunks", config.chunker))
    deps = ((corpus, "rankings", config.slug), *((corpus, *names) for names in inputs), *extra)
    return Stage(
        key=(corpus, table, config.slug),
        table=table,
        description=f"{table.replace('_', ' ').capitalize()} of the configuration {config.name}.",
        compute=partial(_compute, experiment, config, measure),
        deps=deps,
        modules=(module.__name__, *registry.plugin_modules(experiment.further)),
        params={"config": config.name, "depth": experiment.depth, **experiment.measured_at},
        owns={"corpus": corpus, "config": config.name},
        checks=checks,
        tags={"corpus": corpus, "config": config.slug, "chunker": config.chunker},
    )


def _with_routing(stage: Stage, experiment: Experiment, config: Configuration) -> Stage:
    """Return the stage ``query_metrics`` of a configuration that routes: with how well it does."""
    routed = routed_documents(experiment, config)
    follows = Check(
        "routing_recall_follows_from_documents",
        "Routing recall is the share of a query's gold documents that are among the kept ones.",
        lambda reader: routing.wrong_recalls(
            reader.own(),
            reader.stored(routed).table,
            reader.table("gold_spans"),
            config.routing,
        ),
    )
    return replace(
        stage,
        compute=partial(_routed_metrics, experiment, config, routed),
        deps=(*stage.deps, routed),
        modules=(*stage.modules, routing_recall.__name__),
        params={**stage.params, "routing": config.routing},
        checks=(*stage.checks, follows),
    )


def _routed_metrics(
    experiment: Experiment, config: Configuration, routed: Key, reader: Reader
) -> Outcome:
    others = _compute(
        experiment,
        config,
        _measure(experiment),
        reader,
    )
    recall = routing_recall.routing_recall(
        reader.stored(routed).table,
        reader.table("gold_spans"),
        reader.table("queries"),
        corpus=experiment.corpus,
        config=config.name,
        keep=config.routing,
    )
    table = pa.concat_tables([others.table, recall])
    return Outcome(tables.conform("query_metrics", table))


def _compute(
    experiment: Experiment, config: Configuration, measure: Measure, reader: Reader
) -> Outcome:
    return Outcome(
        measure(
            scored_run(
                reader.table("rankings", config.slug),
                reader.table("gold_spans"),
                reader.table("chunks", config.chunker),
                reader.table("queries"),
            ),
            corpus=experiment.corpus,
            config=config.name,
            depth=experiment.depth,
        )
    )
