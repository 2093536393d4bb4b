"""The ready SQL files on a corpus small enough to work out by hand.

Two documents. ``a`` has 200 characters, ``b`` 100. Chunker ``halves`` cuts each into pieces of 50.
q1 (type X) asks a[40,60), which two chunks share; q2 (type Y) asks b[0,10) and b[60,80).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables

SQL = Path(__file__).resolve().parents[2] / "warehouse" / "sql"
CORPUS = {"corpus": "tiny"}
CHUNKS = {
    **{f"a:halves:{n}": ("a", n, 50 * n, 50 * n + 50) for n in range(4)},
    **{f"b:halves:{n}": ("b", n, 50 * n, 50 * n + 50) for n in range(2)},
}
SPANS = [("q1", 0, "a", 40, 60), ("q2", 0, "b", 0, 10), ("q2", 1, "b", 60, 80)]
# configuration -> query -> ranked chunks, with their ranks in the dense and in the BM25 list
RANKED: dict[str, dict[str, list[tuple[str, int | None, int | None]]]] = {
    "dense": {
        "q1": [("b:halves:0", 1, None), ("a:halves:0", 2, None), ("a:halves:1", 3, None)],
        "q2": [("b:halves:0", 1, None)],
    },
    "hybrid": {
        "q1": [("b:halves:0", 1, 1), ("b:halves:1", 2, 2)],
        "q2": [("b:halves:0", 1, 1), ("b:halves:1", None, 2)],
    },
}
METRICS = {
    ("dense", "q1"): {"complete_grounding": 1.0, "mrr": 1 / 2, "span_coverage": 1.0},
    ("dense", "q2"): {"complete_grounding": 0.0, "mrr": 1.0, "span_coverage": 1 / 3},
    ("hybrid", "q1"): {"complete_grounding": 0.0, "mrr": 0.0, "span_coverage": 0.0},
    ("hybrid", "q2"): {"complete_grounding": 1.0, "mrr": 1.0, "span_coverage": 1.0},
}
DEPTH = {"complete_grounding": 5, "mrr": None, "span_coverage": 5}
COVERED = {
    ("dense", "q1", 0): 20,
    ("dense", "q2", 0): 10,
    ("dense", "q2", 1): 0,
    ("hybrid", "q1", 0): 0,
    ("hybrid", "q2", 0): 10,
    ("hybrid", "q2", 1): 20,
}


def documents() -> list[dict[str, Any]]:
    shared = {"title": "t", "text_sha256": "0", "source_file": "f", "extractor": "e"}
    return [
        CORPUS | shared | {"doc_id": d, "text": "x" * n, "n_chars": n, "metadata": [("year", "7")]}
        for d, n in (("a", 200), ("b", 100))
    ]


def queries() -> list[dict[str, Any]]:
    return [
        CORPUS
        | {"query_id": q, "query": f"where is {q}", "clause_type": kind, "subset": None}
        | {"doc_id": doc, "filters": []}
        for q, kind, doc in (("q1", "X", "a"), ("q2", "Y", "b"))
    ]


def rankings() -> list[dict[str, Any]]:
    return [
        CORPUS
        | {"config": config, "query_id": query, "rank": rank, "chunk_id": chunk}
        | {"doc_id": CHUNKS[chunk][0], "start_char": CHUNKS[chunk][2], "end_char": CHUNKS[chunk][3]}
        | {"score": 1 / rank, "dense_rank": dense, "bm25_rank": bm25, "fused_rank": None}
        for config, lists in RANKED.items()
        for query, ranked in lists.items()
        for rank, (chunk, dense, bm25) in enumerate(ranked, 1)
    ]


def config(name: str, retriever: str, **more: Any) -> dict[str, Any]:
    standing = {"chunker": "halves", "reranker": None, "doc_scope": False, "encoder": "e"}
    state = {"metadata_filters": False, "state": "measured"}
    return CORPUS | standing | state | {"config": name, "retriever": retriever} | more


def query_metrics() -> list[dict[str, Any]]:
    return [
        CORPUS | {"config": c, "query_id": q, "metric": m, "k": DEPTH[m], "value": value}
        for (c, q), values in METRICS.items()
        for m, value in values.items()
    ]


def means(by_type: bool) -> list[dict[str, Any]]:
    rows = []
    for name in ("dense", "hybrid"):
        for metric, k in DEPTH.items():
            one, two = METRICS[name, "q1"][metric], METRICS[name, "q2"][metric]
            row = CORPUS | {"config": name, "metric": metric, "k": k}
            if by_type:
                rows.append(row | {"clause_type": "X", "value": one, "n_queries": 1})
                rows.append(row | {"clause_type": "Y", "value": two, "n_queries": 1})
            else:
                rows.append(row | {"subset": None, "value": (one + two) / 2, "n_queries": 2})
    return rows


def outcomes() -> list[dict[str, Any]]:
    return [
        CORPUS
        | {"config": c, "query_id": q, "span_no": n, "k": 5, "covered_chars": covered}
        | {"doc_id": doc, "start_char": start, "end_char": end}
        for (c, q, n), covered in COVERED.items()
        for query, number, doc, start, end in SPANS
        if (query, number) == (q, n)
    ]


# configuration -> query -> its forensic label at k = 8, and at k = 4 where that is another
FORENSIC = {"dense": {"q1": "OK", "q2": "SGP"}, "hybrid": {"q1": "DRM", "q2": "OVR"}}
LOST = {("dense", "q2", 1): ("missed", "candidates"), ("hybrid", "q1", 0): ("missed", "cut")}
RECALL = {"dense": (1 / 2, 400.0), "hybrid": (3 / 4, 2_000.0)}
"""Configuration -> its recall and characters retrieved at k = 8."""


def forensic_labels() -> list[dict[str, Any]]:
    return [
        CORPUS
        | {"config": c, "query_id": q, "k": k, "label": label if k == 8 else "ICR"}
        | {"excess": None, "stability": "{}"}
        for c, labels in FORENSIC.items()
        for q, label in labels.items()
        for k in (4, 8)
    ]


def span_states() -> list[dict[str, Any]]:
    rows = []
    for (c, q, n), covered in COVERED.items():
        state, stage = LOST.get((c, q, n), ("covered", None))
        row = CORPUS | {"config": c, "query_id": q, "span_no": n, "k": 8, "state": state}
        severed = (q, n) == ("q1", 0)
        rows.append(row | {"covered_chars": covered, "severed": severed, "lost_stage": stage})
    return rows


def character_means() -> list[dict[str, Any]]:
    return [
        CORPUS
        | {"config": c, "subset": None, "metric": metric, "k": 8, "value": value, "n_queries": 2}
        for c, (recall, chars) in RECALL.items()
        for metric, value in (("char_recall_union", recall), ("chars_retrieved", chars))
    ]


def label(config_name: str, query: str, name: str, lever: str | None) -> dict[str, Any]:
    return (
        CORPUS
        | {"config": config_name, "query_id": query, "label": name}
        | {
            "lever": lever,
            "evidence": "{}",
        }
    )


def all_rows() -> dict[str, list[dict[str, Any]]]:
    return {
        "documents": documents(),
        "queries": queries(),
        "gold_spans": [
            CORPUS
            | {"query_id": q, "span_no": n, "doc_id": d, "start_char": s, "end_char": e}
            | {"text": "x" * (e - s)}
            for q, n, d, s, e in SPANS
        ],
        "chunks": [
            CORPUS
            | {"chunker": "halves", "chunk_id": c, "doc_id": d, "chunk_no": n}
            | {"start_char": s, "end_char": e}
            for c, (d, n, s, e) in CHUNKS.items()
        ],
        "rankings": rankings(),
        "query_metrics": query_metrics(),
        "config_metrics": [*means(by_type=False), *character_means()],
        "forensic_labels": forensic_labels(),
        "span_states": span_states(),
        "clause_type_metrics": means(by_type=True),
        "span_outcomes": outcomes(),
        "failure_labels": [
            label("dense", "q2", "retrieval-miss", "hybrid retrieval"),
            label("hybrid", "q1", "chunk-severance", "chunking"),
        ],
        "configs": [
            config("dense", "dense"),
            config("hybrid", "hybrid"),
            config("late", "dense", reranker="r", state="not measured: no weights"),
        ],
        "config_pairs": [
            CORPUS
            | {"lever": "hybrid retrieval", "from_config": "dense", "to_config": "hybrid"}
            | {"delta": 0.0, "fixed": 1, "broken": 1, "promoted": 1}
            | {"fixed_queries": ["q2"], "broken_queries": ["q1"]}
        ],
    }


def connect(tables_of: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in tables.TABLES:
        connection.register(name, tables_of.get(name, tables.empty(name)))
    return connection


@pytest.fixture(scope="module")
def warehouse() -> duckdb.DuckDBPyConnection:
    return connect({name: tables.from_rows(name, rows) for name, rows in all_rows().items()})


def run(warehouse: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    found = warehouse.sql((SQL / f"{name}.sql").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = found.to_arrow_table().to_pylist()
    return rows


def picked(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[c] for c in columns) for row in rows]


@pytest.mark.parametrize("path", sorted(SQL.glob("*.sql")), ids=lambda p: p.stem)
def test_each_file_opens_with_its_question_and_orders_its_rows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith("-- ")
    assert first.endswith("?")
    assert re.search(r"\nORDER BY [^;]+;\n\Z", text)
    assert text.count(";\n") == 1


@pytest.mark.parametrize("path", sorted(SQL.glob("*.sql")), ids=lambda p: p.stem)
def test_each_file_runs_on_an_empty_warehouse(path: Path) -> None:
    assert run(connect({}), path.stem) == []


@pytest.mark.parametrize("path", sorted(SQL.glob("*.sql")), ids=lambda p: p.stem)
def test_the_rows_do_not_depend_on_the_order_of_the_tables(
    path: Path, warehouse: duckdb.DuckDBPyConnection
) -> None:
    turned = {n: tables.from_rows(n, rows) for n, rows in all_rows().items()}
    turned = {n: t.take(list(range(t.num_rows))[::-1]) for n, t in turned.items()}
    rows = run(connect(turned), path.stem)
    assert rows == run(warehouse, path.stem)
    assert rows or path.stem == "never_grounded"


def test_at_least_five_files() -> None:
    assert len(list(SQL.glob("*.sql"))) >= 5


def test_configurations_compared(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "configurations_compared")
    # Both ground one query of two; there is no span recall here, so the name decides.
    assert picked(rows, "config", "complete_grounding_at_5", "mrr", "n_queries", "state") == [
        ("dense", 0.5, 0.75, 2, "measured"),
        ("hybrid", 0.5, 0.5, 2, "measured"),
        ("late", None, None, None, "not measured: no weights"),
    ]


def test_worst_clause_types(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "worst_clause_types")
    assert picked(rows, "config", "clause_type", "complete_grounding_at_5", "mrr") == [
        ("dense", "Y", 0.0, 1.0),
        ("dense", "X", 1.0, 0.5),
        ("hybrid", "X", 0.0, 0.0),
        ("hybrid", "Y", 1.0, 1.0),
    ]


def test_hybrid_fixed_and_broke(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "hybrid_fixed_and_broke")
    columns = ("change", "query_id", "first_relevant_dense", "first_relevant_hybrid")
    assert picked(rows, *columns) == [("fixed", "q2", 1, 1), ("broken", "q1", 2, None)]
    assert {(r["dense_config"], r["hybrid_config"]) for r in rows} == {("dense", "hybrid")}


def test_failing_queries(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "failing_queries")
    columns = ("config", "query_id", "label", "lever", "span_no", "covered_share", "missed_text")
    assert picked(rows, *columns) == [
        ("dense", "q2", "retrieval-miss", "hybrid retrieval", 1, 0.0, "x" * 20),
        ("hybrid", "q1", "chunk-severance", "chunking", 0, 0.0, "x" * 20),
    ]


def test_labels_by_configuration(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "labels_by_configuration")
    assert picked(rows, "config", "label", "failing_queries", "share_of_queries") == [
        ("dense", "retrieval-miss", 1, 0.5),
        ("hybrid", "chunk-severance", 1, 0.5),
    ]


def test_first_relevant_depth(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "first_relevant_depth")
    columns = ("config", "at_rank_1", "at_2_to_5", "at_6_to_10", "below_10", "not_in_the_list")
    assert picked(rows, *columns, "median_rank_where_found") == [
        ("dense", 1, 1, 0, 0, 0, 1.5),
        ("hybrid", 1, 0, 0, 0, 1, 1.0),
    ]


def test_severed_spans(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "severed_spans")
    # a[40,60): 10 of its 20 characters in a[0,50), 10 in a[50,100). The spans of b lie whole.
    assert picked(rows, "query_id", "span_no", "chunks", "largest_share_in_one_chunk") == [
        ("q1", 0, 2, 0.5)
    ]


def test_never_grounded_holds_what_fails_everywhere(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    assert run(warehouse, "never_grounded") == []
    rows_of = all_rows()
    for row in rows_of["query_metrics"]:
        if row["query_id"] == "q2" and row["metric"] == "complete_grounding":
            row["value"] = 0.0
    rows = run(connect({n: tables.from_rows(n, r) for n, r in rows_of.items()}), "never_grounded")
    assert picked(rows, "query_id", "configurations", "labels") == [("q2", 2, ["retrieval-miss"])]


def test_levers(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "levers")
    assert picked(rows, "lever", "from_config", "to_config", "delta", "fixed", "broken") == [
        ("hybrid retrieval", "dense", "hybrid", 0.0, 1, 1)
    ]


def test_wrong_documents(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "wrong_documents")
    # hybrid: both chunks of q1 are of b, both of q2 rightly so. dense: one of q1's three is of b.
    columns = ("config", "chunks_in_top_5", "wrong_chunks", "wrong_share")
    assert picked(rows, *columns, "queries_with_wrong_ones_only") == [
        ("hybrid", 4, 2, 0.5, 1),
        ("dense", 4, 1, 0.25, 0),
    ]


def test_channels(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "channels")
    # q2 of hybrid: chunk 0 of b stands in both lists, chunk 1 in the BM25 list only; q1: none.
    assert picked(rows, "config", "relevant_chunks", "in_both", "dense_only", "bm25_only") == [
        ("hybrid", 2, 1, 0, 1)
    ]


def test_lost_spans(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "lost_spans")
    columns = ("config", "lost_stage", "query_id", "span_no", "state", "covered_share", "lost_text")
    assert picked(rows, *columns) == [
        ("dense", "candidates", "q2", 1, "missed", 0.0, "x" * 20),
        ("hybrid", "cut", "q1", 0, "missed", 0.0, "x" * 20),
    ]


def test_stages_compared(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "stages_compared")
    # One span of three each; only q1's lies across two chunks.
    columns = ("config", "k", "lost_stage", "lost_spans", "share", "severed_spans")
    assert picked(rows, *columns) == [
        ("dense", 8, "candidates", 1, 1 / 3, 0),
        ("hybrid", 8, "cut", 1, 1 / 3, 1),
    ]


def test_label_changes(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "label_changes")
    # At k = 4 all labels are one: only k = 8 is compared, and that with itself.
    columns = ("from_config", "to_config", "from_label", "to_label", "queries", "same_chunks")
    assert picked(rows, *columns) == [
        ("dense", "hybrid", "OK", "DRM", ["q1"], True),
        ("dense", "hybrid", "SGP", "OVR", ["q2"], True),
        ("hybrid", "dense", "DRM", "OK", ["q1"], True),
        ("hybrid", "dense", "OVR", "SGP", ["q2"], True),
    ]
    assert {row["n_queries"] for row in rows} == {1}


def test_recall_by_budget(warehouse: duckdb.DuckDBPyConnection) -> None:
    rows = run(warehouse, "recall_by_budget")
    # 0.5 of 400 characters against 0.75 of 2,000: more recall, bought dearly.
    columns = ("config", "subset", "k", "chars_retrieved", "recall_union", "recall_per_1000_chars")
    assert picked(rows, *columns) == [
        ("dense", None, 8, 400.0, 0.5, 1.25),
        ("hybrid", None, 8, 2_000.0, 0.75, 0.375),
    ]
