from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.retrieval import lists
from spanbench_pipeline_tests.retrieval import builders

SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.25, 2.0]), max_size=30)


@given(SCORES, st.integers(1, 10), st.randoms(use_true_random=False))
def test_best_is_by_score_then_chunk_order_whatever_the_order_given(scores, depth, random):
    rows = list(range(100, 100 + len(scores)))
    expected = sorted(zip(rows, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:depth]
    shuffled = list(zip(rows, scores, strict=True))
    random.shuffle(shuffled)
    found_rows, found_scores = lists.best(
        np.array([r for r, _ in shuffled], np.int64),
        np.array([s for _, s in shuffled], np.float64),
        depth,
    )
    assert list(zip(found_rows.tolist(), found_scores.tolist(), strict=True)) == expected


def test_the_cut_inside_a_tie_keeps_the_first_in_chunk_order():
    rows, scores = np.array([9, 7, 5, 3, 1]), np.array([1.0, 1.0, 2.0, 1.0, 0.0])
    assert lists.best(rows, scores, 3)[0].tolist() == [5, 3, 7]


def test_collect_sorts_by_query_and_counts_ranks_from_one():
    collected = lists.collect(
        [(4, np.array([8, 2]), np.array([0.9, 0.1])), (1, np.array([5]), np.array([0.3]))]
    )
    assert collected.query.tolist() == [1, 4, 4]
    assert collected.rank.tolist() == [1, 1, 2]
    assert collected.row.tolist() == [5, 8, 2]
    assert collected.score.tolist() == [0.3, 0.9, 0.1]


def test_nothing_collected_is_four_empty_arrays():
    empty = lists.collect([])
    assert [len(a) for a in (empty.query, empty.rank, empty.row, empty.score)] == [0, 0, 0, 0]
    assert list(empty.by_query()) == []
    assert empty.ranks_of(np.array([3]), np.array([0])).tolist() == [0]


def test_ranks_of_knows_the_query_a_chunk_was_found_for():
    found = builders.lists([4, 0], [], [0])
    query, row = np.array([0, 0, 0, 1, 2, 2]), np.array([4, 0, 9, 4, 0, 4])
    assert found.ranks_of(query, row).tolist() == [1, 2, 0, 0, 1, 0]


def test_by_query_leaves_out_queries_without_a_list():
    found = builders.lists([4, 0], [], [7])
    assert [(q, found.row[part].tolist()) for q, part in found.by_query()] == [
        (0, [4, 0]),
        (2, [7]),
    ]
