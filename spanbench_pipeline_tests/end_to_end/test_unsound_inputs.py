"""No asset is made of an input that is not the recorded one, or that failed a blocking check."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli.report import report
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import names, run

METRICS = ("small", "config_metrics")
HISTORY = ("small", "metric_history")


def all_a_half(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("value")
    halves = pa.array([0.5] * table.num_rows, table.schema.field(at).type)
    return table.set_column(at, table.schema.field(at), halves)


def edit_metrics(project: Project) -> Path:
    path = project.parquet / "small" / "config_metrics.parquet"
    pq.write_table(all_a_half(pq.read_table(path, partitioning=None)), path)
    return path


def materialize(project: Project, *keys: Key) -> Result:
    """What the web UI does when a person picks assets and launches them."""
    graph = graphs.build(project)
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of(["small"])).materialize(list(keys), {})


def fail_the_check(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores wrong metrics as if they had been computed: only a check can tell."""
    write = parquet.write

    def spoilt(path: Path, table: str, content: pa.Table, *more: str) -> parquet.Written:
        return write(path, table, all_a_half(content) if table == METRICS[1] else content, *more)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write", spoilt)
        result = materialize(project, METRICS)
    assert "means_equal_their_parts" in result.failed_checks[METRICS]


def reports(project: Project) -> dict[str, bytes]:
    folder = project.reports / "small"
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_edited_input_is_refused_and_made_anew(ran: Project):
    before = reports(ran)
    path = edit_metrics(ran)
    with pytest.raises(InputError, match=r"small/config_metrics.*run small"):
        report(ran, "small", "clause + bm25")
    result = materialize(ran, HISTORY, ("small", "reports"))
    assert {f.key for f in result.failures} == {HISTORY, ("small", "reports")}
    for failure in result.failures:
        assert str(path) in failure.message
        assert "small/config_metrics was changed since it was made" in failure.message
        assert "spanbench run small" in failure.message
    assert names(run(ran)) == {"small/config_metrics"}
    assert reports(ran) == before
    assert "baseline is clause" in report(ran, "small", "clause + bm25")


@pytest.mark.parametrize("ask", [HISTORY, ("small", "reports")])
def test_an_input_that_failed_a_blocking_check_is_refused(
    ran: Project, monkeypatch: pytest.MonkeyPatch, ask: Key
):
    before = reports(ran)
    fail_the_check(ran, monkeypatch)
    with pytest.raises(InputError, match="means_equal_their_parts"):
        report(ran, "small", "clause + bm25")
    [failure] = materialize(ran, ask).failures
    assert "failed a blocking check (means_equal_their_parts" in failure.message
    assert reports(ran) == before


def test_an_input_without_a_record_is_left_to_the_waves(ran: Project):
    with open_instance(ran) as instance:
        instance.wipe_assets([dg.AssetKey(list(METRICS))])
    assert not materialize(ran, HISTORY).failures


def test_a_refusal_is_no_attempt_at_the_asset(ran: Project):
    edit_metrics(ran)
    materialize(ran, HISTORY)
    with open_instance(ran) as instance:
        tags = [tag for r in instance.get_runs(limit=1) for tag in r.tags]
    assert not [tag for tag in tags if "failed" in tag]
