"""routing/<config>: the documents that a configuration with routing searches for each query."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from spanbench_pipeline.checks import consistency, invariants
from spanbench_pipeline.checks import routing as checks
from spanbench_pipeline.config.experiment import Configuration, Encoder, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tokenizer
from spanbench_pipeline.models import encoding, kinds
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Stage
from spanbench_pipeline.pipeline.stages import embeddings
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.retrieval import routing
from spanbench_pipeline.retrieval.cards import ROUTING_CHARS, cards
from spanbench_pipeline.retrieval.dense import Vectors


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return one stage a configuration that routes."""
    return [_stage(experiment, c, project) for c in experiment.configurations if c.routing]


def key(experiment: Experiment, config: Configuration) -> Key:
    """Return ``routing/<config>``."""
    return (experiment.corpus, "routing", config.slug)


def _stage(experiment: Experiment, config: Configuration, project: Project) -> Stage:
    corpus, encoder = experiment.corpus, experiment.encoders[config.encoder or ""]
    return Stage(
        key=key(experiment, config),
        table="routed_documents",
        description=f"The {config.routing} documents that {config.name} searches for each query.",
        compute=partial(_compute, corpus, config, encoder),
        deps=((corpus, "documents"), (corpus, "queries")),
        modules=(
            "spanbench_pipeline.models.encoding",
            kinds.module_name(encoder),
            "spanbench_pipeline.retrieval.cards",
            "spanbench_pipeline.retrieval.routing",
        ),
        params={
            "config": config.name,
            "keep": config.routing,
            "alpha": config.routing_alpha,
            "encoder": embeddings.model_params(encoder, project),
            **_words(config),
        },
        libraries=embeddings.MODEL_LIBRARIES,
        checks=_checks(config.routing),
        owns={"corpus": corpus, "config": config.name},
        tags={
            "corpus": corpus,
            "config": config.slug,
            "encoder": experiment.encoder_key(encoder.name),
        },
    )


def _words(config: Configuration) -> dict[str, dict[str, str]]:
    """Return how BM25 matches words in cards, with what decides them; nothing where all is
    default.
    """
    if not config.bm25_set:
        return {}
    found = tokenizer.versions(config.tokenizer, config.stemming)
    return {"settings": config.bm25_set, "words": found}


def _compute(corpus: str, config: Configuration, encoder: Encoder, reader: Reader) -> Outcome:
    documents, queries = reader.table("documents"), reader.table("queries")
    card_of = cards(documents, ROUTING_CHARS)
    doc_ids = list(card_of)
    asked = queries["query"].to_pylist()
    encode = partial(
        encoding.encode,
        settings=encoder,
        models=reader.project.models,
        cache=reader.project.vectors,
    )
    of_cards = encode(list(card_of.values()), names=doc_ids)
    of_queries = encode(asked, names=queries["query_id"].to_pylist())
    found = routing.route(
        list(card_of.values()),
        Vectors(of_cards.vectors, of_cards.usable),
        asked,
        Vectors(of_queries.vectors, of_queries.usable),
        doc_ids=doc_ids,
        alpha=config.routing_alpha,
        keep=config.routing,
        **config.bm25_set,
    )
    table = routing.routed_documents(found, queries, doc_ids, corpus=corpus, config=config.name)
    facts = {"texts encoded now": of_cards.n_new + of_queries.n_new}
    return Outcome(table, facts, tuple(_warnings(queries, found.query)))


def _warnings(queries: pa.Table, routed: np.ndarray) -> list[str]:
    """Return a line for each query that keeps no document."""
    unrouted = np.setdiff1d(np.arange(queries.num_rows), routed)
    ids = queries["query_id"].take(pa.array(unrouted)).to_pylist()
    return [f"query {query_id} has no word: it keeps no document" for query_id in ids]


def _checks(keep: int) -> tuple[Check, ...]:
    return (
        Check(
            "routed_documents_exist",
            "Every routed document is one of the corpus, of a query of the corpus, and once.",
            lambda reader: checks.unknown_documents(
                reader.own(), reader.table("queries"), reader.table("documents")
            ),
        ),
        Check(
            "ranks_without_holes",
            f"Ranks run from 1 without a hole, to {keep} at most.",
            lambda reader: invariants.wrong_ranks(reader.own(), keep),
        ),
        Check(
            "scores_in_order",
            "Every score is finite, and none is higher than the one ranked before it.",
            lambda reader: consistency.unordered_scores(reader.own()),
        ),
        Check(
            "routes_are_full",
            f"Every query keeps {keep} documents, or all where there are fewer.",
            lambda reader: checks.short_routes(
                reader.own(), reader.table("queries"), reader.table("documents"), keep
            ),
        ),
    )
