from __future__ import annotations

from spanbench_pipeline.reports.parts import metric_names


def test_metrics_that_count_characters_are_not_among_the_others() -> None:
    found = {"mrr", "precision@5", "ndcg@10", "char_recall_union@8", "chars_retrieved@1"}
    assert metric_names(("c", name) for name in found) == ["precision@5", "mrr", "ndcg@10"]
