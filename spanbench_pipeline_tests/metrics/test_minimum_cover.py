"""The fewest pieces, against every set of pieces there is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import spans
from spanbench_pipeline.metrics.minimum_cover import fewest

Triple = tuple[int, int, int]
"""(group, start, end)"""


def made(triples: Sequence[Triple]) -> spans.Spans:
    group, start, end = zip(*triples, strict=True) if triples else ((), (), ())
    return spans.make(group, start, end)


def found(gold: Sequence[Triple], pieces: Sequence[Triple], most: int = 9) -> list[int]:
    n_groups = 1 + max((group for group, _, _ in gold), default=-1)
    return fewest(made(gold), made(pieces), n_groups, most).tolist()


def characters(triple: Triple) -> set[tuple[int, int]]:
    return {(triple[0], i) for i in range(triple[1], triple[2])}


def brute(gold: Sequence[Triple], pieces: Sequence[Triple], most: int) -> int:
    """Of one group: the size of the first set that covers, tried from the smallest on."""
    wanted = [characters(span) for span in gold]
    for n in range(most + 1):
        for chosen in itertools.combinations([characters(p) for p in pieces], n):
            held = set().union(*chosen)
            if all(2 * len(span & held) >= len(span) for span in wanted):
                return n
    return most + 1


GOLD = [(0, 0, 100)]


@pytest.mark.parametrize(
    ("gold", "pieces", "n"),
    [
        (GOLD, [(0, 0, 49), (0, 10, 59)], 2),
        (GOLD, [(0, 0, 50)], 1),
        (GOLD, [(0, 0, 49)], 10),
        (GOLD, [(0, 0, 49), (0, 10, 49), (1, 0, 100)], 10),  # another document holds nothing
        (GOLD, [(0, 0, 20), (0, 20, 40), (0, 60, 80)], 3),
        (GOLD, [(0, 36, 64), (0, 20, 45), (0, 55, 80)], 2),  # the longest first would take three
        # Half of 7 is 3.5: three characters are not enough, four are.
        ([(0, 0, 7)], [(0, 0, 3)], 10),
        ([(0, 0, 7)], [(0, 0, 4)], 1),
        # One piece for two spans, though each has one that holds more of it.
        ([(0, 0, 10), (0, 20, 30)], [(0, 0, 10), (0, 20, 30), (0, 5, 25)], 1),
        # The first and the second share a piece, or the second and the third: the first pair needs
        # one more for the third, and so does the other way round.
        (
            [(0, 0, 10), (0, 20, 30), (0, 40, 50)],
            [(0, 5, 25), (0, 25, 45), (0, 0, 4), (0, 46, 50)],
            2,
        ),
        # Together exactly half of the first span, [5,10), on the way to exactly half of the second.
        ([(0, 0, 10), (0, 20, 30)], [(0, 5, 8), (0, 7, 25)], 2),
        ([(0, 0, 10), (0, 20, 30)], [(0, 6, 8), (0, 7, 25)], 10),
        # A gap: only the ends of the span are in pieces, and they are not half of it.
        (GOLD, [(0, 0, 24), (0, 76, 100)], 10),
        (GOLD, [(0, 0, 25), (0, 75, 100)], 2),
        # 25 characters of the last span come with the first one, 24 with each of the others.
        ([(0, 0, 4), (0, 10, 110)], [(0, 2, 35), (0, 60, 84), (0, 85, 109)], 3),
    ],
)
def test_by_hand(gold: list[Triple], pieces: list[Triple], n: int) -> None:
    assert found(gold, pieces) == [n]


def test_groups_do_not_meet_though_their_characters_lie_end_to_end() -> None:
    # Group 1 ends with the piece that group 2 begins after; group 0 has no gold.
    gold = [(1, 0, 10), (2, 0, 10), (4, 5, 9)]
    pieces = [(1, 5, 10), (2, 0, 3), (2, 8, 10), (3, 0, 90)]
    assert found(gold, pieces) == [0, 1, 2, 0, 10]


def test_the_limit_is_a_limit() -> None:
    pieces = [(0, 10 * n, 10 * n + 10) for n in range(10)]
    assert [found(GOLD, pieces, most)[0] for most in (1, 4, 5, 6)] == [2, 5, 5, 5]


def test_nothing_to_cover_and_nothing_to_cover_it_with() -> None:
    assert fewest(made([]), made(GOLD), 2, 3).tolist() == [0, 0]
    assert found(GOLD, [], 3) == [4]
    assert found(GOLD, [(0, 100, 200)], 3) == [4]


def test_gold_that_shares_characters_is_refused() -> None:
    message = "^two gold spans of a group share a character; merge them first$"
    with pytest.raises(ValueError, match=message):
        found([(0, 0, 10), (0, 9, 20)], GOLD)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Triple], list[Triple]]:
    """Up to three groups, four disjoint gold spans each (touching ones too), any nine pieces."""
    gold, pieces = [], []
    for group in range(draw(st.integers(1, 3))):
        cuts = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=8)))
        gold += [
            (group, a, b)
            for n, (a, b) in enumerate(itertools.pairwise(cuts))
            if n == 0 or draw(st.booleans())
        ]
        place = st.tuples(st.integers(0, 40), st.integers(1, 22))
        pieces += [(group, a, a + n) for a, n in draw(st.lists(place, max_size=9))]
    return gold, draw(st.permutations(pieces))


@settings(max_examples=1500, deadline=None)
@given(problems(), st.integers(1, 9))
def test_no_set_of_pieces_is_smaller(problem: tuple[list[Triple], list[Triple]], most: int) -> None:
    gold, pieces = problem
    groups = sorted({group for group, _, _ in gold})
    assert found(gold, pieces, most) == [
        brute([s for s in gold if s[0] == g], [p for p in pieces if p[0] == g], most)
        for g in groups
    ]


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(0, 40), st.integers(1, 22))
def test_more_pieces_never_need_more(
    problem: tuple[list[Triple], list[Triple]], start: int, length: int
) -> None:
    gold, pieces = problem
    more = [*pieces, (0, start, start + length)]
    assert all(a >= b for a, b in zip(found(gold, pieces), found(gold, more), strict=True))


def test_a_hard_instance_takes_no_time() -> None:
    # 200,000 windows, each overlapping 500 others, and 4,000 gold spans that all of them chain.
    start = np.arange(200_000)
    pieces = spans.make(np.zeros_like(start), start, start + 500)
    begin = np.arange(4_000) * 50
    gold = spans.make(np.zeros_like(begin), begin, begin + 31)
    started = time.perf_counter()
    assert fewest(gold, pieces, 1, 64).tolist() == [65]
    assert time.perf_counter() - started < 10
    # A window of 500 covers at most ten spans: from half of one, 16 characters, past eight whole
    # ones to half of another; twenty spans take two.
    assert fewest(gold.take(begin < 1000), pieces, 1, 64).tolist() == [2]
