from __future__ import annotations

import functools
import random

import numpy as np
import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.retrieval import bm25, dense, fusion, ranking
from spanbench_pipeline.retrieval.exact import ExactEngine
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows
from spanbench_pipeline.retrieval.texts import chunk_texts
from spanbench_pipeline_tests.retrieval import builders

TEXT = {"A": ["Tax", "Term", "Survival"], "B": ["Tax law", "Notice"]}
DOCUMENTS, CHUNKS = builders.lines(TEXT)
TEXTS = chunk_texts(DOCUMENTS, CHUNKS)
QUERIES = builders.queries([("tax", "A", {}), ("nothing", None, {}), ("law", "B", {})])
FUSE = functools.partial(fusion.fuse, chunk_ids=CHUNKS["chunk_id"], k=60, depth=3)
NAMES = {"corpus": "small", "config": "clause + hybrid", "queries": QUERIES, "chunks": CHUNKS}


def brief(table, *columns):
    return list(zip(*[table[c].to_pylist() for c in columns], strict=True))


def test_chunk_texts_are_cut_from_their_documents():
    assert TEXTS == ["Tax", "Term", "Survival", "Tax law", "Notice"]


def test_one_channel_is_the_ranking():
    table = ranking.rank(**NAMES, channels={"bm25": builders.lists([3, 0], [], [3])})
    assert table.schema.equals(tables.TABLES["rankings"].schema, check_metadata=False)
    assert set(table["config"].to_pylist()) == {"clause + hybrid"}
    columns = ("query_id", "rank", "chunk_id", "doc_id", "start_char", "end_char", "bm25_rank")
    assert brief(table, *columns) == [
        ("q001", 1, "B:lines:0", "B", 0, 7, 1),
        ("q001", 2, "A:lines:0", "A", 0, 3, 2),
        ("q003", 1, "B:lines:0", "B", 0, 7, 1),
    ]
    assert table["score"].to_pylist() == [0.0, -1.0, 0.0]
    assert table["dense_rank"].null_count == table["fused_rank"].null_count == 3


def test_two_channels_keep_the_rank_each_gave():
    found = ranking.rank(
        **NAMES,
        channels={"dense": builders.lists([0, 1, 2], [4]), "bm25": builders.lists([3, 0])},
        fuse=FUSE,
    )
    columns = ("query_id", "rank", "chunk_id", "dense_rank", "bm25_rank", "fused_rank")
    assert brief(found, *columns) == [
        ("q001", 1, "A:lines:0", 1, 2, 1),
        ("q001", 2, "B:lines:0", None, 1, 2),
        ("q001", 3, "A:lines:1", 2, None, 3),
        ("q002", 1, "B:lines:1", 1, None, 1),
    ]
    assert found["score"].to_pylist()[:2] == [pytest.approx(1 / 61 + 1 / 62), pytest.approx(1 / 61)]


def test_a_reranker_reorders_the_whole_list_and_ties_keep_their_order():
    asked = []

    def by_length(query, rows):
        asked.append((query, rows.tolist()))
        return [float(len(TEXTS[row])) for row in rows]

    found = ranking.rank(
        **NAMES,
        channels={
            "dense": builders.lists([0, 1, 4], [], [3, 2]),
            "bm25": builders.lists([3, 0]),
        },
        fuse=FUSE,
        rerank=by_length,
    )
    assert [query for query, _ in asked] == [0, 2]
    assert [[TEXTS[row] for row in rows] for _, rows in asked] == [
        ["Tax", "Tax law", "Term"],
        ["Tax law", "Survival"],
    ]
    assert brief(found, "query_id", "rank", "chunk_id", "score", "fused_rank") == [
        ("q001", 1, "B:lines:0", 7.0, 2),
        ("q001", 2, "A:lines:1", 4.0, 3),
        ("q001", 3, "A:lines:0", 3.0, 1),
        ("q003", 1, "A:lines:2", 8.0, 2),
        ("q003", 2, "B:lines:0", 7.0, 1),
    ]
    level = ranking.rank(
        **NAMES,
        channels={"dense": builders.lists([4, 0, 3, 1])},
        rerank=lambda _, rows: np.zeros(len(rows), np.float32),
    )
    assert level["chunk_id"].to_pylist() == ["B:lines:1", "A:lines:0", "B:lines:0", "A:lines:1"]
    assert level["dense_rank"].to_pylist() == [1, 2, 3, 4]
    assert level["fused_rank"].null_count == 4


