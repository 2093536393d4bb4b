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
) -> dict[str, set[str]]:
    """query_id -> the doc_ids inside its scope, for rows of the ``queries`` table.

    With ``doc_scope`` the query's own document, where it is about one; with ``metadata_filters``
    documents that declare every field of its filters with that value; with ``routed`` the rows of
    ``routed_documents`` that it has. All that are given must hold.
    """
    kept: dict[str, set[str]] = {}
    for row in [] if routed is None else routed.select(["query_id", "doc_id"]).to_pylist():
        kept.setdefault(row["query_id"], set()).add(row["doc_id"])
    fields = documents.select(["doc_id", "metadata"]).to_pylist()
    metadata = {row["doc_id"]: dict(row["metadata"]) for row in fields}
    found: dict[str, set[str]] = {}
    for query in queries:
        inside = set(metadata)
        if doc_scope and query["doc_id"] is not None:
            inside &= {query["doc_id"]}
        if metadata_filters:
            wanted = dict(query["filters"]).items()
            inside = {doc_id for doc_id in inside if wanted <= metadata[doc_id].items()}
        if routed is not None:
            inside = inside & kept.get(query["query_id"], set())
        found[query["query_id"]] = inside
    return found
