"""What is warned of in BM25's statistics."""

from __future__ import annotations

from spanbench_pipeline.analysis import bm25_stats
from spanbench_pipeline.checks import bm25_stats as bm25_checks


def test_what_is_warned_of() -> None:
    stats = {
        "a": {"bm25_average_idf": -0.1, "bm25_first_by_order": 0.0, "bm25_letters_outside": 0.01},
        "b": {"routing_bm25_average_idf": -0.1, "bm25_query_letters_outside": 0.02},
        "c": {"bm25_average_idf": None, "bm25_first_by_order": 1.0, "failing_queries": 3.0},
    }
    table = bm25_stats.table("x", stats)
    assert [row["config"] for row in bm25_checks.backward(table)] == ["a", "b"]
    assert [row["config"] for row in bm25_checks.by_order(table)] == ["c"]
    assert [row["config"] for row in bm25_checks.unread(table)] == ["b"]
