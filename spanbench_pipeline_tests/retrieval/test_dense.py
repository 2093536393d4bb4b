from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import tables
from spanbench_pipeline.retrieval import dense, exact, qdrant
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows
from spanbench_pipeline_tests.retrieval import builders

DOCS = ("A", "B", "C")
METADATA = {"A": {"v.1": "x", "v 1": "y"}, "B": {"v.1": "x"}, "C": {"v 1": "x"}}
SCOPES = (
    Scope(),
    Scope("B"),
    Scope(None, (("v.1", "x"),)),
    Scope(None, (("v 1", "x"),)),
    Scope("A", (("v.1", "x"),)),
    Scope("C", (("v.1", "x"),)),
    Scope(None, (), ("A", "C")),
    Scope(None, (("v.1", "x"),), ("B", "C")),
    Scope("A", (), ("B",)),
    Scope(None, (), ()),
)
# With components of -1, 0 and 1 in four dimensions, cosines can be compared exactly, as
# sign(dot) * dot**2 / |vector|**2, and many of them are tied.
VECTOR = st.tuples(*[st.integers(-1, 1)] * 4).filter(any)


def corpus(n: int) -> tuple[pa.Table, pa.Table]:
    """Documents with metadata, and n chunks dealt out to them in turn."""
    spans = [(DOCS[i % 3], i, i + 1) for i in range(n)]
    return builders.documents(dict.fromkeys(DOCS, "x" * 2000), METADATA), builders.chunks(spans)


@contextmanager
def engine(kind: str, vectors, documents, chunks):
    """An engine of each kind: ``exact``, or the location of a Qdrant."""
    if kind == "exact":
        yield exact.ExactEngine(vectors, ScopedRows(documents, chunks))
    else:
        names = {"corpus": "small", "chunker": "lines", "encoder": "unit"}
        with qdrant.open_engine(
            kind, **names, vectors=vectors, chunks=chunks, documents=documents
        ) as opened:
            yield opened


def oracle(chunk_vectors, doc_ids, query, scope: Scope, depth: int) -> list[int]:
    """Every chunk compared, in exact arithmetic."""
    scored = []
    for row, (vector, doc_id) in enumerate(zip(chunk_vectors, doc_ids, strict=True)):
        fields = METADATA[doc_id]
        inside = scope.doc_id in (None, doc_id)
        inside &= scope.routed is None or doc_id in scope.routed
        if vector is None or not inside or any(fields.get(f) != v for f, v in scope.filters):
            continue
        dot = sum(a * b for a, b in zip(vector, query, strict=True))
        squares = sum(a * a for a in vector)
        scored.append((-Fraction(dot * abs(dot), squares), row))
    return [row for _, row in sorted(scored)][:depth]


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.none() | VECTOR, min_size=1, max_size=40),
    st.lists(st.tuples(st.none() | VECTOR, st.sampled_from(SCOPES)), min_size=1, max_size=5),
    st.integers(1, 8),
)
@pytest.mark.parametrize("kind", ["exact", ":memory:"])
def test_lists_are_the_nearest_chunks_in_scope_ties_in_chunk_order(kind, rows, asked, depth):
    documents, chunks = corpus(len(rows))
    doc_ids = chunks["doc_id"].to_pylist()
    # All vectors have four dimensions, also where each of them is absent.
    vectors = builders.vectors([*rows, (1, 0, 0, 0)])
    vectors = dense.Vectors(vectors.matrix[:-1], vectors.present[:-1])
    queries = builders.vectors([*[q for q, _ in asked], (1, 0, 0, 0)])
    scopes = [scope for _, scope in asked]
    with engine(kind, vectors, documents, chunks) as opened:
        found = dense.search(opened, vectors, queries, scopes, depth)
    assert builders.as_rows(found, len(asked)) == [
        [] if query is None else oracle(rows, doc_ids, query, scope, depth)
        for query, scope in asked
    ]


