"""The checks between tables that look at one row after another: what is sound, and each fault."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.measures import consistency

Row = dict[str, Any]

BARELY, TOO_MUCH = 5e-13, 2e-12
"""Within the tolerance of a recomputed mean, 1e-12, and beyond it."""


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def place(span_no: int, start: int, end: int, query: str = "q", doc: str = "A") -> Row:
    return {
        "query_id": query,
        "span_no": span_no,
        "doc_id": doc,
        "start_char": start,
        "end_char": end,
    }


def outcome(covered: int, *at: Any, config: str = "c", **more: Any) -> Row:
    return {"config": config, "covered_chars": covered} | place(*at, **more)


GOLD = table(place(0, 0, 10), place(1, 20, 25))


def test_outcomes_of_each_gold_span_once_within_its_length() -> None:
    assert (
        consistency.wrong_outcomes(table(outcome(0, 0, 0, 10), outcome(5, 1, 20, 25)), GOLD) == []
    )
    low, high = outcome(-1, 0, 0, 10), outcome(6, 1, 20, 25)
    assert consistency.wrong_outcomes(table(low, high), GOLD) == [low, high]


def test_outcomes_of_another_place_and_absent_ones() -> None:
    moved = outcome(3, 0, 1, 10)
    found = consistency.wrong_outcomes(table(moved), GOLD)
    assert found == [
        place(0, 0, 10) | {"problem": "absent"},
        place(1, 20, 25) | {"problem": "absent"},
        moved,
    ]


def metric(name: str, value: float | None, query: str = "q", **more: Any) -> Row:
    return {"config": "c", "query_id": query, "metric": name, "k": 5, "value": value} | more


def unlike(rows: list[Row], *outcomes: Row) -> list[Row]:
    return consistency.metrics_unlike_outcomes(table(*rows), table(*outcomes))


# 5 of 10 are exactly half, 4 of 20 are not: 9 of 30 characters, one span of two.
HALF = (outcome(5, 0, 0, 10), outcome(4, 1, 20, 40))


@pytest.mark.parametrize(
    ("name", "value", "outcomes"),
    [
        ("span_coverage", 9 / 30, HALF),
        ("span_recall", 1 / 2, HALF),
        ("complete_grounding", 0.0, HALF),
        ("complete_grounding", 1.0, (outcome(5, 0, 0, 10), outcome(10, 1, 20, 40))),
        ("span_coverage", 1.0, (outcome(1, 0, 0, 1),)),
        ("span_recall", 1.0, (outcome(1, 0, 0, 1),)),
        # Another configuration's outcome, and another query's, say nothing of this one.
        ("span_coverage", 0.0, (outcome(5, 0, 0, 10, config="d"),)),
        ("span_recall", 0.0, (outcome(5, 0, 0, 10, query="r"),)),
        ("complete_grounding", 0.0, (outcome(5, 0, 0, 10, query="r"),)),
    ],
)
def test_span_metrics_that_follow_and_those_that_do_not(
    name: str, value: float, outcomes: tuple[Row, ...]
) -> None:
    other = metric("precision", 0.123)  # does not follow from spans
    assert unlike([other, metric(name, value)], *outcomes) == []
    assert unlike([other, metric(name, value + BARELY)], *outcomes) == []
    for wrong in (metric(name, value + TOO_MUCH), metric(name, value - 0.5), metric(name, None)):
        assert unlike([other, wrong], *outcomes) == [wrong | {"expected": pytest.approx(value)}]


def forensic(query: str, label: str, k: int = 5, config: str = "c") -> Row:
    return {"config": config, "query_id": query, "k": k, "label": label}


def failure(query: str, label: str, config: str = "c") -> Row:
    return {"config": config, "query_id": query, "label": label}


def cross(failing: str | None, label: str, n: int, config: str = "c") -> Row:
    return {
        "config": config,
        "failure_label": failing,
        "forensic_label": label,
        "n_queries": n,
    }


FORENSIC = table(
    forensic("q1", "DRM", k=1),
    forensic("q1", "OK"),
    forensic("q2", "SGP"),
    forensic("q3", "OK"),
    forensic("q4", "SGP"),
    forensic("q1", "ICR", config="all fail"),
)
FAILURE = table(
    failure("q2", "rank-miss"),
    failure("q4", "chunk-severance"),
    failure("q1", "rank-miss", config="all fail"),
    failure("q1", "rank-miss", config="not as deep as 5"),
)
CROSS = (
    cross("rank-miss", "ICR", 1, config="all fail"),
    cross(None, "OK", 2),
    cross("chunk-severance", "SGP", 1),
    cross("rank-miss", "SGP", 1),
)


def test_pairs_of_labels_sum_to_the_queries_that_have_them() -> None:
    assert consistency.wrong_label_cross(table(*CROSS), FAILURE, FORENSIC) == []
    fewer = (*CROSS[:1], cross(None, "OK", 1), *CROSS[2:])
    assert consistency.wrong_label_cross(table(*fewer), FAILURE, FORENSIC) == [
        {"config": "c", "forensic_label": "OK", "counted": 1, "queries": 2},
        {"config": "c", "failure_label": None, "counted": 1, "queries": 2},
    ]
    # A pair that nobody has, and one that is not there.
    other = (*CROSS[:3], cross("retrieval-miss", "ICR", 1))
    assert consistency.wrong_label_cross(table(*other), FAILURE, FORENSIC) == [
        {"config": "c", "forensic_label": "ICR", "counted": 1, "queries": 0},
        {"config": "c", "forensic_label": "SGP", "counted": 1, "queries": 2},
        {"config": "c", "failure_label": "rank-miss", "counted": 0, "queries": 1},
        {"config": "c", "failure_label": "retrieval-miss", "counted": 1, "queries": 0},
    ]


LEVERS = {"severed": "chunking", "bound": None}


def test_labels_with_their_lever_and_evidence() -> None:
    evidence = json.dumps({"failed_spans": [{}]})
    sound = [
        {"label": "severed", "lever": "chunking", "evidence": evidence},
        {"label": "bound", "lever": None, "evidence": evidence},
    ]
    wrong = [
        {"label": "severed", "lever": None, "evidence": evidence},
        {"label": "bound", "lever": "chunking", "evidence": evidence},
        {"label": "unheard of", "lever": None, "evidence": evidence},
        *(
            {"label": "severed", "lever": "chunking", "evidence": unsound}
            for unsound in ("no JSON", "{}", "[]", '{"failed_spans": []}', None)
        ),
    ]
    assert consistency.malformed_labels(table(*sound), LEVERS) == []
    for row in wrong:
        assert consistency.malformed_labels(table(*sound, row), LEVERS) == [row]


CHUNKS = table({"chunker": "x"}, {"chunker": "y"}, {"chunker": "x"})


@pytest.mark.parametrize(
    ("stat", "sound", "wrong"),
    [
        ("n_chunks", [2], [0, 1, 3, None]),
        ("median_chars", [None, 0, 700], [-1]),
        ("relevant_per_query", [None, 0, 1.5], [-0.5]),
        ("documents_without_header", [None, 0, 3], [-1]),
        ("spans_contained", [None, 0, 0.5, 1], [-0.1, 1.1]),
    ],
)
def test_statistics_of_chunkers(
    stat: str, sound: list[float | None], wrong: list[float | None]
) -> None:
    def row(value: float | None) -> Row:
        return {"chunker": "x", "stat": stat, "value": value}

    rows = [row(value) for value in sound]
    assert consistency.wrong_chunk_stats(table(*rows), CHUNKS) == []
    for value in wrong:
        assert consistency.wrong_chunk_stats(table(*rows, row(value)), CHUNKS) == [row(value)]


def grounding(config: str, query: str, value: float, **more: Any) -> Row:
    return metric("complete_grounding", value, query, config=config) | more


GROUNDED = table(
    # Neither another metric nor another depth counts.
    *(metric("recall", 0.5, query, config="b", k=5) for query in ("q1", "q2")),
    *(grounding("b", query, 0.5, k=1) for query in ("q1", "q2")),
    # q1 and q4 are fixed, q2 is broken, q3 stays.
    *(
        grounding("a", query, value)
        for query, value in (("q4", 0), ("q3", 1), ("q2", 1), ("q1", 0))
    ),
    *(
        grounding("b", query, value)
        for query, value in (("q4", 1), ("q3", 1), ("q2", 0), ("q1", 1))
    ),
    # What only one of the two was asked counts as 0 in the other.
    grounding("left", "q1", 1),
    grounding("left", "q2", 0),
    grounding("right", "q3", 1),
    grounding("right", "q4", 0),
    grounding("one", "q1", 1),
    grounding("none", "q1", 0),
)


def pair(before: str, after: str, fixed: list[str], broken: list[str], delta: float) -> Row:
    return {
        "from_config": before,
        "to_config": after,
        "lever": "chunking",
        "fixed_queries": fixed,
        "broken_queries": broken,
        "fixed": len(fixed),
        "broken": len(broken),
        "delta": delta,
    }


PAIRS = [
    pair("a", "b", ["q1", "q4"], ["q2"], 0.25),
    pair("left", "right", ["q3"], ["q1"], 0.0),
    pair("none", "one", ["q1"], [], 1.0),
    pair("unknown", "unknown", [], [], 0.0),
]


def test_comparisons_that_follow_from_the_grounded_queries() -> None:
    assert consistency.wrong_pairs(table(*PAIRS), GROUNDED) == []
    barely = PAIRS[0] | {"delta": 0.25 + BARELY}
    assert consistency.wrong_pairs(table(barely), GROUNDED) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"fixed_queries": ["q1"]},
        {"broken_queries": []},
        {"fixed": 1},
        {"broken": 2},
        {"delta": 0.25 + TOO_MUCH},
        {"delta": -0.25},
        {"lever": "luck"},
    ],
    ids=str,
)
def test_a_comparison_that_does_not_follow(wrong: Row) -> None:
    row = PAIRS[0] | wrong
    assert consistency.wrong_pairs(table(row, *PAIRS[1:]), GROUNDED) == [
        row | {"expected": {"delta": 0.25, "fixed": ["q1", "q4"], "broken": ["q2"]}}
    ]


def test_configurations_of_one_side_alone() -> None:
    of = table({"config": "a"}, {"config": "a"}, {"config": "c"})
    assert consistency.unknown_configurations(of, ["c", "a"]) == []
    assert consistency.unknown_configurations(of, ["a", "b"]) == [
        {"config": "b", "in_experiment": True},
        {"config": "c", "in_experiment": False},
    ]


def test_statistics_outside_their_range() -> None:
    def row(value: float | None, stat: str = "share") -> Row:
        return {"stat": stat, "value": value}

    sound = [row(0.0), row(1.0), row(None), row(1 + BARELY), row(7.0, "count"), row(0.0, "count")]
    wrong = [row(-0.1), row(1 + TOO_MUCH), row(-1.0, "count")]
    assert consistency.out_of_unit(table(*sound), "count") == []
    assert consistency.out_of_unit(table(*sound, *wrong), "count") == wrong
    assert consistency.out_of_unit(table(*sound)) == [row(7.0, "count")]


TYPES = table(
    {"query_id": "q1", "clause_type": "Audit"},
    {"query_id": "q2", "clause_type": "Audit"},
    {"query_id": "q3", "clause_type": "Audit"},
    {"query_id": "q4", "clause_type": "Term"},
    {"query_id": "q5", "clause_type": None},
)
# Of Audit one value is undefined; of Term the only one is; the last query has no clause type.
VALUES = table(
    metric("recall", None, "q1"),
    metric("recall", 1.0, "q2"),
    metric("recall", 0.5, "q3"),
    metric("recall", None, "q4"),
    metric("recall", 0.0, "q5"),
    metric("recall", 0.0, "q2", k=1),
    metric("mrr", 0.0, "q2"),
    metric("recall", 0.0, "q2", config="d"),
)


def mean_of(kind: str, value: float | None, n: int) -> Row:
    return {
        "config": "c",
        "clause_type": kind,
        "metric": "recall",
        "k": 5,
        "value": value,
        "n_queries": n,
    }


def test_means_of_a_clause_type() -> None:
    def wrong(*rows: Row) -> list[Row]:
        return consistency.metric_means_by_type(table(*rows), VALUES, TYPES)

    audit, term = mean_of("Audit", 0.75, 2), mean_of("Term", None, 0)
    assert wrong(audit, term) == wrong(mean_of("Audit", 0.75 + BARELY, 2), term) == []
    for row in (
        mean_of("Audit", 0.75 + TOO_MUCH, 2),
        mean_of("Audit", 0.5, 2),
        mean_of("Audit", None, 2),
        mean_of("Audit", 0.75, 3),
    ):
        assert wrong(term, row) == [row | {"expected": 0.75}]
    for row in (mean_of("Term", 0.0, 0), mean_of("Term", None, 1)):
        assert wrong(audit, row) == [row | {"expected": None}]
