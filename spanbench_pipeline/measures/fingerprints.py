"""What figures rest on, as hashes: the ground on which two runs can be compared at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spanbench_pipeline import tables
from spanbench_pipeline.experiment import Configuration, Experiment, fusion_text

HASHED: dict[str, tuple[str, ...]] = {
    "documents": ("doc_id", "text_sha256", "metadata"),
    "queries": ("query_id", "query", "doc_id", "filters"),
    "gold_spans": ("query_id", "doc_id", "start_char", "end_char"),
    "chunks": ("doc_id", "start_char", "end_char"),
}
"""Each table and the columns that decide a figure: a title or a chunk's name decides none."""

Prints = dict[str, str]
"""name -> value"""


def table_hash(name: str, table: pa.Table) -> str:
    """A hash of the rows of one of the tables in ``HASHED``, in whatever order they stand."""
    columns = [table[c].to_pylist() for c in HASHED[name]]
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
    """The table ``fingerprints``: the corpus's rows (config null) and each configuration's.

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
    }
    cut = {
        name: {
            "chunker": name,
            "chunks": table_hash("chunks", table),
            "n_chunks": table.num_rows,
        }
        for name, table in chunks.items()
    }
    found: list[tuple[str | None, Mapping[str, Any]]] = [(None, whole)]
    for config in experiment.configurations:
        embedded = {"embedded": "card and text"} if config.chunker in carded else {}
        prints = {**cut[config.chunker], **_levers(experiment, config, models)}
        found.append((config.name, prints | (embedded if config.uses_dense else {})))
    return _table(experiment.corpus, found)


def with_parameters(table: pa.Table, experiment: Experiment) -> pa.Table:
    """``fingerprints`` with each configuration's chunker parameters, for the record.

    They decide a figure through the chunks alone, which have a hash of their own: parameters that
    cut alike make no other run.
    """
    added: list[tuple[str | None, Mapping[str, Any]]] = []
    for config in experiment.configurations:
        settings = experiment.chunkers[config.chunker]
        params = json.dumps(dict(settings.params), sort_keys=True, default=str)
        added.append((config.name, {"chunker_parameters": f"{settings.strategy} {params}"}))
    both = pa.concat_tables([table, _table(experiment.corpus, added)])
    return tables.conform("fingerprints", both)


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
    """A configuration's settings but its chunker; what it does not use has no entry."""
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
        found["encoder"] = f"{config.encoder}, at most {settings.max_length} word pieces"
        found["encoder_weights"] = models[config.encoder]
    if config.reranker is not None:
        limit = experiment.rerankers[config.reranker].max_length
        found["reranker"] = f"{config.reranker}, at most {limit} word pieces"
        found["reranker_weights"] = models[config.reranker]
    return found


def by_config(table: pa.Table) -> dict[str | None, Prints]:
    """Configuration (None: the whole corpus) -> name -> value."""
    found: dict[str | None, Prints] = {}
    for row in table.to_pylist():
        found.setdefault(row["config"], {})[row["name"]] = row["value"]
    return found


def digest(prints: Mapping[str | None, Prints], config: str) -> str:
    """One hash of all that a configuration's figures rest on, the corpus included."""
    text = json.dumps([prints[None], prints[config]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def differing(before: Prints, after: Prints, names: Sequence[str]) -> list[str]:
    """Those of ``names`` whose values are not the same, in the order given."""
    return [name for name in names if before.get(name) != after.get(name)]
