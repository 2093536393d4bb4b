from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.tables import TABLES, TableError

STAT = {"corpus": "c", "chunker": "naive", "stat": "n_chunks", "value": 3.0}
CHUNK = {
    "corpus": "c",
    "chunker": "naive",
    "chunk_id": "A:naive:0",
    "doc_id": "A",
    "chunk_no": 0,
    "start_char": 0,
    "end_char": 5,
}


def stat(**values: Any) -> pa.Table:
    return pa.Table.from_pylist([STAT | values])


INTERFACE = {
    "documents": "corpus doc_id title n_chars text text_sha256 source_file extractor metadata",
    "queries": "corpus query_id query clause_type subset doc_id filters",
    "gold_spans": "corpus query_id span_no doc_id start_char end_char text",
    "chunks": "corpus chunker chunk_id doc_id chunk_no start_char end_char",
    "embeddings": "corpus chunker encoder chunk_id vector n_tokens",
    "rankings": "corpus config query_id rank chunk_id doc_id start_char end_char score "
    "dense_rank bm25_rank fused_rank",
    "query_metrics": "corpus config query_id metric k value",
    "span_outcomes": "corpus config query_id span_no k doc_id start_char end_char covered_chars",
    "failure_labels": "corpus config query_id label lever evidence",
    "forensic_labels": "corpus config query_id k label excess stability",
    "span_states": "corpus config query_id span_no k state covered_chars severed lost_stage",
    "chunk_stats": "corpus chunker stat value",
    "config_metrics": "corpus config subset metric k value n_queries",
    "configs": "corpus config chunker retriever reranker doc_scope metadata_filters encoder state",
}
"""The columns that others read these tables by."""


@pytest.mark.parametrize("name", INTERFACE)
def test_the_interface_keeps_its_names(name: str) -> None:
    assert TABLES[name].schema.names == INTERFACE[name].split()


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_declared_soundly(name: str) -> None:
    spec = TABLES[name]
    assert spec.name == name
    assert spec.description
    names = [column.name for column in spec.columns]
    assert len(set(names)) == len(names)
    assert set(spec.key) | set(spec.sort_columns) <= set(names)
    assert set(spec.sort_columns) >= set(spec.key) or spec.order
    for column in spec.columns:
        field = spec.schema.field(column.name)
        assert (field.type, field.nullable) == (column.type, column.nullable)
        assert field.metadata == {b"description": column.description.encode()}
        assert column.description


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_table_conforms(name: str) -> None:
    empty = tables.empty(name)
    assert empty.num_rows == 0
    assert tables.conform(name, empty).schema.equals(TABLES[name].schema)
    assert tables.from_rows(name, []).schema.equals(TABLES[name].schema)


def test_columns_are_put_in_order_and_cast() -> None:
    loose = pa.table(
        {
            "value": pa.array([1, 2], pa.int8()),
            "stat": pa.array(["b", "a"]).dictionary_encode(),
            "chunker": pa.array(["n", "n"], pa.large_string()),
            "corpus": ["c", "c"],
        }
    )
    found = tables.conform("chunk_stats", loose)
    assert found.schema.equals(TABLES["chunk_stats"].schema)
    assert found["stat"].to_pylist() == ["a", "b"]
    assert found["value"].to_pylist() == [2.0, 1.0]


def test_rows_are_sorted_by_code_point_and_number() -> None:
    rows = [
        CHUNK | {"doc_id": doc_id, "chunk_no": number, "chunk_id": f"{doc_id}:naive:{number}"}
        for doc_id in ("é", "z", "Z", "\U0001f600", "\uff5e")
        for number in (10, 2)
    ]
    found = tables.from_rows("chunks", rows)
    order = list(zip(found["doc_id"].to_pylist(), found["chunk_no"].to_pylist(), strict=True))
    assert order == [(d, n) for d in ("Z", "z", "é", "\uff5e", "\U0001f600") for n in (2, 10)]


def test_metadata_of_the_table_is_dropped_that_of_columns_kept() -> None:
    found = tables.conform("chunk_stats", stat().replace_schema_metadata({"made": "today"}))
    assert found.schema.metadata is None
    assert found.schema.field("stat").metadata == {b"description": b"name of the statistic"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (stat().drop_columns(["value"]), r"missing columns \['value'\], unknown columns \[\]"),
        (stat(extra=1), r"missing columns \[\], unknown columns \['extra'\]"),
        (stat(value="many"), "'many'"),
        (stat(stat=None), "stat"),
        (pa.concat_tables([stat(), stat(value=4.0)]), "1 keys given more than once: .*n_chunks"),
    ],
    ids=["missing", "unknown", "type", "null", "key"],
)
def test_a_table_that_does_not_conform_is_refused(table: pa.Table, message: str) -> None:
    with pytest.raises(TableError, match=f"table chunk_stats: .*{message}"):
        tables.conform("chunk_stats", table)


