"""Which documents a query may be answered from, told from the tables alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa


def admitted(
    queries: Iterable[Mapping[str, Any]],
    documents: pa.Table,
    *,
    doc_scope: bool,
    metadata_filters: bool,
    routed: pa.Table | None = None,
) -> dict[str, frozenset[str]]:
    """Return the doc_ids inside each query's scope, by query_id, for rows of ``queries``.

    With ``doc_scope`` the query's own document, where it is about one; with ``metadata_filters``
    documents that declare every field of its filters with that value; with ``routed`` the rows of
    ``routed_documents`` that it has. All that are given must hold.
    """
    kept: dict[str, set[str]] = {}
    for row in [] if routed is None else routed.select(["query_id", "doc_id"]).to_pylist():
        kept.setdefault(row["query_id"], set()).add(row["doc_id"])
    fields = documents.select(["doc_id", "metadata"]).to_pylist()
    metadata = {row["doc_id"]: dict(row["metadata"]).items() for row in fields}
    everything = frozenset(metadata)
    scopes: dict[str, frozenset[str]] = {}
    for query in queries:
        # One set for all that are not restricted: a copy a query would grow with both.
        inside = everything
        if doc_scope and query["doc_id"] is not None:
            inside = inside & {query["doc_id"]}
        if metadata_filters and query["filters"]:
            wanted = dict(query["filters"]).items()
            inside = frozenset(doc_id for doc_id in inside if wanted <= metadata[doc_id])
        if routed is not None:
            inside = inside & kept.get(query["query_id"], set())
        scopes[query["query_id"]] = inside
    return scopes
