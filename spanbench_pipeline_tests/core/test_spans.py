from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import spans

Triple = tuple[int, int, int]

# Groups far apart and offsets both crowded and far apart: spans must meet in their group alone.
triples = st.builds(
    lambda group, start, length: (group, start, start + length),
    st.sampled_from([0, 1, 2, 7, 1_000_003]),
    st.one_of(st.integers(0, 12), st.integers(0, 400)),
    st.one_of(st.integers(1, 5), st.integers(1, 150)),
)
many = st.lists(triples, max_size=12)


def make(rows: list[Triple]) -> spans.Spans:
    group, start, end = zip(*rows, strict=True) if rows else ((), (), ())
    return spans.make(group, start, end)


def rows(of: spans.Spans) -> list[Triple]:
    return list(zip(of.group.tolist(), of.start.tolist(), of.end.tolist(), strict=True))


def chars(triple: Triple) -> set[tuple[int, int]]:
    group, start, end = triple
    return {(group, i) for i in range(start, end)}


def union(triples: list[Triple]) -> set[tuple[int, int]]:
    return set().union(*map(chars, triples)) if triples else set()


@settings(max_examples=200, deadline=None)
@given(many)
def test_merge_gives_the_maximal_runs(given_spans: list[Triple]) -> None:
    all_chars = union(given_spans)
    starts = sorted((g, i) for g, i in all_chars if (g, i - 1) not in all_chars)
    ends = sorted((g, i + 1) for g, i in all_chars if (g, i + 1) not in all_chars)
    expected = [(g, s, e) for (g, s), (_, e) in zip(starts, ends, strict=True)]
    assert rows(spans.merge(make(given_spans))) == expected


@settings(max_examples=200, deadline=None)
@given(many, many)
def test_covered_chars_counts_distinct_characters(of: list[Triple], cover: list[Triple]) -> None:
    expected = [len(chars(span) & union(cover)) for span in of]
    assert spans.covered_chars(make(of), make(cover)).tolist() == expected


@settings(max_examples=200, deadline=None)
@given(many, many)
def test_project_counts_the_characters_of_the_union_alone(of: list[Triple], to: list[Triple]):
    axis = sorted(union(to))
    begin, stop = spans.project(make(of), make(to))
    for triple, b, s in zip(of, begin.tolist(), stop.tolist(), strict=True):
        assert axis[b:s] == sorted(chars(triple) & union(to))


@settings(max_examples=200, deadline=None)
@given(many, many)
def test_overlapping_pairs_are_those_that_share_a_character(
    left: list[Triple], right: list[Triple]
) -> None:
    expected = [
        (i, j) for i, a in enumerate(left) for j, b in enumerate(right) if chars(a) & chars(b)
    ]
    i, j = spans.overlapping_pairs(make(left), make(right))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected


@settings(max_examples=200, deadline=None)
@given(many, many)
def test_containing_pairs_are_subsets(inner: list[Triple], outer: list[Triple]) -> None:
    expected = [
        (i, j) for i, a in enumerate(inner) for j, b in enumerate(outer) if chars(a) <= chars(b)
    ]
    i, j = spans.containing_pairs(make(inner), make(outer))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(triples, triples), max_size=12))
def test_shared_chars_pair_by_pair(pairs: list[tuple[Triple, Triple]]) -> None:
    left, right = make([a for a, _ in pairs]), make([b for _, b in pairs])
    at = np.arange(len(pairs))
    expected = [len(chars(a) & chars(b)) for a, b in pairs]
    assert spans.shared_chars(left, right, at, at).tolist() == expected
    back = at[::-1]
    assert spans.shared_chars(left, right, back, back).tolist() == expected[::-1]


