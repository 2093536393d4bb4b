"""All comparisons, in the order in which they are shown."""

from __future__ import annotations

from spanbench_pipeline.calibration import brute_force, components, formula, library, worked_cases
from spanbench_pipeline.calibration.tally import Tally

FEWEST = 60
"""Random cases, the least that say anything."""


def calibrate(n_cases: int, seed: int) -> list[Tally]:
    """Every comparison, on ``n_cases`` random cases by brute force and a tenth elsewhere."""
    some = max(FEWEST, n_cases // 10)
    return [
        *worked_cases.compare(),
        *brute_force.compare(n_cases, seed),
        *formula.compare(some, seed + 1),
        *library.compare(some, seed + 2),
        *components.compare(some, seed + 3),
    ]
