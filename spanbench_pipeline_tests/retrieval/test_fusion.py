from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.retrieval import fusion
from spanbench_pipeline_tests.retrieval import builders

IDS = [f"D:clause:{i}" for i in range(40)]
LIST = st.lists(st.integers(0, 39), unique=True, max_size=40)


def fused(dense, bm25, ids=IDS, k=60, depth=30):
    """The fused list of one query as (chunk id, score)."""
    found = fusion.fuse(
        builders.lists(dense), builders.lists(bm25), chunk_ids=pa.array(ids), k=k, depth=depth
    )
    assert found.rank.tolist() == list(range(1, len(found.row) + 1))
    return [(ids[r], s) for r, s in zip(found.row.tolist(), found.score.tolist(), strict=True)]


def test_a_chunk_that_both_lists_hold_comes_first():
    ids = ["X", "Y", "a", "b", "c"]
    found = fused([0, 2, 1], [3, 4, 1], ids)
    # Y: 1/63 + 1/63; X and b: 1/61, by id; a and c: 1/62, by id.
    assert [i for i, _ in found] == ["Y", "X", "b", "a", "c"]
    assert [round(s, 5) for _, s in found] == [0.03175, 0.01639, 0.01639, 0.01613, 0.01613]


def test_sums_that_are_equal_are_a_tie_though_floating_point_says_otherwise():
    # 1/(1+2) + 1/(1+14) = 1/(1+4) + 1/(1+4) = 2/5: the better single rank decides.
    assert 1 / 3 + 1 / 15 < 1 / 5 + 1 / 5
    dense, bm25 = list(range(10, 30)), list(range(10, 30))
    for ranked, position, row in ((dense, 1, 5), (dense, 3, 4), (bm25, 3, 4), (bm25, 13, 5)):
        ranked.insert(position, row)
    assert [ranked.index(5) + 1 for ranked in (dense, bm25)] == [2, 14]
    assert [ranked.index(4) + 1 for ranked in (dense, bm25)] == [4, 4]
    found = fused(dense, bm25, k=1, depth=40)
    assert [i for i, _ in found if i in (IDS[4], IDS[5])] == [IDS[5], IDS[4]]
    assert dict(found)[IDS[5]] == dict(found)[IDS[4]] == 0.4


def test_ids_are_compared_as_strings():
    ids = ["D:clause:9", "D:clause:10"]
    assert [i for i, _ in fused([0], [1], ids)] == ["D:clause:10", "D:clause:9"]


@given(LIST, LIST, st.sampled_from([0, 1, 3, 60]), st.integers(1, 40))
def test_order_is_by_exact_sum_best_rank_and_id(dense, bm25, k, depth):
    keys = {}
    for row in {*dense, *bm25}:
        ranks = [ranked.index(row) + 1 for ranked in (dense, bm25) if row in ranked]
        keys[row] = (-sum(Fraction(1, k + r) for r in ranks), min(ranks), IDS[row])
    expected = sorted(keys, key=keys.__getitem__)[:depth]
    assert fused(dense, bm25, k=k, depth=depth) == [(IDS[r], float(-keys[r][0])) for r in expected]


@given(LIST)
def test_with_one_list_empty_the_other_keeps_its_order(ranked):
    expected = [IDS[r] for r in ranked]
    assert [i for i, _ in fused(ranked, [], depth=40)] == expected
    assert [i for i, _ in fused([], ranked, depth=40)] == expected


def test_queries_do_not_mix():
    dense, bm25 = builders.lists([0, 1], [], [2]), builders.lists([1], [3], [])
    found = fusion.fuse(dense, bm25, chunk_ids=pa.array(IDS[:4]), k=60, depth=30)
    assert builders.as_rows(found, 3) == [[1, 0], [3], [2]]
    assert found.rank.tolist() == [1, 2, 1, 1]


def test_nothing_to_fuse():
    empty = builders.lists([])
    assert len(fusion.fuse(empty, empty, chunk_ids=pa.array([], "string"), k=60, depth=5).row) == 0
