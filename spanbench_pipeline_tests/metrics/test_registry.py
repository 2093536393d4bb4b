"""Which metrics there are, at which depths, and how they are written."""

from __future__ import annotations

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.metric import metric_label

COUNTED = (
    "chars_retrieved",
    "char_precision_union",
    "char_recall_union",
    "char_precision_paper",
    "char_recall_paper",
)


def test_the_standard_metrics_in_the_order_of_their_rows() -> None:
    results = (
        ("precision", 5),
        ("recall", 10),
        ("mrr", None),
        ("span_coverage", 5),
        ("span_recall", 5),
        ("complete_grounding", 5),
        ("ndcg", 10),
    )
    by_depth = tuple((name, k) for k in (1, 2, 4, 8, 16, 32, 64) for name in COUNTED)
    assert registry.measured() == results + by_depth
    assert registry.printed() == results[:6]


def test_context_and_further_metrics() -> None:
    further = (("precision", 10), ("char_recall_union", 3), ("recall", 10))
    found = registry.measured(8, further)
    assert found[:8] == (
        ("precision", 8),
        ("recall", 10),
        ("mrr", None),
        ("span_coverage", 8),
        ("span_recall", 8),
        ("complete_grounding", 8),
        ("ndcg", 10),
        ("precision", 10),
    )
    assert found[8:] == tuple((name, k) for k in (1, 2, 3, 4, 8, 16, 32, 64) for name in COUNTED)
    assert registry.label_ks(5, further) == (1, 2, 3, 4, 5, 8, 16, 32, 64)


def test_what_is_declared() -> None:
    assert registry.chunk_counting() == ("precision", "recall", "mrr", "ndcg")
    assert registry.names(lambda metric: not metric.is_quality) == ("chars_retrieved",)
    unbounded = registry.names(lambda metric: metric.bounds == (0.0, None))
    assert unbounded == ("chars_retrieved", "char_recall_paper")
    assert registry.names(lambda metric: bool(metric.undefined)) == ("recall", "ndcg")
    assert registry.names(lambda metric: metric.needs_chunks) == ("recall", "ndcg")
    assert registry.of_documents() == ("routing_recall",)
    assert all(metric.meaning and metric.formula for metric in registry.metrics().values())


@pytest.mark.parametrize("metric", [("precision", 10), ("complete_grounding", 8), ("mrr", None)])
def test_a_name_reads_back(metric: tuple[str, int | None]) -> None:
    assert registry.parse(metric_label(*metric), "here") == metric


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("precisoin@10", "precision"),
        ("precision", "k"),
        ("mrr@3", "mrr@3"),
        ("routing_recall@3", "routing_recall@3"),
        ("precision@0x", "k"),
        ("recall@0", "k"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_the_place(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint) as refused:
        registry.parse(text, "file.toml: metrics")
    assert str(refused.value).startswith("file.toml: metrics")
