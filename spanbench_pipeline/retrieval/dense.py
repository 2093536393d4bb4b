"""Dense retrieval: cosine similarity of unit vectors, exact, ties by chunk order.

An engine (``exact``, ``qdrant``) only proposes candidates: every chunk that float32 arithmetic
cannot rule out of a list. The scores and the order are made here, once, for all engines, which is
why their lists are identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists, best, collect
from spanbench_pipeline.retrieval.scope import Scope

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Vectors:
    """One vector a text: ``matrix`` of shape (n, d), float32, and ``present`` of shape (n,).

    ``present`` is False for a text without a word piece: it is in no list (a chunk) or has an
    empty one (a query), and its row of the matrix means nothing. Raises ValueError for a present
    vector that has no direction: zero, or not finite.
    """

    matrix: Floats32
    present: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        length = np.linalg.norm(self.matrix, axis=1)
        bad = np.flatnonzero(self.present & ~(np.isfinite(length) & (length > 0)))
        if len(bad):
            raise ValueError(
                f"{len(bad)} vectors are zero or not finite, the first at row {bad[0]}"
            )


class Engine(Protocol):
    """What proposes the chunks of dense lists; asked only where some chunk has a vector."""

    def candidates(self, queries: Floats32, scope: Scope, depth: int) -> Iterator[Ints]:
        """Yield, for each query of shape (m, d), the rows inside ``scope`` that may be in its list.

        In no order, and more than ``depth`` of them until the engine's own score has fallen by
        more than :func:`margin` below its score at the depth, or until there are no more.
        """


def margin(dimensions: int) -> float:
    """Return how far two float32 cosines of d dimensions may be apart that are equal in truth.

    Rounding moves a sum of d products of unit vectors by at most d units of 2**-24, and making two
    vectors unit by about as much again; both of the scores compared may be off by all of that.
    """
    return (4 * dimensions + 32) * 2.0**-24


def chunk_vectors(chunks: pa.Table, embeddings: pa.Table) -> Vectors:
    """Return the vectors of a ``chunks`` table's rows, in their order, from an ``embeddings``
    table.

    Joined by chunk_id. Raises ValueError naming a chunk without a row, or vectors of two lengths.
    """
    at = pc.index_in(chunks["chunk_id"], embeddings["chunk_id"].combine_chunks()).combine_chunks()
    if at.null_count:
        missing = chunks["chunk_id"].filter(pc.is_null(at))[0].as_py()
        raise ValueError(f"{at.null_count} chunks have no embedding, the first is {missing}")
    vectors = embeddings["vector"].combine_chunks().take(at)
    lengths = pc.unique(pc.list_value_length(vectors.drop_null())).to_pylist()
    if len(lengths) > 1:
        raise ValueError(f"vectors of different lengths: {sorted(lengths)}")
    present = np.asarray(vectors.is_valid())
    matrix = np.zeros((len(vectors), *(lengths or [0])), np.float32)
    if lengths:
        matrix[present] = np.asarray(vectors.flatten()).reshape(-1, lengths[0])
    return Vectors(matrix, present)


def search(
    engine: Engine, vectors: Vectors, queries: Vectors, scopes: Sequence[Scope], depth: int
) -> Lists:
    """Return the dense list of each query: its ``depth`` nearest chunks inside its scope.

    ``engine`` must have been made of ``vectors``; ``queries`` and ``scopes`` are in the order of
    the queries table.
    """
    if not vectors.present.any():
        return collect([])
    members: dict[Scope, list[int]] = {}
    for query, scope in enumerate(scopes):
        if queries.present[query]:
            members.setdefault(scope, []).append(query)
    found: list[tuple[int, Ints, Floats]] = []
    for scope, group in members.items():
        proposed = engine.candidates(queries.matrix[group], scope, depth)
        for query, rows in zip(group, proposed, strict=True):
            scores = cosines(vectors.matrix[rows], queries.matrix[query])
            found.append((query, *best(rows, scores, depth)))
    return collect(found)


def cosines(matrix: Floats32, vector: Floats32) -> Floats:
    """Return the cosine of each row of ``matrix``, shape (n, d), with ``vector``, shape (d,).

    In float64 and row by row: equal rows have equal scores to the last bit, whatever stands
    beside them, which a matrix product does not promise.
    """
    rows, query = matrix.astype(np.float64), vector.astype(np.float64)
    squares: Floats = (rows * rows).sum(axis=1) * (query * query).sum()
    scores: Floats = (rows * query).sum(axis=1) / np.sqrt(squares)
    return scores
