"""What was compared, how many times, and the largest difference."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMED = 5
"""Disagreements that are kept by name."""


@dataclass
class Tally:
    """One comparison: of ``what``, with ``against``, where more than ``tolerance`` is too much.

    ``state`` says why it could not be made; then there are no cases.
    """

    what: str
    against: str
    tolerance: float = 0.0
    n: int = 0
    largest: float = 0.0
    n_wrong: int = 0
    wrong: list[str] = field(default_factory=list)
    state: str = "measured"

    @property
    def agrees(self) -> bool:
        """Whether nothing disagreed; a comparison that was not made disagrees with nothing."""
        return self.n_wrong == 0

    @property
    def result(self) -> str:
        """In a word: agrees, disagrees how often, or why it was not measured."""
        if self.state != "measured":
            return self.state
        return "agrees" if self.agrees else f"{self.n_wrong:,} disagree"

    def add(self, where: str, found: object, expected: object) -> None:
        """Compare two numbers within the tolerance, anything else exactly; None is only None."""
        self.n += 1
        if isinstance(found, int | float) and isinstance(expected, int | float):
            difference = abs(found - expected)
            self.largest = max(self.largest, difference)
            same = difference <= self.tolerance  # NaN is within none
        else:
            same = found == expected
        if not same:
            self.n_wrong += 1
            if len(self.wrong) < NAMED:
                self.wrong.append(f"{where}: {found!r}, expected {expected!r}")


class Tallies:
    """Comparisons by what is compared, made as they come, in the order of their first case."""

    def __init__(self, against: str, tolerance: float = 0.0) -> None:
        self.against = against
        self.tolerance = tolerance
        self._of: dict[str, Tally] = {}

    def add(self, what: str, where: str, found: object, expected: object) -> None:
        """Compare one value of ``what``."""
        tally = self._of.setdefault(what, Tally(what, self.against, self.tolerance))
        tally.add(where, found, expected)

    def all(self) -> list[Tally]:
        """Every comparison."""
        return list(self._of.values())
