from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis.backlog import Backlog, BacklogRow, Best, backlog
from spanbench_pipeline.config.experiment import ChunkerSettings, Configuration, Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL

CONFIGURATIONS = (
    Configuration("naive", "naive", encoder="e"),
    Configuration("clause", "clause", encoder="e"),
    Configuration("clause + bm25", "clause", retriever="bm25"),
    Configuration("clause + hybrid", "clause", retriever="hybrid", encoder="e"),
    Configuration("clause + rerank", "clause", reranker="r", encoder="e"),
    Configuration("clause, unfiltered", "clause", doc_scope=False, encoder="e"),
)


def experiment(configurations: tuple[Configuration, ...] = CONFIGURATIONS) -> Experiment:
    chunkers = {name: ChunkerSettings(name, name) for name in ("naive", "clause")}
    return Experiment("c", Path("c.toml"), "", {}, chunkers, configurations)


def label_table(labels: Mapping[str, int], config: str = "naive") -> pa.Table:
    names = [label for label, n in labels.items() for _ in range(n)]
    return tables.from_rows(
        "failure_labels",
        [
            {
                "corpus": "c",
                "config": config,
                "query_id": f"q{i:02}",
                "label": label,
                "lever": EVERY_LABEL[label],
                "evidence": "{}",
            }
            for i, label in enumerate(names)
        ],
    )


def pair_table(*pairs: tuple[str, str, str, float]) -> pa.Table:
    return tables.from_rows(
        "config_pairs",
        [
            {
                "corpus": "c",
                "lever": lever,
                "from_config": before,
                "to_config": after,
                "delta": delta,
                "fixed": 0,
                "broken": 0,
                "promoted": None,
                "fixed_queries": [],
                "broken_queries": [],
            }
            for lever, before, after, delta in pairs
        ],
    )


def metric_table(**grounding: float) -> pa.Table:
    rows = [
        {
            "corpus": "c",
            "config": config,
            "subset": subset,
            "metric": metric,
            "k": 5,
            "value": v,
            "n_queries": 50,
        }
        for config, value in grounding.items()
        # Rows beside the one that counts, which would win if they were taken for it.
        for subset, metric, v in (
            (None, "complete_grounding", value),
            (None, "precision", 1 - value),
            ("macro", "complete_grounding", 1 - value),
        )
    ]
    return tables.from_rows("config_metrics", rows)


PUBLISHED = {
    "naive": 0.58,
    "clause": 0.66,
    "clause + bm25": 0.58,
    "clause + hybrid": 0.70,
    "clause, unfiltered": 0.14,
}
PAIRS = pair_table(
    ("chunking", "naive", "clause", 0.08),
    ("chunking", "clause", "naive", -0.08),
    ("hybrid retrieval", "clause", "clause + bm25", -0.08),
    ("hybrid retrieval", "clause", "clause + hybrid", 0.04),
    ("hybrid retrieval", "clause + bm25", "clause + hybrid", 0.12),
    ("hybrid retrieval", "clause + hybrid", "clause", -0.04),
    ("metadata filtering", "clause", "clause, unfiltered", -0.52),
    ("metadata filtering", "clause, unfiltered", "clause", 0.52),
)


def found(labels: Mapping[str, int], pairs: pa.Table = PAIRS, baseline: str = "naive") -> Backlog:
    return backlog(
        experiment(), label_table(labels, baseline), pairs, metric_table(**PUBLISHED), baseline
    )


def test_the_published_backlog() -> None:
    # naive: 15 chunk-severance, 6 rank-miss; no reranker was measured.
    assert found({"chunk-severance": 15, "rank-miss": 6}) == Backlog(
        baseline="naive",
        rows=(
            BacklogRow("chunking", 15, 0.08, "naive", "clause"),
            BacklogRow("reranking", 6, None, None, None),
        ),
        ceiling_bound=0,
        best=Best(
            config="clause + hybrid",
            value=0.70,
            baseline_value=0.58,
            delta=0.70 - 0.58,
            levers=("chunking", "hybrid retrieval"),
        ),
    )


def test_equal_counts_come_in_the_order_of_the_levers() -> None:
    labels = {"partial-grounding": 2, "rank-miss": 2, "retrieval-miss": 3, "chunk-severance": 2}
    assert [row.lever for row in found(labels).rows] == [
        "hybrid retrieval",
        "chunking",
        "reranking",
        "metadata filtering",
    ]


