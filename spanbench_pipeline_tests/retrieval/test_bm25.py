from __future__ import annotations

import itertools
import random

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from spanbench_pipeline.analysis import bm25_stats
from spanbench_pipeline.config.experiment import BM25_RULES
from spanbench_pipeline.core import tokenizer as words
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.retrieval import bm25
from spanbench_pipeline_tests.retrieval import builders

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d1", "of", "the"]), max_size=8)
CORPORA = st.lists(WORDS, min_size=1, max_size=12).filter(any)


def oracle(corpus, query, allowed, depth):
    """The list that BM25Okapi's scores give, over plain lists of tokens."""
    scores = BM25Okapi(corpus).get_scores(query)
    holding = [i for i in allowed if set(query) & set(corpus[i])]
    return sorted(holding, key=lambda i: (-scores[i], i))[:depth]


@given(CORPORA, st.lists(WORDS, min_size=1, max_size=4), st.integers(1, 6), st.data())
def test_scores_and_ranks_are_those_of_rank_bm25(corpus, asked, depth, data):
    index = bm25.build(" ".join(words) for words in corpus)
    everything = range(len(corpus))
    allowed = [data.draw(st.none() | st.sets(st.sampled_from(everything))) for _ in asked]
    for query in asked:
        np.testing.assert_array_equal(index.scores(query), BM25Okapi(corpus).get_scores(query))
    found = bm25.search(
        index,
        [" ".join(query) for query in asked],
        [None if rows is None else np.array(sorted(rows), np.int64) for rows in allowed],
        depth,
    )
    assert builders.as_rows(found, len(asked)) == [
        oracle(corpus, query, everything if rows is None else rows, depth)
        for query, rows in zip(asked, allowed, strict=True)
    ]


def test_scores_of_a_corpus_of_some_size_are_equal_to_the_last_bit():
    generator = random.Random(5)
    vocabulary = [f"w{i}" for i in range(400)]
    weights = [1 / (i + 1) for i in range(400)]
    corpus = [
        generator.choices(vocabulary, weights, k=generator.randint(0, 60)) for _ in range(500)
    ]
    index, okapi = bm25.build(map(" ".join, corpus)), BM25Okapi(corpus)
    for _ in range(30):
        query = generator.choices(vocabulary, weights, k=generator.randint(1, 25))
        np.testing.assert_array_equal(index.scores(query), okapi.get_scores(query))


def test_a_token_in_most_chunks_takes_a_quarter_of_the_average_idf():
    # n=3: idf(the) = ln(0.5) - ln(3.5) < 0; the others, in one chunk each, ln(2.5) - ln(1.5).
    index = bm25.build(["the cat", "the dog", "the owl"])
    rare = np.log(2.5) - np.log(1.5)
    average = (np.log(0.5) - np.log(3.5) + 3 * rare) / 4
    # Every chunk has the average length, so a token counts 2.5 / (1 + 1.5) = 1.
    np.testing.assert_allclose(index.scores(["the"]), [0.25 * average] * 3, rtol=1e-12)
    np.testing.assert_allclose(index.scores(["owl"]), [0, 0, rare], rtol=1e-12)


def test_a_chunk_with_a_token_is_in_the_list_at_a_score_of_zero_or_below():
    # x is in one chunk of two: idf = ln(1.5) - ln(1.5) = 0.
    assert bm25.search(bm25.build(["x y", "z"]), ["x"], [None], 5).score.tolist() == [0.0]
    # One chunk: every idf is negative, so is their average, and so are scores.
    found = bm25.search(bm25.build(["x y"]), ["x"], [None], 5)
    assert found.row.tolist() == [0]
    assert found.score[0] < 0


def test_a_token_given_twice_counts_twice():
    index = bm25.build(["x a", "y b", "z c"])
    np.testing.assert_array_equal(index.scores(["x", "x"]), 2 * index.scores(["x"]))


def test_statistics_are_of_the_whole_corpus_even_when_the_search_is_scoped():
    index = bm25.build(["tax", "tax law", "owl law", "owl"])
    all_scores = index.scores(["tax", "law"])
    found = bm25.search(index, ["tax law"], [np.array([1, 2])], 5)
    assert found.row.tolist() == [1, 2]
    assert found.score.tolist() == all_scores[[1, 2]].tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Section 9.1(b): TAX-Law", ["section", "9", "1", "b", "tax", "law"]),
        ("caf\u00e9 na\u00efve", ["caf", "na", "ve"]),
        ("under_score", ["under", "score"]),
        ("5\u212a \u0130stanbul", ["5k", "i", "stanbul"]),  # Kelvin sign, dotted capital I
        ("\u201c\u2014\u201d \u6cd5", []),
        ("", []),
    ],
)
def test_tokens_are_runs_of_ascii_letters_and_digits_of_the_lowered_text(text, expected):
    assert bm25.tokens(text) == expected


def test_a_query_without_tokens_has_an_empty_list_and_is_named():
    queries = builders.queries([("tax", None, {}), ("\u6cd5 ?", None, {}), ("unheard", None, {})])
    found, warnings = bm25.retrieve(["tax", "law"], queries, [None] * 3, 5)
    assert warnings == ["query q002 has no BM25 token: its BM25 list is empty"]
    assert builders.as_rows(found, 3) == [[0], [], []]


