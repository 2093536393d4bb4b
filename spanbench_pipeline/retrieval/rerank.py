"""Reordering candidates by a reranker, which reads a query and a chunk's text together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.config.experiment import Reranker
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import kinds
from spanbench_pipeline.models.kinds import LoadedReranker


def load(settings: Reranker, models: Path) -> LoadedReranker:
    """Return the reranker, whose weights lie in a folder of their own or below ``models``.

    Raises NotMeasured where the weights are absent; InputError where they are not the declared
    ones, cannot be loaded, or are not those of a cross-encoder with one score a pair.
    """
    model: LoadedReranker = kinds.call(settings, "open_reranker", models)
    return model


def score_pairs(query: str, texts: Sequence[str], model: LoadedReranker) -> NDArray[np.float64]:
    """Return the relevance of each text to ``query``, shape (n,).

    Raises InputError, naming query and chunk, where a score is not finite or one is missing.
    """
    scores = np.asarray(model.score(query, texts), dtype=np.float64)
    if scores.shape != (len(texts),):
        raise InputError(
            f"query {query!r}: the reranker gave scores of shape {scores.shape} for {len(texts)} "
            "texts, not one each"
        )
    for score, text in zip(scores, texts, strict=True):
        if not np.isfinite(score):
            raise InputError(
                f"query {query!r} and the chunk that begins {text[:60]!r}: the reranker's score "
                f"is {score}; its weights are damaged"
            )
    return scores
