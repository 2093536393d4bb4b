"""The randomization test against enumeration by hand and by brute force; the interval too."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.analysis import significance
from spanbench_pipeline.analysis.significance import change, interval, p_value

ROUNDS = 10_000


def brute_force(differences: list[Fraction]) -> Fraction:
    """Every sign pattern of every difference, zeros included, in exact arithmetic."""
    observed = sum(differences, Fraction())
    patterns = list(product((1, -1), repeat=len(differences)))
    sums = [sum((s * d for s, d in zip(p, differences, strict=True)), Fraction()) for p in patterns]
    as_far = [s for s in sums if (s >= observed if observed > 0 else s <= observed)]
    return Fraction(len(as_far), len(patterns))


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        # Five queries broke: one pattern of 32 falls as deep.
        ([-1.0] * 5, 1 / 32),
        ([-1.0] * 5 + [0.0] * 100, 1 / 32),
        ([1.0] * 5, 1 / 32),
        # Four broke, one was fixed: 1 pattern with sum -5 and 5 with sum -3, of 32.
        ([-1.0, -1.0, 1.0, -1.0, -1.0], 6 / 32),
        # -3 and +1: of -4, -2, 2, 4 two are -2 or below.
        ([-3.0, 1.0], 1 / 2),
        # The fall of 0: patterns with sum <= 0 are 3 of 4.
        ([-1.0, 1.0], 3 / 4),
        ([0.0, 0.0], 1.0),
        ([], 1.0),
        ([-0.5], 1 / 2),
    ],
)
def test_worked_by_hand(differences: list[float], expected: float):
    assert p_value(differences, rounds=ROUNDS, seed=1) == expected


@given(st.lists(st.integers(-6, 6).map(lambda n: Fraction(n, 7)), max_size=9))
def test_exact_p_is_that_of_brute_force(differences: list[Fraction]):
    found = p_value([float(d) for d in differences], rounds=ROUNDS, seed=1)
    assert found == float(brute_force(differences))


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, -0.1, -0.2, -0.3, 1 / 3, 0.7]), max_size=8))
def test_sums_equal_but_for_rounding_are_ties(differences: list[float]):
    """0.1 + 0.2 and 0.3 are one sum here, though they are two floats."""
    exact = [Fraction(d).limit_denominator(30) for d in differences]
    assert p_value(differences, rounds=ROUNDS, seed=1) == float(brute_force(exact))


@pytest.mark.parametrize(("broken", "fixed"), [(15, 0), (14, 6), (30, 14), (60, 40), (12, 12)])
def test_estimate_is_near_the_binomial_tail(broken: int, fixed: int):
    """For differences of one size the test is the sign test: a binomial tail, exactly."""
    m = broken + fixed
    tail = sum(comb(m, k) for k in range(broken, m + 1)) / 2**m
    found = p_value([-1.0] * broken + [1.0] * fixed, rounds=ROUNDS, seed=7)
    assert abs(found - tail) < 5 * np.sqrt(tail * (1 - tail) / ROUNDS) + 2 / ROUNDS


def test_as_many_rounds_as_patterns_are_enough_to_be_exact():
    # One pattern of 32 falls as deep. An estimate from 32 or 31 rounds would be of 33 or 32 parts.
    assert p_value([-1.0] * 5, rounds=32, seed=1) == 1 / 32
    assert p_value([-1.0, 1.0], rounds=4, seed=1) == 3 / 4


def test_estimate_of_mixed_sizes_is_near_the_exact_p():
    random = np.random.default_rng(3)
    differences = np.round(random.normal(-0.2, 0.5, 13), 2)
    exact = p_value(differences, rounds=2**13, seed=1)
    estimate = p_value(differences, rounds=2**13 - 1, seed=1)
    assert 0.01 < exact < 0.6
    assert estimate != exact
    assert abs(estimate - exact) < 5 * np.sqrt(exact * (1 - exact) / 2**13) + 2 / 2**13


def test_estimate_is_never_zero_and_always_the_same():
    differences = [-1.0] * 200
    assert p_value(differences, rounds=999, seed=1) == 1 / 1000
    mixed = [-1.0] * 30 + [0.5] * 40
    assert p_value(mixed, rounds=999, seed=1) == p_value(mixed, rounds=999, seed=1)
    assert len({p_value(mixed, rounds=999, seed=s) for s in range(8)}) > 1


def test_the_pages_table():
    page = (Path(__file__).parents[2] / "docs" / "regression.md").read_text(encoding="utf-8")
    rows = re.findall(r"\n\| (\d+) \| (\d+) \| (\d+/\d+) \|", page)
    assert len(rows) == 4
    for broken, fixed, stated in rows:
        differences = [-1.0] * int(broken) + [1.0] * int(fixed)
        assert p_value(differences, rounds=ROUNDS, seed=1) == float(Fraction(stated))


def test_under_no_effect_a_fall_is_called_at_the_stated_rate():
    """Of runs whose changes are symmetric, p < level for a share of level at most."""
    random = np.random.default_rng(5)
    runs = random.choice([-1.0, 1.0, 0.0], size=(2000, 40))
    falls = [p_value(run, rounds=199, seed=1) < 0.1 and run.mean() < 0 for run in runs]
    assert np.mean(falls) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 2000)


def test_drawing_sizes_or_differences_says_the_same(monkeypatch: pytest.MonkeyPatch):
    # 40 differences of 20 sizes, drawn one by one, and by how often each size is drawn.
    differences = [n / 100 for n in range(-8, 12)] * 2
    one_by_one = change(differences, level=0.05, rounds=40_000, seed=1)
    monkeypatch.setattr(significance, "_MOSTLY_EQUAL", 1)
    by_size = change(differences, level=0.05, rounds=40_000, seed=2)
    assert one_by_one is not None
    assert by_size is not None
    assert one_by_one != by_size
    for name, near in (("p", 0.01), ("low", 0.001), ("high", 0.001)):
        assert getattr(one_by_one, name) == pytest.approx(getattr(by_size, name), abs=near)


@pytest.mark.parametrize(
    "differences", [[-1.0] * 20 + [1.0] * 9 + [0.5] * 3, [n / 100 for n in range(-8, 25)]]
)
def test_blocks_do_not_change_what_is_drawn(
    differences: list[float], monkeypatch: pytest.MonkeyPatch
):
    whole = change(differences, level=0.05, rounds=1000, seed=1)
    monkeypatch.setattr(significance, "_BLOCK", 50)
    assert change(differences, level=0.05, rounds=1000, seed=1) == whole


@pytest.mark.parametrize(
    ("rounds", "width", "expected"),
    [(10, 3, [2, 2, 2, 2, 2]), (5, 3, [2, 2, 1]), (2, 100, [1, 1]), (4, 1, [4])],
)
def test_blocks_hold_every_round(
    rounds: int, width: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(significance, "_BLOCK", 6)
    assert significance._blocks(rounds, width) == expected


def test_interval_of_shares_is_the_binomials():
    """Of 100 queries 30 broke: the bootstrap's mean is -Binomial(100, 0.3) / 100."""
    low, high = interval([-1.0] * 30 + [0.0] * 70, level=0.05, rounds=20_000, seed=1)
    tail, k = 0.0, -1
    while tail < 0.05:  # the binomial's own 5 % quantile
        k += 1
        tail += comb(100, k) * 0.3**k * 0.7 ** (100 - k)
    assert high == pytest.approx(-k / 100, abs=0.0101)
    assert low == pytest.approx(-(60 - k) / 100, abs=0.0101)


