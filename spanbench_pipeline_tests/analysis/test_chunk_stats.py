from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline import chunkers
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.config.experiment import ChunkerSettings
from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.chunkers.published import published_eval_set
from spanbench_pipeline_tests.metrics.cases import (
    CHUNKER,
    CORPUS,
    Case,
    beside_another,
    cases,
    tiles,
)
from spanbench_pipeline_tests.metrics.measure import chunk_stats


def stats_of(case: Case, **encoded: object) -> dict[str, float | None]:
    _, gold, chunks, queries = case.tables()
    table = chunk_stats(chunks, gold, queries, corpus=CORPUS, chunker=CHUNKER, **encoded)
    return {row["stat"]: row["value"] for row in table.to_pylist()}


@settings(max_examples=80, deadline=None)
@given(cases())
def test_statistics_equal_the_oracle(case: Case) -> None:
    assert stats_of(case) == pytest.approx(
        oracle.chunk_stats([case.asked(query) for query in case.gold], context=5)
    )


def test_statistics_by_hand() -> None:
    # Gold [2,8) is whole in 'a' and in 'w', [12,18) in 'w', [52,53) in 'c'; [25,35) lies half in
    # 'w' and half in 'b'.
    case = Case(
        texts={"A": "x" * 60},
        chunks={
            "a": ("A", 0, 10),
            "w": ("A", 0, 30),
            "b": ("A", 30, 50),
            "c": ("A", 50, 60),
        },
        gold={"q1": [("A", 2, 8)], "q2": [("A", 12, 18), ("A", 25, 35)], "q3": [("A", 52, 53)]},
        rankings={},
    )
    assert stats_of(case) == {
        "n_chunks": 4,
        "median_chars": 20,  # of 10, 10, 20, 30 the larger middle
        "spans_in_one_chunk": 2 / 4,  # [12,18) in w, [52,53) in c
        "spans_contained": 3 / 4,  # all but [25,35)
        "relevant_per_query": (2 + 2 + 1) / 3,
        "precision_ceiling": (2 + 2 + 1) / 15,
        "truncated_share": None,
    }


def test_the_ceiling_counts_at_most_five() -> None:
    case = Case({"A": "x" * 80}, tiles("A", 80, 10), {"q": [("A", 0, 75)]}, {})
    assert stats_of(case)["relevant_per_query"] == 8
    assert stats_of(case)["precision_ceiling"] == 1


def embeddings(n_tokens: list[int]) -> pa.Table:
    return tables.from_rows(
        "embeddings",
        [
            {
                "corpus": CORPUS,
                "chunker": CHUNKER,
                "encoder": "e",
                "chunk_id": f"A{i}",
                "vector": [1.0],
                "n_tokens": n,
            }
            for i, n in enumerate(n_tokens)
        ],
    )


def test_truncated_means_more_word_pieces_than_the_encoder_reads() -> None:
    # 300 filler words before the gold text are more than 256 word pieces whatever the words.
    case = Case({"A": "x" * 40}, tiles("A", 40, 10), {"q": [("A", 0, 5)]}, {})
    encoded = embeddings([2, 256, 257, 306])
    assert stats_of(case, embeddings=encoded, max_length=256)["truncated_share"] == 0.5
    assert stats_of(case, embeddings=encoded, max_length=512)["truncated_share"] == 0
    assert stats_of(case, embeddings=encoded)["truncated_share"] is None
    # A share of no chunk is none.
    assert stats_of(case, embeddings=embeddings([]), max_length=256)["truncated_share"] is None


@pytest.mark.parametrize("column", ["corpus", "chunker", "encoder"])
def test_embeddings_of_two_at_once_are_refused(column: str) -> None:
    case = Case({"A": "x" * 10}, tiles("A", 10, 10), {"q": [("A", 0, 5)]}, {})
    both = beside_another(embeddings([3]), column)
    with pytest.raises(ValueError, match=f"one {column} at a time, not .*other"):
        stats_of(case, embeddings=both, max_length=256)


PUBLISHED = {
    "naive": (1103, 1000, 0.430, 0.719, 2.70, 0.504),
    "clause": (972, 797, 0.991, 0.991, 1.58, 0.312),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_statistics(shared: Path, name: str) -> None:
    known = published_eval_set(shared)
    chunker = chunkers.load(ChunkerSettings(name, name), "cuad.toml")
    chunks = chunkers.chunk_documents("cuad", known.documents, chunker)
    table = chunk_stats(chunks, known.gold_spans, known.queries, corpus="cuad", chunker=name)
    found = {row["stat"]: row["value"] for row in table.to_pylist()}
    stats = ("n_chunks", "median_chars", "spans_in_one_chunk", "spans_contained")
    stats += ("relevant_per_query", "precision_ceiling")
    assert [round(found[stat], 3) for stat in stats] == list(PUBLISHED[name])
