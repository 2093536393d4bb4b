"""Assets as they are defined now, with what is recorded of each: all that staleness depends on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.staleness import Key, Node, Record, name

if TYPE_CHECKING:
    from spanbench_pipeline.config.experiment import Experiment

log = logging.getLogger("spanbench")
WAREHOUSE: Key = ("warehouse",)
"""The one asset that belongs to all corpora."""


@dataclass(frozen=True)
class State:
    """The assets of some corpora and of all together, in pipeline order.

    ``tables`` names the declared table of each, ``absent`` says of an asset that reads a corpus's
    files why they cannot be read. ``failed_errors`` are failing checks that are errors and hold
    nothing back.
    """

    nodes: Mapping[Key, Node]
    tables: Mapping[Key, str]
    absent: Mapping[Key, str] = field(default_factory=dict)
    records: Mapping[Key, Record] = field(default_factory=dict)
    failed_errors: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def stale(self) -> dict[Key, list[str]]:
        """Return the assets that are stale themselves, with the reasons."""
        return staleness.stale(self.nodes.values(), self.records)

    def doubts(self, keys: Iterable[Key], judged: Iterable[Key] = ()) -> list[str]:
        """Return a line for each reason not to rely on ``keys`` or what they are made of.

        An asset is in doubt where it is stale or failed a check that is an error, blocking or not;
        failed checks of ``judged`` that block nothing are no reason.
        """
        needed = staleness.ancestors(self.nodes, list(keys))
        stale = [f"{name(k)}: {'; '.join(why)}" for k, why in self.stale.items() if k in needed]
        return stale + [
            f"{name(key)}: check failed: {', '.join(checks)}"
            for key, checks in self.failed_errors.items()
            if key in needed - set(judged)
        ]


@dataclass(frozen=True)
class Experiments:
    """The corpora that have an experiment, each with its file; and the files that are broken."""

    files: Mapping[str, Path]
    broken: Mapping[str, InputError] = field(default_factory=dict)

    def warn_of_broken(self) -> None:
        """Warn of the experiments that are left out, and with them their figures."""
        for error in self.broken.values():
            log.warning("left out: %s", error)

    def load(self, corpus: str) -> Experiment:
        """Return a corpus's experiment; InputError where its file is broken or there is none."""
        from spanbench_pipeline.config import experiment as experiments

        self.require(corpus)
        found = experiments.load(self.files[corpus])
        if found.metrics:
            from spanbench_pipeline.metrics.registry import require_known

            require_known(found)
        return found

    def require(self, corpus: str) -> None:
        """Raise InputError where a corpus's experiment is broken or there is none."""
        if corpus in self.broken:
            raise self.broken[corpus]
        if corpus not in self.files:
            raise InputError(
                f"no experiment for corpus {corpus!r}{nearest(corpus, self.files)}; "
                "spanbench adapt registers an own corpus"
            )
