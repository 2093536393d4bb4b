"""Views over files that were damaged, edited or exchanged; views that were changed by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli.sql import sql
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.stages import history, views
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import names, run


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def drop_a_column(path: Path) -> None:
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["value"]), path)


def halve(path: Path) -> None:
    table = pq.read_table(path, partitioning=None)
    at = table.schema.get_field_index("value")
    halves = pa.array([0.5] * table.num_rows, table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), halves), path)


def stale(project: Project) -> dict[Key, list[str]]:
    with open_instance(project) as instance:
        return Runner(project, instance, graphs.build(project).of(["small"])).stale()


def asked(project: Project, query: str, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    sql(project, query, "csv", None)
    return capfd.readouterr().out


def history_file(project: Project) -> Path:
    [path] = (project.home / "history" / "small").glob("*.parquet")
    return path


COUNT = "SELECT count(*) AS n FROM metric_history"


@pytest.mark.parametrize("damage", [truncate, empty, drop_a_column, halve])
def test_a_history_file_that_was_touched_is_named_and_left_out(
    ran: Project,
    damage: Callable[[Path], None],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    path = history_file(ran)
    assert asked(ran, COUNT, capfd) != "n\n0\n"
    kept = path.read_bytes()
    damage(path)
    assert asked(ran, COUNT, capfd) == "n\n0\n"
    assert any(str(path) in record.message for record in caplog.records)
    assert stale(ran) == {views.KEY: ["the view metric_history reads other files than there are"]}
    assert names(run(ran)) == {"warehouse"}
    assert stale(ran) == {}
    path.write_bytes(kept)
    assert names(run(ran)) == {"warehouse"}
    assert asked(ran, COUNT, capfd) != "n\n0\n"


def test_history_of_another_corpus_is_left_out(tmp_path: Path):
    project = Project(tmp_path, tmp_path)
    own, other = (tmp_path / "history" / corpus for corpus in ("small", "other"))
    own.mkdir(parents=True)
    other.mkdir()
    (other / "x").write_bytes(b"figures")
    path = other / f"20260101T000000Z-00000000-{history._digest('other', other / 'x')}.parquet"
    (other / "x").rename(path)
    copied = Path(shutil.copy(path, own))
    assert history.files("other", project) == [path]
    assert history.files("small", project) == []
    assert [str(copied) in said for said in history.left_out("small", project)] == [True]


@pytest.mark.parametrize("damage", [truncate, empty, drop_a_column])
def test_a_table_that_cannot_be_opened_stops_no_query(
    ran: Project,
    damage: Callable[[Path], None],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    path = ran.parquet / "small" / "config_metrics.parquet"
    damage(path)
    assert asked(ran, "SELECT 1 AS one", capfd) == "one\n1\n"
    assert any(str(path) in record.message for record in caplog.records)
    assert asked(ran, "SELECT count(*) AS n FROM config_metrics", capfd) == "n\n0\n"
    assert names(run(ran)) == {"small/config_metrics"}


@pytest.mark.parametrize(
    "change",
    [
        "DROP VIEW config_metrics",
        "CREATE OR REPLACE VIEW config_metrics AS SELECT 'small' AS corpus, 0.5 AS value",
        "CREATE OR REPLACE VIEW config_metrics AS SELECT * REPLACE (0.5 AS value) "
        "FROM read_parquet('{path}')",
    ],
)
def test_a_view_that_was_changed_by_hand_is_made_anew(ran: Project, change: str):
    path = ran.parquet / "small" / "config_metrics.parquet"
    with duckdb.connect(str(ran.database)) as connection:
        connection.execute(change.format(path=path))
    assert stale(ran) == {views.KEY: ["the view config_metrics is not the one that was made"]}
    assert names(run(ran)) == {"warehouse"}
    with duckdb.connect(str(ran.database), read_only=True) as connection:
        found = connection.execute("SELECT value FROM config_metrics ORDER BY ALL").fetchall()
    wanted = parquet.read(path, "config_metrics").table["value"].to_pylist()
    assert sorted(value for (value,) in found) == sorted(wanted)
