"""One fault, as people read it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from spanbench_pipeline.core.codepoints import without_halves

SHOWN_CHARS = 3000
"""Characters of an alert's details that its text shows."""


@dataclass(frozen=True)
class Alert:
    """One fault as people read it.

    Either ``check`` (a check that failed) or ``error`` (what was raised) is given. ``details``
    holds the first offending rows, or the error's message. ``fault`` is the same for the same
    thing going wrong again: one fault is sent once.
    """

    corpus: str
    asset: str
    severity: str
    details: str
    fault: str
    check: str = ""
    error: str = ""
    run_id: str = ""
    link: str = ""

    @property
    def about(self) -> str:
        """Return what has to work again before the fault counts as resolved."""
        return about(self.asset or self.corpus, self.check)

    @property
    def title(self) -> str:
        """Return one line: where, and what."""
        what = f"check {self.check} failed" if self.check else self.error
        return " ".join(
            without_halves(f"{self.asset or self.corpus}: {what} ({self.severity})").split()
        )

    @property
    def text(self) -> str:
        """Return the whole alert, as mail and webhook show it."""
        named = (("corpus", self.corpus), ("asset", self.asset), ("check", self.check))
        head = ", ".join(f"{kind} {name}" for kind, name in named if name)
        cut = len(self.details) > SHOWN_CHARS
        details = self.details[:SHOWN_CHARS] + " …" if cut else self.details
        run = f"run: {self.link or self.run_id}" if self.run_id else ""
        parts = (f"spanbench: {self.title}", head, details, run)
        return without_halves("\n".join(part for part in parts if part))


def about(asset: str, check: str = "") -> str:
    """Return what a fault is about: a check of an asset, or running it."""
    return f"{asset} {check or 'run'}"


def fault(*parts: str) -> str:
    """Return a short id of what makes two faults the same."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
