from __future__ import annotations

import pyarrow as pa
import pytest

from spanbench_pipeline.checks.scope import admitted

DOCUMENTS = pa.table(
    {
        "doc_id": ["A", "B", "C"],
        "metadata": [[("year", "2020"), ("party", "x")], [("year", "2020")], []],
    }
)
QUERIES = [
    {"query_id": "any", "doc_id": None, "filters": []},
    {"query_id": "of A", "doc_id": "A", "filters": [("year", "2020")]},
    {"query_id": "of 2020", "doc_id": None, "filters": [("year", "2020")]},
    {"query_id": "of C, of 2020", "doc_id": "C", "filters": [("year", "2020")]},
    {"query_id": "of no document", "doc_id": "D", "filters": []},
]
ROUTED = pa.table({"query_id": ["any", "any", "of A"], "doc_id": ["A", "C", "B"]})


@pytest.mark.parametrize(
    ("doc_scope", "metadata_filters", "routed", "expected"),
    [
        (False, False, None, ["ABC", "ABC", "ABC", "ABC", "ABC"]),
        (True, False, None, ["ABC", "A", "ABC", "C", ""]),
        (False, True, None, ["ABC", "AB", "AB", "AB", "ABC"]),
        (True, True, None, ["ABC", "A", "AB", "", ""]),
        (False, False, ROUTED, ["AC", "B", "", "", ""]),
        (True, False, ROUTED, ["AC", "", "", "", ""]),
    ],
)
def test_all_that_is_asked_for_must_hold(
    doc_scope: bool, metadata_filters: bool, routed: pa.Table | None, expected: list[str]
) -> None:
    found = admitted(
        QUERIES,
        DOCUMENTS,
        doc_scope=doc_scope,
        metadata_filters=metadata_filters,
        routed=routed,
    )
    assert found == {q["query_id"]: set(e) for q, e in zip(QUERIES, expected, strict=True)}
