"""How fast texts are encoded, one way against the others: ratios, measured in one run.

    python -m benchmarks.encoding [--chunks N] [--rounds N]

Every way encodes the same chunks of 1,000 characters; the ways take turns, and the median of the
rounds counts, so that what else the machine does hits all of them. Beside the speed stands in how
many chunks a way's vector differs, in any bit, from that of the chunk encoded alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.cli.terminal import table
from spanbench_pipeline.config import experiment
from spanbench_pipeline.models import encoding, weights
from tools.sample import generate as sample

EXPERIMENT = Path(__file__).parents[1] / "data" / "experiments" / "sample.toml"
Vectors = NDArray[np.float32]


def main() -> None:
    """Measure loading and all ways, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    texts = _chunks(asked.chunks)
    start = time.perf_counter()
    import torch
    from sentence_transformers import SentenceTransformer

    imported = time.perf_counter()
    (settings,) = experiment.load(EXPERIMENT).encoders.values()
    folder = weights.verified(settings, Path())
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.max_seq_length = settings.max_length
    loaded = time.perf_counter()
    sys.stdout.write(f"importing {imported - start:.1f} s, loading {loaded - imported:.1f} s\n")
    ways = _ways(model, settings, torch.get_num_threads())
    sys.stdout.write(_compare(ways, texts, asked.rounds) + "\n")


def _chunks(count: int) -> list[str]:
    """Return chunks of 1,000 characters of made-up contracts."""
    contracts = sample.generate(documents=1 + count // 10, queries=1).contracts
    pieces = [c.text[i : i + 1000] for c in contracts for i in range(0, len(c.text) - 999, 850)]
    return pieces[:count]


def _ways(model: Any, settings: Any, threads: int) -> dict[str, Callable[[list[str]], Vectors]]:
    """Return the ways, by name; the first is what the others are compared with."""

    def plain(texts: list[str], batch_size: int) -> Vectors:
        found: Vectors = model.encode(
            texts, batch_size=batch_size, show_progress_bar=False, normalize_embeddings=True
        )
        return found

    def equal_lengths(texts: list[str]) -> Vectors:
        pieces = model.tokenizer(texts, truncation=True, max_length=settings.max_length)
        lengths = [len(ids) for ids in pieces["input_ids"]]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        found = np.empty((len(texts), 384), np.float32)
        for _, group in groupby(order, key=lengths.__getitem__):
            rows = list(group)
            found[rows] = plain([texts[i] for i in rows], len(rows))
        return found

    def ours(texts: list[str]) -> Vectors:
        with tempfile.TemporaryDirectory() as folder:
            return encoding.encode(
                texts,
                settings,
                models=Path(folder),
                cache=Path(folder) / "vectors.sqlite",
                names=texts,
                progress=False,
            ).vectors

    return {
        f"one text at a time, {threads} threads": lambda texts: plain(texts, 1),
        "batches of 32": lambda texts: plain(texts, 32),
        "batches of equal length": equal_lengths,
        "spanbench, loading and caching included": ours,
    }


def _compare(
    ways: dict[str, Callable[[list[str]], Vectors]], texts: Sequence[str], rounds: int
) -> str:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    vectors: dict[str, Vectors] = {}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            vectors[name] = way(list(texts))
            seconds[name].append(time.perf_counter() - start)
    first, *_ = (statistics.median(times) for times in seconds.values())
    alone = next(iter(vectors.values()))
    rows = [
        (
            name,
            f"{len(texts) / statistics.median(seconds[name]):.1f}",
            f"{first / statistics.median(seconds[name]):.2f}",
            str(int((found != alone).any(axis=1).sum())),
        )
        for name, found in vectors.items()
    ]
    return table(("way", "texts/s", "ratio", "vectors that differ"), rows, right=(1, 2, 3))


if __name__ == "__main__":
    main()
