from __future__ import annotations

import pyarrow as pa
import pytest

from spanbench_pipeline.retrieval.scope import Scope, ScopedRows, scopes
from spanbench_pipeline_tests.retrieval import builders

DOCUMENTS = builders.documents(
    {"B": "x" * 30, "a": "x" * 30, "é": "x" * 30},
    {"B": {"version": "1", "entity": "Acme"}, "a": {"version": "2", "entity": "Acme"}},
)
# Code point order puts B before a before é, and chunk 10 after chunk 9.
CHUNKS = builders.chunks(
    [("é", 0, 30), *[("a", i, i + 1) for i in range(11)], ("B", 0, 10), ("B", 10, 30)]
)
QUERIES = builders.queries(
    [("one", "a", {"version": "1"}), ("two", None, {"entity": "Acme"}), ("three", "é", {})]
)
ROWS = {"B": [0, 1], "a": list(range(2, 13)), "é": [13]}


@pytest.mark.parametrize(
    ("doc_scope", "metadata_filters", "expected"),
    [
        (False, False, [Scope(), Scope(), Scope()]),
        (True, False, [Scope("a"), Scope(), Scope("é")]),
        (
            False,
            True,
            [Scope(None, (("version", "1"),)), Scope(None, (("entity", "Acme"),)), Scope()],
        ),
        (
            True,
            True,
            [Scope("a", (("version", "1"),)), Scope(None, (("entity", "Acme"),)), Scope("é")],
        ),
    ],
)
def test_a_configuration_decides_what_restricts_a_query(doc_scope, metadata_filters, expected):
    found = scopes(QUERIES, doc_scope=doc_scope, metadata_filters=metadata_filters)
    assert found == expected


def test_routed_documents_are_one_more_condition():
    routed = pa.table({"query_id": ["q001", "q001", "q003"], "doc_id": ["é", "B", "a"]})
    found = scopes(QUERIES, doc_scope=True, metadata_filters=False, routed=routed)
    assert found == [Scope("a", (), ("B", "é")), Scope(None, (), ()), Scope("é", (), ("a",))]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope("a"), ROWS["a"]),
        (Scope("é"), ROWS["é"]),
        (Scope("unknown"), []),
        (Scope(None, (("entity", "Acme"),)), ROWS["B"] + ROWS["a"]),
        (Scope(None, (("entity", "Acme"), ("version", "2"))), ROWS["a"]),
        (Scope("a", (("version", "1"),)), []),
        (Scope(None, (("version", "3"),)), []),
        (Scope(None, (("court", ""),)), []),
        (Scope(None, (), ("B", "é")), ROWS["B"] + ROWS["é"]),
        (Scope(None, (("version", "2"),), ("B", "a")), ROWS["a"]),
        (Scope("a", (), ("B", "a")), ROWS["a"]),
        (Scope("a", (), ("B",)), []),
        (Scope(None, (), ("unknown",)), []),
        (Scope(None, (), ()), []),
    ],
)
def test_the_rows_a_scope_admits(scope, expected):
    rows_in = ScopedRows(DOCUMENTS, CHUNKS)
    assert [rows_in(scope).tolist() for _ in range(2)] == [expected, expected]


def test_a_scope_without_conditions_is_every_row():
    assert ScopedRows(DOCUMENTS, CHUNKS)(Scope()) is None


def test_no_chunks_at_all():
    assert ScopedRows(DOCUMENTS, CHUNKS.slice(0, 0))(Scope("a")).tolist() == []


@pytest.mark.parametrize("order", [[1, 0, *range(2, 14)], [13, *range(13)], [0, 0, *range(1, 14)]])
def test_a_table_out_of_chunk_order_is_refused(order):
    with pytest.raises(ValueError, match="not sorted by doc_id"):
        ScopedRows(DOCUMENTS, CHUNKS.take(pa.array(order)))
