"""Whether routing helps: no routing and each number of documents kept, side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanbench_pipeline.config.experiment import Configuration
from spanbench_pipeline.tuning.objective import Test, Values, choose, compare, mean_over, settings
from spanbench_pipeline.tuning.splits import Split

HELPS, HARMS = "helps", "harms"
OFF = "off is best"
OPEN = "not shown"
NO_QUERIES = "no queries"
"""The verdicts, see :func:`verdicts`."""

Parts = Mapping[str | None, Collection[str]]
"""subset (None: the whole) -> its queries"""


@dataclass(frozen=True)
class Reading:
    """What was measured of one setting, query by query.

    ``chars`` are the characters retrieved at the metric's depth; ``routing_recall`` is None where
    nothing is routed.
    """

    metric: Values
    chars: Values
    routing_recall: Values | None = None


def sweep(
    readings: Mapping[Configuration, Reading], parts: Parts, split: Split, test: Test
) -> list[dict[str, Any]]:
    """Return a row for each subset and setting: its means on both sides, and what it changed.

    ``readings`` has one setting for each number of documents kept, the first of which routes
    nothing. ``change`` compares it with that one on the held-out queries (None for itself).
    """
    off = next(iter(readings))
    if off.routing:
        raise ValueError(f"the first setting keeps {off.routing} documents, not all of them")
    rows: list[dict[str, Any]] = []
    for subset, queries in parts.items():
        development, held_out = _sides(queries, split)
        for setting, reading in readings.items():
            changed = compare(readings[off].metric, reading.metric, held_out, test)
            rows.append(
                {
                    "subset": subset,
                    **settings(setting),
                    "development": _means(reading, development),
                    "held_out": _means(reading, held_out),
                    "change": None if setting is off else changed,
                }
            )
    return rows


def verdicts(
    readings: Mapping[Configuration, Reading], parts: Parts, split: Split, test: Test
) -> list[dict[str, Any]]:
    """Of each subset, whether routing helps there.

    The number of documents is chosen on the subset's development queries (ties as in ``choose``:
    none goes first), and judged against no routing on its held-out ones:

    - ``off is best``: development chooses no routing;
    - ``helps``, ``harms``: the held-out mean rose, fell, with p below the test's level;
    - ``not shown``: neither;
    - ``no queries``: one of the sides has none.
    """
    off = next(iter(readings))
    rows: list[dict[str, Any]] = []
    for subset, queries in parts.items():
        development, held_out = _sides(queries, split)
        means = {s: mean_over(r.metric, development) for s, r in readings.items()}
        best = choose(means)
        changed = compare(readings[off].metric, readings[best].metric, held_out, test)
        verdict = _verdict(best, changed, test)
        if means[best] is None or not changed["n"]:
            verdict = NO_QUERIES
        rows.append({"subset": subset, "routing": best.routing, "verdict": verdict, **changed})
    return rows


def _verdict(best: Configuration, changed: Mapping[str, Any], test: Test) -> str:
    if not best.routing:
        return OFF
    if changed["p"] is None or changed["p"] >= test.level:
        return OPEN
    return HELPS if changed["difference"] > 0 else HARMS


def _sides(queries: Collection[str], split: Split) -> Sequence[list[str]]:
    wanted = frozenset(queries)
    return [[q for q in s.queries if q in wanted] for s in (split.development, split.held_out)]


def _means(reading: Reading, queries: Sequence[str]) -> dict[str, Any]:
    recall = reading.routing_recall
    return {
        "n": len(queries),
        "routing_recall": None if recall is None else mean_over(recall, queries),
        "value": mean_over(reading.metric, queries),
        "chars": mean_over(reading.chars, queries),
    }
