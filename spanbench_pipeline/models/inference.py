"""Running a model on one text after the other: on all cores, with the same bits on any of them.

A matrix product may add its terms in another order when it is larger or split over more threads,
so that a text encoded in a batch differs in its last bits from the same text encoded alone. Here
each text goes through the model alone and on one thread; several texts do so at a time.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from spanbench_pipeline.config.experiment import Encoder, Reranker
from spanbench_pipeline.core.errors import InputError

Kind = Literal["SentenceTransformer", "CrossEncoder"]
"""The classes of sentence-transformers that are used here."""

PROBE = ("governing law", "This agreement is governed by the laws of Delaware.")
"""What a model is tried with once it is loaded."""

LIBRARIES = ("sentence_transformers", "transformers", "huggingface_hub")
"""The libraries that load models, by the names of their loggers."""


class Model:
    """A model of sentence-transformers, in float32 on the CPU, cut at the declared length.

    Its methods may be called from several threads at a time. Raises InputError where the folder
    cannot be loaded or lacks weights, and where the model does not take the declared length.
    """

    def __init__(self, kind: Kind, settings: Encoder | Reranker, folder: Path) -> None:
        self.model = _load(kind, settings, folder)
        # A prompt that the model puts before every text by default is a part of its input.
        self.prompt = str(self.model.prompts.get(self.model.default_prompt_name or "") or "")
        self._tokenizer = self.model.tokenizer
        # A fast tokenizer keeps its settings, such as where to cut, in itself.
        self._lock = threading.Lock()
        _set_max_length(kind, self.model, settings)

    @property
    def n_labels(self) -> int:
        """Return how many scores a cross-encoder gives a pair."""
        return int(self.model.num_labels)

    def run(self, item: str | tuple[str, str]) -> dict[str, Any]:
        """Return what the model makes of one text or pair, as tensors with one row."""
        import torch

        with self._lock:
            features = self.model.preprocess([item], prompt=self.prompt or None)
        with torch.inference_mode():
            outcome: dict[str, Any] = self.model(features)
        return outcome

    def count(self, text: str) -> int:
        """Word pieces of the model's input for a text: all of it, special ones included."""
        with self._lock:
            pieces = self._tokenizer(self.prompt + text, truncation=False, verbose=False)
        return len(pieces["input_ids"])


@contextmanager
def one_thread_each() -> Iterator[Executor]:
    """Threads, one a core, in which torch computes on that thread alone.

    torch lets go of the interpreter's lock while it computes, so the threads do run at a time.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(_cores(), "model", torch.set_num_threads, (1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


def _load(kind: Kind, settings: Encoder | Reranker, folder: Path) -> Any:
    """Return the model, loaded twice: weights that the folder lacks are made up, differently each
    time.

    The library says so in a log line only, and figures from such a model would look like others.
    """
    import torch

    first, second = (_load_once(kind, settings, folder, seed) for seed in (1, 2))
    item = PROBE[0] if kind == "SentenceTransformer" else PROBE
    output = {"SentenceTransformer": "sentence_embedding", "CrossEncoder": "scores"}[kind]
    with torch.inference_mode():
        one, other = (m(m.preprocess([item]))[output] for m in (first, second))
    if not torch.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise InputError(
            f"{settings.name}: {folder} lacks weights that a {kind} needs; it would compute with "
            "random numbers in their place"
        )
    return first


def _load_once(kind: Kind, settings: Encoder | Reranker, folder: Path, seed: int) -> Any:
    with _quiet():
        import sentence_transformers
        import torch

        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model: Any = getattr(sentence_transformers, kind)(
                    str(folder), device="cpu", local_files_only=True
                )
        except Exception as error:  # Whatever a library makes of a file that is not what it seems.
            reason = " ".join(str(error).split())
            raise InputError(f"{settings.name}: {folder} cannot be loaded: {reason}") from error
    return model.float().eval()


def _set_max_length(kind: Kind, model: Any, settings: Encoder | Reranker) -> None:
    tokenizer, length = model.tokenizer, settings.max_length or 0
    special = tokenizer.num_special_tokens_to_add(pair=kind == "CrossEncoder")
    if not special < length <= tokenizer.model_max_length:
        raise InputError(
            f"{settings.name}: max_length = {length}, but the model takes from {special + 1} to "
            f"{tokenizer.model_max_length} word pieces, special ones included"
        )
    model.max_seq_length = length


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence progress bars, log lines and warnings, except errors, while a model is loaded."""
    from transformers.utils import logging as untyped

    transformers_logging: Any = untyped
    loggers = [logging.getLogger(name) for name in LIBRARIES]
    levels = [logger.level for logger in loggers]
    bars = transformers_logging.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if bars:
            transformers_logging.enable_progress_bar()
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _cores() -> int:
    """Return the number of cores that this process may use, which in a container are fewer than
    the machine has.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
