"""All metrics of one configuration, query by query: of one look at the list, and at every depth."""

from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import character_metrics, chunk_metrics


def query_metrics(
    rankings: pa.Table,
    gold_spans: pa.Table,
    chunks: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    depth: int,
) -> pa.Table:
    """The table ``query_metrics``: what :mod:`retrieval` and :mod:`characters` measure.

    ``depth`` is the experiment's: how deep the lists go. No row has a k past it. Refuses what the
    two refuse.
    """
    parts = [
        chunk_metrics.query_metrics(
            rankings, gold_spans, chunks, queries, corpus=corpus, config=config, depth=depth
        ),
        character_metrics.character_metrics(
            rankings, gold_spans, queries, corpus=corpus, config=config, depth=depth
        ),
    ]
    return tables.conform("query_metrics", pa.concat_tables(parts))
