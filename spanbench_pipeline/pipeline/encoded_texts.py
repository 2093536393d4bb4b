"""Which entries of the vector cache the stored tables of some corpora need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.models import kinds
from spanbench_pipeline.retrieval import cards
from spanbench_pipeline.retrieval.texts import chunk_texts
from spanbench_pipeline.storage import parquet, vector_cache


def needed(project: Project, experiments: Iterable[Experiment]) -> set[bytes]:
    """Return the cache's keys of every text that a run of these experiments has encoded, or may
    encode.

    Chunks with and without a card, queries and routing's cards, under each encoder whose weights
    are there. What is not stored, or cannot be read, needs nothing: it is made and encoded again.
    """
    found: set[bytes] = set()
    for experiment in experiments:
        models = list(_models(project, experiment))
        if models:
            texts = set(_texts(project.parquet / experiment.corpus))
            found |= {vector_cache.key(text, model) for text in texts for model in models}
    return found


def unknown(project: Project, experiments: Iterable[Experiment]) -> list[str]:
    """Return the corpora with tables and with an encoder whose weights cannot be read.

    Which entries theirs are cannot be told.
    """
    return [
        experiment.corpus
        for experiment in experiments
        if (project.parquet / experiment.corpus).is_dir()
        and len(list(_models(project, experiment))) < len(experiment.encoders)
    ]


def _models(project: Project, experiment: Experiment) -> Iterator[str]:
    for encoder in experiment.encoders.values():
        with suppress(InputError, NotMeasured):
            yield kinds.fingerprint(encoder, project.models)


def _texts(folder: Path) -> Iterator[str]:
    try:
        documents = parquet.read(folder / "documents.parquet", "documents").table
        queries = parquet.read(folder / "queries.parquet", "queries").table
    except InputError:
        return
    yield from queries["query"].to_pylist()
    yield from cards.cards(documents, cards.ROUTING_CHARS).values()
    card_of = cards.cards(documents, cards.PREFIX_CHARS)
    for path in sorted((folder / "chunks").glob("*.parquet")):
        try:
            chunks = parquet.read(path, "chunks").table
            texts = chunk_texts(documents, chunks)
        except (InputError, KeyError):  # of other documents: stale, and computed again
            continue
        yield from texts
        yield from cards.carded(texts, chunks["doc_id"].to_pylist(), card_of)
