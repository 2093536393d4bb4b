"""Reordering candidates by a cross-encoder, which reads a query and a chunk's text together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.config.experiment import Reranker
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import inference, weights


def load(settings: Reranker, models: Path) -> inference.Model:
    """Return the reranker in its own folder or below ``models``.

    Raises NotMeasured where the weights are absent; InputError where they are not the declared
    ones, cannot be loaded, or are not those of a cross-encoder with one score a pair.
    """
    folder = weights.verified(settings, models)
    model = inference.Model("CrossEncoder", settings, folder)
    if model.n_labels != 1:
        raise InputError(
            f"{settings.name}: {folder} gives {model.n_labels} scores a pair; name a "
            "cross-encoder that was trained for ranking, which gives one"
        )
    return model


def score_pairs(query: str, texts: Sequence[str], model: inference.Model) -> NDArray[np.float64]:
    """Return the relevance of each text to ``query``: shape (n,), the model's raw output (a logit).

    Without an activation, which would keep the order but round large scores into ties. A pair's
    score depends on nothing but the pair. Raises InputError, naming query and chunk, where a
    score is not finite.
    """
    with inference.one_thread_each() as threads:
        outcomes = threads.map(model.run, ((query, text) for text in texts))
        scores = np.array([float(o["scores"].reshape(())) for o in outcomes], dtype=np.float64)
    for score, text in zip(scores, texts, strict=True):
        if not np.isfinite(score):
            raise InputError(
                f"query {query!r} and the chunk that begins {text[:60]!r}: the reranker's score "
                f"is {score}; its weights are damaged"
            )
    return scores
