"""All metrics of one configuration, query by query: of one look at the list, and at every depth."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import character_metrics, chunk_metrics, registry
from spanbench_pipeline.metrics.metric import MetricAt


def query_metrics(
    rankings: pa.Table,
    gold_spans: pa.Table,
    chunks: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    depth: int,
    context: int = CONTEXT,
    further: Sequence[MetricAt] = (),
) -> pa.Table:
    """Return the table ``query_metrics``: what ``chunk_metrics`` and ``character_metrics`` measure.

    ``depth`` is the experiment's: how deep the lists go. No row has a k past it. ``context`` is how
    many chunks a reader is given, ``further`` are metrics beside the standard ones. Refuses what
    the two refuse.
    """
    parts = [
        chunk_metrics.query_metrics(
            rankings,
            gold_spans,
            chunks,
            queries,
            corpus=corpus,
            config=config,
            depth=depth,
            metrics=registry.of_results(context, further),
        ),
        character_metrics.character_metrics(
            rankings,
            gold_spans,
            queries,
            corpus=corpus,
            config=config,
            depth=depth,
            ks=registry.character_ks(further),
        ),
    ]
    return tables.conform("query_metrics", pa.concat_tables(parts))
