"""Whether a change of a mean is more than its queries' own ups and downs explain.

Two runs are compared query by query. The test asks: were the two runs alike, each query's
difference would have been as likely with the other sign; how often would the mean then have moved
at least this far this way? That is the paired randomization (sign-flip) test. It knows the change
of these queries and no distribution.

The test is one-sided, in the direction in which the mean moved: a fall's p is the chance of a fall
at least as deep. So among changes that do nothing on average, a share ``level`` at most is called
a fall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

TIE = 1e-12
"""Sums that differ by less than this share of all differences together are one sum, rounded."""

_MOSTLY_EQUAL = 8
"""With so many differences a size, sizes are drawn by how often; else each difference by itself."""

_BLOCK = 1 << 20
"""Draws held in memory at once."""


@dataclass(frozen=True)
class Change:
    """A mean's change over ``n`` queries, its interval [low, high], and the test's p."""

    n: int
    difference: float
    low: float
    high: float
    p: float


def change(differences: Sequence[float], *, level: float, rounds: int, seed: int) -> Change | None:
    """Return what happened to a mean, from each query's difference (after minus before).

    ``difference`` is their mean. ``p`` as ``p_value`` gives it, ``low`` and ``high`` as
    ``interval`` does. None where there is no query: nothing can be said. The order of the
    differences does not matter.
    """
    values = np.sort(np.asarray(differences, np.float64))
    if not len(values):
        return None
    if not np.isfinite(values).all():
        raise ValueError("a difference is not a finite number")
    difference = math.fsum(values) / len(values)
    low, high = interval(values, level=level, rounds=rounds, seed=seed)
    return Change(len(values), difference, low, high, p_value(values, rounds=rounds, seed=seed))


def p_value(differences: Sequence[float] | Reals, *, rounds: int, seed: int) -> float:
    """Return the share of sign patterns under which the mean moves at least as far the same way.

    Exact, over all 2^m patterns of the m differences that are not 0, where 2^m <= ``rounds``; the
    smallest p is then 2^-m. Otherwise estimated from ``rounds`` random patterns as
    (b + 1) / (rounds + 1), b of which moved as far: never 0, and never too small on average.
    A mean that did not move is taken as a fall of 0; with no difference at all p is 1. Patterns
    whose sums are equal but for rounding (``TIE``) count as having moved as far.
    """
    values = np.asarray(differences, np.float64)
    values = values[values != 0]
    observed = abs(math.fsum(values))
    # By symmetry, to rise as far as observed is as likely as to fall as far.
    sizes, counts = np.unique(np.abs(values), return_counts=True)
    least = observed - TIE * float(sizes @ counts)
    if len(values) < 63 and 2 ** len(values) <= rounds:
        return float(np.mean(_all_sums(values) >= least))
    reached = sum(int(np.sum(s >= least)) for s in _random_sums(sizes, counts, rounds, seed))
    return (reached + 1) / (rounds + 1)


def interval(
    differences: Sequence[float] | Reals, *, level: float, rounds: int, seed: int
) -> tuple[float, float]:
    """Return where the mean difference lies: the paired bootstrap's percentile interval.

    ``rounds`` times as many queries as there are, drawn from them with replacement, give as many
    means; the interval runs from their ``level`` to their 1 - ``level`` quantile. Each end is
    one-sided as the test is, so its confidence is 1 - 2 ``level``.
    """
    if not 0 < level < 0.5:
        raise ValueError(f"level = {level} must lie between 0 and 0.5")
    values, counts = np.unique(np.asarray(differences, np.float64), return_counts=True)
    n = int(counts.sum())
    if len(values) == 1:
        return float(values[0]), float(values[0])
    random = np.random.default_rng(seed)
    if _MOSTLY_EQUAL * len(values) < n:
        means = [
            random.multinomial(n, counts / n, size=size) @ values / n
            for size in _blocks(rounds, len(values))
        ]
    else:
        every = np.repeat(values, counts)
        means = [
            every[random.integers(0, n, (size, n))].mean(axis=1) for size in _blocks(rounds, n)
        ]
    low, high = np.quantile(np.concatenate(means), [level, 1 - level])
    return float(low), float(high)


def _all_sums(values: Reals) -> Reals:
    """Return the sums under all sign patterns, shape (2^m,)."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(
    sizes: Reals, counts: npt.NDArray[np.int64], rounds: int, seed: int
) -> list[Reals]:
    """Return the sums under random patterns: of c differences of one size, Binomial(c, 1/2) are
    up.
    """
    random = np.random.default_rng(seed)
    n = int(counts.sum())
    if _MOSTLY_EQUAL * len(sizes) >= n:
        every = np.repeat(sizes, counts)
        return [
            np.where(random.random((size, n)) < 0.5, -1.0, 1.0) @ every
            for size in _blocks(rounds, n)
        ]
    return [
        (2 * random.binomial(counts, 0.5, size=(size, len(sizes))) - counts) @ sizes
        for size in _blocks(rounds, len(sizes))
    ]


def _blocks(rounds: int, width: int) -> list[int]:
    """Return ``rounds`` cut into numbers of rows of ``width`` that memory holds."""
    rows = max(1, _BLOCK // width)
    return [min(rows, rounds - done) for done in range(0, rounds, rows)]
