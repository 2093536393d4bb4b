from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.sections.shared import (
    compared_parts,
    metric_names,
    shown_depth,
)


def test_metrics_that_count_characters_are_not_among_the_others() -> None:
    names = ["mrr", "precision@5", "ndcg@10", "char_recall_union@8", "chars_retrieved@1"]
    means = [dict.fromkeys(names, 0.5)]
    assert metric_names(means, 5) == ["precision@5", "mrr", "ndcg@10"]
    assert metric_names(means, 3) == ["mrr", "ndcg@10", "precision@5"]


def test_parts_come_by_name_with_their_mean_last() -> None:
    table = pa.table({"subset": ["maud", None, "macro", "cuad", "maud"]})
    assert facts.parts_of(table) == ["cuad", "maud", "macro"]
    assert compared_parts(table) == ["cuad", "maud", "macro"]
    alone = pa.table({"subset": pa.array(["maud", None, "macro"], pa.string())})
    assert (facts.parts_of(alone), compared_parts(alone)) == (["maud", "macro"], [])


def test_the_depth_shown_is_eight_or_the_deepest_and_then_says_so() -> None:
    assert shown_depth(64, DEPTHS) == (8, "")
    assert shown_depth(8, registry.label_ks()) == (8, "")
    k, why = shown_depth(7, registry.label_ks())
    assert (k, why[:43]) == (5, "Rankings are 7 deep, so k = 8 was not measu")
    assert shown_depth(7, DEPTHS)[0] == 4
    assert shown_depth(64, registry.label_ks(), 5) == (5, "")
