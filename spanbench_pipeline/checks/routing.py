"""Invariants of the routed documents, and of the metric that counts them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows
from spanbench_pipeline.metrics.quality.routing_recall import ROUTING_RECALL


def wrong_recalls(
    query_metrics: pa.Table, routed: pa.Table, gold_spans: pa.Table, keep: int
) -> Rows:
    """Routing recalls that do not follow from the kept documents, counted from the pairs."""
    pairs = {(row["query_id"], row["doc_id"]) for row in routed.to_pylist()}
    gold = {(row["query_id"], row["doc_id"]) for row in gold_spans.to_pylist()}
    found, wanted = (Counter(query for query, _ in of) for of in (gold & pairs, gold))
    wrong: Rows = []
    for row in query_metrics.to_pylist():
        if row["metric"] != ROUTING_RECALL:
            continue
        expected = found[row["query_id"]] / max(1, wanted[row["query_id"]])
        if row["k"] != keep or row["value"] is None or abs(row["value"] - expected) > TOLERANCE:
            wrong.append(row | {"expected": expected})
    return wrong


def unknown_documents(routed: pa.Table, queries: pa.Table, documents: pa.Table) -> Rows:
    """Routed documents that do not exist, are of no query, or are kept twice for one."""
    known, asked = set(documents["doc_id"].to_pylist()), set(queries["query_id"].to_pylist())
    seen: set[tuple[str, str]] = set()
    wrong: Rows = []
    for row in routed.select(["query_id", "rank", "doc_id"]).to_pylist():
        pair = (row["query_id"], row["doc_id"])
        if row["query_id"] not in asked:
            wrong.append(row | {"problem": "no such query"})
        elif row["doc_id"] not in known:
            wrong.append(row | {"problem": "no such document"})
        elif pair in seen:
            wrong.append(row | {"problem": "kept twice"})
        seen.add(pair)
    return wrong


def short_routes(routed: pa.Table, queries: pa.Table, documents: pa.Table, keep: int) -> Rows:
    """Return queries that keep fewer documents than there are to keep.

    A query or a document's name without a letter or digit may have no vector: it may be left out.
    """
    found = Counter(routed["query_id"].to_pylist())
    least = min(keep, _n_worded(documents["doc_id"].to_pylist()))
    return [
        {"query_id": row["query_id"], "n_kept": found[row["query_id"]], "at_least": least}
        for row in queries.select(["query_id", "query"]).to_pylist()
        if _n_worded([row["query"]]) and found[row["query_id"]] < least
    ]


def _n_worded(texts: list[str]) -> int:
    return sum(any(character.isalnum() for character in text) for text in texts)
