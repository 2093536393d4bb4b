from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.analysis.aggregate import (
    clause_type_metrics,
    config_metrics,
    values_by_query,
)
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.checks import invariants
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, beside_another, cases
from spanbench_pipeline_tests.metrics.measure import character_metrics, query_metrics
from spanbench_pipeline_tests.metrics.places import Placed, placed_cases

Row = tuple[str, str | None, str | None, float | None]
"""(query, subset, clause type, value)"""


def queries_table(rows: Sequence[Row]) -> pa.Table:
    return tables.from_rows(
        "queries",
        [
            {
                "corpus": CORPUS,
                "query_id": query,
                "query": "?",
                "clause_type": clause_type,
                "subset": subset,
                "doc_id": None,
                "filters": [],
            }
            for query, subset, clause_type, _ in rows
        ],
    )


def metric_table(rows: Sequence[Row], config: str = CONFIG) -> pa.Table:
    return tables.from_rows(
        "query_metrics",
        [
            {
                "corpus": CORPUS,
                "config": config,
                "query_id": query,
                "metric": "recall",
                "k": 10,
                "value": value,
            }
            for query, _, _, value in rows
        ],
    )


def cells(table: pa.Table, part: str) -> dict[Any, tuple[float | None, int]]:
    return {row[part]: (row["value"], row["n_queries"]) for row in table.to_pylist()}


POOLED: list[Row] = [
    ("q1", "east", "Audit", 1.0),
    ("q2", "east", "Audit", 0.0),
    ("q3", "east", "Term", 0.5),
    ("q4", "west", None, None),
    ("q5", "west", "Term", 1.0),
    ("q6", "none", "Cap", None),
    ("q7", None, "Cap", None),
]


def test_means_by_hand() -> None:
    found = config_metrics(metric_table(POOLED), queries_table(POOLED))
    assert cells(found, "subset") == {
        None: (2.5 / 4, 4),  # four defined values, whatever their subset
        "east": (0.5, 3),
        "west": (1.0, 1),  # the undefined value is left out, not counted as 0
        "none": (None, 0),
        "macro": (0.75, 4),  # of east and west; a subset without a value has no mean
    }


def test_means_by_clause_type() -> None:
    found = clause_type_metrics(metric_table(POOLED), queries_table(POOLED))
    assert cells(found, "clause_type") == {"Audit": (0.5, 2), "Term": (0.75, 2), "Cap": (None, 0)}


def test_without_subsets_there_is_only_the_whole() -> None:
    rows: list[Row] = [("q1", None, None, 0.0), ("q2", None, None, 1.0)]
    found = config_metrics(metric_table(rows), queries_table(rows))
    assert cells(found, "subset") == {None: (0.5, 2)}
    assert clause_type_metrics(metric_table(rows), queries_table(rows)).num_rows == 0


def test_metrics_and_depths_stay_apart() -> None:
    rows = metric_table(POOLED[:2]).to_pylist()  # recall@10 of q1 is 1, of q2 is 0
    rows += [row | {"k": k, "value": value} for row in rows for k, value in ((1, 7.0), (None, 3.0))]
    rows += [row | {"metric": "precision", "value": None} for row in rows[:2]]
    found = config_metrics(tables.from_rows("query_metrics", rows), queries_table(POOLED[:2]))
    assert {
        (row["metric"], row["k"]): (row["value"], row["n_queries"])
        for row in found.to_pylist()
        if row["subset"] == "macro"
    } == {
        ("recall", 10): (0.5, 2),
        ("recall", 1): (7.0, 2),
        ("recall", None): (3.0, 2),
        ("precision", 10): (None, 0),
    }


