"""What a run leaves for the web UI, read back from Dagster's own records."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner


def metadata(project: Project, *key: str) -> dict[str, Any]:
    """What the latest materialization of an asset shows, in the order of the UI."""
    with open_instance(project) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(list(key)))
    assert event is not None
    assert event.asset_materialization is not None
    return {title: value.value for title, value in event.asset_materialization.metadata.items()}


def test_pictures_and_rows_come_before_hashes(ran: Project):
    shown = metadata(ran, "small", "chunks", "clause")
    assert list(shown)[:4] == ["state", "lengths", "preview", "first rows"]
    assert "data:image/svg+xml," in shown["lengths"]
    assert shown["dagster/row_count"] > 0
    shown = metadata(ran, "small", "config_metrics")
    assert "**naive + bm25 (baseline)**" in shown["compared"]
    shown = metadata(ran, "small", "reports")
    assert "# Retrieval report: small" in shown["client report"]
    assert "# Developer report: small" in shown["developer report"]
    assert "/reports/small/client.html`" in shown["client report"]


def test_every_asset_has_an_owner_a_corpus_and_words(ran: Project):
    stages = graphs.build(ran).of(["small"])
    for made in assets.definitions(stages, ran):
        (spec,) = made.specs
        assert spec.owners == ["team:retrieval"]
        assert "A row " in (spec.description or "")
        assert spec.key.path == ["warehouse"] or spec.tags["corpus"] == "small"


def test_a_baseline_that_does_not_exist_is_refused_before_anything_runs(ran: Project):
    with open_instance(ran) as instance:
        runner = Runner(ran, instance, graphs.build(ran).of(["small"]))
        with pytest.raises(dg.DagsterInvalidConfigError, match=r"clause \+ bm26"):
            runner.materialize([("small", "reports")], {"baseline": "clause + bm26"})
    assert metadata(ran, "small", "reports")["facts"] == {"baseline": "naive + bm25"}


def test_one_check_can_run_alone(ran: Project):
    graph = graphs.build(ran)
    stages = graph.of(["small"])
    key = dg.AssetCheckKey(dg.AssetKey(["small", "chunks", "naive"]), "chunk_ids_unique")
    with open_instance(ran) as instance:
        done = dg.materialize(
            assets.definitions(stages, ran),
            selection=dg.AssetSelection.checks(key),
            instance=instance,
            resources=assets.resources(stages, ran),
        )
    evaluations = done.get_asset_check_evaluations()
    assert [(e.asset_check_key, e.passed, e.description) for e in evaluations] == [
        (key, True, "Holds.")
    ]


def test_the_warehouse_comes_last_without_reading_everything(ran: Project):
    *stages, warehouse = graphs.build(ran).of(["small"])
    assert warehouse.key == ("warehouse",)
    before: set[tuple[str, ...]] = set()
    waiting = list(warehouse.deps)
    deps = {stage.key: stage.deps for stage in stages}
    while waiting:
        key = waiting.pop()
        before.add(key)
        waiting += [dep for dep in deps[key] if dep not in before]
    assert before == set(deps)
    assert len(warehouse.deps) < len(stages) / 4
