"""What is true of every measurement holds, and each fault is found, at its row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.checks import character_metrics as character_checks
from spanbench_pipeline.checks import forensic_labels as forensic_checks
from spanbench_pipeline.checks.character_metrics import (
    falling_with_depth,
    hits_beside_drm,
    paper_unlike_union,
    recall_above_reach,
    recall_unlike_states,
)
from spanbench_pipeline.checks.forensic_labels import (
    excess_out_of_bounds,
    labels_unlike_grounding,
    labels_unlike_states,
    missing_labels,
    single_span_gaps,
    states_unlike_outcomes,
    wrong_states,
)
from spanbench_pipeline.metrics import registry
from spanbench_pipeline_tests.metrics.cases import CONFIG
from spanbench_pipeline_tests.metrics.measure import (
    character_metrics,
    forensic_labels,
    query_metrics,
    span_outcomes,
    span_states,
)
from spanbench_pipeline_tests.metrics.places import NAMED, A, B, Placed, one, placed_cases

DEPTH = 30
KS = [k for k in registry.label_ks() if k <= DEPTH]

CASE = Placed(
    gold={"gap": [A(0, 10), B(0, 10)], "miss": [A(20, 30)], "ok": [A(0, 10)], "over": [A(20, 22)]},
    ranked={
        "gap": [A(0, 10), A(20, 30)],
        "miss": [B(0, 10)],
        "ok": [B(0, 10), A(0, 5), A(5, 10)],
        "over": [A(20, 30), A(25, 35), B(0, 10)],
    },
    chunks=[A(0, 5), A(5, 10), A(0, 10), A(20, 30), A(25, 35), B(0, 10)],
)
RANKED, GOLD, _, QUERIES = CASE.tables()
SCORED = character_metrics(RANKED, GOLD, QUERIES, **NAMED, depth=DEPTH)
LABELLED = forensic_labels(*CASE.tables(), **NAMED, depth=DEPTH)
STATES = span_states(*CASE.tables(), **NAMED, depth=DEPTH)
HARNESS = query_metrics(*CASE.tables(), **NAMED)
OUTCOMES = span_outcomes(*CASE.tables(), **NAMED)


def changed(table: pa.Table, where: dict[str, Any], **values: Any) -> pa.Table:
    """The table with the values of the one row ``where`` changed, unchecked."""
    rows = table.to_pylist()
    (row,) = [row for row in rows if where.items() <= row.items()]
    row.update(values)
    return pa.Table.from_pylist(rows, table.schema)


def score(query: str, metric: str, k: int, value: float) -> pa.Table:
    return changed(SCORED, {"query_id": query, "metric": metric, "k": k}, value=value)


def label(query: str, k: int, **values: Any) -> pa.Table:
    return changed(LABELLED, {"query_id": query, "k": k}, **values)


def state(query: str, number: int, k: int, **values: Any) -> pa.Table:
    return changed(STATES, {"query_id": query, "span_no": number, "k": k}, **values)


def places(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["query_id"], row["k"]) for row in rows]


def test_the_case_by_hand() -> None:
    labels = {(row["query_id"], row["k"]): row["label"] for row in LABELLED.to_pylist()}
    assert {query: labels[query, 1] for query in CASE.gold} == {
        "gap": "SGP",
        "miss": "DRM",
        "ok": "DRM",
        "over": "OVR",
    }
    assert labels["ok", 2] == labels["ok", 4] == "OK"


@settings(max_examples=100, deadline=None)
@given(placed_cases(repeats=False))
def test_what_the_measures_make_holds(case: Placed) -> None:
    ranked, gold, chunks, asked = case.tables()
    for known in (chunks, None):
        given_tables = (ranked, gold, known, asked)
        labelled = forensic_labels(*given_tables, **NAMED, depth=DEPTH)
        states = span_states(*given_tables, **NAMED, depth=DEPTH)
        assert missing_labels(labelled, asked, ks=KS) == []
        assert wrong_states(states, gold, ks=KS) == []
        assert single_span_gaps(labelled, gold) == []
        assert labels_unlike_states(labelled, states, ranked, gold) == []
    assert states_unlike_outcomes(states, span_outcomes(*case.tables(), **NAMED)) == []
    labelled = forensic_labels(*case.tables(), **NAMED, depth=DEPTH)
    assert labels_unlike_grounding(labelled, query_metrics(*case.tables(), **NAMED)) == []
    for foreign in (False, True):
        scored = character_metrics(ranked, gold, asked, **NAMED, depth=DEPTH, foreign=foreign)
        assert hits_beside_drm(scored, labelled) == []
        assert recall_above_reach(scored, labelled) == []
        assert falling_with_depth(scored) == []
        assert recall_unlike_states(scored, states, gold) == []
        assert paper_unlike_union(scored, ranked) == []
        assert excess_out_of_bounds(labelled, scored, gold) == []


@settings(max_examples=60, deadline=None)
@given(placed_cases())
def test_repeated_places_are_no_fault(case: Placed) -> None:
    ranked, gold, _, asked = case.tables()
    labelled = forensic_labels(*case.tables(), **NAMED, depth=DEPTH)
    states = span_states(*case.tables(), **NAMED, depth=DEPTH)
    assert labels_unlike_states(labelled, states, ranked, gold) == []
    for foreign in (False, True):
        scored = character_metrics(ranked, gold, asked, **NAMED, depth=DEPTH, foreign=foreign)
        assert paper_unlike_union(scored, ranked) == []
        assert falling_with_depth(scored) == []


def test_hits_beside_a_document_miss() -> None:
    for metric in ("char_precision_union", "char_recall_paper"):
        assert places(hits_beside_drm(score("miss", metric, 4, 0.1), LABELLED)) == [("miss", 4)]
    assert places(hits_beside_drm(SCORED, label("gap", 2, label="DRM"))) == [("gap", 2)] * 4


def test_a_mean_recall_that_cannot_be() -> None:
    # Of four queries one is DRM at 16: at most 0.75, and it is (0.5 + 0 + 1 + 1) / 4.
    assert recall_above_reach(SCORED, LABELLED) == []
    assert recall_above_reach(score("miss", "char_recall_union", 16, 0.6), LABELLED) == [
        {"config": CONFIG, "k": 16, "mean_recall": 0.775, "at_most": 0.75}
        | {"queries": 4, "labels": 4}
    ]
    # Of one query that is DRM: none at all.
    only = pa.compute.field("query_id") == "miss"
    wrong = score("miss", "char_recall_union", 16, 0.1).filter(only)
    (found,) = recall_above_reach(wrong, LABELLED.filter(only))
    assert (found["k"], found["mean_recall"], found["at_most"]) == (16, 0.1, 0)
    fewer = LABELLED.filter(pa.compute.field("k") != 8)
    (found,) = recall_above_reach(SCORED, fewer)
    assert (found["k"], found["queries"], found["labels"]) == (8, 4, 0)


@pytest.mark.parametrize("metric", character_checks.GROWING)
def test_what_falls_with_depth(metric: str) -> None:
    assert falling_with_depth(SCORED) == []
    (found,) = falling_with_depth(score("ok", metric, 16, 0.25))
    assert (found["query_id"], found["metric"], found["k"]) == ("ok", metric, 16)
    assert found["before"] == (20 if metric == "chars_retrieved" else 1)


def test_precision_may_fall_with_depth() -> None:
    assert falling_with_depth(score("ok", "char_precision_union", 16, 0)) == []


def test_recall_of_a_single_character() -> None:
    case = one([A(3, 4)], [A(0, 10)])
    ranked, gold, _, asked = case.tables()
    scored = character_metrics(ranked, gold, asked, **NAMED, depth=DEPTH)
    states = span_states(*case.tables(), **NAMED, depth=DEPTH)
    assert recall_unlike_states(scored, states, gold) == []
    labelled = forensic_labels(*case.tables(), **NAMED, depth=DEPTH)
    assert excess_out_of_bounds(labelled, scored, gold) == []  # ten characters for one


def test_recall_that_the_states_do_not_give() -> None:
    wrong = state("gap", 0, 4, covered_chars=9)
    (found,) = recall_unlike_states(SCORED, wrong, GOLD)
    assert (found["query_id"], found["k"], found["value"], found["expected"]) == (
        "gap",
        4,
        0.5,
        0.45,
    )


@pytest.mark.parametrize(
    ("query", "metric", "k", "found"),
    [
        ("ok", "char_precision_paper", 16, True),
        ("ok", "char_recall_union", 16, True),
        ("ok", "chars_retrieved", 16, True),
        ("over", "char_recall_paper", 1, True),  # one chunk is disjoint
        ("over", "char_recall_paper", 2, False),  # [20,30) and [25,35) are not
        ("over", "chars_retrieved", 16, False),
    ],
)
def test_scorings_of_disjoint_chunks(query: str, metric: str, k: int, found: bool) -> None:
    wrong = paper_unlike_union(score(query, metric, k, 0.125), RANKED)
    assert places(wrong) == [(query, k)] * found


def test_a_list_that_is_not_disjoint_hides_none_after_it() -> None:
    case = Placed(
        gold={"a": [A(0, 10)], "b": [A(0, 10)]},
        ranked={"a": [A(0, 10), A(5, 15)], "b": [A(0, 10)]},
    )
    ranked, gold, _, asked = case.tables()
    scored = character_metrics(ranked, gold, asked, **NAMED, depth=2)
    assert paper_unlike_union(scored, ranked) == []
    where = {"query_id": "b", "metric": "char_recall_paper", "k": 2}
    assert paper_unlike_union(changed(scored, where, value=0.5), ranked) == [
        {
            "config": CONFIG,
            "query_id": "b",
            "k": 2,
            "chars_retrieved": 10,
            "char_precision_union": 1,
            "char_recall_union": 1,
            "char_precision_paper": 1,
            "char_recall_paper": 0.5,
        }
    ]


def test_which_chunks_are_disjoint() -> None:
    # The third meets the second, which is not the first of the document: 25 characters of 30.
    case = one([A(0, 10)], [A(0, 10), A(20, 30), A(25, 35)])
    ranked, gold, _, asked = case.tables()
    scored = character_metrics(ranked, gold, asked, **NAMED, depth=4)
    assert paper_unlike_union(scored, ranked) == []
    # Chunks that touch are disjoint, in whatever order: what is wrong of both is found.
    case = one([A(0, 10)], [A(10, 20), A(0, 10)])
    ranked, gold, _, asked = case.tables()
    scored = character_metrics(ranked, gold, asked, **NAMED, depth=2)
    where = {"metric": "char_recall_paper", "k": 2}
    assert places(paper_unlike_union(changed(scored, where, value=0.5), ranked)) == [("q", 2)]


def test_characters_of_an_empty_list() -> None:
    empty = RANKED.filter(pa.compute.field("query_id") != "miss")
    assert {query for query, _ in places(paper_unlike_union(SCORED, empty))} == {"miss"}


def test_labels_that_are_missing_given_twice_or_beside() -> None:
    rows = LABELLED.to_pylist()
    assert missing_labels(LABELLED, QUERIES, ks=KS) == []
    for table, expected in (
        (LABELLED.slice(1), ("gap", 1, 0)),
        (pa.Table.from_pylist([*rows, rows[0]], LABELLED.schema), ("gap", 1, 2)),
        (changed(LABELLED, {"query_id": "gap", "k": 1}, k=3), ("gap", 3, 1)),
        (label("gap", 1, query_id="else"), ("else", 1, 1)),
    ):
        found = missing_labels(table, QUERIES, ks=KS)
        assert expected in [(row["query_id"], row["k"], row["labels"]) for row in found]
    assert len(missing_labels(LABELLED.slice(0, 0), QUERIES, ks=KS)) == 4 * len(KS)


@pytest.mark.parametrize(
    "values",
    [
        {"state": "partial"},
        {"state": "missed"},
        {"state": "lost"},
        {"covered_chars": 4},
        {"covered_chars": 11},
        {"covered_chars": 9},  # fewer than at the k before
        {"severed": True},
        {"severed": None},
    ],
    ids=str,
)
def test_states_that_do_not_follow(values: dict[str, Any]) -> None:
    assert wrong_states(STATES, GOLD, ks=KS) == []
    found = wrong_states(state("gap", 0, 4, **values), GOLD, ks=KS)
    (stated,) = [r for r in STATES.to_pylist() if (r["query_id"], r["k"]) == ("gap", 4)][:1]
    assert found[0] == stated | values | {"length": 10}


def test_less_than_half_is_partial_to_the_check_too() -> None:
    case = one([A(0, 10)], [A(0, 4)])
    made = span_states(*case.tables(), **NAMED, depth=1)
    assert wrong_states(made, case.gold_spans(), ks=[1]) == []
    for wrong in ("covered", "missed"):
        (row,) = wrong_states(changed(made, {"k": 1}, state=wrong), case.gold_spans(), ks=[1])
        assert (row["state"], row["covered_chars"], row["length"]) == (wrong, 4, 10)


def test_states_that_are_missing_or_beside() -> None:
    found = wrong_states(STATES.slice(1), GOLD, ks=KS)
    assert [(r["query_id"], r["span_no"], r["k"], r["states"]) for r in found] == [("gap", 0, 1, 0)]
    other = wrong_states(state("gap", 0, 1, span_no=7), GOLD, ks=KS)
    assert ("gap", 7, 1, 1) in [
        tuple(row.get(c) for c in ("query_id", "span_no", "k", "states")) for row in other
    ]
    # Of a span that is not there no character can be covered.
    assert [row["length"] for row in other if "length" in row] == [0]


def test_coverage_unlike_the_outcomes() -> None:
    assert states_unlike_outcomes(STATES, OUTCOMES) == []
    wrong = state("gap", 0, 5, covered_chars=9)
    (row,) = states_unlike_outcomes(wrong, OUTCOMES)
    assert (row["query_id"], row["k"], row["span_outcomes"]) == ("gap", 5, 10)
    assert states_unlike_outcomes(state("gap", 0, 4, covered_chars=9), OUTCOMES) == []
    assert places(states_unlike_outcomes(STATES, OUTCOMES.slice(1))) == [("gap", 5)]


def test_labels_unlike_complete_grounding() -> None:
    assert labels_unlike_grounding(LABELLED, HARNESS) == []
    for query, wrong in (("gap", "OK"), ("miss", "OVR"), ("ok", "SGP"), ("over", None)):
        found = labels_unlike_grounding(label(query, 5, label=wrong), HARNESS)
        assert places(found) == [(query, 5)]
        assert found[0]["complete_grounding"] is (query in ("ok", "over"))
    nothing = HARNESS.slice(0, 0)
    assert [row["complete_grounding"] for row in labels_unlike_grounding(LABELLED, nothing)] == (
        [None] * 4
    )
    assert labels_unlike_grounding(label("gap", 4, label="OK"), HARNESS) == []


def test_a_gap_in_a_single_span() -> None:
    assert single_span_gaps(LABELLED, GOLD) == []
    assert places(single_span_gaps(label("ok", 8, label="SGP"), GOLD)) == [("ok", 8)]


@pytest.mark.parametrize("wrong", ["DRM", "ICR", "CBF", "SGP", "OVR", "OK", None])
def test_a_label_that_does_not_follow(wrong: str | None) -> None:
    for query, right in (("gap", "SGP"), ("miss", "DRM"), ("ok", "OK"), ("over", "OVR")):
        found = labels_unlike_states(label(query, 8, label=wrong), STATES, RANKED, GOLD)
        assert places(found) == [(query, 8)] * (wrong != right)
        for row in found:
            assert row["expected"] == dict.fromkeys(forensic_checks.SETTINGS, right)


def test_a_state_of_no_gold_span_changes_no_label() -> None:
    # wrong_states tells of it; it has no characters that could be lost.
    (row,) = [r for r in STATES.to_pylist() if (r["query_id"], r["k"]) == ("ok", 8)]
    beside = row | {"span_no": 7, "covered_chars": 0, "state": "missed"}
    more = pa.Table.from_pylist([*STATES.to_pylist(), beside], STATES.schema)
    assert labels_unlike_states(LABELLED, more, RANKED, GOLD) == []


def test_places_above_the_first_gold_document_are_told_apart() -> None:
    # The same offsets in two documents, and the same end: two chunks above the third, not one.
    for above in ([B(0, 10), ("C", 0, 10)], [B(0, 10), B(5, 10)]):
        case = one([A(0, 10)], [*above, A(20, 30)])
        made = forensic_labels(*case.tables(), **NAMED, depth=4)
        assert made["label"].to_pylist() == ["DRM", "DRM", "ICR"]
        states = span_states(*case.tables(), **NAMED, depth=4)
        assert labels_unlike_states(made, states, case.rankings(), case.gold_spans()) == []


def test_a_severed_piece_follows_where_the_chunks_are_known() -> None:
    # 49 of 100 characters, in a chunk that holds no more of the span.
    case = one([A(0, 100)], [A(0, 49)], A(49, 98), A(98, 147))
    for known, wrong in ((case, "ICR"), (Placed(case.gold, case.ranked), "CBF")):
        given_tables = known.tables()
        made = forensic_labels(*given_tables, **NAMED, depth=1)
        states = span_states(*given_tables, **NAMED, depth=1)
        assert made["label"].to_pylist() == ["CBF" if known is case else None]
        ranked, gold = given_tables[:2]
        assert labels_unlike_states(made, states, ranked, gold) == []
        fault = changed(made, {"k": 1}, label=wrong)
        assert places(labels_unlike_states(fault, states, ranked, gold)) == [("q", 1)]


def test_a_stability_that_does_not_follow() -> None:
    (row,) = [r for r in LABELLED.to_pylist() if (r["query_id"], r["k"]) == ("gap", 8)]
    for old, new in (('"factor 2": "SGP"', '"factor 2": "OK"'), ("factor 5", "factor 6")):
        assert old in row["stability"]
        wrong = label("gap", 8, stability=row["stability"].replace(old, new))
        assert places(labels_unlike_states(wrong, STATES, RANKED, GOLD)) == [("gap", 8)]


@pytest.mark.parametrize("excess", [None, 0.4, 1.6])
def test_an_excess_that_cannot_be(excess: float | None) -> None:
    # gap at 2: 10 of 20 gold characters are there, in chunks of 30 characters in all.
    rows = excess_out_of_bounds(label("gap", 4, excess=excess), SCORED, GOLD)
    assert places(rows) == [("gap", 4)] * (excess != 1.0)
    # Half of the gold was found, and 20 characters retrieved for 20 of gold.
    assert [(row["at_least"], row["at_most"]) for row in rows] == [(0.5, 1.0)]
    assert places(excess_out_of_bounds(label("miss", 4, excess=0.5), SCORED, GOLD)) == [("miss", 4)]


def test_no_excess_where_less_than_the_gold_was_retrieved_and_none_of_it() -> None:
    case = one([A(0, 100)], [A(200, 210)])
    scored = character_metrics(*case.tables()[:2], case.queries(), **NAMED, depth=1)
    labelled = forensic_labels(*case.tables(), **NAMED, depth=1)
    assert excess_out_of_bounds(labelled, scored, case.gold_spans()) == []


def test_the_settings_of_the_check_are_those_of_the_specification() -> None:
    assert forensic_checks.SETTINGS == {
        "": ("0.5", 3),
        "covered 0.3": ("0.3", 3),
        "covered 0.7": ("0.7", 3),
        "covered 1.0": ("1.0", 3),
        "factor 2": ("0.5", 2),
        "factor 5": ("0.5", 5),
    }