@settings(max_examples=60, deadline=None)
@given(placed_cases())
def test_macro_is_the_mean_of_the_parts_means(case: Placed) -> None:
    scored = character_metrics(
        case.rankings(), case.gold_spans(), case.queries(), corpus=CORPUS, config=CONFIG, depth=64
    )
    found = config_metrics(scored, case.queries())
    means = {(r["subset"], r["metric"], r["k"]): r["value"] for r in found.to_pylist()}
    parts = {subset for subset in case.subsets.values() if subset}
    assert {subset for subset, _, _ in means} == {None, *parts, *(["macro"] if parts else [])}
    for metric in registry.characters():
        for k in DEPTHS:
            of_part = {
                part: oracle.mean(
                    [
                        oracle.character_metrics(case.asked(query), k, as_given=False)[metric]
                        for query, subset in case.subsets.items()
                        if part in (None, subset)
                    ]
                )
                for part in (None, *parts)
            }
            for part, value in of_part.items():
                assert means[part, metric, k] == pytest.approx(value, abs=1e-12)
            if parts:
                macro = oracle.mean([of_part[part] for part in parts])
                assert means["macro", metric, k] == pytest.approx(macro, abs=1e-12)
    assert invariants.wrong_means(found, scored, case.queries()) == []


def test_configurations_stay_apart() -> None:
    low = [(q, s, c, 0.0) for q, s, c, _ in POOLED]
    both = pa.concat_tables([metric_table(POOLED, "a"), metric_table(low, "b")])
    found = config_metrics(both, queries_table(POOLED)).to_pylist()
    whole = {row["config"]: row["value"] for row in found if row["subset"] is None}
    assert whole == {"a": 0.625, "b": 0.0}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.randoms())
def test_the_order_of_values_changes_no_bit(values: list[float], random: Any) -> None:
    means = set()
    for _ in range(3):
        random.shuffle(values)
        rows: list[Row] = [(f"q{i:02}", None, None, v) for i, v in enumerate(values)]
        found = config_metrics(metric_table(rows), queries_table(rows))
        means.add(found["value"][0].as_py())
    assert means == {math.fsum(values) / len(values)}


@settings(max_examples=60, deadline=None)
@given(cases())
def test_means_over_a_corpus_equal_the_oracle(case: Case) -> None:
    known = case.eval_set()
    scored = query_metrics(*case.tables(), corpus=CORPUS, config=CONFIG)
    found = config_metrics(scored, known.queries)
    whole = {
        (row["metric"], row["k"]): (row["value"], row["n_queries"])
        for row in found.to_pylist()
        if row["subset"] is None
    }
    assert len(whole) == 7
    for key, (value, n) in whole.items():
        values = [oracle.metrics(case.asked(q), context=5)[metric_label(*key)] for q in case.gold]
        defined = [v for v in values if v is not None]
        assert n == len(defined)
        assert value == (pytest.approx(oracle.mean(defined)) if defined else None)
    assert invariants.wrong_means(found, scored, known.queries) == []


@pytest.mark.parametrize("change", ["a query without a metric", "a metric of no query"])
def test_queries_and_metrics_must_match(change: str) -> None:
    fewer = POOLED[:-1]
    scored, asked = (fewer, POOLED) if change == "a query without a metric" else (POOLED, fewer)
    for aggregate in (config_metrics, clause_type_metrics):
        with pytest.raises(ValueError, match=r"mine, recall: queries do not match.* q7"):
            aggregate(metric_table(scored), queries_table(asked))


def test_two_corpora_at_once_are_refused() -> None:
    both = beside_another(metric_table(POOLED), "corpus")
    for aggregate in (config_metrics, clause_type_metrics):
        with pytest.raises(ValueError, match="one corpus at a time, not other, tiny"):
            aggregate(both, queries_table(POOLED))


def test_nothing_measured_has_no_means() -> None:
    for aggregate in (config_metrics, clause_type_metrics):
        assert aggregate(metric_table([]), queries_table(POOLED)).num_rows == 0


def test_a_subset_called_macro_is_refused() -> None:
    rows: list[Row] = [("q1", "macro", None, 0.0)]
    with pytest.raises(InputError, match="subset 'macro'"):
        config_metrics(metric_table(rows), queries_table(rows))


def test_values_by_query_takes_one_metric_at_one_depth() -> None:
    scored = metric_table(POOLED[:4])
    deeper = scored.set_column(4, scored.schema.field("k"), pa.array([20] * 4, pa.int64()))
    both = pa.concat_tables([scored, deeper])
    assert values_by_query(both, "recall", 10) == {
        CONFIG: {"q1": 1.0, "q2": 0.0, "q3": 0.5, "q4": None}
    }
    assert values_by_query(both, "precision", 10) == {}
