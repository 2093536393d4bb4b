"""Headroom: how much complete grounding each stage leaves on the table, by counterfactual.

Four bounds at k, each at least the one before:

| bound | complete grounding with |
|---|---|
| actual | the first k chunks of the ranking |
| candidates | the best k of all chunks in the lists of the channels |
| chunks | the best k of all chunks of the gold documents |
| perfect | 1: the k best pieces that anybody could cut |

Best is an exact optimum: k chunks so that each gold span of the query has at least half of its
characters in them, if there are such k. The steps between the bounds are what ranking, candidate
generation and chunking cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from spanbench_pipeline.analysis.aggregate import config_metrics
from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics.joins import Ints, Reals
from spanbench_pipeline.metrics.minimum_cover import fewest
from spanbench_pipeline.metrics.quality.grounding import complete_grounding
from spanbench_pipeline.metrics.scored_run import ScoredRun

BOUNDS = ("actual", "candidates", "chunks", "perfect")
"""The bounds, each at least the one before."""

COSTS = ("ranking", "candidate generation", "chunking")
"""What the step from each bound to the next is the cost of."""


def headroom(
    run: ScoredRun,
    offered: ScoredRun,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    ks: Sequence[int],
) -> pa.Table:
    """Return the table ``headroom`` of one configuration: means over queries, as in config_metrics.

    ``offered`` is the run with all that the channels listed; a ranking whose channels are unknown
    is its own candidates. Raises ValueError where two gold spans of a query share a character.
    """
    most = max(ks)
    relevant = offered.listed.where(offered.relevant)
    of_candidates = fewest_chunks(run, relevant.query, relevant.chunk, most)
    of_chunks = fewest_chunks(run, run.pair_query, run.pair_chunk, most)
    values: dict[tuple[str, int], Reals] = {}
    for k in sorted(set(ks)):
        actual = complete_grounding(run, k)
        values["actual", k] = actual
        values["candidates", k] = (of_candidates <= k).astype(np.float64)
        values["chunks", k] = (of_chunks <= k).astype(np.float64)
        values["perfect", k] = np.ones(len(actual))
    by_query = _by_query(values, run, corpus, config)
    means = config_metrics(by_query, queries).drop_columns(["n_queries"])
    return tables.conform("headroom", means.rename_columns({"metric": "bound"}))


def fewest_chunks(run: ScoredRun, query: Ints, chunk: Ints, most: int) -> Ints:
    """Return the fewest of each query's chunks that cover all of its gold spans: shape (q,).

    ``query`` and ``chunk`` name the relevant chunks that there are to choose from, as positions;
    repeats do no harm. More than ``most`` where ``most`` are not enough, or all are not. No chunk
    covers spans of two documents, so that the fewest of a query is the sum over its documents.
    """
    gold, pieces, n_docs = run.gold, run.chunks.take(chunk), len(run.doc_ids)
    groups, group = np.unique(run.gold_query * n_docs + gold.group, return_inverse=True)
    of_piece = np.searchsorted(groups, query * n_docs + pieces.group)
    counts = fewest(
        spans.make(group, gold.start, gold.end),
        spans.make(of_piece, pieces.start, pieces.end),
        len(groups),
        most,
    )
    total = np.zeros(len(run.query_ids), dtype=np.int64)
    np.add.at(total, groups // n_docs, counts)
    return total


def costs(bounds: Mapping[str, float]) -> dict[str, float]:
    """Return what each of ``COSTS`` takes away, from the value of each of ``BOUNDS``."""
    values = [bounds[bound] for bound in BOUNDS]
    return dict(zip(COSTS, np.diff(values).tolist(), strict=True))


def _by_query(
    values: Mapping[tuple[str, int], Reals], run: ScoredRun, corpus: str, config: str
) -> pa.Table:
    """Return the values as ``query_metrics`` has them, a bound for a metric."""
    n = len(run.query_ids)
    parts = [
        pa.table(
            {
                "corpus": pa.repeat(corpus, n),
                "config": pa.repeat(config, n),
                "query_id": run.query_ids,
                "metric": pa.repeat(bound, n),
                "k": pa.array([k] * n, pa.int64()),
                "value": value,
            }
        )
        for (bound, k), value in values.items()
    ]
    return pa.concat_tables(parts)
