from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from spanbench_pipeline.analysis.aggregate import config_metrics
from spanbench_pipeline.checks import lost_stages as loss_checks
from spanbench_pipeline.metrics.stages import stages_of
from spanbench_pipeline_tests.checks.test_invariants import changed, setting
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, tiles
from spanbench_pipeline_tests.metrics.flows import Flow, flows
from spanbench_pipeline_tests.metrics.measure import (
    headroom,
    lost_stages,
    query_metrics,
    span_outcomes,
)

Rows = list[dict[str, Any]]
NAMED = {"corpus": CORPUS, "config": CONFIG}
# q1 is found; q2's chunk is second of the list, q3's in none.
CASE = Case(
    {"A": "x" * 100},
    tiles("A", 100, 10),
    {"q1": [("A", 0, 10)], "q2": [("A", 10, 20)], "q3": [("A", 20, 30), ("A", 50, 51)]},
    {"q1": ["A0"], "q2": ["A0", "A1"], "q3": ["A0", "A5"]},
    {"q1": "east", "q2": "east", "q3": "west"},
)
FLOW = Flow(CASE, {"dense": CASE.rankings})
STAGES = stages_of(routing=False, fusion=False, reranker=False)


def states(flow: Flow, ks: tuple[int, ...]) -> pa.Table:
    """``span_states`` as far as it is looked at: the stages, and the characters of the top 5."""
    known = flow.case.eval_set()
    made = lost_stages(
        flow.ranking_table(),
        flow.candidate_table(),
        flow.routed_table(),
        known.gold_spans,
        flow.case.chunk_table(),
        known.queries,
        has_fusion=flow.fused is not None,
        has_reranker=flow.reranker,
        ks=ks,
    )
    tables = (flow.ranking_table(), known.gold_spans, flow.case.chunk_table(), known.queries)
    covered = span_outcomes(*tables, **NAMED).select(
        ["config", "query_id", "span_no", "k", "covered_chars"]
    )
    joined = covered.join(made, ["query_id", "span_no", "k"], join_type="inner")
    return joined.sort_by([(c, "ascending") for c in ("query_id", "span_no", "k")])


def bounds(flow: Flow, ks: tuple[int, ...] = (1, 2, 5)) -> pa.Table:
    known = flow.case.eval_set()
    tables = (flow.candidate_table(), known.gold_spans, flow.case.chunk_table(), known.queries)
    return headroom(flow.ranking_table(), *tables, **NAMED, ks=ks)


def means(flow: Flow) -> pa.Table:
    known = flow.case.eval_set()
    tables = (flow.ranking_table(), known.gold_spans, flow.case.chunk_table(), known.queries)
    return config_metrics(query_metrics(*tables, **NAMED), known.queries)


GOLD = CASE.eval_set().gold_spans
QUERIES = CASE.eval_set().queries
STATES = states(FLOW, (5,))
BOUNDS = bounds(FLOW)


@settings(max_examples=60, deadline=None)
@given(flows())
def test_what_the_measures_make_holds(flow: Flow) -> None:
    known, made, room = flow.case.eval_set(), states(flow, (5,)), bounds(flow)
    have = stages_of(
        routing=flow.routed is not None, fusion=flow.fused is not None, reranker=flow.reranker
    )
    assert loss_checks.wrong_lost_stages(made, known.gold_spans, have, (5,)) == []
    assert loss_checks.wrong_stage_counts(made, known.gold_spans) == []
    assert loss_checks.unordered_bounds(room) == []
    assert loss_checks.wrong_headroom_means(room, known.queries) == []
    assert loss_checks.actual_not_as_measured(room, means(flow)) == []
    ranked, listed = flow.ranking_table(), flow.candidate_table()
    assert loss_checks.ranked_without_candidate(ranked, listed) == []


def test_the_example_is_as_stated() -> None:
    stages = ["query_id", "span_no", "lost_stage"]
    assert [tuple(row.values()) for row in STATES.select(stages).to_pylist()] == [
        ("q1", 0, None),
        ("q2", 0, None),
        ("q3", 0, "candidates"),
        ("q3", 1, None),
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (setting(0, lost_stage="cut"), ("q1", 0, False)),  # covered, and lost somewhere
        (setting(2, lost_stage=None), ("q3", 0, True)),  # lost nowhere
        (setting(2, lost_stage="routing"), ("q3", 0, True)),  # no routing here
        (setting(2, covered_chars=5), ("q3", 0, False)),  # exactly half is covered
        (setting(3, covered_chars=0), ("q3", 1, True)),
    ],
)
def test_a_stage_that_does_not_fit_is_found(
    change: Callable[[Rows], Any], found: tuple[Any, ...]
) -> None:
    rows = loss_checks.wrong_lost_stages(changed(STATES, change), GOLD, STAGES, (5,))
    assert [(r["query_id"], r["span_no"], r["lost"]) for r in rows] == [found]


