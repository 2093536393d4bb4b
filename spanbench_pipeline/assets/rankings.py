"""rankings/<config>: the chunks that each configuration returns for each query.

The strategies meet here: which channels, fusion and reranker a configuration uses is read off its
settings, and only the modules of those count as its code.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline import encoding
from spanbench_pipeline.assets import embeddings, routing
from spanbench_pipeline.assets.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.experiment import DENSE, FUSIONS, Configuration, Experiment, slug
from spanbench_pipeline.measures import consistency, invariants, list_lengths
from spanbench_pipeline.project import Project
from spanbench_pipeline.retrieval import convex, dense, fusion, ranking, rerank
from spanbench_pipeline.retrieval.lists import Lists
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows, scopes
from spanbench_pipeline.retrieval.texts import chunk_texts

_ROOM = "spanbench_pipeline.retrieval"
_FUSIONS: dict[str, tuple[str, Callable[..., Lists], str]] = {
    "rrf": ("fusion", fusion.fuse, "k"),
    "cc": ("convex", convex.fuse, "alpha"),
}
"""Each fusion's module, its function, and what that calls its constant."""


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """One stage a configuration."""
    return [_stage(experiment, config, project) for config in experiment.configurations]


def _stage(experiment: Experiment, config: Configuration, project: Project) -> Stage:
    corpus = experiment.corpus
    deps = [(corpus, "documents"), (corpus, "queries"), (corpus, "chunks", config.chunker)]
    if config.uses_dense:
        deps.append(embeddings.key(experiment, config.chunker, config.encoder or ""))
    if config.routing:
        deps.append(routing.key(experiment, config))
    return Stage(
        key=(corpus, "rankings", config.slug),
        table="rankings",
        description=f"What the configuration {config.name} returns, {experiment.depth} deep.",
        compute=partial(_compute, experiment, config),
        deps=tuple(deps),
        modules=_modules(experiment, config),
        params=_params(experiment, config, project),
        libraries=_libraries(experiment, config),
        checks=_checks(experiment, config),
        owns={"corpus": corpus, "config": config.name},
        tags={"corpus": corpus, "config": config.slug, "chunker": config.chunker},
    )


def _modules(experiment: Experiment, config: Configuration) -> tuple[str, ...]:
    used = {
        "ranking": True,
        "scope": True,
        "texts": True,
        "dense": config.uses_dense,
        experiment.dense_engine: config.uses_dense,
        **dict.fromkeys(_text_channels(config), True),
        _FUSIONS[config.fusion][0]: config.fusion_used is not None,
        "rerank": config.reranker is not None,
    }
    encoder = ("spanbench_pipeline.encoding",) if config.uses_dense else ()
    return tuple(f"{_ROOM}.{module}" for module, use in used.items() if use) + encoder


def _text_channels(config: Configuration) -> list[str]:
    return [channel for channel in config.channels if channel != DENSE]


def _libraries(experiment: Experiment, config: Configuration) -> tuple[str, ...]:
    engine = ("qdrant-client",) if experiment.dense_engine == "qdrant" else ()
    model = embeddings.MODEL_LIBRARIES if config.uses_dense or config.reranker else ()
    return model + (engine if config.uses_dense else ())


def _params(experiment: Experiment, config: Configuration, project: Project) -> dict[str, Any]:
    """What of the configuration decides its ranking."""
    apart = {"encoder", "fusion", "routing", "routing_alpha", *FUSIONS.values()}
    params = {name: value for name, value in asdict(config).items() if name not in apart}
    # Which documents routing keeps is an input, however they were chosen.
    params |= {"depth": experiment.depth, "fusion": config.fusion_used}
    if config.uses_dense:
        settings = experiment.encoders[config.encoder or ""]
        params["encoder"] = embeddings.model_params(settings, project)
    if config.reranker is not None:
        chosen = experiment.rerankers[config.reranker]
        params["reranker"] = embeddings.model_params(chosen, project)
    return params


def _compute(experiment: Experiment, config: Configuration, reader: Reader) -> Outcome:
    queries, chunks = reader.table("queries"), reader.table("chunks", config.chunker)
    documents = reader.table("documents")
    texts = chunk_texts(documents, chunks)
    # The reranker first: where its weights are absent, nothing need be searched.
    reorder = _reranker(experiment, config, reader.project, queries, texts)
    asked = scopes(
        queries,
        doc_scope=config.doc_scope,
        metadata_filters=config.metadata_filters,
        routed=_routed(experiment, config, reader),
    )
    rows_in = ScopedRows(documents, chunks)
    notes = _Notes()
    lists: dict[str, Lists] = {}
    if config.uses_dense:
        lists[DENSE] = _dense(experiment, config, reader, asked, rows_in, notes)
    for channel in _text_channels(config):
        retrieve = importlib.import_module(f"{_ROOM}.{channel}").retrieve
        allowed = [rows_in(scope) for scope in asked]
        lists[channel], warnings = retrieve(texts, queries, allowed, experiment.depth)
        notes.warnings += warnings
    ids = chunks["chunk_id"].combine_chunks()
    table = ranking.rank(
        corpus=experiment.corpus,
        config=config.name,
        queries=queries,
        chunks=chunks,
        channels=lists,
        fuse=_fuse(config, ids, experiment.depth),
        rerank=reorder,
    )
    return Outcome(table, notes.facts, tuple(notes.warnings))


