"""Seconds of a piece of work, and how they grow with its size."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that ``work`` took, and what it gave."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def growth(
    what: str, doublings: int, make: Callable[[int], Any], work: Callable[[Any], Any]
) -> list[str]:
    """Return a line for once, twice, four times, ... the size: seconds, and their ratio to the
    first.

    ``make`` gives what ``work`` works on at a factor of the size; a table of ranked chunks comes
    first in it.
    """
    lines: list[str] = []
    first = 0.0
    for factor in (2**i for i in range(doublings + 1)):
        made = make(factor)
        seconds, _ = timed(lambda made=made: work(made))
        first = first or seconds
        lines.append(
            f"{what} x {factor}: {made[0].num_rows} ranked chunks, "
            f"{seconds:.3f} s, ratio {seconds / first:.1f}"
        )
    return lines
