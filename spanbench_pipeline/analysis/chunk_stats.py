"""What a chunker makes possible, before any retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics.joins import Bools, Ints, require_one
from spanbench_pipeline.metrics.scored_run import ScoredRun


def chunk_stats(
    run: ScoredRun,
    *,
    corpus: str,
    chunker: str,
    embeddings: pa.Table | None = None,
    max_length: int | None = None,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``chunk_stats`` of one chunker.

    ``embeddings`` are those of one encoder, ``max_length`` the word pieces it reads, special ones
    included; without them ``truncated_share`` is null.
    """
    values: dict[str, float | None] = {
        "n_chunks": float(len(run.chunks)),
        "median_chars": median_chars(run.chunks.length),
        "spans_in_one_chunk": _share(run.touch_counts == 1),
        "spans_contained": spans_contained(run),
        "relevant_per_query": float(np.mean(run.relevant_counts)),
        "precision_ceiling": precision_ceiling(run, context),
        "truncated_share": truncated_share(embeddings, max_length),
    }
    rows: Sequence[dict[str, object]] = [
        {"corpus": corpus, "chunker": chunker, "stat": stat, "value": value}
        for stat, value in values.items()
    ]
    return tables.from_rows("chunk_stats", rows)


def median_chars(lengths: Ints) -> float | None:
    """Upper median of the chunks' lengths: of an even number, the larger middle. No chunk: None."""
    return float(np.sort(lengths)[len(lengths) // 2]) if len(lengths) else None


def spans_contained(run: ScoredRun) -> float | None:
    """Return gold spans wholly inside at least one chunk, divided by the gold spans."""
    inside, _ = spans.containing_pairs(run.gold, run.chunks)
    return _share(np.bincount(inside, minlength=len(run.gold)) > 0)


def precision_ceiling(run: ScoredRun, context: int = CONTEXT) -> float:
    """Return the mean precision at k = ``context`` of a perfect ranking.

    That is the mean over all queries of min(relevant, k) / k.
    """
    best = np.minimum(run.relevant_counts, context)
    return int(best.sum()) / (context * len(best))


def truncated_share(embeddings: pa.Table | None, max_length: int | None) -> float | None:
    """Return chunks with more word pieces than the encoder reads, divided by the chunks.

    Special word pieces count. Nothing encoded: None.
    """
    if embeddings is None or max_length is None:
        return None
    require_one(embeddings, "corpus", "chunker", "encoder")
    return _share(pc.greater(embeddings["n_tokens"], max_length).to_numpy())


def _share(holds: Bools) -> float | None:
    """Return the share of True; of nothing: None."""
    return int(holds.sum()) / len(holds) if len(holds) else None
