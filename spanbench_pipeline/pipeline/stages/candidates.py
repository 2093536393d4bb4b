"""candidates/<list>: what one channel finds for each query, before anything is fused or reranked.

Configurations that ask the same channel the same question share its list, so that it is made once,
and a change of what comes behind it (a fusion's constant, a reranker) retrieves nothing again.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.checks import consistency, invariants, list_lengths
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.asset_keys import ListSource
from spanbench_pipeline.config.experiment import DENSE, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tokenizer
from spanbench_pipeline.models import encoding, kinds
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.stages import embeddings
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.retrieval import dense, ranking
from spanbench_pipeline.retrieval.lists import Lists
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows, scopes
from spanbench_pipeline.retrieval.texts import chunk_texts

STAGE = "candidates"
_ROOM = "spanbench_pipeline.retrieval"


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return one stage for each list that some configuration uses."""
    used = dict.fromkeys(
        s for config in experiment.configurations for s in asset_keys.sources(config)
    )
    return [_stage(experiment, source, project) for source in used]


def _stage(experiment: Experiment, source: ListSource, project: Project) -> Stage:
    corpus, own = experiment.corpus, asset_keys.list_key(experiment, source)
    deps: list[Key] = [(corpus, name) for name in ("documents", "queries")]
    deps.append((corpus, "chunks", source.chunker))
    if source.encoder is not None:
        deps.append(asset_keys.vectors_key(experiment, source.chunker, source.encoder))
    if source.routing:
        deps.append(_routing_key(experiment, source))
    return Stage(
        key=own,
        table="candidates",
        description=f"What {source.channel} finds among the chunks of {source.chunker}, "
        f"{experiment.depth} deep.",
        compute=partial(_dense if source.channel == DENSE else _of_texts, experiment, source),
        deps=tuple(deps),
        modules=_modules(experiment, source),
        params=_params(experiment, source, project),
        libraries=_libraries(experiment, source),
        checks=_checks(experiment, source),
        owns={"corpus": corpus, "source": own[2], "channel": source.channel},
        tags={"corpus": corpus, "chunker": source.chunker},
    )


def _modules(experiment: Experiment, source: ListSource) -> tuple[str, ...]:
    used = ["ranking", "scope", "texts", source.channel]
    if source.channel == DENSE:
        used.append(experiment.dense_engine)
    modules = [f"{_ROOM}.{module}" for module in used]
    if source.channel == DENSE:
        encoder = experiment.encoders[source.encoder or ""]
        modules += ["spanbench_pipeline.models.encoding", kinds.module_name(encoder)]
    return tuple(modules)


def _libraries(experiment: Experiment, source: ListSource) -> tuple[str, ...]:
    if source.channel != DENSE:
        return ()
    engine = ("qdrant-client",) if experiment.dense_engine == "qdrant" else ()
    return embeddings.MODEL_LIBRARIES + engine


def _params(experiment: Experiment, source: ListSource, project: Project) -> dict[str, Any]:
    params = asdict(source) | {"depth": experiment.depth}
    settings = dict(params.pop("settings"))
    if settings:
        found = tokenizer.versions(settings.get("tokenizer", ""), settings.get("stemming"))
        params |= {"settings": settings, "words": found}
    if source.encoder is not None:
        encoder = experiment.encoders[source.encoder]
        params["encoder"] = embeddings.model_params(encoder, project)
    return params


def _of_texts(experiment: Experiment, source: ListSource, reader: Reader) -> Outcome:
    """Return the lists of a channel that compares texts: the module of its name."""
    queries, chunks = reader.table("queries"), reader.table("chunks", source.chunker)
    documents = reader.table("documents")
    retrieve = importlib.import_module(f"{_ROOM}.{source.channel}").retrieve
    rows_in = ScopedRows(documents, chunks)
    allowed = [rows_in(scope) for scope in _scopes(experiment, source, reader)]
    lists, warnings = retrieve(
        chunk_texts(documents, chunks), queries, allowed, experiment.depth, **dict(source.settings)
    )
    return Outcome(_table(experiment, source, reader, lists), warnings=tuple(warnings))


def _dense(experiment: Experiment, source: ListSource, reader: Reader) -> Outcome:
    """Return the dense lists; query texts are encoded through the same cache as chunks."""
    encoder = experiment.encoders[source.encoder or ""]
    chunks, queries = reader.table("chunks", source.chunker), reader.table("queries")
    stored = reader.stored(asset_keys.vectors_key(experiment, source.chunker, encoder.name)).table
    vectors = dense.chunk_vectors(chunks, stored)
    encoded = encoding.encode(
        queries["query"].to_pylist(),
        encoder,
        models=reader.project.models,
        cache=reader.project.vectors,
        names=queries["query_id"].to_pylist(),
    )
    warnings = [
        f"query {queries['query_id'][i].as_py()} has no word piece: its dense list is empty"
        for i in np.flatnonzero(~encoded.usable).tolist()
    ]
    asked = dense.Vectors(encoded.vectors, encoded.usable)
    with _engine(experiment, source, reader, vectors) as engine:
        within = _scopes(experiment, source, reader)
        lists = dense.search(engine, vectors, asked, within, experiment.depth)
    facts = {"texts encoded now": encoded.n_new}
    return Outcome(_table(experiment, source, reader, lists), facts, tuple(warnings))