def test_reranker_ties_keep_their_order_in_a_long_list():
    order = random.Random(3).sample(range(60), 60)
    found = ranking.reordered(
        builders.lists(order),
        lambda _, rows: rows % 2,
    )
    assert found.row.tolist() == [r for r in order if r % 2] + [r for r in order if r % 2 == 0]


@pytest.mark.parametrize("scores", [[1.0], [1.0, np.nan], [[1.0], [2.0]]])
def test_a_reranker_without_one_finite_score_a_text_is_an_error(scores):
    with pytest.raises(ValueError, match="no finite score a chunk for query row 0"):
        ranking.rank(**NAMES, channels={"dense": builders.lists([0, 1])}, rerank=lambda *_: scores)


def test_channels_and_fusion_must_fit():
    one = builders.lists([0])
    for channels, fuse in (
        ({}, None),
        ({"dense": one, "bm25": one}, None),
        ({"dense": one}, FUSE),
        ({"dense": one, "bm25": one, "own": one}, FUSE),
    ):
        with pytest.raises(ValueError, match=r"one channel, or two and a fusion"):
            ranking.rank(**NAMES, channels=channels, fuse=fuse)


def test_a_channel_without_a_column_of_its_own_is_ranked_and_fused_alike():
    alone = ranking.rank(**NAMES, channels={"own": builders.lists([3, 0])})
    assert brief(alone, "query_id", "rank", "chunk_id", "dense_rank", "bm25_rank") == [
        ("q001", 1, "B:lines:0", None, None),
        ("q001", 2, "A:lines:0", None, None),
    ]
    lists = {"dense": builders.lists([0, 1]), "own": builders.lists([1, 3])}
    fused = ranking.rank(**NAMES, channels=lists, fuse=FUSE)
    assert brief(fused, "chunk_id", "dense_rank", "bm25_rank", "fused_rank") == [
        ("A:lines:1", 2, None, 1),
        ("A:lines:0", 1, None, 2),
        ("B:lines:0", None, None, 3),
    ]


def test_every_list_empty_is_an_empty_table():
    found = ranking.rank(
        **NAMES, channels={"dense": builders.lists([]), "bm25": builders.lists([])}, fuse=FUSE
    )
    assert found.equals(tables.empty("rankings"))


def test_six_identical_chunks_are_ranked_alike_whatever_order_they_came_in():
    spans = [("A", i, i + 1) for i in range(3)] + [("B", i, i + 1) for i in range(3)]
    documents = builders.documents({"A": "xxx", "B": "xxx"})
    in_order = builders.chunks(spans)
    queries = builders.queries([("x", None, {})])
    vectors, asked = builders.vectors([(3, 1, 2)] * 6), builders.vectors([(1, 1, 1)])
    expected = [f"{d}:lines:{n}" for d in "AB" for n in range(3)]
    for seed in range(5):
        order = random.Random(seed).sample(range(6), 6)
        chunks = tables.conform("chunks", in_order.take(pa.array(order)))
        engine = ExactEngine(vectors, ScopedRows(documents, chunks))
        nearest = dense.search(engine, vectors, asked, [Scope()], 4)
        index = bm25.build(chunk_texts(documents, chunks))
        matching = bm25.search(index, ["x"], [None], 4)
        fuse = functools.partial(fusion.fuse, chunk_ids=chunks["chunk_id"], k=60, depth=4)
        for channels, fused in (
            ({"dense": nearest}, None),
            ({"bm25": matching}, None),
            ({"dense": nearest, "bm25": matching}, fuse),
        ):
            found = ranking.rank(
                corpus="small",
                config="any",
                queries=queries,
                chunks=chunks,
                channels=channels,
                fuse=fused,
            )
            assert found["chunk_id"].to_pylist() == expected[:4]