def test_ceiling_bound_is_counted_apart() -> None:
    result = found({"ceiling-bound": 4, "rank-miss": 1})
    assert result.ceiling_bound == 4
    assert [(row.lever, row.failing_queries) for row in result.rows] == [("reranking", 1)]


def test_without_a_pair_from_the_baseline_the_largest_delta_from_its_setting_counts() -> None:
    # naive is dense: from the dense clause to hybrid, not from bm25 to hybrid, which gains more.
    (row,) = found({"retrieval-miss": 1}).rows
    assert row == BacklogRow("hybrid retrieval", 1, 0.04, "clause", "clause + hybrid")


def test_a_pair_from_the_baseline_comes_before_a_larger_delta() -> None:
    pairs = pair_table(
        ("hybrid retrieval", "clause", "clause + hybrid", -0.1),
        ("hybrid retrieval", "clause", "clause + bm25", -0.2),
        ("hybrid retrieval", "naive", "clause + hybrid", 0.3),
    )
    (row,) = found({"retrieval-miss": 1}, pairs, "clause").rows
    assert row == BacklogRow("hybrid retrieval", 1, -0.1, "clause", "clause + hybrid")


def test_the_direction_is_away_from_the_baselines_setting() -> None:
    (row,) = found({"partial-grounding": 1}).rows
    assert (row.from_config, row.to_config, row.delta) == ("clause", "clause, unfiltered", -0.52)
    (row,) = found({"partial-grounding": 1}, baseline="clause, unfiltered").rows
    assert (row.from_config, row.to_config, row.delta) == ("clause, unfiltered", "clause", 0.52)


def test_equal_deltas_come_in_configuration_order() -> None:
    pairs = pair_table(
        ("hybrid retrieval", "clause", "clause + hybrid", 0.1),
        ("hybrid retrieval", "clause", "clause + bm25", 0.1),
        ("hybrid retrieval", "clause + rerank", "clause + bm25", 0.1),
    )
    for baseline in ("naive", "clause"):
        (row,) = found({"retrieval-miss": 1}, pairs, baseline).rows
        assert (row.from_config, row.to_config) == ("clause", "clause + bm25")


def test_labels_of_other_configurations_do_not_count() -> None:
    both = pa.concat_tables([label_table({"rank-miss": 1}), label_table({"rank-miss": 9}, "other")])
    result = backlog(experiment(), both, PAIRS, metric_table(**PUBLISHED), "naive")
    assert [row.failing_queries for row in result.rows] == [1]


def test_no_failing_query_gives_no_row() -> None:
    assert found({}).rows == ()


def test_the_best_of_equals_is_the_baseline_then_the_first() -> None:
    def best(baseline: str, **values: float) -> Best:
        empty = tables.empty("failure_labels")
        return backlog(experiment(), empty, PAIRS, metric_table(**values), baseline).best

    tied = {"naive": 0.5, "clause": 0.7, "clause + hybrid": 0.7}
    assert best("naive", **tied).config == "clause"
    kept = best("clause + hybrid", **tied)
    assert (kept.config, kept.delta, kept.levers) == ("clause + hybrid", 0, ())


def test_a_baseline_that_was_not_measured_has_no_backlog() -> None:
    with pytest.raises(NotMeasured, match=r"the baseline 'clause \+ rerank' was not measured"):
        found({}, baseline="clause + rerank")


def test_failures_of_lists_cut_at_five_point_at_no_lever() -> None:
    made = backlog(
        experiment(),
        label_table({"depth-bound": 2, "ceiling-bound": 1, "chunk-severance": 1}),
        pair_table(),
        metric_table(naive=0.5),
        "naive",
    )
    assert (made.depth_bound, made.ceiling_bound) == (2, 1)
    assert [(row.lever, row.failing_queries) for row in made.rows] == [("chunking", 1)]


def test_lists_that_do_not_reach_the_top_5_have_no_backlog() -> None:
    shallow = dataclasses.replace(experiment(), depth=4)
    with pytest.raises(NotMeasured, match="depth = 4 does not reach 5"):
        backlog(shallow, label_table({}), pair_table(), metric_table(naive=0.5), "naive")


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'naive'"):
        found({}, baseline="naïve")


def test_a_baseline_is_found_however_its_letters_are_composed() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    one = experiment((Configuration(composed, "naive", encoder="e"),))
    labels = label_table({"rank-miss": 1}, composed)
    made = backlog(one, labels, pair_table(), metric_table(**{composed: 0.5}), decomposed)
    assert made.baseline == composed
    assert sum(row.failing_queries for row in made.rows) == 1
