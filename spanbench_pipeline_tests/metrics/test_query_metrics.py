from __future__ import annotations

from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, tiles
from spanbench_pipeline_tests.metrics.measure import all_metrics as query_metrics


def test_both_kinds_of_metrics_in_one_table() -> None:
    # The first chunk is another one, the second holds the whole span and as much again.
    case = Case({"A": "x" * 40}, tiles("A", 40, 20), {"q": [("A", 0, 10)]}, {"q": ["A1", "A0"]})
    found = query_metrics(*case.tables(), corpus=CORPUS, config=CONFIG, depth=2)
    assert {(row["corpus"], row["config"], row["query_id"]) for row in found.to_pylist()} == {
        (CORPUS, CONFIG, "q")
    }
    assert {(row["metric"], row["k"]): row["value"] for row in found.to_pylist()} == {
        ("mrr", None): 0.5,
        ("chars_retrieved", 1): 20,
        ("char_precision_union", 1): 0,
        ("char_recall_union", 1): 0,
        ("char_precision_paper", 1): 0,
        ("char_recall_paper", 1): 0,
        ("chars_retrieved", 2): 40,
        ("char_precision_union", 2): 0.25,
        ("char_recall_union", 2): 1,
        ("char_precision_paper", 2): 0.25,
        ("char_recall_paper", 2): 1,
    }