def test_interval_is_wider_at_a_stricter_level_and_holds_the_mean():
    differences = [-1.0, -1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    wide = interval(differences, level=0.01, rounds=ROUNDS, seed=1)
    narrow = interval(differences, level=0.2, rounds=ROUNDS, seed=1)
    assert wide[0] < narrow[0] < np.mean(differences) < narrow[1] < wide[1]


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0, -0.1])
def test_a_level_without_an_interval_is_refused(level: float):
    with pytest.raises(ValueError, match="level"):
        interval([1.0, 0.0], level=level, rounds=10, seed=1)


def test_interval_of_one_value_is_that_value():
    assert interval([0.0] * 50, level=0.05, rounds=ROUNDS, seed=1) == (0.0, 0.0)
    assert interval([-0.25], level=0.05, rounds=ROUNDS, seed=1) == (-0.25, -0.25)


@settings(max_examples=40)
@given(st.lists(st.integers(-4, 4).map(lambda n: n / 4), min_size=1, max_size=40), st.randoms())
def test_a_change_reads_the_same_in_any_order_and_mirrored(differences: list[float], random):
    found = change(differences, level=0.05, rounds=300, seed=1)
    shuffled = list(differences)
    random.shuffle(shuffled)
    assert change(shuffled, level=0.05, rounds=300, seed=1) == found
    assert found is not None
    assert found.n == len(differences)
    assert found.difference == pytest.approx(sum(differences) / len(differences), abs=1e-12)
    assert min(differences) <= found.low <= found.high <= max(differences)
    assert 0 < found.p <= 1
    mirrored = change([-d for d in differences], level=0.05, rounds=300, seed=1)
    assert mirrored is not None
    assert mirrored.p == found.p


def test_nothing_to_compare_is_no_change_and_a_nan_is_refused():
    assert change([], level=0.05, rounds=10, seed=1) is None
    with pytest.raises(ValueError, match=r"^a difference is not a finite number$"):
        change([0.0, float("nan")], level=0.05, rounds=10, seed=1)
