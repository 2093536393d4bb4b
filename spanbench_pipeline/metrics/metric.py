"""The declaration of one metric: everything that the product knows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.scored_run import ScoredRun

CONTEXT: Literal["context"] = "context"
"""Stands among the depths of a metric for as many chunks as the reader is given."""

MetricAt = tuple[str, int | None]
"""(name, k); k is None where the metric looks as deep as the list goes"""

Depth = int | Literal["context"] | None


@dataclass(frozen=True)
class Metric:
    """A metric of one query's list, with a value for each query.

    ``depths`` are those at which it is measured without being asked for: numbers, ``CONTEXT``, or
    None for a metric without a depth, which looks at the whole list; () for one that an experiment
    has to name. Tables show metrics by ``position``, then by name.
    """

    name: str
    values: Callable[[ScoredRun, Any], Reals] | None
    """(run, k) -> each query's value, shape (q,), NaN where it is undefined; None: of routing."""
    meaning: str
    """What it says, in a line; ``{k}`` stands for the depth."""
    formula: str
    depths: tuple[Depth, ...] = ()
    unit: Literal["share", "characters", "rank"] = "share"
    bounds: tuple[float, float | None] = (0.0, 1.0)
    """The least and the greatest value; None: finite, without an upper bound."""
    undefined: str = ""
    """When a query has no value; "" where each has one."""
    counts_chunks: bool = False
    """Whether it counts chunks, so that it is not compared between chunkers."""
    is_quality: bool = True
    """Whether more is better; False: a cost, which is neither gated nor tuned for."""
    needs_chunks: bool = False
    """Whether it takes every chunk of the chunker to know."""
    printed: bool = False
    """Whether the results table of a terminal has a column of it without being asked."""
    shown: Literal["results", "characters", "documents"] = "results"
    """Where it stands: in the table of results; in those of characters, which have every metric of
    theirs at each depth; or measured by routing, whose depth counts documents."""
    title: str = ""
    """Its name in a heading of the tables of characters."""
    source: str = ""
    position: int = 1000

    @property
    def format(self) -> str:
        """How tables write it: ``count`` for a number of characters, else ``number``."""
        return "count" if self.unit == "characters" else "number"

    @property
    def takes_k(self) -> bool:
        """Whether it looks at the first k of a list, and is written ``name@k``."""
        return None not in self.depths


def metric_label(name: str, k: int | None) -> str:
    """Return how a metric is written: ``precision@10``, or ``mrr`` where it has no k."""
    return name if k is None else f"{name}@{k}"
