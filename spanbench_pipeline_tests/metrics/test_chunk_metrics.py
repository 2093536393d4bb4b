from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, cases, tiles
from spanbench_pipeline_tests.metrics.measure import query_metrics, span_outcomes


def metrics_of(case: Case) -> pa.Table:
    return query_metrics(*case.tables(), corpus=CORPUS, config=CONFIG)


def by_query(table: pa.Table) -> dict[str, dict[tuple[str, int | None], float | None]]:
    found: dict[str, dict[tuple[str, int | None], float | None]] = {}
    for row in table.to_pylist():
        found.setdefault(row["query_id"], {})[row["metric"], row["k"]] = row["value"]
    return found


@settings(max_examples=120, deadline=None)
@given(cases())
def test_metrics_equal_the_oracle(case: Case) -> None:
    found = by_query(metrics_of(case))
    assert found.keys() == case.gold.keys()
    for query, values in found.items():
        expected = oracle.metrics(case.asked(query), context=5)
        named = {metric_label(*key): value for key, value in values.items()}
        assert named == pytest.approx(expected, rel=None, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_outcomes_equal_the_oracle(case: Case) -> None:
    found = span_outcomes(*case.tables(), corpus=CORPUS, config=CONFIG).to_pylist()
    assert found == [
        {
            "corpus": CORPUS,
            "config": CONFIG,
            "query_id": query,
            "span_no": number,
            "k": 5,
            "doc_id": place[0],
            "start_char": place[1],
            "end_char": place[2],
            "covered_chars": case.asked(query).covered(place, 5),
        }
        for query in sorted(case.gold)
        for number, place in enumerate(case.asked(query).gold)
    ]


def test_rows_do_not_depend_on_the_order_of_the_tables() -> None:
    case = Case({"A": "x" * 30}, tiles("A", 30, 10), {"q": [("A", 5, 25)]}, {"q": ["A1", "A1"]})
    reversed_tables = [
        table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
        for table in case.tables()
    ]
    again = query_metrics(*reversed_tables, corpus=CORPUS, config=CONFIG)
    assert again.equals(metrics_of(case))


NDCG = [
    # Three relevant chunks: the best order has 1 + 1 / log2(3) + 1 / log2(4) = 2.13093.
    ("in the best order", ["A0", "A1", "A2"], 1.0),
    ("second, fourth and seventh", ["A7", "A0", "A9", "A1", "A8", "A6", "A2"], 0.654615),
    ("one of three, first", ["A0"], 1 / 2.130930),
    ("one of three, at rank ten", [*(f"A{n}" for n in range(3, 12)), "A0"], 0.289065 / 2.130930),
    ("at rank eleven only", [*(f"A{n}" for n in range(3, 13)), "A0"], 0.0),
    ("nothing retrieved", [], 0.0),
    ("a repeat counts once, and the rest close up", ["A0", "A0", "A1", "A2"], 1.0),
]


@pytest.mark.parametrize(
    ("ranked", "expected"), [row[1:] for row in NDCG], ids=[r[0] for r in NDCG]
)
def test_ndcg_by_hand(ranked: list[str], expected: float) -> None:
    case = Case({"A": "x" * 130}, tiles("A", 130, 10), {"q": [("A", 0, 30)]}, {"q": ranked})
    assert by_query(metrics_of(case))["q"]["ndcg", 10] == pytest.approx(expected, abs=2e-6)


def test_more_relevant_chunks_than_ranks_do_not_lower_the_best_order() -> None:
    chunks = tiles("A", 130, 10)
    case = Case({"A": "x" * 130}, chunks, {"q": [("A", 0, 130)]}, {"q": list(chunks)[:10]})
    assert by_query(metrics_of(case))["q"]["ndcg", 10] == 1


def test_ndcg_is_undefined_without_a_relevant_chunk() -> None:
    case = Case({"A": "x" * 9}, {"c": ("A", 0, 5)}, {"q": [("A", 5, 9)]}, {"q": ["c"]})
    assert by_query(metrics_of(case))["q"]["ndcg", 10] is None
