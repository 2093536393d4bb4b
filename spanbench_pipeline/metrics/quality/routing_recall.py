"""Routing recall: what routing keeps of the documents that hold gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.metric import Metric

ROUTING_RECALL = "routing_recall"
"""The metric's name; its ``k`` is how many documents are kept."""

METRICS = (
    Metric(
        name=ROUTING_RECALL,
        values=None,
        meaning="whether the right documents are searched at all: share of the query's gold "
        "documents among the documents that routing keeps, as many as the number behind the @.",
        formula="gold documents among the kept ones / gold documents",
        shown="documents",
        position=200,
    ),
)


def routing_recall(
    routed: pa.Table,
    gold_spans: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    keep: int,
) -> pa.Table:
    """Return rows of ``query_metrics``: each query's gold documents among the kept ones / all.

    Gold documents are those with a gold span of the query, each counted once however many it has.
    No document kept: 0. Which of the kept ones stands first makes no difference.
    """
    kept, gold = _documents(routed), _documents(gold_spans)
    asked = queries["query_id"].to_pylist()
    n = len(asked)
    return tables.from_columns(
        "query_metrics",
        {
            "corpus": [corpus] * n,
            "config": [config] * n,
            "query_id": asked,
            "metric": [ROUTING_RECALL] * n,
            "k": [keep] * n,
            "value": [len(gold[query] & kept[query]) / len(gold[query]) for query in asked],
        },
    )


def _documents(table: pa.Table) -> defaultdict[str, set[str]]:
    """Return query_id -> the documents of its rows."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    columns: Iterable[Any] = (table[name].to_pylist() for name in ("query_id", "doc_id"))
    for query, doc_id in zip(*columns, strict=True):
        found[query].add(doc_id)
    return found
