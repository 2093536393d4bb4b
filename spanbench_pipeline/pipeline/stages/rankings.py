"""rankings/<config>: the chunks that each configuration returns for each query.

The lists of its channels come in; which fusion and which reranker order them is read off the
configuration's settings, and only the modules of those count as its code.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from spanbench_pipeline.checks import consistency
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import (
    BM25_SETTINGS,
    FUSIONS,
    RERANKERS,
    Configuration,
    Experiment,
)
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.models import kinds
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Stage
from spanbench_pipeline.pipeline.stages import candidates, embeddings
from spanbench_pipeline.retrieval import ranking, rerank
from spanbench_pipeline.retrieval.lists import Floats, Ints
from spanbench_pipeline.retrieval.texts import chunk_texts

_ROOM = "spanbench_pipeline.retrieval"


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return one stage a configuration."""
    return [_stage(experiment, config, project) for config in experiment.configurations]


def _stage(experiment: Experiment, config: Configuration, project: Project) -> Stage:
    corpus = experiment.corpus
    deps = [(corpus, "queries"), (corpus, "chunks", config.chunker)]
    deps += asset_keys.list_keys(experiment, config)
    if config.reranker is not None:
        deps.append((corpus, "documents"))
    return Stage(
        key=(corpus, "rankings", config.slug),
        table="rankings",
        description=f"What the configuration {config.name} returns, {experiment.depth} deep.",
        compute=partial(_compute, experiment, config),
        deps=tuple(deps),
        modules=_modules(experiment, config),
        params=_params(experiment, config, project),
        libraries=embeddings.MODEL_LIBRARIES if config.reranker else (),
        checks=_checks(experiment, config),
        owns={"corpus": corpus, "config": config.name},
        tags={"corpus": corpus, "config": config.slug, "chunker": config.chunker},
    )


def _modules(experiment: Experiment, config: Configuration) -> tuple[str, ...]:
    used = {
        "ranking": True,
        ranking.FUSIONS[config.fusion][0]: config.fusion_used is not None,
        "rerank": config.reranker is not None,
        "texts": config.reranker is not None,
    }
    modules = [f"{_ROOM}.{module}" for module, use in used.items() if use]
    if config.reranker is not None:
        modules.append(kinds.module_name(experiment.rerankers[config.reranker]))
    return tuple(modules)


def _params(experiment: Experiment, config: Configuration, project: Project) -> dict[str, Any]:
    """Return what of the configuration decides its ranking."""
    apart = {"encoder", "fusion", "routing", "routing_alpha", *FUSIONS.values(), *BM25_SETTINGS}
    params = {name: value for name, value in asdict(config).items() if name not in apart}
    # How the lists came about is an input.
    params |= {"depth": experiment.depth, "fusion": config.fusion_used}
    if config.reranker is not None:
        chosen = experiment.rerankers[config.reranker]
        params["reranker"] = embeddings.model_params(chosen, project)
    return params


def _compute(experiment: Experiment, config: Configuration, reader: Reader) -> Outcome:
    queries, chunks = reader.table("queries"), reader.table("chunks", config.chunker)
    lists = {
        source.channel: ranking.read_candidates(reader.table(*key[1:]), queries, chunks)
        for source, key in asset_keys.keyed_sources(experiment, config)
    }
    table = ranking.rank(
        corpus=experiment.corpus,
        config=config.name,
        queries=queries,
        chunks=chunks,
        channels=lists,
        fuse=ranking.fusion_of(
            config.fusion_used, chunks["chunk_id"].combine_chunks(), experiment.depth
        ),
        rerank=_reranker(experiment, config, reader),
    )
    return Outcome(table)


def _reranker(
    experiment: Experiment, config: Configuration, reader: Reader
) -> ranking.Rerank | None:
    """Return the configuration's reranker over rows of the tables; None where it has none."""
    if config.reranker is None:
        return None
    settings = experiment.rerankers[config.reranker]
    model = rerank.load(settings, reader.project.models)
    texts = chunk_texts(reader.table("documents"), reader.table("chunks", config.chunker))
    asked = reader.table("queries")["query"].to_pylist()

    def score(query: int, rows: Ints) -> Floats:
        with RERANKERS.blamed(settings.kind):
            return rerank.score_pairs(asked[query], [texts[r] for r in rows], model)

    return score


def _checks(experiment: Experiment, config: Configuration) -> tuple[Check, ...]:
    lists = asset_keys.list_keys(experiment, config)
    return (
        *candidates.list_checks(experiment, config.chunker),
        Check(
            "made_of_its_candidates",
            "Every ranked chunk stands in a list of the configuration's channels, at the rank that "
            f"is stated, and no chunk of them is lost above rank {experiment.depth}.",
            lambda reader: consistency.unlike_candidates(
                reader.own(),
                [reader.stored(key).table for key in lists],
                experiment.depth,
            ),
        ),
    )
