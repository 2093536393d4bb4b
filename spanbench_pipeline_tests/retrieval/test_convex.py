from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.retrieval import convex
from spanbench_pipeline.retrieval.lists import Lists, best, collect
from spanbench_pipeline_tests.retrieval import builders

IDS = [f"D:clause:{i}" for i in range(20)]
Scores = Mapping[int, float]
LIST = st.dictionaries(st.integers(0, 19), st.integers(-4, 8), max_size=20)


def lists(*found: Scores) -> Lists:
    """One list a query, from each chunk row's score in that channel."""
    return collect(
        (query, *best(np.array([*scores], np.int64), np.array([*scores.values()], float), 99))
        for query, scores in enumerate(found)
    )


def fused(dense: Scores, bm25: Scores, alpha: float, depth=30, ids=IDS) -> list[tuple[str, float]]:
    found = convex.fuse(
        lists(dense), lists(bm25), chunk_ids=pa.array(ids), alpha=alpha, depth=depth
    )
    assert found.rank.tolist() == list(range(1, len(found.row) + 1))
    return [(ids[r], s) for r, s in zip(found.row.tolist(), found.score.tolist(), strict=True)]


A, B, C, D = range(4)
DENSE, BM25 = {A: 0.9, B: 0.5, C: 0.1}, {C: 4.0, D: 2.0, A: 0.0}


def test_by_hand():
    # Scaled, dense: A 1, B 1/2, C 0. Scaled, BM25: C 1, D 1/2, A 0.
    assert fused(DENSE, BM25, 0.2, ids=[*"ABCD"]) == [
        ("A", 0.8),
        ("B", 0.4),
        ("C", 0.2),
        ("D", 0.1),
    ]
    assert fused(DENSE, BM25, 0.2, depth=2, ids=[*"ABCD"]) == [("A", 0.8), ("B", 0.4)]
    assert fused(DENSE, BM25, 0.75, ids=[*"ABCD"]) == [
        ("C", 0.75),
        ("D", 0.375),
        ("A", 0.25),
        ("B", 0.125),
    ]


def test_equal_sums_by_best_single_rank_then_id():
    # A and C have 1/2 and a first rank each; B and D have 1/4 and a second rank.
    assert [i for i, _ in fused(DENSE, BM25, 0.5, ids=[*"ABCD"])] == ["A", "C", "B", "D"]
    assert [i for i, _ in fused(DENSE, BM25, 0.5, ids=[*"DCBA"])] == ["B", "D", "A", "C"]
    # X: dense 1/2 (rank 2). Y: BM25 1/2 (rank 3). Both 1/4, but X had the better rank.
    dense, bm25 = {9: 2.0, 7: 1.0, 8: 0.0}, {1: 4.0, 2: 3.0, 3: 2.0, 4: 0.0}
    assert [i for i, s in fused(dense, bm25, 0.5) if s == 0.25] == [IDS[7], IDS[3]]


def test_all_equal_is_a_half_and_absent_is_nothing():
    assert fused({A: 3.0, B: 3.0}, {}, 0.2) == [(IDS[A], 0.4), (IDS[B], 0.4)]
    assert fused({A: 3.0}, {B: -1.0}, 0.2) == [(IDS[A], 0.4), (IDS[B], 0.1)]
    # The worst of a list has 0, as has what the list does not hold.
    assert dict(fused({A: 2.0, B: 1.0}, {C: 1.0}, 0.2)) == {IDS[A]: 0.8, IDS[C]: 0.1, IDS[B]: 0.0}
    # A channel whose scores differ by the last bit alone is not scaled to 1 and 0.
    last_bit = {A: 0.1 + 0.2, B: 0.3}
    for channels in ((last_bit, {}), ({}, last_bit), ({A: 300 * (0.1 + 0.2), B: 90.0}, {})):
        assert {score for _, score in fused(*channels, 0.5)} == {0.25}
    assert dict(fused({A: 0.3 + 1e-11, B: 0.3}, {}, 0.5)) == {IDS[A]: 0.5, IDS[B]: 0.0}


def test_sums_that_are_equal_are_a_tie_though_floating_point_says_otherwise():
    # 0.4 * 1 = 0.6 * 2/3: by best rank, then id.
    assert 0.4 * 1 > (1 - 0.4) * (2 / 3)
    found = fused({A: 3.0, B: 2.0, C: 0.0}, {5: 1.0, D: 2.0, 6: 0.0}, 0.4)
    assert [(i, s) for i, s in found if s == 0.4] == [(IDS[D], 0.4), (IDS[B], 0.4)]


@given(
    LIST, LIST, st.sampled_from(["0", "0.2", "0.3", "0.4", "0.5", "0.9", "1"]), st.integers(1, 20)
)
def test_order_is_by_exact_sum_best_rank_and_id(dense, bm25, alpha, depth):
    weight = Fraction(alpha)
    keys = {}
    for row in {*dense, *bm25}:
        total, ranks = Fraction(0), []
        for part, scores in ((1 - weight, dense), (weight, bm25)):
            if row in scores:
                low, high = min(scores.values()), max(scores.values())
                scaled = Fraction(scores[row] - low, high - low) if high > low else Fraction(1, 2)
                total += part * scaled
                ranks.append(1 + sorted(scores, key=lambda r, s=scores: (-s[r], r)).index(row))
        keys[row] = (-total, min(ranks), IDS[row])
    expected = sorted(keys, key=keys.__getitem__)[:depth]
    found = fused(dense, bm25, float(alpha), depth)
    assert [i for i, _ in found] == [IDS[row] for row in expected]
    assert [s for _, s in found] == pytest.approx([float(-keys[r][0]) for r in expected], abs=1e-12)


@given(LIST, st.sampled_from([0.0, 0.2, 1.0]))
def test_with_one_list_empty_the_other_keeps_its_order(scores, alpha):
    order = [IDS[r] for r in sorted(scores, key=lambda r: (-scores[r], r))]
    assert [i for i, _ in fused(scores, {}, alpha)] == order
    assert [i for i, _ in fused({}, scores, alpha)] == order


@given(LIST, LIST, st.integers(1, 5), st.integers(-9, 9))
def test_a_channels_unit_and_zero_make_no_difference(dense, bm25, unit, zero):
    moved = {row: unit * score + zero for row, score in bm25.items()}
    assert fused(dense, moved, 0.3) == fused(dense, bm25, 0.3)


def test_queries_do_not_mix():
    dense, bm25 = lists({0: 2.0, 1: 1.0}, {}, {2: 9.0}), lists({1: 5.0}, {3: 1.0}, {})
    found = convex.fuse(dense, bm25, chunk_ids=pa.array(IDS[:4]), alpha=0.2, depth=9)
    assert builders.as_rows(found, 3) == [[0, 1], [3], [2]]
    assert found.score.tolist() == [0.8, 0.1, 0.1, 0.4]


def test_nothing_to_fuse():
    empty = lists({})
    found = convex.fuse(empty, empty, chunk_ids=pa.array([], "string"), alpha=0.2, depth=5)
    assert len(found.row) == 0
