"""The checks between tables that look at one row after another: what is sound, and each fault."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.checks import consistency

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
    return {"config": config, "k": 5, "covered_chars": covered} | place(*at, **more)


def ranked(query: str, rank: int, score: float, config: str = "c") -> Row:
    return {
        "config": config,
        "query_id": query,
        "rank": rank,
        "chunk_id": f"A:{rank}",
        "doc_id": "A",
        "score": score,
    }


def test_scores_fall_or_stay_from_rank_to_rank() -> None:
    sound = [
        ranked("q", 3, 0.5),
        ranked("q", 1, 0.9),
        ranked("q", 2, 0.9),
        # Another list may begin as high as it likes.
        ranked("r", 1, 7.0),
        ranked("q", 1, 0.8, config="d"),
    ]
    assert consistency.unordered_scores(table(*sound)) == []
    for score in (0.51, float("inf")):
        higher = ranked("q", 4, score)
        assert consistency.unordered_scores(table(higher, *sound)) == [higher]
    (none,) = consistency.unordered_scores(table(*sound, ranked("q", 4, float("nan"))))
    assert (none["query_id"], none["rank"]) == ("q", 4)


def test_ranked_chunks_outside_their_query_s_scope() -> None:
    queries = table(
        {"query_id": "q", "doc_id": "A", "filters": []},
        {"query_id": "r", "doc_id": None, "filters": []},
    )
    documents = pa.table(
        {"doc_id": ["A", "B"], "metadata": pa.array([[], []], pa.map_(pa.string(), pa.string()))}
    )
    rows = [
        {"query_id": query, "rank": 1, "chunk_id": f"{doc}:c:0", "doc_id": doc}
        for query, doc in (("q", "A"), ("r", "B"), ("q", "B"), ("s", "A"))
    ]

    def outside(doc_scope: bool) -> list[Row]:
        return consistency.outside_scope(
            table(*rows), queries, documents, doc_scope=doc_scope, metadata_filters=False
        )

    nobody = rows[3] | {"problem": "no such query"}
    assert outside(doc_scope=False) == [nobody]
    assert outside(doc_scope=True) == [rows[2] | {"problem": "outside the query's scope"}, nobody]


def candidate(channel: str, rank: int, chunk: str, query: str = "q") -> Row:
    return {"channel": channel, "query_id": query, "chunk_id": chunk, "rank": rank}


def of_both(rank: int, chunk: str, dense: int | None, bm25: int | None, query: str = "q") -> Row:
    return {
        "query_id": query,
        "rank": rank,
        "chunk_id": chunk,
        "dense_rank": dense,
        "bm25_rank": bm25,
    }


def test_rankings_hold_what_their_lists_do() -> None:
    lists = [
        table(candidate("dense", 1, "x"), candidate("dense", 2, "y")),
        table(candidate("bm25", 1, "y"), candidate("bm25", 1, "w", "r")),
        table(candidate("other", 1, "z")),
    ]

    def unlike(*rows: Row, depth: int = 9) -> list[Row]:
        return consistency.unlike_candidates(table(*rows), lists, depth)

    y, x, z = of_both(1, "y", 2, 1), of_both(2, "x", 1, None), of_both(3, "z", None, None)
    w = of_both(1, "w", None, 1, "r")
    assert unlike(y, x, z, w) == unlike(y, x, w, depth=2) == []
    # Two that are not as stated, one in no list, and then the lists are of another length.
    assert unlike(y | {"dense_rank": 1}, x, z, w) == [
        y | {"dense_rank": 1, "dense_list": 2, "bm25_list": 1}
    ]
    assert unlike(y, x | {"bm25_rank": 1}, z, w) == [
        x | {"bm25_rank": 1, "dense_list": 1, "bm25_list": None}
    ]
    strange = of_both(4, "v", None, None)
    assert unlike(y, x, z, strange, w) == [
        strange | {"dense_list": None, "bm25_list": None},
        {"query_id": "q", "n_ranked": 4, "n_to_rank": 3},
    ]
    assert unlike(y, x) == [
        {"query_id": "q", "n_ranked": 2, "n_to_rank": 3},
        {"query_id": "r", "n_ranked": 0, "n_to_rank": 1},
    ]


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


# 5 of 10 are exactly half, 9 of 20 are not: 14 of 30 characters, one span of two.
HALF = (outcome(5, 0, 0, 10), outcome(9, 1, 20, 40))


@pytest.mark.parametrize(
    ("name", "value", "outcomes"),
    [
        ("span_coverage", 14 / 30, HALF),
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
