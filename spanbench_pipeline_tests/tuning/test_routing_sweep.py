"""Whether routing helps, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spanbench_pipeline.tuning import objective, routing_sweep
from spanbench_pipeline.tuning.routing_sweep import Reading
from spanbench_pipeline.tuning.splits import Side, Split
from spanbench_pipeline_tests.tuning.test_objective import TEST, at


def sides(development: str, held_out: str) -> Split:
    return Split(Side(tuple(development), ()), Side(tuple(held_out), ()))


def reading(values: str, queries: str, **rest: dict[str, float | None]) -> Reading:
    metric = {q: float(v) for q, v in zip(queries, values, strict=True)}
    return Reading(metric, dict.fromkeys(queries, 100.0), rest.get("recall"))


QUERIES = "abcd" + "ABCDEFGH"
SPLIT = sides("abcd", "ABCDEFGH")
OFF = reading("0000" + "00000000", QUERIES)


def verdict(
    after: str, split: Split = SPLIT, parts: dict | None = None, test: objective.Test = TEST
) -> list:
    recall: dict[str, float | None] = dict.fromkeys(QUERIES, 0.75)
    readings = {at(0.2): OFF, at(0.4, 3): reading(after, QUERIES, recall=recall)}
    rows = routing_sweep.verdicts(readings, parts or {None: QUERIES}, split, test)
    return [(row["subset"], row["routing"], row["verdict"]) for row in rows]


def test_verdicts_by_hand():
    # Of 2^6 sign patterns of six differences one reaches all six: p = 1/64. Of four: 1/16.
    assert verdict("0000" + "11111111") == [(None, 0, "off is best")]
    assert verdict("1000" + "11111100") == [(None, 3, "helps")]
    at_the_level = replace(TEST, level=1 / 64)
    assert verdict("1000" + "11111100", test=at_the_level) == [(None, 3, "not shown")]
    assert verdict("1000" + "11110000") == [(None, 3, "not shown")]
    assert verdict("1000" + "00000000") == [(None, 3, "not shown")]
    parts = {None: QUERIES, "up": "abABCDEF", "gone": "cd", "none": "GH"}
    found = verdict("1100" + "11111100", parts=parts)
    assert found == [
        (None, 3, "helps"),
        ("up", 3, "helps"),
        ("gone", 0, "no queries"),
        ("none", 0, "no queries"),
    ]


def test_routing_that_harms():
    readings = {
        at(0.2): reading("0000" + "11111111", QUERIES),
        at(0.2, 5): reading("1000" + "00000011", QUERIES),
    }
    (found,) = routing_sweep.verdicts(readings, {None: QUERIES}, SPLIT, TEST)
    assert (found["verdict"], found["routing"], found["p"]) == ("harms", 5, 1 / 64)


def test_a_sweep_by_hand():
    recall: dict[str, float | None] = dict.fromkeys(QUERIES, 1.0) | {"a": 0.0, "A": 0.5}
    readings = {at(0.2): OFF, at(0.4, 3): reading("1000" + "11000000", QUERIES, recall=recall)}
    off, three = routing_sweep.sweep(readings, {None: QUERIES}, SPLIT, TEST)
    assert off["change"] is None
    assert off["subset"] is three["subset"] is None
    named = routing_sweep.sweep(readings, {"part": "aA"}, SPLIT, TEST)
    assert [row["subset"] for row in named] == ["part", "part"]
    assert (off["routing"], off["routing_alpha"], off["alpha"]) == (0, None, 0.2)
    assert off["held_out"] == {"n": 8, "routing_recall": None, "value": 0, "chars": 100}
    assert (three["routing"], three["routing_alpha"], three["alpha"]) == (3, 0.3, 0.4)
    assert three["development"] == {"n": 4, "routing_recall": 0.75, "value": 0.25, "chars": 100}
    assert three["held_out"]["routing_recall"] == 7.5 / 8
    assert three["held_out"]["value"] == 0.25
    assert (three["change"]["difference"], three["change"]["p"]) == (0.25, 0.25)
    with pytest.raises(ValueError, match="keeps 3 documents, not all"):
        routing_sweep.sweep(dict(reversed(readings.items())), {None: QUERIES}, SPLIT, TEST)