@pytest.fixture(scope="module")
def crowded():
    """200 chunks of 48 dimensions, 40 distinct vectors, some of them closer than float32 sees."""
    random = np.random.default_rng(7)
    distinct = random.normal(size=(20, 48))
    distinct = np.concatenate([distinct, distinct + 1e-8 * random.normal(size=(20, 48))])
    rows = distinct[random.integers(0, 40, size=200)]
    queries = np.concatenate([random.normal(size=(8, 48)), distinct[:4]])
    return builders.vectors(rows.tolist()), builders.vectors(queries.tolist())


def test_engines_give_identical_lists_and_scores(crowded, tmp_path):
    vectors, queries = crowded
    documents, chunks = corpus(200)
    for depth in (1, 17, 30, 199, 250):
        scopes = [SCOPES[i % len(SCOPES)] for i in range(12)]
        found = []
        for kind in ("exact", ":memory:", str(tmp_path / "qdrant")):
            with engine(kind, vectors, documents, chunks) as opened:
                found.append(dense.search(opened, vectors, queries, scopes, depth))
        first, *others = found
        assert len(first.row) > 0
        for other in others:
            for name in ("query", "rank", "row", "score"):
                np.testing.assert_array_equal(getattr(first, name), getattr(other, name))


@pytest.mark.parametrize("kind", ["exact", ":memory:"])
def test_chunks_closer_than_float32_sees_are_in_their_true_order(kind):
    random = np.random.default_rng(11)
    rows = random.normal(size=384) + 1e-6 * random.normal(size=(300, 384))
    vectors, queries = builders.vectors(rows.tolist()), builders.vectors(rows[:3].tolist())
    documents, chunks = corpus(300)
    with engine(kind, vectors, documents, chunks) as opened:
        found = dense.search(opened, vectors, queries, [Scope()] * 3, 10)
    for query, ranked in enumerate(builders.as_rows(found, 3)):
        wide = vectors.matrix.astype(np.longdouble)
        cosines = wide @ wide[query] / np.sqrt((wide * wide).sum(axis=1))
        assert ranked == np.argsort(-cosines, kind="stable")[:10].tolist()


@pytest.mark.parametrize("kind", ["exact", ":memory:"])
def test_the_cut_inside_a_tie_of_many_equal_chunks(kind):
    documents, chunks = corpus(300)
    vectors = builders.vectors([(1, 2, 3)] * 299 + [(3, 2, 1)])
    with engine(kind, vectors, documents, chunks) as opened:
        found = dense.search(opened, vectors, builders.vectors([(3, 2, 1)]), [Scope()], 5)
    assert found.row.tolist() == [299, 0, 1, 2, 3]
    assert len(set(found.score[1:])) == 1


@given(st.integers(1, 400), st.integers(2, 40), st.randoms(use_true_random=False))
def test_equal_vectors_have_equal_scores_wherever_they_stand(dimensions, n, random):
    generator = np.random.default_rng(random.randrange(2**32))
    matrix = generator.normal(size=(n, dimensions)).astype(np.float32)
    matrix[random.randrange(n)] = matrix[0]
    matrix[n - 1] = matrix[0]
    query = generator.normal(size=dimensions).astype(np.float32)
    scores = dense.cosines(matrix, query)
    same = (matrix == matrix[0]).all(axis=1)
    alone = dense.cosines(matrix[:1], query)
    assert set(scores[same].tolist()) == set(alone.tolist())
    np.testing.assert_allclose(
        scores,
        [
            np.dot(m / np.linalg.norm(m), query / np.linalg.norm(query))
            for m in matrix.astype(float)
        ],
        atol=2e-7,
    )


def test_cosine_ignores_the_length_of_vectors_in_both_engines():
    documents, chunks = corpus(3)
    vectors = dense.Vectors(np.array([[9, 9], [0, 1], [5, 0]], np.float32), np.ones(3, bool))
    queries = dense.Vectors(np.array([[0, 7]], np.float32), np.ones(1, bool))
    for kind in ("exact", ":memory:"):
        with engine(kind, vectors, documents, chunks) as opened:
            found = dense.search(opened, vectors, queries, [Scope()], 2)
        assert found.row.tolist() == [1, 0]
        np.testing.assert_allclose(found.score, [1.0, 0.5**0.5], rtol=1e-15)


