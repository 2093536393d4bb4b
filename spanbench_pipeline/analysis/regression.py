"""The current run against the accepted one: what may be compared, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline.analysis.aggregate import mean
from spanbench_pipeline.analysis.fingerprints import Prints, by_config, differing
from spanbench_pipeline.analysis.significance import Change, change
from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.metrics.joins import require_one

COMPARABLE = "comparable"
ACROSS = ", with "
"""What follows ``comparable`` where a difference has to be known to read the two values."""
"""Metrics that count chunks: another chunker or encoder makes another measure of them."""
"""Metrics of which neither more nor less is better: they change, and no more is said."""

PASS, CHANGED, REGRESSION, IMPROVED = "pass", "changed", "regression", "improved"
NOT_COMPARABLE, NOT_ACCEPTED = "not comparable", "not accepted"
NEW, MISSING = "new configuration", "missing configuration"
VERDICTS = (PASS, CHANGED, REGRESSION, IMPROVED, NOT_COMPARABLE, NOT_ACCEPTED, NEW, MISSING)

SLACK = 1e-12
"""A fall that reaches the minimum effect but for rounding has reached it."""

Metric = tuple[str, int | None]
Values = dict[str, float | None]
"""query -> value; None where it is undefined"""


@dataclass(frozen=True)
class Rule:
    """When a change counts: p below ``level`` and a mean that moved by ``minimum_effect``."""

    level: float
    minimum_effect: float
    rounds: int
    seed: int


@dataclass(frozen=True)
class Run:
    """One run: per-query values, and the fingerprints of every configuration it knew.

    ``states`` says why a configuration has no values, where the run knows.
    """

    query_metrics: pa.Table
    fingerprints: pa.Table
    states: Mapping[str, str]


def regression(accepted: Run, current: Run, rule: Rule, *, corpus: str) -> pa.Table:
    """Return the table ``regression``: a row for each metric that either run has of a
    configuration.

    Only queries with a defined value in both runs enter n, the means, the difference, its interval
    and p; one that became defined or undefined is a change, named among the changed. Verdicts:

    - ``regression``: the mean fell by ``minimum_effect`` or more, and p < ``level``;
    - ``improved``: the mean rose so; ``changed``: some query's value changed, but neither holds,
      or the metric is a cost;
      ``pass``: every query has its accepted value;
    - ``not comparable``: ``comparable`` says why; both means are then over all defined values;
    - ``new configuration``: the accepted run did not know it; ``not accepted``: it knew it, but had
      not measured it; ``missing configuration``: accepted, and not measured now.

    Raises ValueError where the two runs claim the same queries and have others.
    """
    require_one(pa.concat_tables([accepted.query_metrics, current.query_metrics]), "corpus")
    before, after = _values(accepted.query_metrics), _values(current.query_metrics)
    prints = by_config(accepted.fingerprints), by_config(current.fingerprints)
    rows = []
    for config in sorted(before.keys() | after.keys()):
        absent = _absent(config, before, after, prints[0], current.states)
        metrics = before.get(config, {}).keys() | after.get(config, {}).keys()
        for metric in metrics:
            old, new = (run.get(config, {}).get(metric) for run in (before, after))
            verdict, why = absent or _comparable(config, metric, old, new, *prints)
            judged = (
                _compared(metric[0], old, new, rule)
                if old is not None and new is not None and verdict == PASS
                else {**_side_by_side(old, new), "verdict": verdict}
            )
            name, k = metric
            head = {"corpus": corpus, "config": config, "metric": name, "k": k}
            rows.append({**head, "comparable": why, **judged})
    return tables.from_rows("regression", rows)


def _values(query_metrics: pa.Table) -> dict[str, dict[Metric, Values]]:
    found: dict[str, dict[Metric, Values]] = defaultdict(lambda: defaultdict(dict))
    columns = ("config", "metric", "k", "query_id", "value")
    for config, metric, k, query, value in zip(
        *(query_metrics[c].to_pylist() for c in columns), strict=True
    ):
        found[config][metric, k][query] = value
    return {config: dict(metrics) for config, metrics in found.items()}


def _absent(
    config: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    known: Mapping[str | None, Prints],
    states: Mapping[str, str],
) -> tuple[str, str] | None:
    """Verdict and reason where only one of the runs measured the configuration."""
    if config not in after:
        return MISSING, states.get(config, "the experiment no longer has this configuration")
    if config in before:
        return None
    if config in known:
        return NOT_ACCEPTED, "the accepted run had not measured it; accept anew"
    return NEW, "the accepted run does not know this configuration; accept anew"


def _comparable(
    config: str,
    metric: Metric,
    old: Values | None,
    new: Values | None,
    before: Mapping[str | None, Prints],
    after: Mapping[str | None, Prints],
) -> tuple[str, str]:
    """Return ``pass`` and ``comparable`` where both values are of one measure, else why they are
    not.
    """
    if others := differing(before[None], after[None], ("documents", "queries", "gold_spans")):
        return NOT_COMPARABLE, f"not comparable, accept anew: other {' and '.join(others)}"
    past = _past_depth(metric, before[None], after[None])
    other = _contexts(before[None], after[None])
    if old is None:
        said = f" ({past or other})" if past or other else ""
        return NOT_ACCEPTED, f"the accepted run does not have this metric{said}; accept anew"
    if past:
        return NOT_COMPARABLE, f"not comparable: {past}; accept anew"
    if new is None:
        said = f" ({other})" if other else ""
        return NOT_COMPARABLE, f"this run does not have this metric{said}; accept anew"
    reasons = _other_measure(metric[0], before[config], after[config])
    if metric[0] == "mrr" and (why := _depths(before[None], after[None])):
        reasons.append(why)
    if reasons:
        return NOT_COMPARABLE, f"not comparable: {'; '.join(reasons)}"
    if metric[1] is not None and differing(before[config], after[config], ("chunks",)):
        cut = _cut(before[config], after[config])
        return PASS, f"{COMPARABLE}{ACROSS}{cut}: the first k hold another amount of text"
    return PASS, COMPARABLE


def _past_depth(metric: Metric, before: Prints, after: Prints) -> str:
    """Return why one of the runs has no value at this k, whatever it stored; empty where both have
    one.
    """
    name, k = metric
    shallower = min(int(before["depth"]), int(after["depth"]))
    if name in registry.of_documents() or not (why := unreached(k, shallower)):
        return ""
    return _depths(before, after) or why


def _contexts(before: Prints, after: Prints) -> str:
    """Return how many chunks a reader is given in two runs, where that differs; else empty."""
    contexts = [run.get("context", str(CONTEXT)) for run in (before, after)]
    return "" if contexts[0] == contexts[1] else f"context {contexts[0]} before, {contexts[1]} now"


def _depths(before: Prints, after: Prints) -> str:
    """Return how deep the lists go in two runs, where that differs; else empty."""
    depths = int(before["depth"]), int(after["depth"])
    return "" if depths[0] == depths[1] else f"depth {depths[0]} before, {depths[1]} now"


def _other_measure(metric: str, before: Prints, after: Prints) -> list[str]:
    """Return why a metric that counts chunks is another measure now; [] for one that does not."""
    if metric not in registry.chunk_counting():
        return []
    reasons = []
    if differing(before, after, ("chunks",)):
        reasons.append(_cut(before, after))
    # Without a dense channel in both runs there is no encoder that could have changed.
    both = "encoder" in before and "encoder" in after
    if both and differing(before, after, ("encoder_weights",)):
        named = before["encoder"], after["encoder"]
        reasons.append(
            f"other weights of the encoder {named[0]}"
            if named[0] == named[1]
            else f"another encoder ({named[0]} before, {named[1]} now)"
        )
    return [f"{reason}, and {metric} counts chunks" for reason in reasons]


def _cut(before: Prints, after: Prints) -> str:
    cut = [f"{run['n_chunks']} by {run['chunker']}" for run in (before, after)]
    return f"other chunks ({cut[0]} before, {cut[1]} now)"


def _side_by_side(old: Values | None, new: Values | None) -> dict[str, Any]:
    """Return what stands in a row that compares nothing: each run's own mean."""
    return {
        "n": None,
        "accepted": None if old is None else _mean(old.values()),
        "current": None if new is None else _mean(new.values()),
        **dict.fromkeys(("difference", "low", "high", "p")),
        "n_changed": 0,
        "broken_queries": [],
        "fixed_queries": [],
        "changed_queries": [],
    }