def _engine(
    experiment: Experiment, source: ListSource, reader: Reader, vectors: dense.Vectors
) -> Any:
    """Return the engine that the experiment names, as a context manager."""
    chunks, documents = reader.table("chunks", source.chunker), reader.table("documents")
    if experiment.dense_engine == "exact":
        from spanbench_pipeline.retrieval.exact import ExactEngine

        return nullcontext(ExactEngine(vectors, ScopedRows(documents, chunks)))
    from spanbench_pipeline.retrieval.qdrant import open_engine

    return open_engine(
        os.environ.get("QDRANT_URL") or ":memory:",
        corpus=experiment.corpus,
        chunker=source.chunker,
        encoder=experiment.encoder_key(source.encoder or ""),
        vectors=vectors,
        chunks=chunks,
        documents=documents,
    )


def _scopes(experiment: Experiment, source: ListSource, reader: Reader) -> list[Scope]:
    return scopes(
        reader.table("queries"),
        doc_scope=source.doc_scope,
        metadata_filters=source.metadata_filters,
        routed=_routed(experiment, source, reader),
    )


def _routing_key(experiment: Experiment, source: ListSource) -> Key:
    return (experiment.corpus, "routing", source.routing)


def _routed(experiment: Experiment, source: ListSource, reader: Reader) -> pa.Table | None:
    """Return the documents that routing keeps for each query; None where nothing is routed."""
    return reader.stored(_routing_key(experiment, source)).table if source.routing else None


def _table(experiment: Experiment, source: ListSource, reader: Reader, lists: Lists) -> pa.Table:
    return ranking.candidates(
        lists,
        corpus=experiment.corpus,
        source=asset_keys.list_key(experiment, source)[2],
        channel=source.channel,
        queries=reader.table("queries"),
        chunks=reader.table("chunks", source.chunker),
    )


def list_checks(experiment: Experiment, chunker: str) -> tuple[Check, ...]:
    """Return what holds of any table of ranked chunks of a chunker, a channel's or a
    configuration's.
    """
    return (
        Check(
            "scores_in_order",
            "Every score is finite, and none is higher than the one ranked before it.",
            lambda reader: consistency.unordered_scores(reader.own()),
        ),
        Check(
            "no_duplicate_chunks",
            "A list holds a chunk once.",
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
                reader.own(), reader.table("chunks", chunker)
            ),
        ),
    )


def _checks(experiment: Experiment, source: ListSource) -> tuple[Check, ...]:
    return (
        *list_checks(experiment, source.chunker),
        Check(
            "inside_scope",
            "Every chunk is in the list of a query of the corpus, inside that query's scope and, "
            "with routing, in a routed document.",
            lambda reader: consistency.outside_scope(
                reader.own(),
                reader.table("queries"),
                reader.table("documents"),
                doc_scope=source.doc_scope,
                metadata_filters=source.metadata_filters,
                routed=_routed(experiment, source, reader),
            ),
        ),
        *_lengths(experiment, source),
    )


def _tokens(source: ListSource) -> Callable[[str], list[str]] | None:
    """Return what finds the list's words; None where they are those that the check finds itself."""
    settings = {key: value for key, value in source.settings if key != "bm25"}
    return tokenizer.Tokenizer(**settings) if settings else None


def _lengths(experiment: Experiment, source: ListSource) -> list[Check]:
    """Return the check of the lists' lengths; none where the channel's is not known."""
    if source.channel not in list_lengths.KNOWN:
        return []

    def find(reader: Reader) -> Rows:
        vectors: set[str] = set()
        if source.encoder is not None:
            stored = reader.stored(
                asset_keys.vectors_key(experiment, source.chunker, source.encoder)
            ).table
            vectors.update(stored["chunk_id"].filter(stored["vector"].is_valid()).to_pylist())
        return list_lengths.wrong_lengths(
            reader.own(),
            reader.table("queries"),
            reader.table("documents"),
            reader.table("chunks", source.chunker),
            channel=source.channel,
            vectors=vectors,
            tokens=_tokens(source),
            depth=experiment.depth,
            doc_scope=source.doc_scope,
            metadata_filters=source.metadata_filters,
            routed=_routed(experiment, source, reader),
        )

    return [
        Check(
            "lists_are_full",
            f"Every list holds all that the channel finds in scope, up to {experiment.depth}.",
            find,
        )
    ]
