"""The keys ``context`` and ``metrics`` of an experiment: what they concern, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config import project as projects
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.registry import require_known
from spanbench_pipeline.pipeline.graph import experiment_stages

SAMPLE = projects.find().root / "data" / "experiments" / "sample.toml"
UNTOUCHED = {"source_archive", "documents", "queries", "gold_spans", "chunks", "embeddings"} | {
    "candidates",
    "rankings",
}


def params(experiment: Experiment) -> dict[tuple[str, ...], dict[str, object]]:
    return {
        stage.key: dict(stage.params) for stage in experiment_stages(experiment, projects.find())
    }


def test_another_context_concerns_measures_and_nothing_that_retrieves() -> None:
    sample = experiments.load(SAMPLE)
    five, three = params(sample), params(replace(sample, context=3))
    changed = {key[1] for key in five if five[key] != three[key]}
    assert not changed & UNTOUCHED
    assert {"query_metrics", "span_outcomes", "failure_labels", "span_states"} <= changed
    assert {"forensic_labels", "headroom", "config_pairs", "chunk_stats", "reports"} <= changed
    assert not any("context" in found or "metrics" in found for found in five.values())
    assert three["sample", "query_metrics", "naive"]["context"] == 3


def loaded(tmp_path: Path, lines: str) -> Experiment:
    path = tmp_path / "sample.toml"
    path.write_text(lines + "\n" + SAMPLE.read_text())
    return experiments.load(path)


def test_a_context_past_the_depth_is_refused(tmp_path: Path) -> None:
    assert loaded(tmp_path, "context = 30").context == 30
    with pytest.raises(InputError, match=r"sample\.toml: context: 31 is more than depth = 30"):
        loaded(tmp_path, "context = 31")
    with pytest.raises(InputError, match="context"):
        loaded(tmp_path, "context = 0")


def test_further_metrics_are_known_and_have_a_depth(tmp_path: Path) -> None:
    found = loaded(tmp_path, 'metrics = ["precision@10", "recall@20", "precision@10"]')
    assert found.further == (("precision", 10), ("recall", 20))
    require_known(found)
    with pytest.raises(InputError, match="did you mean 'precision'"):
        require_known(loaded(tmp_path, 'metrics = ["precisoin@10"]'))
    with pytest.raises(InputError, match="metrics"):
        loaded(tmp_path, 'metrics = ["precision"]')
