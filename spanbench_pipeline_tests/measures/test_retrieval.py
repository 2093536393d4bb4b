from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.measures import retrieval
from spanbench_pipeline_tests.golden.cases import GOLDEN, Golden
from spanbench_pipeline_tests.measures import oracle
from spanbench_pipeline_tests.measures.cases import CONFIG, CORPUS, Case, cases


def metrics_of(case: Case) -> pa.Table:
    return retrieval.query_metrics(*case.tables(), corpus=CORPUS, config=CONFIG)


def by_query(table: pa.Table) -> dict[str, dict[tuple[str, int | None], float | None]]:
    found: dict[str, dict[tuple[str, int | None], float | None]] = {}
    for row in table.to_pylist():
        found.setdefault(row["query_id"], {})[row["metric"], row["k"]] = row["value"]
    return found


@settings(max_examples=120, deadline=None)
@given(cases())
def test_metrics_equal_the_oracle(case: Case) -> None:
    expected = {q: oracle.metrics(case, q) for q in case.gold}
    assert by_query(metrics_of(case)) == expected


@settings(max_examples=60, deadline=None)
@given(cases())
def test_outcomes_equal_the_oracle(case: Case) -> None:
    found = retrieval.span_outcomes(*case.tables(), corpus=CORPUS, config=CONFIG).to_pylist()
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
            "covered_chars": oracle.covered(case, query, place),
        }
        for query in sorted(case.gold)
        for number, place in enumerate(oracle.gold_spans(case, query))
    ]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_golden_metrics(golden: Golden) -> None:
    found = {
        (query, metric): value
        for query, values in by_query(metrics_of(golden.case)).items()
        for (metric, _), value in values.items()
    }
    for key, expected in golden.metrics.items():
        assert found[key] == (expected if expected is None else pytest.approx(expected, abs=5e-4))


def test_rows_do_not_depend_on_the_order_of_the_tables() -> None:
    case = GOLDEN[0].case
    reversed_tables = [
        table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
        for table in case.tables()
    ]
    again = retrieval.query_metrics(*reversed_tables, corpus=CORPUS, config=CONFIG)
    assert again.equals(metrics_of(case))
