"""The fix backlog: which lever accounts for how many failures, and what turning it did.

A delta is only ever one that two measured configurations show; nothing is estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import (
    LEVERS,
    Configuration,
    Experiment,
    lever_differences,
)
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.metrics.depths import require_reached
from spanbench_pipeline.metrics.failure_labels import DEPTH_BOUND

CEILING_BOUND = "ceiling-bound"


@dataclass(frozen=True)
class BacklogRow:
    """A lever, the failing queries it accounts for, and the comparison that measures it.

    ``delta`` is the change in complete_grounding at the context from ``from_config`` to
    ``to_config``; all three are None where no two configurations measured the lever alone.
    """

    lever: str
    failing_queries: int
    delta: float | None
    from_config: str | None
    to_config: str | None


@dataclass(frozen=True)
class Best:
    """The configuration with the highest complete_grounding, against the baseline."""

    config: str
    value: float
    baseline_value: float
    delta: float
    levers: tuple[str, ...]
    """Every lever in which it differs from the baseline; () if it is the baseline."""


@dataclass(frozen=True)
class Backlog:
    """``rows``: most failing queries first. ``ceiling_bound``: failures that no lever answers;
    ``depth_bound``: those whose lever lists cut at the context cannot tell.
    """

    baseline: str
    rows: tuple[BacklogRow, ...]
    ceiling_bound: int
    best: Best
    depth_bound: int = 0


def backlog(
    experiment: Experiment,
    failure_labels: pa.Table,
    config_pairs: pa.Table,
    config_metrics: pa.Table,
    baseline: str,
) -> Backlog:
    """Return the fix backlog of ``baseline``.

    ``failure_labels`` may hold other configurations' as well. Levers with equally many failing
    queries come in the order of ``LEVERS``. Raises NotMeasured where the baseline was not measured,
    since no failing query would then read as none failing, and where lists do not reach the
    context.
    """
    require_reached(experiment.context, experiment.depth)
    start = experiment.configuration(baseline)
    baseline = start.name
    grounding = _grounding(config_metrics, experiment.context)
    if baseline not in grounding:
        raise NotMeasured(f"the baseline {baseline!r} was not measured")
    labels = [row for row in failure_labels.to_pylist() if row["config"] == baseline]
    failing = Counter(row["lever"] for row in labels)
    pairs = config_pairs.to_pylist()
    rows = [
        _row(lever, failing[lever], _comparison(lever, start, experiment, pairs))
        for lever in LEVERS
        if failing[lever]
    ]
    return Backlog(
        baseline=baseline,
        rows=tuple(sorted(rows, key=lambda row: -row.failing_queries)),
        ceiling_bound=sum(row["label"] == CEILING_BOUND for row in labels),
        best=_best(start, experiment, grounding),
        depth_bound=sum(row["label"] == DEPTH_BOUND for row in labels),
    )


def _row(lever: str, failing: int, pair: Mapping[str, Any] | None) -> BacklogRow:
    if pair is None:
        return BacklogRow(lever, failing, None, None, None)
    return BacklogRow(lever, failing, pair["delta"], pair["from_config"], pair["to_config"])


def _comparison(
    lever: str, baseline: Configuration, experiment: Experiment, pairs: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the pair that shows what turning ``lever`` away from the baseline's setting does.

    One that starts at the baseline itself before any other, then the largest delta, then the order
    of the configurations; None where there is no pair.
    """
    order = {c.name: i for i, c in enumerate(experiment.configurations)}
    same_setting = {
        c.name for c in experiment.configurations if experiments.same_setting(c, baseline, lever)
    }
    candidates = [p for p in pairs if p["lever"] == lever and p["from_config"] in same_setting]
    return min(
        candidates,
        key=lambda p: (
            p["from_config"] != baseline.name,
            -p["delta"],
            order[p["from_config"]],
            order[p["to_config"]],
        ),
        default=None,
    )


def _grounding(config_metrics: pa.Table, context: int) -> dict[str, float]:
    """Return configuration -> complete_grounding at ``context`` over the whole corpus."""
    return {
        row["config"]: row["value"]
        for row in config_metrics.to_pylist()
        if (row["metric"], row["k"], row["subset"]) == ("complete_grounding", context, None)
    }


def _best(baseline: Configuration, experiment: Experiment, grounding: Mapping[str, float]) -> Best:
    """Return the highest value; of equal ones the baseline, then configuration order.

    A change that gains nothing is not to be recommended, hence the baseline first.
    """
    measured = [c for c in experiment.configurations if c.name in grounding]
    best = max(measured, key=lambda c: (grounding[c.name], c == baseline))
    return Best(
        config=best.name,
        value=grounding[best.name],
        baseline_value=grounding[baseline.name],
        delta=grounding[best.name] - grounding[baseline.name],
        levers=lever_differences(baseline, best),
    )
