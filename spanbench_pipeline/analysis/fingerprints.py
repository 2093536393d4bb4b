"""What figures rest on, as hashes: the ground on which two runs can be compared at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.config.experiment import (
    CONTEXT,
    ChunkerSettings,
    Configuration,
    Encoder,
    Experiment,
    Reranker,
    bm25_text,
    fusion_text,
)
from spanbench_pipeline.core import tables, tokenizer

HASHED: dict[str, tuple[str, ...]] = {
    "documents": ("doc_id", "text_sha256", "metadata"),
    "queries": ("query_id", "query", "doc_id", "filters"),
    "gold_spans": ("query_id", "doc_id", "start_char", "end_char"),
    "chunks": ("doc_id", "start_char", "end_char"),
}
"""Each table and the columns that decide a figure: a title or a chunk's name decides none."""

INDEX = (
    "chunker",
    "chunker_parameters",
    "chunks",
    "n_chunks",
    "chunk_chars",
    "encoder",
    "encoder_weights",
    "encoder_normalized",
    "embedded",
)
"""What of a configuration makes its index, beside the documents and how many there are."""

INDEX_PRINT, RANKING_PRINT = "index_fingerprint", "ranking_fingerprint"
"""The two hashes that a configuration is told from another by: of what is searched, and of all that
decides what is returned."""

Prints = dict[str, str]
"""name -> value"""


def table_hash(name: str, table: pa.Table) -> str:
    """Return a hash of the rows of one of the tables in ``HASHED``, in whatever order they
    stand.
    """
    return rows_hash(table, HASHED[name])


def rows_hash(table: pa.Table, names: Sequence[str]) -> str:
    """Return a hash of the rows of some columns, in whatever order they stand."""
    columns = [table[c].to_pylist() for c in names]
    rows = sorted(json.dumps(row, ensure_ascii=False) for row in zip(*columns, strict=True))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def fingerprints(
    experiment: Experiment,
    documents: pa.Table,
    queries: pa.Table,
    gold_spans: pa.Table,
    chunks: Mapping[str, pa.Table],
    models: Mapping[str, str],
    carded: Collection[str] = (),
) -> pa.Table:
    """Return the table ``fingerprints``: the corpus's rows (config null) and each configuration's.

    ``chunks`` gives each chunker's chunks, ``models`` the fingerprint of each encoder's and
    reranker's weights (which covers their limits), by name in the experiment, and ``carded`` the
    chunkers whose pieces are embedded behind a card of their document.
    """
    whole = {
        "documents": table_hash("documents", documents),
        "queries": table_hash("queries", queries),
        "gold_spans": table_hash("gold_spans", gold_spans),
        "n_documents": documents.num_rows,
        "n_queries": queries.num_rows,
        "depth": experiment.depth,
        **({} if experiment.context == CONTEXT else {"context": experiment.context}),
    }
    cut = {
        name: {
            "chunker": name,
            "chunker_parameters": parameters(experiment.chunkers[name]),
            "chunks": table_hash("chunks", table),
            "n_chunks": table.num_rows,
            "chunk_chars": chunk_chars(table),
        }
        for name, table in chunks.items()
    }
    unspaced = any(
        tokenizer.unspaced(text)
        for column in (*(documents[c] for c in ("doc_id", "title", "text")), queries["query"])
        for text in column.to_pylist()
    )
    found: list[tuple[str | None, Mapping[str, Any]]] = [(None, whole)]
    for config in experiment.configurations:
        prints = {**cut[config.chunker], **_levers(experiment, config, models)}
        prints |= _matching(config, unspaced)
        if config.uses_dense and config.chunker in carded:
            prints["embedded"] = "card and text"
        found.append((config.name, prints | _hashes(whole, prints)))
    return _table(experiment.corpus, found)


