"""Kinds of encoders and rerankers: what makes a model of an experiment's settings.

A kind is a module: one of this package, or a plug-in (entry points of the groups
``spanbench.encoders`` and ``spanbench.rerankers``) that an experiment names by ``kind``. It has

- ``fingerprint(settings, models) -> str``: what beside its code and its settings decides the
  output, such as a hash of weights below the folder ``models``; NotMeasured where they are absent,
- ``open_encoder(settings, models)``, which returns a ``LoadedEncoder``, or
  ``open_reranker(settings, models)``, which returns a ``LoadedReranker``,
- and where ``spanbench fetch models`` is to bring its weights, ``fetch(settings, models) -> Path``.

``settings.parameters`` are the keys of a plug-in's table that spanbench does not know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.config.experiment import ENCODERS, RERANKERS, Encoder, Reranker
from spanbench_pipeline.core import plugins


class LoadedEncoder(Protocol):
    """An encoder that is ready to run."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector a text, shape (n, d); of length 1 where the settings say normalize.

        A text's vector depends on nothing but the text. One with no more tokens than the empty
        text counts as without a vector.
        """
        ...

    def count(self, text: str) -> int:
        """Return how many tokens the model sees in a text, before any cut."""
        ...


class LoadedReranker(Protocol):
    """A reranker that is ready to run."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the relevance of each text to the query, shape (n,); higher is better.

        A pair's score depends on nothing but the pair.
        """
        ...


def fingerprint(settings: Encoder | Reranker, models: Path) -> str:
    """Return a hash of all that decides a model's output: equal fingerprints, equal output.

    It covers a plug-in's name, version and source, and its settings. Raises NotMeasured where
    weights are absent, InputError where they are not the declared ones.
    """
    own: str = call(settings, "fingerprint", models)
    if not is_plugin(settings):
        return own
    module = module_name(settings)
    parts = {
        "kind": settings.kind,
        "distributions": plugins.versions([module]),
        "source": plugins.source_hash(module),
        "settings": {k: v for k, v in settings.stated().items() if k not in ("name", "kind")},
        "own": own,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def call(settings: Encoder | Reranker, function: str, models: Path) -> Any:
    """Return what a function of the kind's module makes of the settings.

    Raises InputError that names the plug-in where it lacks the function or fails.
    """
    registry = _registry(settings)
    module = _module(settings)
    with registry.blamed(settings.kind):
        return getattr(module, function)(settings, models)


def fetched(settings: Encoder | Reranker, models: Path) -> Path | None:
    """Return the folder that a model's weights were brought to; None for a kind without fetch."""
    folder: Path | None = None
    if hasattr(_module(settings), "fetch"):
        folder = call(settings, "fetch", models)
    return folder


def is_plugin(settings: Encoder | Reranker) -> bool:
    """Return whether a model is another package's."""
    return settings.kind not in _registry(settings).ours


def module_name(settings: Encoder | Reranker) -> str:
    """Return the module that serves a model's kind."""
    return _registry(settings)[settings.kind].partition(":")[0]


def _module(settings: Encoder | Reranker) -> ModuleType:
    module: ModuleType = _registry(settings).choose(settings.name, "kind", settings.kind)
    return module


def _registry(settings: Encoder | Reranker) -> plugins.Registry:
    return ENCODERS if isinstance(settings, Encoder) else RERANKERS