def _fuse(config: Configuration, chunk_ids: pa.Array, depth: int) -> ranking.Fuse | None:
    """The configuration's fusion of two channels' lists; None where it has one channel."""
    if config.fusion_used is None:
        return None
    name, constant = config.fusion_used
    _, fuse, called = _FUSIONS[name]
    return partial(fuse, chunk_ids=chunk_ids, depth=depth, **{called: constant})


def _routed(experiment: Experiment, config: Configuration, reader: Reader) -> pa.Table | None:
    """The documents that routing keeps for each query; None where nothing is routed."""
    return reader.stored(routing.key(experiment, config)).table if config.routing else None


@dataclass
class _Notes:
    """What is to be said of a ranking beside its rows."""

    facts: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def _dense(
    experiment: Experiment,
    config: Configuration,
    reader: Reader,
    asked: Sequence[Scope],
    rows_in: ScopedRows,
    notes: _Notes,
) -> Lists:
    """The dense lists; query texts are encoded through the same cache as chunks."""
    encoder = experiment.encoders[config.encoder or ""]
    chunks, queries = reader.table("chunks", config.chunker), reader.table("queries")
    stored = reader.stored(embeddings.key(experiment, config.chunker, encoder.name)).table
    vectors = dense.chunk_vectors(chunks, stored)
    encoded = encoding.encode(
        queries["query"].to_pylist(),
        encoder,
        models=reader.project.models,
        cache=reader.project.vectors,
        names=queries["query_id"].to_pylist(),
    )
    notes.facts["texts encoded now"] = encoded.n_new
    silent = np.flatnonzero(~encoded.usable)
    notes.warnings += [
        f"query {queries['query_id'][i].as_py()} has no word piece: its dense list is empty"
        for i in silent.tolist()
    ]
    with _engine(experiment, config, reader, vectors, rows_in) as engine:
        return dense.search(
            engine, vectors, dense.Vectors(encoded.vectors, encoded.usable), asked, experiment.depth
        )


def _engine(
    experiment: Experiment,
    config: Configuration,
    reader: Reader,
    vectors: dense.Vectors,
    rows_in: ScopedRows,
) -> Any:
    """The engine that the experiment names, as a context manager."""
    if experiment.dense_engine == "exact":
        from spanbench_pipeline.retrieval.exact import ExactEngine

        return nullcontext(ExactEngine(vectors, rows_in))
    from spanbench_pipeline.retrieval.qdrant import open_engine

    return open_engine(
        os.environ.get("QDRANT_URL") or ":memory:",
        corpus=experiment.corpus,
        chunker=config.chunker,
        encoder=slug(config.encoder or ""),
        vectors=vectors,
        chunks=reader.table("chunks", config.chunker),
        documents=reader.table("documents"),
    )


def _reranker(
    experiment: Experiment,
    config: Configuration,
    project: Project,
    queries: pa.Table,
    texts: Sequence[str],
) -> ranking.Rerank | None:
    """The configuration's reranker over rows of the tables; None where it has none."""
    if config.reranker is None:
        return None
    model = rerank.load(experiment.rerankers[config.reranker], project.models)
    asked = queries["query"].to_pylist()
    return lambda query, rows: rerank.score_pairs(asked[query], [texts[r] for r in rows], model)


def _checks(experiment: Experiment, config: Configuration) -> tuple[Check, ...]:
    return (
        Check(
            "scores_in_order",
            "Every score is finite, and none is higher than the one ranked before it.",
            lambda reader: consistency.unordered_scores(reader.own()),
        ),
        Check(
            "inside_scope",
            "Every ranked chunk is of a query of the corpus, inside that query's scope and, with "
            "routing, in a routed document.",
            lambda reader: consistency.outside_scope(
                reader.own(),
                reader.table("queries"),
                reader.table("documents"),
                doc_scope=config.doc_scope,
                metadata_filters=config.metadata_filters,
                routed=_routed(experiment, config, reader),
            ),
        ),
        Check(
            "no_duplicate_chunks",
            "A ranking holds a chunk once.",
            lambda reader: invariants.repeated_chunks(reader.own()),
        ),
        Check(
            "ranks_without_holes",
            f"Ranks run from 1 without a hole, to {experiment.depth} at most.",
            lambda reader: invariants.wrong_ranks(reader.own(), experiment.depth),
        ),
        Check(
            "offsets_of_the_chunk_table",
            "Every ranked chunk is in the chunk table, with the same document and offsets.",
            lambda reader: invariants.wrong_ranking_offsets(
                reader.own(), reader.table("chunks", config.chunker)
            ),
        ),
        *_lengths(experiment, config),
    )


def _lengths(experiment: Experiment, config: Configuration) -> list[Check]:
    """The check of the lists' lengths; none where a channel's is not known."""
    if not list_lengths.KNOWN.issuperset(config.channels):
        return []

    def find(reader: Reader) -> Rows:
        vectors: set[str] = set()
        if config.uses_dense:
            key = embeddings.key(experiment, config.chunker, config.encoder or "")
            stored = reader.stored(key).table
            vectors.update(stored["chunk_id"].filter(stored["vector"].is_valid()).to_pylist())
        return list_lengths.wrong_lengths(
            reader.own(),
            reader.table("queries"),
            reader.table("documents"),
            reader.table("chunks", config.chunker),
            channels=config.channels,
            vectors=vectors,
            depth=experiment.depth,
            doc_scope=config.doc_scope,
            metadata_filters=config.metadata_filters,
            routed=_routed(experiment, config, reader),
        )

    return [
        Check(
            "lists_are_full",
            f"Every list holds all that its channels find in scope, up to {experiment.depth}.",
            find,
        )
    ]
