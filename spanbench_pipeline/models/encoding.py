"""Texts to vectors: each text alone, through a cache, so that no text is ever encoded twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from spanbench_pipeline.config.experiment import Encoder
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import inference, weights
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
    fingerprint = weights.fingerprint(settings, models)
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


def encode_anew(
    texts: Sequence[str], settings: Encoder, *, models: Path, names: Sequence[str]
) -> NDArray[np.float32]:
    """Return vectors of ``texts`` past any cache, shape (n, d): what stored ones must be equal to.

    Raises what ``encode`` does.
    """
    encoder = _Encoder(settings, models)
    found = [encoder.encode(name, text).vector for name, text in zip(names, texts, strict=True)]
    return np.stack(found) if found else np.empty((0, 0), np.float32)


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
    with bar, inference.one_thread_each() as threads:
        while part := dict(islice(waiting, KEEP_EVERY)):
            done = {}
            entries = threads.map(encoder.encode, *zip(*part.values(), strict=True))
            for key, entry in zip(part, entries, strict=True):
                done[key] = entry
                bar.update()
            yield done


class _Encoder:
    """A loaded encoder, whose ``encode`` may be called from several threads at a time."""

    def __init__(self, settings: Encoder, models: Path) -> None:
        self.settings = settings
        self.model = inference.Model(
            "SentenceTransformer", settings, weights.verified(settings, models)
        )
        self.n_without_text = self.model.count("")

    def encode(self, name: str, text: str) -> Entry:
        """Return the entry of one text; zeros where it has no word piece but the special ones."""
        import torch

        vector = self.model.run(text)["sentence_embedding"].float()
        if self.settings.normalize:
            vector = torch.nn.functional.normalize(vector, p=2, dim=1)
        found = vector[0].numpy()
        n_tokens = self.model.count(text)
        if n_tokens <= self.n_without_text:
            return Entry(n_tokens, np.zeros_like(found))
        if not np.isfinite(found).all() or not found.any():
            kind = "zero" if np.isfinite(found).all() else "not finite"
            raise InputError(
                f"{name}: its vector under encoder {self.settings.name} is {kind}; "
                "the weights are damaged, or not those of a sentence encoder"
            )
        return Entry(n_tokens, found)
