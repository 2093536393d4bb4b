from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.measures.list_lengths import wrong_lengths
from spanbench_pipeline.retrieval import bm25, dense, fusion, ranking
from spanbench_pipeline.retrieval.exact import ExactEngine
from spanbench_pipeline.retrieval.scope import ScopedRows, scopes
from spanbench_pipeline.retrieval.texts import chunk_texts
from spanbench_pipeline_tests.retrieval import builders

# Five chunks. The first query is about A, the second about nothing, the third wants 2020, the
# fourth has no word.
DOCUMENTS, CHUNKS = builders.lines({"A": ["tax law", "term", "?"], "B": ["tax", "notice"]})
DOCUMENTS = builders.documents(
    {d["doc_id"]: d["text"] for d in DOCUMENTS.to_pylist()}, {"B": {"year": "2020"}}
)
QUERIES = builders.queries(
    [
        ("tax?", "A", {}),
        ("TAX notice", None, {}),
        ("term", None, {"year": "2020"}),
        ("?!", None, {}),
    ]
)
ALL = CHUNKS["chunk_id"].to_pylist()


def ranked(*lengths: int) -> pa.Table:
    """Only the number of rows a query counts here."""
    ids = [f"q{n:03}" for n, length in enumerate(lengths, 1) for _ in range(length)]
    return pa.table({"query_id": pa.array(ids, pa.string())})


def wrong(lengths: Sequence[int], *channels: str, **named: Any) -> list[tuple[str, int, int, int]]:
    settings = {"vectors": ALL, "depth": 4, "doc_scope": True, "metadata_filters": True} | named
    rows = wrong_lengths(
        ranked(*lengths), QUERIES, DOCUMENTS, CHUNKS, channels=channels, **settings
    )
    return [tuple(row.values()) for row in rows]


def test_bm25_lists_hold_what_has_a_word_of_the_query_in_scope() -> None:
    # A has one chunk with "tax"; A and B have three with "tax" or "notice"; B has none with "term".
    assert wrong([1, 3, 0, 0], "bm25") == []
    assert wrong([0, 4, 1, 1], "bm25") == [
        ("q001", 0, 1, 1),
        ("q002", 4, 3, 3),
        ("q003", 1, 0, 0),
        ("q004", 1, 0, 0),
    ]
    assert wrong([1, 2, 0, 0], "bm25", depth=2) == []
    assert wrong([2, 3, 1, 0], "bm25", doc_scope=False, metadata_filters=False) == []


def test_dense_lists_hold_every_chunk_with_a_vector_in_scope() -> None:
    assert wrong([3, 4, 2, 4], "dense") == []
    assert wrong([2, 4, 2, 0], "dense", vectors=set(ALL) - {"A:lines:2"}) == []
    assert wrong([3, 3, 2, 4], "dense", vectors=set(ALL) - {"A:lines:2"}) == [
        ("q001", 3, 2, 2),
        ("q002", 3, 4, 4),
    ]


def test_fused_lists_hold_the_longer_list_at_least_and_both_at_most() -> None:
    some = {"B:lines:0"}
    # In A one chunk has the word and none a vector; over both three have a word and one a vector.
    assert wrong([1, 3, 1, 0], "dense", "bm25", vectors=some) == []
    assert wrong([1, 4, 1, 1], "dense", "bm25", vectors=some) == []
    assert wrong([0, 2, 2, 2], "dense", "bm25", vectors=some) == [
        ("q001", 0, 1, 1),
        ("q002", 2, 3, 4),
        ("q003", 2, 1, 1),
        ("q004", 2, 0, 1),
    ]


def test_routed_documents_are_all_that_is_in_scope() -> None:
    routed = pa.table({"query_id": ["q001", "q002", "q003"], "doc_id": ["B", "B", "B"]})
    # q001 is about A, which was not kept; q002 has two chunks of B with its words; q004 kept none.
    assert wrong([0, 2, 0, 0], "bm25", routed=routed) == []
    assert wrong([0, 2, 2, 0], "dense", routed=routed) == []
    assert wrong([1, 3, 0, 0], "bm25", routed=routed) == [("q001", 1, 0, 0), ("q002", 3, 2, 2)]


TEXT = st.text(alphabet="ab? ", max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.dictionaries(
        st.sampled_from("AB"), st.lists(TEXT, min_size=1, max_size=4), min_size=1
    ),
    asked=st.lists(st.tuples(TEXT, st.sampled_from(["A", "B", None])), min_size=1, max_size=3),
    depth=st.integers(1, 4),
    doc_scope=st.booleans(),
    present=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_what_retrieval_gives_has_the_right_length(lines, asked, depth, doc_scope, present) -> None:
    documents, chunks = builders.lines(lines)
    queries = builders.queries([(t, d if d in lines else None, {}) for t, d in asked])
    texts, n = chunk_texts(documents, chunks), chunks.num_rows
    rows_in = ScopedRows(documents, chunks)
    within = scopes(queries, doc_scope=doc_scope, metadata_filters=False)
    vectors = dense.Vectors(np.ones((n, 2), np.float32), np.array(present[:n]))
    can = np.array([any(c.isalnum() for c in t) for t, _ in asked])
    directions = dense.Vectors(np.ones((len(asked), 2), np.float32), can)
    allowed = [rows_in(scope) for scope in within]
    lists = {
        "dense": dense.search(ExactEngine(vectors, rows_in), vectors, directions, within, depth),
        "bm25": bm25.retrieve(texts, queries, allowed, depth)[0],
    }
    fuse = functools.partial(fusion.fuse, chunk_ids=chunks["chunk_id"], k=60, depth=depth)
    ids = chunks["chunk_id"].to_pylist()
    for channels in (["dense"], ["bm25"], ["dense", "bm25"]):
        table = ranking.rank(
            corpus="small",
            config="any",
            queries=queries,
            chunks=chunks,
            channels={c: lists[c] for c in channels},
            fuse=fuse if len(channels) == 2 else None,
        )
        found = functools.partial(
            wrong_lengths,
            queries=queries,
            documents=documents,
            chunks=chunks,
            channels=channels,
            vectors={i for i, there in zip(ids, present, strict=False) if there},
            depth=depth,
            doc_scope=doc_scope,
            metadata_filters=False,
        )
        assert found(table) == []
        if table.num_rows and len(channels) == 1:
            assert len(found(table.slice(1))) == 1


@pytest.mark.parametrize("channels", [["dense"], ["bm25"]])
def test_no_query_is_no_list(channels: list[str]) -> None:
    nothing = QUERIES.slice(0, 0)
    assert (
        wrong_lengths(
            ranked(),
            nothing,
            DOCUMENTS,
            CHUNKS,
            channels=channels,
            vectors=ALL,
            depth=3,
            doc_scope=True,
            metadata_filters=True,
        )
        == []
    )
