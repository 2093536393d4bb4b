"""A change costs what it changed: which assets run, and which do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spanbench_pipeline.assets import graph as graphs
from spanbench_pipeline.assets.instance import open_instance
from spanbench_pipeline.assets.run import Result, Runner
from spanbench_pipeline.freshness import name
from spanbench_pipeline.project import Project
from spanbench_pipeline_tests.end_to_end.conftest import edit


def run(project: Project, corpus: str = "small") -> Result:
    graph = graphs.build(project)
    assert not graph.broken
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of([corpus])).run()


def ran(result: Result) -> set[str]:
    assert not result.failures
    assert not result.failed_checks
    assert not result.held
    return {name(key) for key in result.materialized}


SUMMARIES = {
    "small/chunk_stats",
    "small/clause_type_metrics",
    "small/config_metrics",
    "small/config_pairs",
    "small/config_stats",
    "small/reports",
}


def test_everything_runs_once_and_then_nothing(small: Project):
    first = ran(run(small))
    assert {"small/documents", "small/chunks/naive", "small/rankings/clause_bm25"} <= first
    assert first >= SUMMARIES | {"small/configs", "warehouse"}
    assert ran(run(small)) == set()


def test_a_chunkers_parameter_reruns_its_branch_only(small: Project):
    run(small)
    edit(small, "small", "max_chars = 300", "max_chars = 150")
    again = ran(run(small))
    branch = {
        "small/chunks/clause",
        "small/rankings/clause_bm25",
        "small/query_metrics/clause_bm25",
        "small/span_outcomes/clause_bm25",
        "small/failure_labels/clause_bm25",
    }
    assert branch <= again
    assert not {asset for asset in again if "naive" in asset}
    # configs reads the rankings' states and comes out the same.
    assert again - branch <= SUMMARIES | {"small/configs", "warehouse"}


def test_a_parameter_that_changes_no_chunk_runs_one_asset(small: Project):
    run(small)
    edit(small, "small", "max_chars = 300", "max_chars = 100000")
    first = ran(run(small))
    assert "small/chunks/clause" in first
    edit(small, "small", "max_chars = 100000", "max_chars = 100001")
    assert ran(run(small)) == {"small/chunks/clause"}


def test_a_deleted_or_damaged_file_is_made_again(small: Project):
    run(small)
    path = small.parquet / "small" / "chunks" / "naive.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert ran(run(small)) == {"small/chunks/naive"}
    assert path.read_bytes() == whole
    path.unlink()
    assert ran(run(small)) == {"small/chunks/naive"}
    (small.reports / "small" / "client.md").write_text("edited")
    assert ran(run(small)) == {"small/reports"}


def test_a_failing_check_holds_its_children_back_in_the_next_run_too(
    small: Project, monkeypatch: pytest.MonkeyPatch
):
    from spanbench_pipeline.measures import invariants

    with monkeypatch.context() as patched:
        patched.setattr(invariants, "wrong_ranks", lambda *_: [{"query_id": "q1", "rank": 7}])
        for _ in range(2):
            result = run(small)
            assert set(result.failed_checks) == {
                ("small", "rankings", "naive_bm25"),
                ("small", "rankings", "clause_bm25"),
            }
            held = {name(key) for key in result.held}
            assert {"small/query_metrics/naive_bm25", "small/config_metrics"} <= held
            assert not (small.parquet / "small" / "query_metrics").exists()
    assert "small/query_metrics/naive_bm25" in ran(run(small))


def test_one_broken_experiment_leaves_the_others_alone(
    small: Project, make_project: Callable[..., Project]
):
    (small.root / "data" / "experiments" / "broken.toml").write_text('corpus = "broken"\nx = 1\n')
    graph = graphs.build(small)
    assert set(graph.experiments) == {"small"}
    assert "unknown key 'x'" in str(graph.broken["broken"])
