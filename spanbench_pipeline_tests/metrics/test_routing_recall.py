from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.checks import consistency, invariants
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.quality import routing_recall
from spanbench_pipeline_tests.retrieval import builders

DOCUMENTS = builders.documents({"A": "aa", "B": "bb", "C": "cc"})
QUERIES = builders.queries([("one", None, {}), ("two", "B", {}), ("?", None, {})])


def routed(*rows: tuple[str, int, str]) -> pa.Table:
    common = {"corpus": "small", "config": "r"}
    return tables.from_rows(
        "routed_documents",
        [common | {"query_id": q, "rank": n, "doc_id": d, "score": 1 / n} for q, n, d in rows],
    )


def gold(*rows: tuple[str, int, str]) -> pa.Table:
    return tables.from_rows(
        "gold_spans",
        [
            {"corpus": "small", "query_id": q, "span_no": n, "doc_id": d}
            | {"start_char": 2 * n, "end_char": 2 * n + 1, "text": "x"}
            for q, n, d in rows
        ],
    )


# The first query's answer is in A (two spans) and B, the others' in B alone.
GOLD = gold(
    ("q001", 0, "A"), ("q001", 1, "A"), ("q001", 2, "B"), ("q002", 0, "B"), ("q003", 0, "B")
)
ROUTED = routed(("q001", 1, "C"), ("q001", 2, "A"), ("q002", 1, "A"), ("q002", 2, "B"))


def recalls(kept: pa.Table = ROUTED) -> pa.Table:
    return routing_recall.routing_recall(kept, GOLD, QUERIES, corpus="small", config="r", keep=2)


def test_the_share_of_gold_documents_among_the_kept() -> None:
    found = [(r["query_id"], r["metric"], r["k"], r["value"]) for r in recalls().to_pylist()]
    assert found == [
        ("q001", "routing_recall", 2, 0.5),  # A of A and B
        ("q002", "routing_recall", 2, 1.0),
        ("q003", "routing_recall", 2, 0.0),  # nothing was kept
    ]


def test_scores_of_documents_are_in_order() -> None:
    assert consistency.unordered_scores(ROUTED) == []
    rising = ROUTED.set_column(5, ROUTED.schema.field(5), pa.array([0.1, 0.2, 0.1, 0.2]))
    assert [(r["query_id"], r["doc_id"]) for r in consistency.unordered_scores(rising)] == [
        ("q001", "A"),
        ("q002", "B"),
    ]


def test_ranked_chunks_must_be_in_routed_documents() -> None:
    ranked = pa.table(
        {
            "config": ["r"] * 3,
            "query_id": ["q001", "q002", "q003"],
            "rank": [1, 1, 1],
            "chunk_id": ["A:c:0", "A:c:0", "B:c:0"],
            "doc_id": ["A", "A", "B"],
        }
    )

    def outside(*, doc_scope: bool, kept: pa.Table | None) -> list[str]:
        rows = consistency.outside_scope(
            ranked,
            QUERIES,
            DOCUMENTS,
            doc_scope=doc_scope,
            metadata_filters=False,
            routed=kept,
        )
        return [row["query_id"] for row in rows]

    assert outside(doc_scope=False, kept=None) == []
    assert outside(doc_scope=False, kept=ROUTED) == ["q003"]  # for which nothing was kept
    assert outside(doc_scope=True, kept=ROUTED) == ["q002", "q003"]  # q002 is about B


def test_a_configuration_that_routes_must_have_its_metric() -> None:
    also = (("routing_recall", 2),)
    missing = invariants.missing_metrics(recalls().slice(0, 2), QUERIES, also=also)
    assert {"metric": "routing_recall", "k": 2, "query_id": "q003"} in missing
    found = {
        (r["metric"], r["k"]) for r in invariants.missing_metrics(recalls(), QUERIES, also=also)
    }
    assert ("routing_recall", 2) not in found
    found = {
        (r["metric"], r["k"]) for r in invariants.missing_metrics(recalls().slice(0, 0), QUERIES)
    }
    assert ("routing_recall", 2) not in found
