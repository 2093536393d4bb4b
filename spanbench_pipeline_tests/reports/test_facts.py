"""Facts of small tables, counted by hand."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from spanbench_pipeline.reports import facts


def states(*rows: tuple[str, int, str, str | None]) -> pa.Table:
    """Rows of (configuration, k, state, stage that lost the span)."""
    columns = zip(*rows, strict=True)
    return pa.table(
        dict(zip(("config", "k", "state", "lost_stage"), map(list, columns), strict=True))
    )


STATES = states(
    ("a", 5, "covered", None),
    ("a", 5, "missed", "candidates"),
    ("a", 5, "partial", "candidates"),
    ("a", 5, "missed", "cut"),
    ("a", 8, "missed", "cut"),
    ("b", 5, "covered", None),
    ("c", 5, "missed", None),
)


def test_lost_spans_are_those_not_covered_and_every_configuration_has_an_entry() -> None:
    assert facts.lost_spans(STATES, 5) == {
        "a": Counter({"candidates": 2, "cut": 1}),
        "b": Counter(),
        "c": Counter({None: 1}),
    }
    assert facts.lost_spans(STATES, 8) == {"a": Counter({"cut": 1})}
    assert facts.lost_spans(STATES, 64) == {}


def test_states_are_counted_at_one_depth() -> None:
    assert facts.span_states(STATES, 5)["a"] == {"covered": 1, "missed": 2, "partial": 1}


def test_failure_labels_come_most_frequent_first_then_as_they_are_tried() -> None:
    labels = ["rank-miss", "retrieval-miss", "rank-miss", "chunk-severance", "ceiling-bound"]
    table = pa.table({"config": ["a"] * 5, "label": labels})
    counted = facts.failure_labels(table)["a"]
    assert [*counted.items()] == [
        ("rank-miss", 2),
        ("ceiling-bound", 1),
        ("chunk-severance", 1),
        ("retrieval-miss", 1),
    ]
    assert facts.failure_labels(table.slice(0, 0)) == {}


def test_forensic_labels_at_a_depth_and_by_depth() -> None:
    table = pa.table({"config": ["a", "a", "b"], "k": [5, 8, 8], "label": ["OK", "OK", None]})
    assert facts.forensic_labels(table, 8) == {"a": {"OK": 1}, "b": {None: 1}}
    assert facts.forensic_labels_by_depth(table) == {("OK", 5): 1, ("OK", 8): 1, (None, 8): 1}


def test_pairs_of_labels_are_summed() -> None:
    rows = [
        {"config": "a", "failure_label": None, "forensic_label": "OK", "n_queries": 3},
        {"config": "a", "failure_label": "rank-miss", "forensic_label": "ICR", "n_queries": 2},
        {"config": "a", "failure_label": "rank-miss", "forensic_label": "DRM", "n_queries": 1},
    ]
    assert facts.label_pairs(pa.Table.from_pylist(rows)) == {
        ("a", None): {"OK": 3},
        ("a", "rank-miss"): {"ICR": 2, "DRM": 1},
    }


def test_means_and_bounds_are_of_one_part() -> None:
    metrics = [
        {"config": "a", "subset": None, "metric": "precision", "k": 5, "value": 0.25},
        {"config": "a", "subset": None, "metric": "mrr", "k": None, "value": None},
        {"config": "a", "subset": "maud", "metric": "mrr", "k": None, "value": 0.5},
        {"config": "a", "subset": "macro", "metric": "mrr", "k": None, "value": 0.5},
    ]
    table = pa.Table.from_pylist(metrics)
    assert facts.means(table) == {"a": {"precision@5": 0.25, "mrr": None}}
    assert facts.means(table, "maud") == {"a": {"mrr": 0.5}}
    assert facts.parts_of(table) == ["maud", "macro"]
    headroom = [
        {"config": "a", "subset": None, "k": 8, "bound": "actual", "value": 0.5},
        {"config": "a", "subset": None, "k": 1, "bound": "actual", "value": 0.1},
        {"config": "a", "subset": "maud", "k": 8, "bound": "actual", "value": 0.9},
    ]
    assert facts.bounds(pa.Table.from_pylist(headroom), 8) == {"a": {"actual": 0.5}}


def test_the_depth_shown_is_the_usual_one_or_the_deepest_below() -> None:
    def deepest(*ks: int) -> int | None:
        return facts.deepest(pa.table({"k": pa.array(ks, pa.int64())}))

    assert [deepest(1, 8, 64), deepest(1, 4), deepest(16), deepest()] == [8, 4, None, None]
