"""Choosing settings on one part of the queries, and saying on the other what that was worth.

A setting is a configuration with the values of ``GRID`` in their keys. What is measured of it comes
in query by query; which queries may decide is the caller's to say.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from spanbench_pipeline.analysis.aggregate import mean
from spanbench_pipeline.analysis.significance import change
from spanbench_pipeline.config.experiment import BM25_SETTINGS, CONTEXT, FUSIONS, Configuration
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import reached
from spanbench_pipeline.metrics.metric import MetricAt, metric_label

GRID: dict[str, tuple[Any, ...]] = {
    "routing": (0, 3, 5, 10),
    "alpha": tuple(tenth / 10 for tenth in range(11)),
    "rrf_k": (10, 30, 60, 100, 200),
    "routing_alpha": tuple(tenth / 10 for tenth in range(11)),
}
"""The values tried of each key of a configuration; 0 routes nothing."""

UNTUNED: dict[str, Any] = {f.name: f.default for f in fields(Configuration) if f.name in GRID}
"""What stands where nothing is tuned: the defaults."""

TIE = 1e-12
"""Means that differ by less are one mean, rounded."""

Values = Mapping[str, float | None]
"""query -> value; None where it is undefined"""


@dataclass(frozen=True)
class Test:
    """The settings of the randomization test and the bootstrap, see ``significance``."""

    level: float
    rounds: int
    seed: int


def metrics(
    depth: int, context: int = CONTEXT, further: Sequence[MetricAt] = ()
) -> dict[str, MetricAt]:
    """Return what can be tuned for, by the name that a person types: ``complete_grounding@5``,
    ``mrr``.

    Every metric of which more is better, at the depths that lists of ``depth`` have.
    """
    costs = registry.names(lambda metric: not metric.is_quality)
    found = reached(depth, registry.measured(context, further))
    found = tuple(metric for metric in found if metric[0] not in costs)
    return {metric_label(m, k): (m, k) for m, k in found}


def untuned(config: Configuration) -> Configuration:
    """Return the configuration with everything that can be tuned at its default."""
    return replace(config, **UNTUNED)


def constants(config: Configuration) -> list[Configuration]:
    """Return the configuration with each value of its fusion's constant; itself where nothing is
    fused.
    """
    if config.fusion_used is None:
        return [config]
    key = FUSIONS[config.fusion]
    changes: list[dict[str, Any]] = [{key: value} for value in GRID[key]]
    return [replace(config, **one) for one in changes]


def settings(config: Configuration) -> dict[str, float | None]:
    """Return the tuned keys that a configuration uses, with their values; without routing, no
    alpha.
    """
    found: dict[str, float | None] = {"routing": config.routing}
    found["routing_alpha"] = config.routing_alpha if config.routing else None
    if config.fusion_used is not None:
        found[FUSIONS[config.fusion]] = config.fusion_used[1]
    return found


def lines(config: Configuration, name: str) -> str:
    """Return the configuration as an experiment file has it, under ``name``; defaults are left out.

    But for what was tuned, which is always stated. Settings of BM25 that routing alone had are left
    out with it: a file that states them where nothing uses BM25 is refused.
    """
    kept = {key: value for key, value in settings(config).items() if value is not None}
    stated = {f.name: f.default for f in fields(Configuration)}
    idle = (*GRID, *(() if config.uses_bm25 else BM25_SETTINGS))
    given = {
        key: value
        for key, value in asdict(replace(config, name=name)).items()
        if key in kept or (key not in idle and value != stated[key])
    }
    return "\n".join(["[[configurations]]", *(f"{k} = {_toml(v)}" for k, v in given.items())])


def mean_over(values: Values, queries: Iterable[str]) -> float | None:
    """Return the mean over those of ``queries`` where the value is defined; of none: None."""
    found = (values[query] for query in queries)
    return mean([value for value in found if value is not None])


def choose(means: Mapping[Configuration, float | None]) -> Configuration:
    """Return the setting with the highest mean; an undefined one is below all.

    Ties (``TIE``): key by key in the order of ``GRID``, the value nearest to the untuned one, then
    the smaller value. So no routing goes before routing, and nothing is changed without a gain.
    """
    defined = {setting: value for setting, value in means.items() if value is not None}
    if not defined:
        return min(means, key=_preference)
    most = max(defined.values())
    return min((s for s, value in defined.items() if value >= most - TIE), key=_preference)


def compare(
    before: Values, after: Values, queries: Collection[str], test: Test
) -> dict[str, float | int | None]:
    """Return what a change of settings did to a metric on ``queries``, by ``significance.change``.

    ``n`` counts the queries whose value is defined on both sides, over which both means are. With
    none everything else is None.
    """
    pairs = [(before[q], after[q]) for q in sorted(queries)]
    both = [(b, a) for b, a in pairs if b is not None and a is not None]
    found = change([a - b for b, a in both], level=test.level, rounds=test.rounds, seed=test.seed)
    moved = ("difference", "low", "high", "p")
    return {
        "n": len(both),
        "before": mean([b for b, _ in both]),
        "after": mean([a for _, a in both]),
        **{key: None if found is None else getattr(found, key) for key in moved},
    }


def _preference(config: Configuration) -> tuple[tuple[float, float], ...]:
    # Rounded: 0.3 - 0.2 and 0.2 - 0.1 differ in floating point.
    values = ((getattr(config, key), UNTUNED[key]) for key in GRID)
    return tuple((round(abs(value - default), 9), value) for value, default in values)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # What a TOML string has to escape is what a JSON string does, and DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
