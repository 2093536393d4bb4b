from __future__ import annotations

import math

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis import bm25_stats
from spanbench_pipeline.core.tokenizer import Tokenizer

REPETITIVE = ["pay pay pay party shall", "party shall pay", "party shall"]


def test_average_idf_of_each_rule() -> None:
    found = bm25_stats.read(REPETITIVE, Tokenizer())
    # pay is in two of three; party and shall are in all.
    okapi = (math.log(1.5 / 2.5) + 2 * math.log(0.5 / 3.5)) / 3
    lucene = (math.log(1 + 1.5 / 2.5) + 2 * math.log(1 + 0.5 / 3.5)) / 3
    assert found.average_idf("okapi") == pytest.approx(okapi)
    assert found.average_idf("lucene") == pytest.approx(lucene)
    assert okapi < 0 < lucene
    assert bm25_stats.read(["?"], Tokenizer()).average_idf("okapi") is None


def test_texts_and_letters_that_are_not_read() -> None:
    texts = ["výpověď x", "срок", "—"]
    found = bm25_stats.of_texts("bm25_", bm25_stats.read(texts, Tokenizer()), "okapi")
    # v, pov and x are words: of 8 and 4 letters, 3 and 4 are in none.
    assert found["bm25_texts_without_token"] == 2
    assert found["bm25_letters_outside"] == pytest.approx(7 / 12)
    read = bm25_stats.read(texts, Tokenizer("unicode"))
    assert bm25_stats.of_queries(read) == {
        "bm25_queries_without_token": 1,
        "bm25_query_letters_outside": 0,
    }
    assert bm25_stats.read([], Tokenizer()).letters_outside is None


def test_first_places_by_order_alone() -> None:
    lists = {"tied": [2.0, 2.0, 1.0], "below": [2.0, 1.0, 1.0], "one": [0.0], "zero": [0.0, 0.0]}
    lists |= {"rounding": [0.1 + 0.2, 0.3], "near": [2.0, 2.0 - 1e-9]}
    rows = [
        {"query_id": query, "rank": rank, "score": score}
        for query, scores in lists.items()
        for rank, score in enumerate(scores, 1)
    ]
    assert bm25_stats.of_lists(pa.Table.from_pylist(rows)) == {"bm25_first_by_order": 3}
    assert bm25_stats.of_lists(pa.Table.from_pylist(rows).slice(0, 0)) == {"bm25_first_by_order": 0}
