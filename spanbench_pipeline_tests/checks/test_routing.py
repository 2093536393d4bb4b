"""What the checks of routes find."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.checks import routing
from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.metrics.test_routing_recall import (
    DOCUMENTS,
    GOLD,
    QUERIES,
    ROUTED,
    recalls,
    routed,
)
from spanbench_pipeline_tests.retrieval import builders


def change(table: pa.Table, **columns: Any) -> pa.Table:
    rows = table.to_pylist()
    return tables.from_rows("query_metrics", [rows[0] | columns, *rows[1:]])


@pytest.mark.parametrize("wrong", [{"value": 1.0}, {"value": None}, {"k": 3}, {"value": 2 / 3}])
def test_a_recall_that_does_not_follow_is_found(wrong: dict[str, Any]) -> None:
    assert routing.wrong_recalls(recalls(), ROUTED, GOLD, 2) == []
    (row,) = routing.wrong_recalls(change(recalls(), **wrong), ROUTED, GOLD, 2)
    assert (row["query_id"], row["expected"]) == ("q001", 0.5)


def test_other_metrics_are_not_its_business() -> None:
    other = change(recalls(), metric="mrr", k=None, value=0.9)
    assert routing.wrong_recalls(other, ROUTED, GOLD, 2) == []
    rows = other.to_pylist()
    wrong = tables.from_rows("query_metrics", [rows[0], rows[1] | {"value": 0.5}, rows[2]])
    (row,) = routing.wrong_recalls(wrong, ROUTED, GOLD, 2)
    assert (row["query_id"], row["expected"]) == ("q002", 1.0)


def test_documents_and_queries_that_do_not_exist_and_repeats() -> None:
    assert routing.unknown_documents(ROUTED, QUERIES, DOCUMENTS) == []
    wrong = routed(("q001", 1, "A"), ("q001", 2, "A"), ("q002", 1, "D"), ("q9", 1, "A"))
    found = routing.unknown_documents(wrong, QUERIES, DOCUMENTS)
    assert [(r["query_id"], r["rank"], r["problem"]) for r in found] == [
        ("q001", 2, "kept twice"),
        ("q002", 1, "no such document"),
        ("q9", 1, "no such query"),
    ]


def test_routes_that_are_short() -> None:
    # The third query has no letter: it may keep none.
    assert routing.short_routes(ROUTED, QUERIES, DOCUMENTS, 2) == []
    assert routing.short_routes(ROUTED, QUERIES, DOCUMENTS, 3) == [
        {"query_id": "q001", "n_kept": 2, "at_least": 3},
        {"query_id": "q002", "n_kept": 2, "at_least": 3},
    ]
    one = builders.documents({"A": "aa"})
    assert routing.short_routes(routed(("q001", 1, "A")), QUERIES, one, 3) == [
        {"query_id": "q002", "n_kept": 0, "at_least": 1}
    ]
