"""embeddings/<chunker>: one vector a chunk, through the cache that all corpora share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline import chunkers
from spanbench_pipeline.checks import invariants
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import Encoder, Experiment, Reranker
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.models import encoding, kinds
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.retrieval import cards
from spanbench_pipeline.retrieval.texts import chunk_texts

TOLERANCE = 1e-3
"""The largest permitted difference between a stored vector and the same text encoded again, as a
share of the vector's largest component. The last bits differ between machines; another model or
another text differs by far more."""
MODEL_LIBRARIES = ("sentence-transformers", "tokenizers", "torch", "transformers")


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return one stage for each chunker and encoder that some configuration uses together."""
    pairs = {
        pair: chunkers.load(experiment.chunkers[pair[0]], experiment.path).card
        for pair in asset_keys.vector_pairs(experiment)
    }
    return [
        Stage(
            key=asset_keys.vectors_key(experiment, chunker, encoder),
            table="embeddings",
            description=f"Vectors of the chunks of {chunker}, by {encoder}"
            + (", each behind a card of its document." if card else "."),
            compute=_compute(experiment.corpus, chunker, experiment.encoders[encoder], card),
            deps=((experiment.corpus, "chunks", chunker), (experiment.corpus, "documents")),
            modules=(
                "spanbench_pipeline.models.encoding",
                kinds.module_name(experiment.encoders[encoder]),
                "spanbench_pipeline.retrieval.texts",
                *(["spanbench_pipeline.retrieval.cards"] if card else []),
            ),
            params={**model_params(experiment.encoders[encoder], project), "card": card},
            libraries=MODEL_LIBRARIES,
            checks=_checks(chunker, experiment.encoders[encoder], card),
            kinds=("pytorch", "parquet"),
            owns={"corpus": experiment.corpus, "chunker": chunker, "encoder": encoder},
            tags={
                "corpus": experiment.corpus,
                "chunker": chunker,
                "encoder": experiment.encoder_key(encoder),
            },
        )
        for (chunker, encoder), card in pairs.items()
    ]


def model_params(settings: Encoder | Reranker, project: Project) -> dict[str, Any]:
    """Return a model's settings and its weights' fingerprint, or that they are absent."""
    try:
        found = kinds.fingerprint(settings, project.models)
    except NotMeasured as why:
        found = f"absent: {why}"
    return {**settings.stated(), "weights": found}


def _compute(
    corpus: str, chunker: str, settings: Encoder, card: bool
) -> Callable[[Reader], Outcome]:
    def compute(reader: Reader) -> Outcome:
        names, texts = _texts(reader, chunker, card)
        project = reader.project
        encoded = encoding.encode(
            texts, settings, models=project.models, cache=project.vectors, names=names
        )
        n = len(names)
        table = tables.from_columns(
            "embeddings",
            {
                "corpus": [corpus] * n,
                "chunker": [chunker] * n,
                "encoder": [settings.name] * n,
                "chunk_id": names,
                "vector": _nullable(encoded),
                "n_tokens": encoded.n_tokens,
            },
        )
        fingerprint = kinds.fingerprint(settings, project.models)
        return Outcome(
            table,
            {"texts encoded now": encoded.n_new},
            data_version=_version(names, texts, settings.name, fingerprint),
        )

    return compute


def _texts(reader: Reader, chunker: str, card: bool) -> tuple[list[str], list[str]]:
    """Return the id of each chunk, and the text that its vector is made of."""
    chunks, documents = reader.table("chunks", chunker), reader.table("documents")
    texts = chunk_texts(documents, chunks)
    if card:
        card_of = cards.cards(documents, cards.PREFIX_CHARS)
        texts = cards.carded(texts, chunks["doc_id"].to_pylist(), card_of)
    return chunks["chunk_id"].to_pylist(), texts


def _nullable(encoded: encoding.Encoded) -> pa.Array:
    """Return the vectors as a list column; null where a text has none."""
    n, width = encoded.vectors.shape
    offsets = pa.array(np.arange(n + 1) * width, pa.int32())
    values = pa.array(encoded.vectors.reshape(-1), pa.float32())
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~encoded.usable))


def _version(names: list[str], texts: list[str], encoder: str, fingerprint: str) -> str:
    """Return a hash of what was encoded and with what: the last bits of vectors differ by
    machine.
    """
    content = hashlib.sha256(f"{encoder}\n{fingerprint}\n".encode())
    for name, text in zip(names, texts, strict=True):
        content.update(f"{name}\t{hashlib.sha256(text.encode()).hexdigest()}\n".encode())
    return content.hexdigest()


def _unlike_the_model(chunker: str, settings: Encoder, card: bool, reader: Reader) -> Rows:
    """Return which of the first, middle and last stored vectors differ from a new encoding.

    They differ where another model made them, or where a vector has another chunk's id.
    """
    stored = reader.own().filter(reader.own()["vector"].is_valid())
    if not stored.num_rows:
        return []
    text_of = dict(zip(*_texts(reader, chunker, card), strict=True))
    asked = sorted({0, stored.num_rows // 2, stored.num_rows - 1})
    rows = [row for row in stored.take(asked).to_pylist() if row["chunk_id"] in text_of]
    names = [row["chunk_id"] for row in rows]
    encoded_again = encoding.encode_uncached(
        [text_of[name] for name in names], settings, models=reader.project.models, names=names
    )
    wrong: Rows = []
    for row, expected in zip(rows, encoded_again, strict=True):
        found = np.asarray(row["vector"], dtype=np.float32)
        same = found.shape == expected.shape
        difference = float(np.abs(found - expected).max()) if same else None
        if difference is None or not difference <= TOLERANCE * float(np.abs(expected).max()):
            wrong.append({"chunk_id": row["chunk_id"], "largest difference": difference})
    return wrong


def _checks(chunker: str, settings: Encoder, card: bool) -> tuple[Check, ...]:
    length = " and of length 1" if settings.normalize else ""
    return (
        Check(
            "same_chunks_as_table",
            "Dense index and chunk table hold the same chunk ids.",
            lambda reader: invariants.unmatched_embeddings(
                reader.own(), reader.table("chunks", reader.stage.deps[0][2])
            ),
        ),
        Check(
            "sound_vectors",
            f"Every vector is finite{length}.",
            lambda reader: invariants.wrong_vectors(reader.own(), unit=settings.normalize),
        ),
        Check(
            "vectors_of_the_configured_model",
            f"The vectors come from {settings.name}: encoding the first, middle and last chunk "
            "again gives the stored vectors.",
            partial(_unlike_the_model, chunker, settings, card),
        ),
    )
