"""The dense engine in process: one matrix product over the chunks in scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spanbench_pipeline.retrieval.dense import Floats32, Vectors, margin
from spanbench_pipeline.retrieval.lists import Ints
from spanbench_pipeline.retrieval.scope import Scope

BLOCK = 2**24
"""Scores held at once: 64 MB, however many queries and chunks there are."""


class ExactEngine:
    """Proposes candidates by comparing a query with every chunk in its scope."""

    def __init__(self, vectors: Vectors, rows_in: Callable[[Scope], Ints | None]) -> None:
        self._rows = np.flatnonzero(vectors.present)
        self._unit = _unit(vectors.matrix[self._rows])
        self._present = vectors.present
        self._rows_in = rows_in

    def candidates(self, queries: Floats32, scope: Scope, depth: int) -> Iterator[Ints]:
        """See :class:`~spanbench_pipeline.retrieval.dense.Engine`."""
        rows, matrix = self._inside(scope)
        asked = _unit(queries)
        step = max(1, BLOCK // max(1, len(rows)))
        for start in range(0, len(asked), step):
            for scores in asked[start : start + step] @ matrix.T:
                yield rows[_near_the_top(scores, depth, margin(matrix.shape[1]))]

    def _inside(self, scope: Scope) -> tuple[Ints, Floats32]:
        """Return the rows in scope that have a vector, and their unit vectors."""
        rows = self._rows_in(scope)
        if rows is None:
            return self._rows, self._unit
        rows = rows[self._present[rows]]
        return rows, self._unit[np.searchsorted(self._rows, rows)]


def _near_the_top(scores: Floats32, depth: int, distance: float) -> Ints:
    """Return positions of the scores that are less than ``distance`` below the one at ``depth``."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -depth)[-depth] - distance)


def _unit(matrix: Floats32) -> Floats32:
    """Return the rows of ``matrix`` made one long."""
    unit: Floats32 = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit
