from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.checks.consistency import unlike_candidates
from spanbench_pipeline.checks.list_lengths import wrong_lengths
from spanbench_pipeline.core.tokenizer import Tokenizer
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
RUSSIAN = Tokenizer("unicode", "russian")


def listed(*lengths: int) -> pa.Table:
    """Only the number of rows a query counts here."""
    ids = [f"q{n:03}" for n, length in enumerate(lengths, 1) for _ in range(length)]
    return pa.table({"query_id": pa.array(ids, pa.string())})


def wrong(lengths: Sequence[int], channel: str, **named: Any) -> list[tuple[str, int, int]]:
    settings = {"vectors": ALL, "depth": 4, "doc_scope": True, "metadata_filters": True} | named
    rows = wrong_lengths(listed(*lengths), QUERIES, DOCUMENTS, CHUNKS, channel=channel, **settings)
    return [(row["query_id"], row["n_listed"], row["n_to_find"]) for row in rows]


def test_bm25_lists_hold_what_has_a_word_of_the_query_in_scope() -> None:
    # A has one chunk with "tax"; A and B have three with "tax" or "notice"; B has none with "term".
    assert wrong([1, 3, 0, 0], "bm25") == []
    assert wrong([0, 4, 1, 1], "bm25") == [
        ("q001", 0, 1),
        ("q002", 4, 3),
        ("q003", 1, 0),
        ("q004", 1, 0),
    ]
    assert wrong([1, 2, 0, 0], "bm25", depth=2) == []
    assert wrong([2, 3, 1, 0], "bm25", doc_scope=False, metadata_filters=False) == []


def test_words_are_those_of_the_tokenizer() -> None:
    documents, chunks = builders.lines({"A": ["Срок", "срока", "x"]})
    queries = builders.queries([("СРОК", "A", {})])
    settings = {"channel": "bm25", "vectors": [], "depth": 4, "doc_scope": True}
    for tokens, length in ((None, 0), (Tokenizer("unicode"), 1), (RUSSIAN, 2)):
        named = settings | {"metadata_filters": True, "tokens": tokens}
        assert wrong_lengths(listed(length), queries, documents, chunks, **named) == []
        assert wrong_lengths(listed(length + 1), queries, documents, chunks, **named)


def test_dense_lists_hold_every_chunk_with_a_vector_in_scope() -> None:
    assert wrong([3, 4, 2, 4], "dense") == []
    # Only a query without a letter or digit may have none.
    assert wrong([0, 4, 2, 0], "dense") == [("q001", 0, 3)]
    assert wrong([2, 4, 2, 3], "dense", vectors=set(ALL) - {"A:lines:2"}) == [("q004", 3, 4)]


def test_where_there_are_no_chunks_lists_are_empty() -> None:
    settings = {"vectors": [], "depth": 4, "doc_scope": True, "metadata_filters": True}
    for channel in ("dense", "bm25"):
        found = wrong_lengths(
            listed(), QUERIES, DOCUMENTS, CHUNKS.slice(0, 0), channel=channel, **settings
        )
        assert found == []


def test_routed_documents_are_all_that_is_in_scope() -> None:
    routed = pa.table({"query_id": ["q001", "q002", "q003"], "doc_id": ["B", "B", "B"]})
    # q001 is about A, which was not kept; q002 has two chunks of B with its words; q004 kept none.
    assert wrong([0, 2, 0, 0], "bm25", routed=routed) == []
    assert wrong([0, 2, 2, 0], "dense", routed=routed) == []
    assert wrong([1, 3, 0, 0], "bm25", routed=routed) == [("q001", 1, 0), ("q002", 3, 2)]


TEXT = st.text(alphabet="ab? ", max_size=5)


@settings(max_examples=60)
@given(
    lines=st.dictionaries(
        st.sampled_from("AB"), st.lists(TEXT, min_size=1, max_size=4), min_size=1
    ),
    asked=st.lists(st.tuples(TEXT, st.sampled_from(["A", "B", None])), min_size=1, max_size=3),
    depth=st.integers(1, 4),
    doc_scope=st.booleans(),
    present=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_what_retrieval_gives_is_as_long_as_it_must_be(
    lines, asked, depth, doc_scope, present
) -> None:
    documents, chunks = builders.lines(lines)
    queries = builders.queries([(t, d if d in lines else None, {}) for t, d in asked])
    n, ids = chunks.num_rows, chunks["chunk_id"].to_pylist()
    rows_in = ScopedRows(documents, chunks)
    within = scopes(queries, doc_scope=doc_scope, metadata_filters=False)
    vectors = dense.Vectors(np.ones((n, 2), np.float32), np.array(present[:n]))
    can = np.array([any(c.isalnum() for c in t) for t, _ in asked])
    directions = dense.Vectors(np.ones((len(asked), 2), np.float32), can)
    allowed = [rows_in(scope) for scope in within]
    lists = {
        "dense": dense.search(ExactEngine(vectors, rows_in), vectors, directions, within, depth),
        "bm25": bm25.retrieve(chunk_texts(documents, chunks), queries, allowed, depth)[0],
    }
    made = functools.partial(ranking.candidates, corpus="small", queries=queries, chunks=chunks)
    tables = {c: made(of, source=f"lines_{c}", channel=c) for c, of in lists.items()}
    for channel, table in tables.items():
        found = functools.partial(
            wrong_lengths,
            queries=queries,
            documents=documents,
            chunks=chunks,
            channel=channel,
            vectors={i for i, there in zip(ids, present, strict=False) if there},
            depth=depth,
            doc_scope=doc_scope,
            metadata_filters=False,
        )
        assert found(table) == []
        if table.num_rows:
            assert len(found(table.slice(1))) == 1 or channel == "dense"
        back = ranking.read_candidates(table, queries, chunks)
        for one, other in zip(vars(back).values(), vars(lists[channel]).values(), strict=True):
            assert one.tolist() == other.tolist()
    fuse = functools.partial(fusion.fuse, chunk_ids=chunks["chunk_id"], k=60, depth=depth)
    for channels in (["dense"], ["bm25"], ["dense", "bm25"]):
        ranked = ranking.rank(
            corpus="small",
            config="any",
            queries=queries,
            chunks=chunks,
            channels={c: lists[c] for c in channels},
            fuse=fuse if len(channels) == 2 else None,
        )
        given_lists = [tables[c] for c in channels]
        assert unlike_candidates(ranked, given_lists, depth) == []
        if ranked.num_rows:
            assert unlike_candidates(ranked.slice(1), given_lists, depth)


@pytest.mark.parametrize("channel", ["dense", "bm25"])
def test_no_query_is_no_list(channel: str) -> None:
    nothing = QUERIES.slice(0, 0)
    given_to = {"vectors": ALL, "depth": 3, "doc_scope": True, "metadata_filters": True}
    assert wrong_lengths(listed(), nothing, DOCUMENTS, CHUNKS, channel=channel, **given_to) == []
