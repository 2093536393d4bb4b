"""Which part of a corpus a query searches: its document, its filters, routed documents, or all.

Both channels take the same scopes, so that a filter means the same on the dense and sparse side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spanbench_pipeline.retrieval.lists import Ints


@dataclass(frozen=True)
class Scope:
    """The chunks a query may be answered with: those whose document meets every condition.

    ``doc_id`` None: any document. ``filters`` are (field, value) pairs, sorted; a document that
    does not declare the field does not meet the condition. ``routed`` are the documents kept by
    routing, sorted; None: there was none, (): it kept none.
    """

    doc_id: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    routed: tuple[str, ...] | None = None

    def admits(self, doc_id: str, metadata: Mapping[str, str]) -> bool:
        """Return whether a document with this id and metadata is inside."""
        if self.doc_id not in (None, doc_id):
            return False
        if self.routed is not None and doc_id not in self.routed:
            return False
        return all(metadata.get(field) == value for field, value in self.filters)


EVERYTHING = Scope()


def scopes(
    queries: pa.Table,
    *,
    doc_scope: bool,
    metadata_filters: bool,
    routed: pa.Table | None = None,
) -> list[Scope]:
    """Return the scope of each row of a ``queries`` table under a configuration's settings.

    All conditions that are set must hold, so that nothing may be left: such a query has an empty
    list. A query about no document searches all of them. ``routed`` is the configuration's
    ``routed_documents``, None without routing; a query without a row in it searches nothing.
    """
    kept = None if routed is None else _kept(routed)
    columns = (queries[name].to_pylist() for name in ("query_id", "doc_id", "filters"))
    return [
        Scope(
            doc_id if doc_scope else None,
            tuple(sorted(filters)) if metadata_filters else (),
            None if kept is None else tuple(sorted(kept.get(query_id, ()))),
        )
        for query_id, doc_id, filters in zip(*columns, strict=True)
    ]


def _kept(routed: pa.Table) -> dict[str, list[str]]:
    """Return query_id -> the documents of a ``routed_documents`` table."""
    kept: dict[str, list[str]] = {}
    columns = (routed[name].to_pylist() for name in ("query_id", "doc_id"))
    for query_id, doc_id in zip(*columns, strict=True):
        kept.setdefault(query_id, []).append(doc_id)
    return kept


class ScopedRows:
    """The rows of a ``chunks`` table that a scope admits.

    Raises ValueError when the table is not in chunk order, on which every tie rule relies.
    """

    def __init__(self, documents: pa.Table, chunks: pa.Table) -> None:
        doc_ids = chunks["doc_id"].to_pylist()
        keys = zip(doc_ids, chunks["chunk_no"].to_pylist(), strict=True)
        if any(a >= b for a, b in itertools.pairwise(keys)):
            raise ValueError("the chunks table is not sorted by doc_id, then chunk_no")
        self._rows = {
            doc_id: np.fromiter(rows, np.int64)
            for doc_id, rows in itertools.groupby(range(len(doc_ids)), doc_ids.__getitem__)
        }
        self._metadata = {
            doc_id: dict(metadata)
            for doc_id, metadata in zip(
                documents["doc_id"].to_pylist(), documents["metadata"].to_pylist(), strict=True
            )
        }
        self._known: dict[Scope, Ints] = {}

    def __call__(self, scope: Scope) -> Ints | None:
        """Return the rows that ``scope`` admits, ascending; None: every row."""
        if scope == EVERYTHING:
            return None
        if scope not in self._known:
            looked_at: Iterable[str] = self._rows if scope.routed is None else scope.routed
            inside = [
                self._rows[doc_id]
                for doc_id in looked_at
                if doc_id in self._rows and scope.admits(doc_id, self._metadata[doc_id])
            ]
            self._known[scope] = np.concatenate([np.empty(0, np.int64), *inside])
        return self._known[scope]