@pytest.mark.parametrize("texts", [[], ["", "..."]])
def test_a_corpus_without_tokens_gives_empty_lists(texts):
    index = bm25.build(texts)
    assert index.scores(["tax"]).tolist() == [0.0] * len(texts)
    assert len(bm25.search(index, ["tax", ""], [None, None], 5).row) == 0


def test_ties_and_the_cut_are_in_chunk_order():
    index = bm25.build(["law"] * 6 + ["tax law", "owl", "owl", "owl", "owl", "owl", "owl", "owl"])
    assert bm25.search(index, ["law"], [None], 4).row.tolist() == [0, 1, 2, 3]
    scoped = bm25.search(index, ["law"], [np.array([3, 4, 5, 6])], 2)
    assert scoped.row.tolist() == [3, 4]


REPETITIVE = ["pay pay pay party shall", "party shall pay", "party shall"]


def test_on_few_chunks_okapi_ranks_backwards_and_lucene_does_not():
    # Each word is in two chunks of three or in all: every idf is negative, and so is the average.
    okapi = bm25.search(bm25.build(REPETITIVE), ["pay"], [None], 5)
    assert okapi.row.tolist() == [1, 0]
    lucene = bm25.search(bm25.build(REPETITIVE, "lucene"), ["pay"], [None], 5)
    assert lucene.row.tolist() == [0, 1]
    # idf(pay) = ln(1 + 1.5 / 2.5); lengths 5, 3 and 2, on average 10 / 3.
    norm = [1.5 * (0.25 + 0.75 * n / (10 / 3)) for n in (5, 3)]
    expected = [np.log(1.6) * 3 / (3 + norm[0]), np.log(1.6) * 1 / (1 + norm[1])]
    np.testing.assert_allclose(lucene.score, expected, rtol=1e-12, atol=1e-12)
    two = ["the buyer shall pay", "the seller may pay"]
    assert (bm25.build(two).scores(["shall", "pay"]) <= 0).all()
    assert (bm25.build(two, "lucene").scores(["pay"]) > 0).all()


@given(CORPORA, st.lists(WORDS, min_size=1, max_size=4))
def test_lucene_is_what_bm25s_calls_lucene(corpus, asked):
    theirs = bm25s.BM25(method="lucene", dtype="float64")
    theirs.index(corpus, show_progress=False)
    ours = bm25.build(map(" ".join, corpus), "lucene")
    known = {word for chunk in corpus for word in chunk}
    for query in asked:
        held = [word for word in query if word in known]
        expected = theirs.get_scores(held) if held else np.zeros(len(corpus))
        np.testing.assert_allclose(ours.scores(query), expected, rtol=1e-12, atol=1e-12)


def test_every_rule_that_can_be_named_is_there():
    assert [*bm25.RULES] == [*BM25_RULES]
    assert [*bm25_stats.IDF] == [*BM25_RULES]


def test_queries_are_read_as_the_chunks_are():
    texts = ["Срок действия договора составляет три года.", "Výpovědní lhůta činí tři měsíce."]
    queries = builders.queries([("срок?", None, {}), ("LHŮTY", None, {}), ("?", None, {})])
    found, warnings = bm25.retrieve(
        texts, queries, [None] * 3, 5, bm25="lucene", tokenizer="unicode", stemming="czech"
    )
    assert builders.as_rows(found, 3) == [[0], [1], []]
    assert [warning.split()[1] for warning in warnings] == ["q003"]
    # As published: no Russian word at all, and of the Czech one its pieces, of which lh is in both.
    assert builders.as_rows(bm25.retrieve(texts, queries, [None] * 3, 5)[0], 3) == [[], [1], []]


def test_what_cannot_be_segmented_is_not_measured(monkeypatch):
    monkeypatch.setattr(words, "_breaker", lambda: None)
    queries = builders.queries([("期限", None, {})])
    with pytest.raises(NotMeasured, match="cjk"):
        bm25.retrieve(["term"], queries, [None], 5, tokenizer="unicode")
    assert bm25.retrieve(["term"], queries, [None], 5)[1]


def test_equal_sums_are_equal_in_lucene_whatever_the_order_of_the_words():
    # Of equal length, with the same three frequencies: what the words add is equal, in another
    # order.
    one, two = "lease term term rent rent rent rent", "lease lease term term term term rent"
    index = bm25.build([one, two, *["other words stand here"] * 3], "lucene")
    for query in itertools.permutations(["lease", "term", "rent"]):
        scores = index.scores(query)
        assert scores[0] == scores[1]
        assert bm25.search(index, [" ".join(query)], [None], 5).row.tolist() == [0, 1]


@pytest.mark.parametrize("fillers", range(20))
def test_sums_of_other_addends_that_are_equal_are_a_tie_in_lucene(fillers):
    # All are of average length: a word counts 1 / 2.5 once, 6 / 7.5 six times. x and y weigh alike.
    texts = ["x y f f f f", "x x x x x x", "y f f f f f", *["f f f f f f"] * fillers]
    found = bm25.search(bm25.build(texts, "lucene"), ["x y"], [None], 5)
    assert found.row.tolist() == [0, 1, 2]
    assert found.score[0] == found.score[1] > found.score[2]


@given(CORPORA, WORDS, st.randoms())
def test_a_lucene_score_is_of_the_words_and_not_of_their_order(corpus, asked, generator):
    index, query = bm25.build(map(" ".join, corpus), "lucene"), [*asked]
    before = index.scores(query)
    generator.shuffle(query)
    np.testing.assert_array_equal(index.scores(query), before)
