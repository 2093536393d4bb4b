from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.retrieval import dense, routing
from spanbench_pipeline_tests.retrieval import builders

CARDS = ["lease of a house", "loan", "supply of goods"]
IDS = ["lease", "loan", "supply"]
VECTORS = [(1, 0), (0, 1), (1, 1)]


def route(queries, vectors, *, alpha=0.3, keep=3, cards=CARDS, card_vectors=VECTORS, ids=IDS):
    found = routing.route(
        cards,
        builders.vectors(card_vectors),
        queries,
        builders.vectors(vectors),
        doc_ids=ids,
        alpha=alpha,
        keep=keep,
    )
    return [
        [
            (ids[row], pytest.approx(score, abs=1e-12))
            for q, row, score in zip(found.query, found.row, found.score, strict=True)
            if q == query
        ]
        for query in range(len(queries))
    ]


def test_by_hand():
    # Cosines with (0, 1): lease 0, loan 1, supply 1/sqrt(2). Only the card of lease holds "house":
    # one BM25 candidate, 0.5. So loan 0.7, supply 0.7/sqrt(2) = 0.495, lease 0.3 * 0.5 = 0.15.
    assert route(["house?"], [(0, 1)]) == [
        [("loan", 0.7), ("supply", 0.7 / 2**0.5), ("lease", 0.15)]
    ]
    assert route(["house?"], [(0, 1)], keep=1) == [[("loan", 0.7)]]
    # BM25 alone: the two without a token have 0, by their place in the dense list.
    assert route(["house?"], [(0, 1)], alpha=1) == [[("lease", 0.5), ("loan", 0), ("supply", 0)]]


def test_a_query_without_word_pieces_keeps_what_bm25_finds_and_one_without_words_nothing():
    assert route(["loan", "?"], [None, None]) == [[("loan", 0.15)], []]


def test_a_card_without_a_vector_is_no_dense_candidate():
    found = route(["house"], [(0, 1)], card_vectors=[(1, 0), None, (1, 1)])
    # Of two candidates the nearer has 1, the other 0.
    assert found == [[("supply", 0.7), ("lease", 0.15)]]


def test_nothing_to_route():
    assert route([], []) == []


WORDS = st.lists(st.sampled_from("abcd"), max_size=4).map(" ".join)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(WORDS, st.integers(0, 3)), min_size=1, max_size=6),
    st.lists(WORDS, min_size=1, max_size=3),
    st.integers(1, 6),
)
def test_blocks_and_orders_change_nothing(documents, queries, keep):
    # Far more queries than a block holds give each its own answer.
    ids = [f"d{n}" for n in range(len(documents))]
    cards = [text for text, _ in documents]
    near = [(1.0, float(n)) for _, n in documents]
    one = [
        route([q], [(1, 1)], cards=cards, card_vectors=near, ids=ids, keep=keep) for q in queries
    ]
    together = queries * (routing.BLOCK // len(queries) + 1)
    all_at_once = route(
        together, [(1, 1)] * len(together), cards=cards, card_vectors=near, ids=ids, keep=keep
    )
    assert all_at_once[-len(queries) :] == [found for (found,) in one]
    assert all(len(found) == min(keep, len(ids)) for found in all_at_once)


def test_exact_ties_are_by_rank_and_id():
    # Two equal cards: one score in both channels; the id decides, not the place.
    found = route(["x"], [(1, 0)], cards=["x", "x"], card_vectors=[(1, 0)] * 2, ids=["b", "a"])
    assert found == [[("b", Fraction(1, 2)), ("a", Fraction(1, 2))]]


def test_the_table():
    queries = builders.queries([("loan", None, {}), ("?", None, {})])
    found = routing.route(
        CARDS,
        builders.vectors(VECTORS),
        queries["query"].to_pylist(),
        builders.vectors([(0, 1), None]),
        doc_ids=IDS,
        alpha=0.5,
        keep=2,
    )
    table = routing.routed_documents(found, queries, IDS, corpus="small", config="r")
    rows = [(r["query_id"], r["rank"], r["doc_id"]) for r in table.to_pylist()]
    assert rows == [("q001", 1, "loan"), ("q001", 2, "supply")]
    assert table["score"][0].as_py() == 0.75


def test_cards_are_matched_as_the_settings_say():
    # By okapi a word of both of two cards weighs less than nothing, and no Cyrillic is read.
    cards = ["срок договора", "срок срок срок"]
    settings = {"bm25": "lucene", "tokenizer": "unicode"}
    near = dense.Vectors(np.ones((2, 2), np.float32), np.ones(2, bool))
    asked = dense.Vectors(np.ones((1, 2), np.float32), np.ones(1, bool))
    found = [
        routing.route(cards, near, ["срок"], asked, doc_ids=["a", "b"], alpha=1, keep=1, **given)
        for given in ({}, settings)
    ]
    assert [lists.row.tolist() for lists in found] == [[0], [1]]