def _compared(metric: str, old: Values, new: Values, rule: Rule) -> dict[str, Any]:
    if old.keys() != new.keys():
        raise ValueError(f"queries do not match, the first is {min(old.keys() ^ new.keys())}")
    changed = sorted(q for q in old if old[q] != new[q])
    pairs = {q: (a, b) for q in old if (a := old[q]) is not None and (b := new[q]) is not None}
    differences = {q: b - a for q, (a, b) in pairs.items()}
    found = change(list(differences.values()), level=rule.level, rounds=rule.rounds, seed=rule.seed)
    return {
        "n": len(pairs),
        "accepted": _mean(a for a, _ in pairs.values()),
        "current": _mean(b for _, b in pairs.values()),
        "difference": found and found.difference,
        "low": found and found.low,
        "high": found and found.high,
        "p": found and found.p,
        "verdict": _verdict(metric, found, rule, bool(changed)),
        "n_changed": len(changed),
        "broken_queries": sorted(q for q, d in differences.items() if d < 0),
        "fixed_queries": sorted(q for q, d in differences.items() if d > 0),
        "changed_queries": changed,
    }


def _verdict(metric: str, found: Change | None, rule: Rule, changed: bool) -> str:
    if not changed:
        return PASS
    if metric in registry.names(lambda metric: not metric.is_quality):
        return CHANGED
    if found is None or not found.difference or found.p >= rule.level:
        return CHANGED
    if abs(found.difference) < rule.minimum_effect - SLACK:
        return CHANGED
    return REGRESSION if found.difference < 0 else IMPROVED


def _mean(values: Iterable[float | None]) -> float | None:
    return mean([v for v in values if v is not None])
