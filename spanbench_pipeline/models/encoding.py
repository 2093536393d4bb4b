"""Texts to vectors: each text alone, through a cache, so that no text is ever encoded twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from spanbench_pipeline.config.experiment import ENCODERS, Encoder
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import kinds
from spanbench_pipeline.models.kinds import LoadedEncoder
from spanbench_pipeline.storage import vector_cache
from spanbench_pipeline.storage.vector_cache import Entry, VectorCache

KEEP_EVERY = 64
"""Texts encoded between two writes to the cache: the most that an interrupted run loses."""

PROGRESS_AFTER = 2.0
"""Seconds before a progress bar is shown."""


@dataclass(frozen=True)
class Encoded:
    """What ``encode`` makes of n texts, in their order.

    ``vectors`` has shape (n, d) (d is 0 where n is). ``n_tokens`` counts a text's word pieces,
    special ones included, before any cut. ``usable`` is False where a text has no word piece but
    the special ones: its vector is zeros and must be in no dense list. ``n_new`` is the number of
    distinct texts that were not in the cache.
    """

    vectors: NDArray[np.float32]
    n_tokens: NDArray[np.int64]
    usable: NDArray[np.bool_]
    n_new: int


def encode(
    texts: Sequence[str],
    settings: Encoder,
    *,
    models: Path,
    cache: Path,
    names: Sequence[str],
    progress: bool | None = None,
) -> Encoded:
    """Return vectors of ``texts`` under an encoder; equal texts have equal vectors, bit for bit.

    ``models`` is the folder of fetched weights, ``cache`` the cache's file, ``names`` what errors
    call each text (chunk or query ids). ``progress`` shows a bar (default: on a terminal). The
    model is loaded only if a text is new.

    Raises NotMeasured where the weights are absent; InputError where they are not the declared
    ones or cannot be loaded, and where a vector is zero or not finite, naming the text.
    """
    fingerprint = kinds.fingerprint(settings, models)
    keys = [vector_cache.key(text, fingerprint) for text in texts]
    with VectorCache(cache) as store:
        entries = store.get(list(dict.fromkeys(keys)))
        new: dict[bytes, tuple[str, str]] = {}
        for key, name, text in zip(keys, names, texts, strict=True):
            if key not in entries:
                new.setdefault(key, (name, text))
        if new:
            for done in _encode_new(new, settings, models, progress):
                store.put(done)
                entries |= done
    found = [entries[key] for key in keys]
    vectors = np.stack([e.vector for e in found]) if found else np.empty((0, 0), np.float32)
    n_tokens = np.array([e.n_tokens for e in found], dtype=np.int64)
    usable = np.any(vectors != 0, axis=1)
    return Encoded(vectors, n_tokens, usable, len(new))


def encode_uncached(
    texts: Sequence[str], settings: Encoder, *, models: Path, names: Sequence[str]
) -> NDArray[np.float32]:
    """Return vectors of ``texts`` past any cache, shape (n, d): what stored ones must be equal to.

    Raises what ``encode`` does.
    """
    entries = _Encoder(settings, models).entries(names, texts)
    return np.stack([e.vector for e in entries]) if entries else np.empty((0, 0), np.float32)


def _encode_new(
    new: Mapping[bytes, tuple[str, str]], settings: Encoder, models: Path, progress: bool | None
) -> Iterator[dict[bytes, Entry]]:
    """Yield the entries of new texts (key -> name, text), a part at a time."""
    encoder = _Encoder(settings, models)
    waiting = iter(new.items())
    bar = tqdm(
        total=len(new),
        desc="encoding",
        unit=" texts",
        delay=PROGRESS_AFTER,
        disable=None if progress is None else not progress,
        leave=False,
    )
    with bar:
        while part := dict(islice(waiting, KEEP_EVERY)):
            names, texts = zip(*part.values(), strict=True)
            yield dict(zip(part, encoder.entries(names, texts), strict=True))
            bar.update(len(part))


class _Encoder:
    """A loaded encoder, whose output is held to what is promised of it."""

    def __init__(self, settings: Encoder, models: Path) -> None:
        self.settings = settings
        self.model: LoadedEncoder = kinds.call(settings, "open_encoder", models)
        self.n_without_text = self.model.count("")

    def entries(self, names: Sequence[str], texts: Sequence[str]) -> list[Entry]:
        """Return the entry of each text; zeros where it has no token but the special ones."""
        with ENCODERS.blamed(self.settings.kind):
            vectors = np.asarray(self.model.encode(list(texts)) if texts else np.empty((0, 0)))
            counts = [self.model.count(text) for text in texts]
        if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
            raise InputError(
                f"encoder {self.settings.name}: {vectors.dtype} of shape {vectors.shape} for "
                f"{len(texts)} texts, not one vector of floats each"
            )
        vectors = vectors.astype(np.float32)
        return [self._entry(*row) for row in zip(names, counts, vectors, strict=True)]

    def _entry(self, name: str, n_tokens: int, vector: NDArray[np.float32]) -> Entry:
        if n_tokens <= self.n_without_text:
            return Entry(n_tokens, np.zeros_like(vector))
        if not np.isfinite(vector).all() or not vector.any():
            kind = "zero" if np.isfinite(vector).all() else "not finite"
            raise InputError(
                f"{name}: its vector under encoder {self.settings.name} is {kind}; "
                "the weights are damaged, or not those of a sentence encoder"
            )
        return Entry(n_tokens, vector)