def test_a_span_without_a_row_or_with_two_is_found() -> None:
    def check(table: pa.Table, ks: tuple[int, ...] = (5,)) -> list[tuple[Any, ...]]:
        found = loss_checks.wrong_lost_stages(table, GOLD, STAGES, ks)
        return [(r["query_id"], r["span_no"], r["k"], r["rows"]) for r in found]

    assert check(STATES.slice(1)) == [("q1", 0, 5, 0)]
    assert check(pa.concat_tables([STATES, STATES.slice(1, 1)])) == [("q2", 0, 5, 2)]
    # Of a span that is not there nobody knows whether it is lost: its row is one too many.
    unknown = changed(STATES, setting(0, span_no=9, covered_chars=0))
    assert check(unknown) == [("q1", 0, 5, 0), ("q1", 9, 5, 1)]
    assert check(STATES.slice(0, 1), (5, 8))[:2] == [("q1", 0, 8, 0), ("q2", 0, 5, 0)]


def test_counts_that_do_not_sum_to_the_lost_spans_are_found() -> None:
    fault = changed(STATES, setting(2, lost_stage=None))
    assert loss_checks.wrong_stage_counts(fault, GOLD) == [
        {"config": CONFIG, "k": 5, "lost": 1, "counted": 0}
    ]


def place(subset: str | None, k: int, bound: str) -> int:
    rows = [(r["subset"], r["k"], r["bound"]) for r in BOUNDS.to_pylist()]
    return rows.index((subset, k, bound))


@pytest.mark.parametrize(
    ("bound", "value", "n"),
    [
        # At k = 1 the bounds of the whole are 1/3, 2/3, 2/3, 1; at 2 they are 2/3, 2/3, 1, 1.
        ("actual", 0.67, 2),  # above the candidates, and above itself at k = 2
        ("actual", 0.66, 0),
        ("candidates", 0.3, 1),
        ("chunks", 0.6, 1),
        ("perfect", 0.99, 1),
        ("actual", -0.1, 1),
        ("actual", float("nan"), 1),
    ],
)
def test_bounds_out_of_order_are_found(bound: str, value: float, n: int) -> None:
    fault = changed(BOUNDS, setting(place(None, 1, bound), value=value))
    assert len(loss_checks.unordered_bounds(fault)) == n


def test_a_bound_that_is_absent_or_falls_is_found() -> None:
    short = changed(BOUNDS, lambda rows: rows.pop(place("west", 1, "chunks")))
    assert loss_checks.unordered_bounds(short) == [
        {"config": CONFIG, "subset": "west", "k": 1, "actual": 0, "candidates": 0, "perfect": 1}
    ]
    fault = changed(BOUNDS, setting(place("west", 5, "perfect"), value=0.5))
    row = {"config": CONFIG, "subset": "west", "k": 5}
    assert loss_checks.unordered_bounds(fault) == [
        row | {"actual": 0, "candidates": 0, "chunks": 1, "perfect": 0.5},
        row | {"bound": "perfect", "value": 0.5, "at_smaller_k": 1},
    ]


def test_means_that_do_not_follow_from_the_parts_are_found() -> None:
    for subset in (None, "macro"):
        fault = changed(BOUNDS, setting(place(subset, 1, "actual"), value=0.3))
        # east 1/2 and west 0, of two queries and one
        expected = pytest.approx(1 / 3 if subset is None else 0.25)
        assert loss_checks.wrong_headroom_means(fault, QUERIES) == [
            {"config": CONFIG, "k": 1, "bound": "actual", "subset": subset}
            | {"stored": 0.3, "expected": expected}
        ]
    short = changed(BOUNDS, lambda rows: rows.pop(place("west", 1, "actual")))
    (row,) = loss_checks.wrong_headroom_means(short, QUERIES)
    assert set(row.pop("subsets")) == {None, "east", "macro"}
    assert row == {"config": CONFIG, "k": 1, "bound": "actual"}
    parts = BOUNDS.filter(pc.is_in(BOUNDS["subset"], value_set=pa.array(["east", "west"])))
    rows = loss_checks.wrong_headroom_means(parts, QUERIES)
    missing = [r for r in rows if (r["k"], r["bound"]) == (1, "actual")]
    assert [r.get("subset", "none") for r in missing] == ["none", "macro", None]
    assert [r.get("expected") for r in missing] == [None, 0.25, pytest.approx(1 / 3)]


def test_an_actual_bound_that_is_not_the_metric_is_found() -> None:
    fault = changed(BOUNDS, setting(place("east", 5, "actual"), value=0.5))
    (row,) = loss_checks.actual_not_as_measured(fault, means(FLOW))
    assert (row["subset"], row["value"], row["measured"]) == ("east", 0.5, 1.0)


def test_ranked_chunks_that_no_channel_listed_come_by_rank() -> None:
    rows = [
        {"config": "c", "query_id": query, "chunk_id": chunk, "rank": rank}
        for query, chunk, rank in (("r", "a", 1), ("q", "a", 2), ("q", "b", 1), ("q", "c", 3))
    ]
    listed = pa.Table.from_pylist([{"config": "c", "query_id": "q", "chunk_id": "c"}])
    found = loss_checks.ranked_without_candidate(pa.Table.from_pylist(rows), listed)
    assert found == [rows[2], rows[1], rows[0]]


def test_a_ranked_chunk_that_no_channel_listed_is_found() -> None:
    listed = changed(FLOW.candidate_table(), setting(2, chunk_id="A7"))
    assert loss_checks.ranked_without_candidate(FLOW.ranking_table(), listed) == [
        {"config": CONFIG, "query_id": "q2", "chunk_id": "A1", "rank": 2}
    ]
