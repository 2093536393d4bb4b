"""A change costs what it changed: which assets run, and which do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline_tests.end_to_end.conftest import edit, names, run

SUMMARIES = {
    "small/chunk_stats",
    "small/clause_type_metrics",
    "small/config_metrics",
    "small/config_pairs",
    "small/config_stats",
    "small/fingerprints",
    "small/metric_history",
    "small/regression",
    "small/reports",
}


def test_everything_runs_once_and_then_nothing(small: Project):
    first = names(run(small))
    assert {"small/documents", "small/chunks/naive", "small/rankings/clause_bm25"} <= first
    assert first >= SUMMARIES | {"small/configs", "warehouse"}
    assert names(run(small)) == set()


def test_a_parameter_that_changes_no_chunk_costs_its_chunker_and_what_states_it(ran: Project):
    edit(ran, "small", "max_chars = 300", "max_chars = 100000")
    assert "small/chunks/clause" in names(run(ran))
    edit(ran, "small", "max_chars = 100000", "max_chars = 100001")
    # The fingerprints have the parameters; nothing is retrieved, measured or summed up anew.
    again = names(run(ran))
    assert again >= {"small/chunks/clause", "small/fingerprints", "small/reports"}
    assert again <= {
        *("small/chunks/clause", "small/fingerprints", "small/metric_history"),
        *("small/regression", "small/reports", "warehouse"),
    }
    assert "max_chars 100001" in (ran.reports / "small" / "developer.md").read_text()


def test_a_deleted_or_damaged_file_is_made_again(ran: Project):
    path = ran.parquet / "small" / "chunks" / "naive.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert names(run(ran)) == {"small/chunks/naive"}
    assert path.read_bytes() == whole
    path.unlink()
    assert names(run(ran)) == {"small/chunks/naive"}
    (ran.reports / "small" / "client.md").write_text("edited")
    assert names(run(ran)) == {"small/reports"}


def test_a_failing_check_holds_its_children_back_in_the_next_run_too(
    small: Project, monkeypatch: pytest.MonkeyPatch
):
    from spanbench_pipeline.checks import consistency

    with monkeypatch.context() as patched:
        rows = [{"query_id": "q1", "rank": 7}]
        patched.setattr(consistency, "unlike_candidates", lambda *_: rows)
        for _ in range(2):
            result = run(small)
            assert set(result.failed_checks) == {
                ("small", "rankings", "naive_bm25"),
                ("small", "rankings", "clause_bm25"),
            }
            held = {name(key) for key in result.held}
            assert {"small/query_metrics/naive_bm25", "small/config_metrics"} <= held
            assert not (small.parquet / "small" / "query_metrics").exists()
    assert "small/query_metrics/naive_bm25" in names(run(small))


def test_one_broken_experiment_leaves_the_others_alone(
    small: Project, make_project: Callable[..., Project]
):
    (small.root / "data" / "experiments" / "broken.toml").write_text('corpus = "broken"\nx = 1\n')
    graph = graphs.build(small)
    assert set(graph.experiments) == {"small"}
    assert "unknown key 'x'" in str(graph.broken["broken"])