def test_a_number_that_would_lose_its_fraction_is_refused() -> None:
    with pytest.raises(TableError, match=r"table chunks: .*truncated"):
        tables.conform("chunks", pa.Table.from_pylist([CHUNK | {"end_char": 5.5}]))


def test_null_is_a_value_of_a_nullable_key() -> None:
    row = {"corpus": "c", "config": "a", "query_id": "q", "metric": "mrr", "value": None}
    two = [row | {"k": None}, row | {"k": 5}]
    assert tables.from_rows("query_metrics", two)["k"].to_pylist() == [5, None]
    with pytest.raises(TableError, match=r"1 keys given more than once: .*'k': None"):
        tables.from_rows("query_metrics", [two[0], two[0]])


def test_repeated_keys_counts_them() -> None:
    table = pa.concat_tables([stat(), stat(), stat(), stat(stat="other")])
    assert tables.repeated_keys("chunk_stats", table).to_pylist() == [
        {"corpus": "c", "chunker": "naive", "stat": "n_chunks", "n": 3}
    ]


def test_from_columns_takes_sequences_and_arrays() -> None:
    columns = {
        "corpus": pa.repeat("c", 2),
        "chunker": pa.chunked_array([["naive"], ["naive"]]),
        "stat": ["b", "a"],
        "value": [None, 1],
    }
    assert tables.from_columns("chunk_stats", columns).to_pylist() == [
        {"corpus": "c", "chunker": "naive", "stat": "a", "value": 1.0},
        {"corpus": "c", "chunker": "naive", "stat": "b", "value": None},
    ]


def test_from_columns_refuses_what_it_does_not_know_or_lacks() -> None:
    columns = {name: [value] for name, value in STAT.items()}
    with pytest.raises(TableError, match=r"unknown columns \['valu'\]"):
        tables.from_columns("chunk_stats", columns | {"valu": [1.0]})
    del columns["value"]
    with pytest.raises(TableError, match=r"missing columns \['value'\]"):
        tables.from_columns("chunk_stats", columns)


def test_a_nullable_column_may_be_left_out_of_every_row_and_is_null_then() -> None:
    file = {"corpus": "c", "role": "archive", "sha256": "0"}
    rows = [file | {"file": "a"}, file | {"file": "b"}]
    found = tables.from_rows("source_files", rows)
    assert found.schema.equals(TABLES["source_files"].schema)
    assert [(r["file"], r["n_bytes"], r["note"]) for r in found.to_pylist()] == [
        ("a", None, None),
        ("b", None, None),
    ]
    with pytest.raises(TableError, match="'n_bytes'"):  # an oversight in one of them is none
        tables.from_rows("source_files", [rows[0], rows[1] | {"n_bytes": 1}])
    with pytest.raises(TableError, match=r"missing columns \['file'\]"):
        tables.from_rows("source_files", [file])


def test_of_a_nullable_key_nothing_is_left_out() -> None:
    row = {"corpus": "c", "config": "a", "query_id": "q", "metric": "mrr", "value": None}
    with pytest.raises(TableError, match=r"missing columns \['k'\]"):
        tables.from_rows("query_metrics", [row])


def test_maps_and_lists_survive() -> None:
    query = {"corpus": "c", "query_id": "q", "query": "?", "clause_type": None, "subset": None}
    found = tables.from_rows(
        "queries", [query | {"doc_id": None, "filters": [("a", "1"), ("b", "2")]}]
    )
    assert found["filters"].to_pylist() == [[("a", "1"), ("b", "2")]]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("chunk_stats", {k: v for k, v in STAT.items() if k != "value"} | {"valu": 3.0}),
        ("chunk_stats", {k: v for k, v in STAT.items() if k != "value"}),
        ("chunk_stats", STAT | {"value": "many"}),
        ("chunks", CHUNK | {"end_char": 5.5}),
    ],
    ids=["unknown", "missing", "type", "fraction"],
)
def test_rows_that_do_not_conform_are_refused(name: str, row: dict[str, Any]) -> None:
    with pytest.raises(TableError):
        tables.from_rows(name, [row])
