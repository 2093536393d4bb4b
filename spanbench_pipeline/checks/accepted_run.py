"""What must hold of fingerprints, of the comparison with the accepted run, and of the history.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pyarrow as pa

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows

Pairs = dict[str, tuple[float | None, float | None]]
"""query -> (accepted value, current value)"""


def wrong_counts(
    fingerprints: pa.Table, rows_of: Mapping[str, int], configurations: Sequence[str]
) -> Rows:
    """Count that are not the tables' (``rows_of``: documents, queries, each chunker's chunks).

    Also configurations without fingerprints, and fingerprints of none of them.
    """
    chunker = {r["config"]: r["value"] for r in fingerprints.to_pylist() if r["name"] == "chunker"}
    wrong: Rows = []
    for row in fingerprints.to_pylist():
        kind, _, counted = row["name"].partition("n_")
        if kind or not counted:
            continue
        table = counted if row["config"] is None else chunker.get(row["config"], "")
        expected = rows_of.get(table)
        if row["value"] != str(expected):
            wrong.append({**row, "expected": expected})
    unmatched = set(chunker) ^ set(configurations)
    return wrong + [
        {"config": c, "problem": "not in the table and the experiment alike"}
        for c in sorted(unmatched)
    ]


def wrong_comparisons(
    regression: pa.Table, accepted: pa.Table, current: pa.Table, *, level: float, effect: float
) -> Rows:
    """Return compared rows whose figures or verdict do not follow from both runs' query metrics."""
    pairs = _pairs(accepted, current)
    wrong: Rows = []
    for row in regression.to_pylist():
        if row["n"] is None:
            continue
        problem = _problem(row, pairs[row["config"], row["metric"], row["k"]], level, effect)
        if problem:
            shown = ("config", "metric", "k", "n", "accepted", "current", "p", "verdict")
            wrong.append({key: row[key] for key in shown} | {"problem": problem})
    return wrong


def _pairs(accepted: pa.Table, current: pa.Table) -> dict[tuple[Any, ...], Pairs]:
    found: dict[tuple[Any, ...], Pairs] = defaultdict(dict)
    old = {_cell(row): row["value"] for row in accepted.to_pylist()}
    for row in current.to_pylist():
        *metric, query = _cell(row)
        found[tuple(metric)][query] = (old.get(_cell(row)), row["value"])
    return found


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["config"], row["metric"], row["k"], row["query_id"]


def _problem(row: Mapping[str, Any], pairs: Pairs, level: float, effect: float) -> str:
    """Return what is wrong with a compared row; empty where nothing is."""
    both = [(a, b) for a, b in pairs.values() if a is not None and b is not None]
    changed = sorted(query for query, (a, b) in pairs.items() if a != b)
    if row["n"] != len(both) or row["changed_queries"] != changed:
        return f"{len(both)} queries have both values, {len(changed)} changed"
    if row["n_changed"] != len(changed):
        return f"{len(changed)} queries changed"
    if not both:
        return "" if row["verdict"] in ("pass", "changed") else "nothing was compared"
    means = fmean(a for a, _ in both), fmean(b for _, b in both)
    stated = row["accepted"], row["current"], row["difference"]
    for value, expected in zip(stated, (*means, means[1] - means[0]), strict=True):
        if not abs(value - expected) <= TOLERANCE:
            return f"the means are {means[0]} and {means[1]}"
    if not (0 < row["p"] <= 1 and row["low"] <= row["high"]):
        return "p or the interval is out of range"
    moved = row["p"] < level and abs(row["difference"]) >= effect - TOLERANCE
    moved = moved and row["metric"] != "chars_retrieved"  # of which less is not worse
    judged = ("regression" if row["difference"] < 0 else "improved") if moved else "changed"
    expected_verdict = judged if changed else "pass"
    return "" if row["verdict"] == expected_verdict else f"the verdict is {expected_verdict}"


def not_the_metrics(metric_history: pa.Table, config_metrics: pa.Table) -> Rows:
    """Return rows of a run's history that ``config_metrics`` does not have, and the other way
    round.
    """
    names = config_metrics.column_names

    def rows(table: pa.Table) -> set[tuple[Any, ...]]:
        return set(zip(*(table[name].to_pylist() for name in names), strict=True))

    recorded, measured = rows(metric_history), rows(config_metrics)
    return [
        dict(zip(names, row, strict=True)) | {"problem": problem}
        for odd, problem in (
            (recorded - measured, "recorded, and not measured"),
            (measured - recorded, "measured, and not recorded"),
        )
        for row in sorted(odd, key=str)
    ]
