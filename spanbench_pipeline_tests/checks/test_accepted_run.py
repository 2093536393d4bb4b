"""The checks of fingerprints, comparisons and history: what is sound, and each fault."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.checks import accepted_run

Row = dict[str, Any]

FINGERPRINTS = [
    {"config": None, "name": "n_documents", "value": "3"},
    {"config": None, "name": "n_queries", "value": "2"},
    {"config": None, "name": "span_numbers", "value": "0f2a"},  # no count
    {"config": "a", "name": "chunker", "value": "naive"},
    {"config": "a", "name": "n_chunks", "value": "7"},
    {"config": "b", "name": "chunker", "value": "clause"},
    {"config": "b", "name": "n_chunks", "value": "5"},
]
COUNTS = {"documents": 3, "queries": 2, "naive": 7, "clause": 5}


def wrong_counts(rows: list[Row], configurations: list[str]) -> list[Row]:
    table = pa.Table.from_pylist(rows)
    return accepted_run.wrong_counts(table, COUNTS, configurations)


def test_counts_are_those_of_the_tables() -> None:
    assert wrong_counts(FINGERPRINTS, ["b", "a"]) == []
    for at, expected in ((0, 3), (1, 2), (4, 7), (6, 5)):
        wrong = FINGERPRINTS[at] | {"value": "9"}
        rows = [*FINGERPRINTS[:at], wrong, *FINGERPRINTS[at + 1 :]]
        assert wrong_counts(rows, ["a", "b"]) == [wrong | {"expected": expected}]


def test_counts_of_configurations_that_are_not_there() -> None:
    problem = {"problem": "not in the table and the experiment alike"}
    assert wrong_counts(FINGERPRINTS, ["c", "a"]) == [
        {"config": "b"} | problem,
        {"config": "c"} | problem,
    ]
    # A count of a configuration that names no chunker is a count of nothing.
    lost = {"config": "z", "name": "n_chunks", "value": "5"}
    assert wrong_counts([*FINGERPRINTS, lost], ["a", "b"]) == [lost | {"expected": None}]


def values(name: str, *of: float | None) -> list[Row]:
    return [
        {"config": "a", "metric": name, "k": 5, "query_id": f"q{n}", "value": value}
        for n, value in enumerate(of, 1)
    ]


def compared(name: str, **columns: Any) -> Row:
    """Of 1, 1, 0, 0 and then 0, 1, 0, 0: a quarter less; the fifth query was undefined before."""
    return {
        "config": "a",
        "metric": name,
        "k": 5,
        "n": 4,
        "accepted": 0.5,
        "current": 0.25,
        "difference": -0.25,
        "p": 0.04,
        "low": -0.5,
        "high": 0.0,
        "verdict": "regression",
        "changed_queries": ["q1", "q5"],
        "n_changed": 2,
    } | columns


BEFORE = pa.Table.from_pylist(
    [
        *values("worse", 1, 1, 0, 0, None),
        *values("better", 0, 1, 0, 0, 1),
        *values("same", 1, 0),
        *values("undefined", None, None),
        *values("chars_retrieved", 1, 1, 0, 0, None),
    ]
)
AFTER = pa.Table.from_pylist(
    [
        *values("worse", 0, 1, 0, 0, 1),
        *values("better", 1, 1, 0, 0, None),
        *values("same", 1, 0),
        *values("undefined", None, 1),
        *values("chars_retrieved", 0, 1, 0, 0, 1),
    ]
)
WORSE = compared("worse")
BETTER = compared(
    "better", accepted=0.25, current=0.5, difference=0.25, low=0.0, high=0.5, verdict="improved"
)
NOTHING: Row = dict.fromkeys(("accepted", "current", "difference", "p", "low", "high"))
SAME = compared("same", n=2, n_changed=0, changed_queries=[], verdict="pass") | {
    "accepted": 0.5,
    "current": 0.5,
    "difference": 0.0,
    "p": 1.0,
    "low": 0.0,
}
UNDEFINED = (
    compared("undefined", n=0, n_changed=1, changed_queries=["q2"], verdict="changed") | NOTHING
)
# Of characters retrieved fewer are no loss, however sure the difference.
CHARS = compared("chars_retrieved", verdict="changed")
NOT_COMPARED = compared("worse", n=None, verdict="not comparable")
SOUND = [NOT_COMPARED, WORSE, BETTER, SAME, UNDEFINED, CHARS]


def problems(*rows: Row, level: float = 0.05, effect: float = 0.02) -> list[Row]:
    table = pa.Table.from_pylist(list(rows))
    return accepted_run.wrong_comparisons(table, BEFORE, AFTER, level=level, effect=effect)


def test_comparisons_that_follow_from_both_runs() -> None:
    assert problems(*SOUND) == []
    assert problems(UNDEFINED | {"verdict": "pass"}) == []


@pytest.mark.parametrize(
    ("row", "changes", "problem"),
    [
        (WORSE, {"n": 5}, "4 queries have both values, 2 changed"),
        (WORSE, {"changed_queries": ["q1"]}, "4 queries have both values, 2 changed"),
        (WORSE, {"n_changed": 1}, "2 queries changed"),
        (UNDEFINED, {"verdict": "regression"}, "nothing was compared"),
        (WORSE, {"accepted": 0.6}, "the means are 0.5 and 0.25"),
        (WORSE, {"current": 0.3}, "the means are 0.5 and 0.25"),
        (WORSE, {"difference": 0.25}, "the means are 0.5 and 0.25"),
        (WORSE, {"difference": -0.25 + 2e-12}, "the means are 0.5 and 0.25"),
        (WORSE, {"p": 0.0}, "p or the interval is out of range"),
        (WORSE, {"p": 1.1}, "p or the interval is out of range"),
        (WORSE, {"low": 0.5}, "p or the interval is out of range"),
        (WORSE, {"verdict": "changed"}, "the verdict is regression"),
        (BETTER, {"verdict": "regression"}, "the verdict is improved"),
        (WORSE, {"p": 0.05}, "the verdict is changed"),
        (WORSE, {"p": 1.0}, "the verdict is changed"),
        (SAME, {"verdict": "changed"}, "the verdict is pass"),
        (CHARS, {"verdict": "regression"}, "the verdict is changed"),
    ],
)
def test_a_comparison_that_does_not_follow(row: Row, changes: Row, problem: str) -> None:
    wrong = row | changes
    shown = ("config", "metric", "k", "n", "accepted", "current", "p", "verdict")
    assert problems(*SOUND, wrong) == [{key: wrong[key] for key in shown} | {"problem": problem}]


def test_a_difference_as_large_as_asked_for_counts() -> None:
    assert problems(WORSE, effect=0.25) == []
    assert problems(WORSE | {"low": 0.0}, effect=0.25 + 5e-13) == []
    (wrong,) = problems(WORSE, effect=0.26)
    assert wrong["problem"] == "the verdict is changed"


def test_a_history_that_is_not_what_was_measured() -> None:
    measured = [{"config": "a", "value": 0.5}, {"config": "b", "value": None}]
    recorded = [row | {"run": 1} for row in measured]

    def unlike(recorded: list[Row], measured: list[Row]) -> list[Row]:
        tables = pa.Table.from_pylist(recorded), pa.Table.from_pylist(measured)
        return accepted_run.not_the_metrics(*tables)

    assert unlike(recorded, measured) == []
    more = [{"config": "c", "value": value, "run": 1} for value in (None, 1.0)]
    assert unlike([recorded[0] | {"value": 0.25}, *more, recorded[1]], measured) == [
        {"config": "a", "value": 0.25, "problem": "recorded, and not measured"},
        {"config": "c", "value": 1.0, "problem": "recorded, and not measured"},
        {"config": "c", "value": None, "problem": "recorded, and not measured"},
        {"config": "a", "value": 0.5, "problem": "measured, and not recorded"},
    ]
