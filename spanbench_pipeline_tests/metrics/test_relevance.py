from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.joins import sorted_values
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline_tests.metrics.cases import Case, beside_another, cases, tiles

CASE = Case({"A": "x" * 20}, tiles("A", 20, 10), {"q": [("A", 0, 5)], "r": [("A", 12, 15)]}, {})


@settings(max_examples=60, deadline=None)
@given(cases())
def test_relevant_pairs_equal_the_oracle(case: Case) -> None:
    known = case.eval_set()
    relevance = scored_run(None, known.gold_spans, case.chunk_table(), known.queries)
    queries, chunks = relevance.query_ids.to_pylist(), relevance.chunk_ids.to_pylist()
    found = [
        (queries[q], chunks[c])
        for q, c in zip(relevance.pair_query, relevance.pair_chunk, strict=True)
    ]
    assert len(found) == len(set(found))
    assert set(found) == {(q, c) for q in case.gold for c in case.ids(case.asked(q).relevant)}
    assert relevance.relevant_counts.tolist() == [
        len(case.asked(q).relevant) for q in sorted(case.gold)
    ]


def test_keys_are_in_the_order_of_query_then_chunk() -> None:
    known = CASE.eval_set()
    relevance = scored_run(None, known.gold_spans, CASE.chunk_table(), known.queries)
    # Two queries, two chunks.
    keys = relevance.keys(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    assert keys.tolist() == [0, 1, 2, 3]


def test_sorted_values_of_columns_that_hold_nothing() -> None:
    # A column that was put together from no part at all has no type but the one it states.
    nothing = pa.chunked_array([], pa.string())
    assert sorted_values(nothing).to_pylist() == sorted_values(nothing, nothing).to_pylist() == []
    assert sorted_values(nothing, pa.chunked_array([["b", "a", "b"]])).to_pylist() == ["a", "b"]


def test_a_query_without_gold_is_refused() -> None:
    known = CASE.eval_set()
    with pytest.raises(InputError, match="query r: no gold span"):
        scored_run(None, known.gold_spans.slice(0, 1), CASE.chunk_table(), known.queries)


def test_gold_of_an_unknown_query_is_refused() -> None:
    known = CASE.eval_set()
    with pytest.raises(InputError, match="gold span of unknown query 'r'"):
        scored_run(None, known.gold_spans, CASE.chunk_table(), known.queries.slice(0, 1))


@pytest.mark.parametrize("which", range(3))
def test_two_corpora_at_once_are_refused(which: int) -> None:
    known = CASE.eval_set()
    given_tables = [known.gold_spans, CASE.chunk_table(), known.queries]
    given_tables[which] = beside_another(given_tables[which], "corpus")
    with pytest.raises(ValueError, match="one corpus at a time, not other, tiny"):
        scored_run(None, *given_tables)


def test_two_chunkers_at_once_are_refused() -> None:
    known = CASE.eval_set()
    both = pa.concat_tables([CASE.chunk_table("one"), CASE.chunk_table("two")])
    with pytest.raises(ValueError, match="one chunker at a time, not one, two"):
        scored_run(None, known.gold_spans, both, known.queries)
