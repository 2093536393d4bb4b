"""What a sensor would run: the command line's answer, and never twice what failed."""

from __future__ import annotations

import dagster as dg
import pytest

from spanbench_pipeline.analysis import aggregate
from spanbench_pipeline.checks import consistency
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.dagster.waves import look, next_waves
from spanbench_pipeline.pipeline.staleness import next_wave
from spanbench_pipeline.storage import locks
from spanbench_pipeline_tests.end_to_end.conftest import edit


def runner(project: Project, instance) -> Runner:
    return Runner(project, instance, graphs.build(project).of(["small"]))


def tick(project: Project, instance) -> list[tuple[str, ...]]:
    """What a sensor does at a tick: looks, and materializes what it is told to."""
    wave = next_waves(project, instance, ["small"])["small"]
    if wave:
        runner(project, instance).materialize(wave, {})
    return wave


def test_ticks_do_what_a_run_does_and_then_nothing(small: Project):
    with dg.DagsterInstance.ephemeral() as instance:
        commanded = runner(small, instance)
        assert next_waves(small, instance, ["small"]) == {
            "small": next_wave(commanded.nodes, commanded.records())
        }
        assert set(tick(small, instance)) == set(commanded.nodes)
        assert tick(small, instance) == []
        assert look(small, instance, ["small"])["small"].why_not == (
            f"small: all {len(commanded.nodes)} assets are up to date"
        )
        edit(small, "small", "max_chars = 300", "max_chars = 150")
        assert tick(small, instance)[0] == ("small", "chunks", "clause")
        assert ("small", "candidates", "clause_bm25") in tick(small, instance)
        assert not {key for key in tick(small, instance) if key[1:2] == ("chunks",)}


def test_what_failed_waits_until_something_has_changed(
    small: Project, monkeypatch: pytest.MonkeyPatch
):
    with dg.DagsterInstance.ephemeral() as instance:
        with monkeypatch.context() as patched:
            patched.setattr(aggregate, "config_metrics", lambda *_: 1 / 0)
            assert tick(small, instance)
            while wave := tick(small, instance):  # the rest, which the failure has not held
                assert ("small", "config_metrics") not in wave
        found = look(small, instance, ["small"])["small"]
        assert found.why_not.endswith("nothing has changed since: small/config_metrics")
        edit(small, "small", "size = 200, step = 150", "size = 40, step = 30")
        seen = set()
        while wave := tick(small, instance):
            seen |= set(wave)
        assert {("small", "config_metrics"), ("small", "reports")} <= seen


def test_a_failed_check_is_not_tried_again_by_itself(
    small: Project, monkeypatch: pytest.MonkeyPatch
):
    with dg.DagsterInstance.ephemeral() as instance:
        with monkeypatch.context() as patched:
            rows = [{"query_id": "q1", "rank": 7}]
            patched.setattr(consistency, "unlike_candidates", lambda *_: rows)
            while tick(small, instance):
                pass
        held = look(small, instance, ["small"])["small"].why_not
        assert "small/rankings/naive_bm25" in held
        assert "small/rankings/clause_bm25" in held
        assert ("small", "rankings", "naive_bm25") in runner(small, instance).run().materialized
        assert tick(small, instance) == []


def test_a_check_that_raises_is_not_tried_again_by_itself(
    small: Project, monkeypatch: pytest.MonkeyPatch
):
    with dg.DagsterInstance.ephemeral() as instance:
        with monkeypatch.context() as patched:
            patched.setattr(consistency, "unlike_candidates", lambda *_: 1 / 0)
            while tick(small, instance):
                pass
        assert "rankings/naive_bm25" in look(small, instance, ["small"])["small"].why_not


def test_a_corpus_at_work_broken_or_unknown_is_skipped_and_says_so(small: Project):
    (small.root / "data" / "experiments" / "broken.toml").write_text('corpus = "broken"\nx = 1\n')
    with dg.DagsterInstance.ephemeral() as instance:
        with locks.hold(small.locks, ["small"], group="g", what="a run", waiting=pytest.fail):
            found = look(small, instance, ["small", "broken", "smal"])
        assert not any(item.wave for item in found.values())
        assert "at work in a run (process" in found["small"].why_not
        assert "unknown key 'x'" in found["broken"].why_not
        assert found["smal"].why_not == "smal: no experiment for this corpus"


def test_a_wave_that_is_coming_is_not_requested_again(small: Project):
    """Not even where it is of what all corpora share alone."""
    with dg.DagsterInstance.ephemeral() as instance:
        runner(small, instance).run()
        small.database.unlink()
        assert next_waves(small, instance, ["small"]) == {"small": [("warehouse",)]}
        coming = dg.DagsterRun(
            job_name="run_small",
            status=dg.DagsterRunStatus.STARTING,
            asset_selection=frozenset({dg.AssetKey(["warehouse"])}),
            tags={"spanbench/corpora": "small"},
        )
        instance.add_run(coming)
        found = look(small, instance, ["small"])["small"]
        assert (found.wave, found.why_not) == ([], f"small: at work in run {coming.run_id[:8]}")


def test_what_all_corpora_share_is_requested_by_one_of_them(small: Project):
    with dg.DagsterInstance.ephemeral() as instance:
        runner(small, instance).run()
        small.database.unlink()
        other = dg.DagsterRun(
            job_name="run_other",
            status=dg.DagsterRunStatus.STARTED,
            asset_selection=frozenset({dg.AssetKey(["warehouse"])}),
            tags={"spanbench/corpora": "other"},
        )
        instance.add_run(other)
        found = look(small, instance, ["small"])["small"]
        expected = f"small: warehouse is at work in run {other.run_id[:8]}"
        assert (found.wave, found.why_not) == ([], expected)