def chunk_chars(chunks: pa.Table) -> str:
    """Return how long a chunker's chunks are: shortest, quartiles and longest, in characters.

    A quartile is the length at position n x q // 4 of the n sorted ones, so that the middle one is
    the upper median, as in chunk_stats.
    """
    lengths = np.sort(np.asarray(chunks["end_char"]) - np.asarray(chunks["start_char"]))
    if not len(lengths):
        return "no chunks"
    low, mid, high = (int(lengths[len(lengths) * q // 4]) for q in (1, 2, 3))
    return f"{lengths[0]} to {lengths[-1]}, quartiles {low}, {mid}, {high}"


def parameters(settings: ChunkerSettings) -> str:
    """Return a chunker's strategy and what the experiment sets of it."""
    params = json.dumps(dict(settings.params), sort_keys=True, default=str)
    return f"{settings.strategy} {params}"


def _hashes(whole: Mapping[str, Any], prints: Mapping[str, Any]) -> dict[str, str]:
    """Return one hash of what makes a configuration's index, and one of what makes its rankings."""
    corpus = {name: str(whole[name]) for name in ("documents", "n_documents")}
    index = corpus | {name: str(prints[name]) for name in INDEX if name in prints}
    asked = {name: str(whole[name]) for name in ("queries", "depth")}
    levers = {name: str(value) for name, value in prints.items() if name not in INDEX}
    made = {INDEX_PRINT: _hash(index)}
    return made | {RANKING_PRINT: _hash(made | asked | levers)}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _table(corpus: str, found: Sequence[tuple[str | None, Mapping[str, Any]]]) -> pa.Table:
    return tables.from_rows(
        "fingerprints",
        [
            {"corpus": corpus, "config": config, "name": name, "value": str(value)}
            for config, prints in found
            for name, value in prints.items()
        ],
    )


def _levers(
    experiment: Experiment, config: Configuration, models: Mapping[str, str]
) -> dict[str, Any]:
    """Return a configuration's settings but its chunker; what it does not use has no entry."""
    found: dict[str, Any] = {
        "retriever": config.retriever,
        "doc_scope": config.doc_scope,
        "metadata_filters": config.metadata_filters,
    }
    if config.fusion_used is not None:
        found["fusion"] = fusion_text(config)
    if config.routing_used is not None:
        found["routing"] = f"{config.routing} documents, alpha = {config.routing_alpha}"
    if config.encoder is not None:
        settings = experiment.encoders[config.encoder]
        found["encoder"] = config.encoder + _limit(settings)
        found["encoder_weights"] = models[config.encoder]
        found["encoder_normalized"] = "yes" if settings.normalize else "no"
    if config.reranker is not None:
        found["reranker"] = config.reranker + _limit(experiment.rerankers[config.reranker])
        found["reranker_weights"] = models[config.reranker]
    return found


def _limit(model: Encoder | Reranker) -> str:
    return "" if model.max_length is None else f", at most {model.max_length} word pieces"


def _matching(config: Configuration, unspaced: bool) -> dict[str, str]:
    """Return how BM25 matches words, and by whose rules; nothing where all is default or not used.

    What segments scripts without spaces decides nothing where no text is in one (``unspaced``).
    """
    if not config.uses_bm25 or not config.bm25_set:
        return {}
    found = {"bm25": bm25_text(config) or ""}
    versions = tokenizer.versions(config.tokenizer, config.stemming)
    kept = {name: v for name, v in versions.items() if name != "segmentation" or unspaced}
    return found | {f"bm25_{name}": version for name, version in kept.items()}


def by_config(table: pa.Table) -> dict[str | None, Prints]:
    """Return configuration (None: the whole corpus) -> name -> value."""
    found: dict[str | None, Prints] = {}
    for row in table.to_pylist():
        found.setdefault(row["config"], {})[row["name"]] = row["value"]
    return found


def digest(prints: Mapping[str | None, Prints], config: str) -> str:
    """Return one hash of all that a configuration's figures rest on, the corpus included."""
    return _hash([prints[None], prints[config]])


def same_chunks(prints: Mapping[str | None, Prints], configs: Sequence[str]) -> list[list[str]]:
    """Return ``configs`` in groups that search the same chunks, in order: only within one of them
    do metrics that count chunks compare.
    """
    groups: dict[str, list[str]] = {}
    for config in configs:
        groups.setdefault(prints[config]["chunks"], []).append(config)
    return list(groups.values())


def differing(before: Prints, after: Prints, names: Sequence[str]) -> list[str]:
    """Return those of ``names`` whose values are not the same, in the order given."""
    return [name for name in names if before.get(name) != after.get(name)]
