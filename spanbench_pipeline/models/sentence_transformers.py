"""Models of sentence-transformers: encoders and cross-encoders, each text through them alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.config.experiment import Encoder, Reranker
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import inference, weights
from spanbench_pipeline.models.weights import fetch, fingerprint

__all__ = ["fetch", "fingerprint", "open_encoder", "open_reranker"]


class SentenceEncoder:
    """A loaded encoder."""

    def __init__(self, settings: Encoder, models: Path) -> None:
        self.settings = settings
        folder = weights.verified(settings, models)
        self.model = inference.Model("SentenceTransformer", settings, folder)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, one core a text."""
        with inference.one_thread_each() as threads:
            return np.stack(list(threads.map(self._vector, texts)))

    def count(self, text: str) -> int:
        """Return the word pieces of a text, special ones included."""
        return self.model.count(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        import torch

        vector = self.model.run(text)["sentence_embedding"].float()
        if self.settings.normalize:
            vector = torch.nn.functional.normalize(vector, p=2, dim=1)
        found: NDArray[np.float32] = vector[0].numpy()
        return found


class CrossEncoder:
    """A loaded reranker."""

    def __init__(self, model: inference.Model) -> None:
        self.model = model

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the model's raw output (a logit) for each pair.

        Without an activation, which would keep the order but round large scores into ties.
        """
        with inference.one_thread_each() as threads:
            outcomes = threads.map(self.model.run, ((query, text) for text in texts))
            return np.array([float(o["scores"].reshape(())) for o in outcomes], dtype=np.float64)


def open_encoder(settings: Encoder, models: Path) -> SentenceEncoder:
    """Return the encoder, its weights verified; raise as ``weights.verified`` does."""
    return SentenceEncoder(settings, models)


def open_reranker(settings: Reranker, models: Path) -> CrossEncoder:
    """Return the reranker, its weights verified; raise as ``weights.verified`` does.

    Raises InputError where it is no cross-encoder with one score a pair.
    """
    folder = weights.verified(settings, models)
    model = inference.Model("CrossEncoder", settings, folder)
    if model.n_labels != 1:
        raise InputError(
            f"{settings.name}: {folder} gives {model.n_labels} scores a pair; name a "
            "cross-encoder that was trained for ranking, which gives one"
        )
    return CrossEncoder(model)
