"""Which part of the corpus a query searches: its document, its metadata filters, or everything.

Both channels take the same scopes, so that a filter means the same on the dense and sparse side.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spanbench_pipeline.retrieval.lists import Ints


@dataclass(frozen=True)
class Scope:
    """The chunks a query may be answered with: those whose document meets every condition.

    ``doc_id`` None: any document. ``filters`` are (field, value) pairs, sorted; a document that
    does not declare the field does not meet the condition.
    """

    doc_id: str | None = None
    filters: tuple[tuple[str, str], ...] = ()

    def admits(self, doc_id: str, metadata: Mapping[str, str]) -> bool:
        """Whether a document with this id and metadata is inside."""
        if self.doc_id not in (None, doc_id):
            return False
        return all(metadata.get(field) == value for field, value in self.filters)


EVERYTHING = Scope()


def scopes(queries: pa.Table, *, doc_scope: bool, metadata_filters: bool) -> list[Scope]:
    """The scope of each row of a ``queries`` table under a configuration's two settings.

    With both set, both must hold. A query about no document searches all of them.
    """
    return [
        Scope(
            doc_id if doc_scope else None,
            tuple(sorted(filters)) if metadata_filters else (),
        )
        for doc_id, filters in zip(
            queries["doc_id"].to_pylist(), queries["filters"].to_pylist(), strict=True
        )
    ]


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
        """The rows that ``scope`` admits, ascending; None: every row."""
        if scope == EVERYTHING:
            return None
        if scope not in self._known:
            inside = [
                rows
                for doc_id, rows in self._rows.items()
                if scope.admits(doc_id, self._metadata[doc_id])
            ]
            self._known[scope] = np.concatenate([np.empty(0, np.int64), *inside])
        return self._known[scope]