@pytest.mark.parametrize("kind", ["exact", ":memory:"])
@pytest.mark.parametrize("rows", [[None, None], []])
def test_no_chunk_with_a_vector_gives_empty_lists(kind, rows):
    documents, chunks = corpus(len(rows))
    vectors, queries = builders.vectors(rows), builders.vectors([(1, 0), (0, 1)])
    with engine(kind, vectors, documents, chunks) as opened:
        found = dense.search(opened, vectors, queries, [Scope(), Scope("A")], 3)
    assert len(found.row) == 0


def test_more_scores_than_a_block_holds_change_nothing(monkeypatch, crowded):
    vectors, queries = crowded
    documents, chunks = corpus(200)
    scopes = [Scope()] * 12
    whole = dense.search(
        exact.ExactEngine(vectors, ScopedRows(documents, chunks)), vectors, queries, scopes, 30
    )
    monkeypatch.setattr(exact, "BLOCK", 450)
    blocks = dense.search(
        exact.ExactEngine(vectors, ScopedRows(documents, chunks)), vectors, queries, scopes, 30
    )
    np.testing.assert_array_equal(whole.row, blocks.row)


@pytest.mark.parametrize("bad", [(0.0, 0.0), (np.nan, 1.0), (np.inf, 0.0)])
def test_a_vector_without_direction_is_refused(bad):
    matrix = np.array([(1.0, 0.0), bad], np.float32)
    with pytest.raises(ValueError, match="1 vectors are zero or not finite, the first at row 1"):
        dense.Vectors(matrix, np.array([True, True]))
    assert len(dense.Vectors(matrix, np.array([True, False])).matrix) == 2


def embeddings(vector_of):
    rows = [
        {
            "corpus": "small",
            "chunker": "lines",
            "encoder": "unit",
            "chunk_id": chunk_id,
            "vector": vector,
            "n_tokens": 3,
        }
        for chunk_id, vector in vector_of.items()
    ]
    return tables.from_rows("embeddings", rows)


def test_vectors_are_joined_by_chunk_id_not_by_position():
    chunks = builders.chunks([("A", i, i + 1) for i in range(12)])
    # As text A:lines:10 sorts before A:lines:2, so the two tables are in different orders.
    given = {f"A:lines:{i}": [float(i + 1), 1.0] for i in range(12)}
    given["A:lines:4"] = None
    found = dense.chunk_vectors(chunks, embeddings(given))
    assert np.flatnonzero(~found.present).tolist() == [4]
    assert found.matrix.dtype == np.float32
    assert found.matrix[found.present].tolist() == [[i + 1.0, 1.0] for i in range(12) if i != 4]


def test_a_chunk_without_an_embedding_or_vectors_of_two_lengths_are_refused():
    chunks = builders.chunks([("A", 0, 1), ("A", 1, 2)])
    with pytest.raises(ValueError, match="1 chunks have no embedding, the first is A:lines:1"):
        dense.chunk_vectors(chunks, embeddings({"A:lines:0": [1.0]}))
    with pytest.raises(ValueError, match=r"different lengths: \[1, 2\]"):
        dense.chunk_vectors(chunks, embeddings({"A:lines:0": [1.0], "A:lines:1": [1.0, 0.0]}))


def test_no_vectors_at_all_are_joined():
    chunks = builders.chunks([("A", 0, 1), ("A", 1, 2)])
    found = dense.chunk_vectors(chunks, embeddings({"A:lines:0": None, "A:lines:1": None}))
    assert found.present.tolist() == [False, False]
    assert len(dense.chunk_vectors(chunks.slice(0, 0), embeddings({})).present) == 0
