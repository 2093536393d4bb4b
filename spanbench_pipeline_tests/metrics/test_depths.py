"""What lists cut at a depth do not reach is absent; what they reach is what deeper lists give."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.checks import invariants
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import absent, reached, unreached
from spanbench_pipeline.metrics.failure_labels import DEPTH_BOUND
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.tuning import objective
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, cases, tiles
from spanbench_pipeline_tests.metrics.measure import all_metrics as query_metrics
from spanbench_pipeline_tests.metrics.measure import (
    failure_labels,
    forensic_labels,
    span_outcomes,
    span_states,
)

STANDARD = registry.of_results()
NAMED = {"corpus": CORPUS, "config": CONFIG}
MEASURES = (query_metrics, forensic_labels, span_states)

# Chunks of ten characters; gold [20, 30) is A2 and [62, 68) lies in A6. The lists of any depth are
# the first entries of this one: A2 is second, A6 seventh.
GOLD = [("A", 20, 30), ("A", 62, 68)]
ORDER = ["A0", "A2", "A1", "A3", "A4", "A5", "A6", "A7", "A8", "A9"]
FIGURES = {
    # depth: (precision@5, recall@10, mrr, span_recall@5, ndcg@10), None: absent
    1: (None, None, 0.0, None, None),
    3: (None, None, 1 / 2, None, None),
    5: (1 / 5, None, 1 / 2, 1 / 2, None),
    7: (1 / 5, None, 1 / 2, 1 / 2, None),
    # 1 / log2(3) + 1 / log2(8), of 1 + 1 / log2(3)
    10: (1 / 5, 1.0, 1 / 2, 1 / 2, (0.6309297535714575 + 1 / 3) / 1.6309297535714575),
}


def case_of(depth: int) -> Case:
    return Case({"A": "x" * 100}, tiles("A", 100, 10), {"q": GOLD}, {"q": ORDER[:depth]})


@pytest.mark.parametrize("depth", FIGURES)
def test_figures_by_hand(depth: int) -> None:
    table = query_metrics(*case_of(depth).tables(), depth=depth, **NAMED)
    found = {(row["metric"], row["k"]): row["value"] for row in table.to_pylist()}
    names = (("precision", 5), ("recall", 10), ("mrr", None), ("span_recall", 5), ("ndcg", 10))
    expected = zip(names, FIGURES[depth], strict=True)
    assert {n: pytest.approx(found[n]) for n in names if n in found} == {
        name: value for name, value in expected if value is not None
    }
    assert {k for m, k in found if m in registry.characters()} == {k for k in DEPTHS if k <= depth}


def cut(case: Case, depth: int) -> Case:
    """The case with every list closed up and cut, as a pipeline of that depth gives it."""
    return replace(case, rankings={q: case.ids(case.asked(q).ranked)[:depth] for q in case.gold})


def by_key(table: pa.Table) -> dict[Any, dict[str, Any]]:
    names = [c for c in ("query_id", "span_no", "metric", "k") if c in table.column_names]
    return {tuple(row[n] for n in names): row for row in table.to_pylist()}


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(1, 17))
def test_what_is_reached_equals_what_a_depth_of_64_says_of_the_same_lists(case: Case, depth: int):
    given_tables = cut(case, depth).tables()
    for measure in MEASURES:
        found = measure(*given_tables, depth=depth, **NAMED)
        deep = measure(*given_tables, depth=64, **NAMED)
        assert invariants.past_depth(found, depth) == []
        assert by_key(found) == {
            key: row for key, row in by_key(deep).items() if row["k"] is None or row["k"] <= depth
        }
    queries = given_tables[3]
    made = query_metrics(*given_tables, depth=depth, **NAMED)
    assert invariants.missing_metrics(made, queries, depth) == []


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("measure", [span_outcomes, failure_labels])
def test_what_looks_at_the_top_5_is_not_measured_where_lists_end_before(measure, depth: int):
    with pytest.raises(NotMeasured, match=f"depth = {depth} does not reach 5"):
        measure(*case_of(depth).tables(), depth=depth, **NAMED)


def label_of(ranking: list[str], depth: int | None, gold: tuple[str, int, int]) -> dict[str, Any]:
    case = Case({"A": "x" * 100}, tiles("A", 100, 10), {"q": [gold]}, {"q": ranking})
    (row,) = failure_labels(*case.tables(), depth=depth, **NAMED).to_pylist()
    return row


SIXTH, NOWHERE, OF_TWO = ("A", 52, 58), ("A", 92, 98), ("A", 48, 52)


@pytest.mark.parametrize(
    ("n", "depth", "gold", "label"),
    [
        # Cut at 5, the sixth chunk and one that would never come look alike.
        (5, 5, SIXTH, DEPTH_BOUND),
        (5, 5, NOWHERE, DEPTH_BOUND),
        (6, 6, SIXTH, "rank-miss"),
        (6, 6, NOWHERE, "retrieval-miss"),
        # Four entries, though five would have fitted: nothing more was found.
        (4, 5, SIXTH, "retrieval-miss"),
        # Uncut, or cut deeper: five entries are all that there was.
        (5, None, SIXTH, "retrieval-miss"),
        (5, 30, SIXTH, "retrieval-miss"),
        # What needs nothing below the top 5 is told all the same.
        (5, 5, OF_TWO, "chunk-severance"),
    ],
)
def test_labels_of_lists_that_end_at_the_top_5(n, depth, gold, label: str) -> None:
    ranking = ["A0", "A1", "A2", "A3", "A6", "A5"][:n]
    row = label_of(ranking, depth, gold)
    assert row["label"] == label
    evidence = json.loads(row["evidence"])
    if label == DEPTH_BOUND:
        assert (row["lever"], evidence["cut_at"]) == (None, 5)
        assert [piece["rank"] for piece in evidence["missing_chunks"]] == [None]
    else:
        assert "cut_at" not in evidence


def test_a_list_of_five_entries_with_a_repeat_was_cut_as_well() -> None:
    assert label_of(["A0", "A0", "A1", "A2", "A3"], 5, SIXTH)["label"] == DEPTH_BOUND


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(6, 17))
def test_deeper_lists_are_labelled_as_if_nobody_had_cut_them(case: Case, depth: int) -> None:
    given_tables = cut(case, depth).tables()
    assert failure_labels(*given_tables, depth=depth, **NAMED).equals(
        failure_labels(*given_tables, **NAMED)
    )


def test_what_is_absent_is_named_with_the_reason() -> None:
    assert absent(30, STANDARD) == absent(10, STANDARD) == absent(None, STANDARD) == {}
    assert absent(7, STANDARD) == dict.fromkeys(
        ("recall@10", "ndcg@10"), "not measured: depth = 7 does not reach 10"
    )
    assert {f"{m}@{k}" for m, k in STANDARD if k} == absent(4, STANDARD).keys()
    assert reached(4, STANDARD) == (("mrr", None),)
    assert reached(5, STANDARD) == tuple((m, k) for m, k in STANDARD if k in (5, None))
    assert unreached(5, 5) == unreached(None, 1) == unreached(64, None) == ""
    assert unreached(10, 1) == "depth = 1 does not reach 10"


def test_nothing_past_the_depth_can_be_tuned_for() -> None:
    assert set(objective.metrics(1)) == {"mrr"} | {
        f"{metric}@1" for metric in registry.characters() if metric != "chars_retrieved"
    }
    assert "recall@10" not in objective.metrics(9)
    assert "recall@10" in objective.metrics(10)
    assert all(
        k in registry.label_ks() or k in (10, None) for _, k in objective.metrics(64).values()
    )