def test_what_does_not_fit_on_one_axis_is_refused_not_wrapped() -> None:
    # 2 groups of 2**62 characters are 2**63, one more than int64 holds.
    wide, small = make([(1, 0, 2**62 - 1)]), make([(0, 0, 5)])
    for ask in (spans.covered_chars, spans.overlapping_pairs, spans.containing_pairs):
        for pair in ((wide, small), (small, wide)):
            with pytest.raises(ValueError, match="2 groups of 4611686018427387904 characters"):
                ask(*pair)
    with pytest.raises(ValueError, match="do not fit on one axis"):
        spans.merge(wide)
    # 7 groups of 1317624576693539401 characters are 2**63 - 1: the last that fits.
    full = make([(6, 0, 1317624576693539400)])
    assert spans.merge(full).length.tolist() == [1317624576693539400]
    last = make([(1, 0, 2**62 - 2), (0, 3, 9)])
    assert spans.merge(last).length.tolist() == [6, 2**62 - 2]
    assert spans.covered_chars(small, last).tolist() == [2]


def test_equal_offsets_in_two_documents_do_not_meet() -> None:
    here, there = make([(0, 10, 20)]), make([(1, 10, 20)])
    assert len(spans.overlapping_pairs(here, there)[0]) == 0
    assert spans.covered_chars(here, there).tolist() == [0]
    assert rows(spans.merge(make([(0, 10, 20), (1, 20, 30)]))) == [(0, 10, 20), (1, 20, 30)]


def test_touching_spans_merge_but_share_nothing() -> None:
    left, right = (0, 0, 10), (0, 10, 20)
    assert rows(spans.merge(make([right, left]))) == [(0, 0, 20)]
    assert len(spans.overlapping_pairs(make([left]), make([right]))[0]) == 0


def test_a_long_span_reaches_past_short_ones_inside_it() -> None:
    # The second right span ends before the third starts, the first only after it.
    right = make([(0, 0, 100), (0, 5, 10), (0, 50, 60)])
    i, j = spans.overlapping_pairs(make([(0, 90, 95)]), right)
    assert (i.tolist(), j.tolist()) == ([0], [0])
    # [5, 10) only touches, though it is among those that the first one makes worth a look.
    i, j = spans.overlapping_pairs(make([(0, 10, 12)]), right)
    assert (i.tolist(), j.tolist()) == ([0], [0])


def test_spans_side_by_side_are_not_all_looked_at() -> None:
    # 5,000 against 5,000 in one document are 25 million pairs, 200 MB as numbers of 8 bytes.
    start = np.arange(5000) * 10
    tiles = spans.make(np.zeros_like(start), start, start + 10)
    tracemalloc.start()
    try:
        i, j = spans.overlapping_pairs(tiles, tiles)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert i.tolist() == j.tolist() == list(range(5000))
    assert peak < 10_000_000


def test_no_spans_give_no_answers() -> None:
    nothing, something = make([]), make([(0, 0, 5)])
    assert rows(spans.merge(nothing)) == []
    assert spans.covered_chars(nothing, something).tolist() == []
    assert spans.covered_chars(something, nothing).tolist() == [0]
    for left, right in ((nothing, something), (something, nothing)):
        assert [x.tolist() for x in spans.overlapping_pairs(left, right)] == [[], []]


def test_length_and_take() -> None:
    found = make([(3, 0, 4), (1, 2, 9)])
    assert found.length.tolist() == [4, 7]
    assert rows(found.take(np.array([1, 0, 1]))) == [(1, 2, 9), (3, 0, 4), (1, 2, 9)]
    assert rows(found.take(found.length > 5)) == [(1, 2, 9)]


@pytest.mark.parametrize(
    ("start", "end", "shown"), [(-1, 2, r"\[-1, 2\)"), (3, 3, r"\[3, 3\)"), (5, 4, r"\[5, 4\)")]
)
def test_a_span_without_characters_or_before_the_text_is_refused(
    start: int, end: int, shown: str
) -> None:
    with pytest.raises(ValueError, match=f"row 1: {shown}"):
        spans.make([0, 0], [0, start], [1, end])


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^group, start and end must have one length$"):
        spans.make([0], [0, 1], [2, 3])


def test_group_codes_are_shared_by_all_columns() -> None:
    left, right = spans.group_codes(["a", "b", "a"], ["b", "c"])
    assert left[0] == left[2] != left[1] == right[0]
    assert len({*left.tolist(), *right.tolist()}) == 3
    assert left.dtype == np.int64
    pairs, _ = spans.group_codes([("q", "a"), ("q", "b"), ("q", "a")], [])
    assert pairs[0] == pairs[2] != pairs[1]
