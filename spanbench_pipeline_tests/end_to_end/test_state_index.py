"""The index says what a full look would say, or nothing; whatever happened to the home."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from spanbench_pipeline.cli import run as run_command
from spanbench_pipeline.cli.sql import sql
from spanbench_pipeline.cli.status import status
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline import state_index
from spanbench_pipeline.pipeline.dagster.home_state import HomeState, experiments, state_of
from spanbench_pipeline.pipeline.dagster.instance import look_at, open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.state import State
from spanbench_pipeline.pipeline.state_index import IndexReader
from spanbench_pipeline_tests.end_to_end.conftest import edit

Change = Callable[[Project], object]


def full(project: Project, corpus: str = "small") -> State:
    """What a look at everything says."""
    with look_at(project) as instance:
        return state_of(Runner(project, instance, graphs.build(project).of([corpus])))


def indexed(project: Project, corpus: str = "small") -> State | None:
    found = IndexReader(project).of([corpus])
    return None if found is None else found.state


def command(project: Project) -> str:
    """Run ``spanbench run small`` when the clock has gone on: changes are told by its ticks."""
    time.sleep(0.12)
    return run_command.run(project, ["small"])


def agrees(project: Project) -> bool:
    """Whether the index answers; it must then say what a full look says."""
    known = indexed(project)
    assert known is None or known == full(project)
    return known is not None


def materialize_by_dagster(project: Project) -> None:
    """What the web UI does with one asset: a run that no command of ours started."""
    graph = graphs.build(project)
    with open_instance(project) as instance:
        runner = Runner(project, instance, graph.of(["small"]))
        runner.materialize([("small", "chunks", "clause")], {})


def wipe(project: Project) -> None:
    with open_instance(project) as instance:
        instance.wipe_assets([dg.AssetKey(["small", "chunk_stats"])])


def fail_check(project: Project) -> None:
    """A later evaluation of a check, on the materialization that there is, fails."""
    key = dg.AssetKey(["small", "documents"])
    with open_instance(project) as instance:
        entry = instance.get_asset_records([key])[0].asset_entry
        latest = entry.last_materialization_record
        assert latest is not None
        evaluation = dg.AssetCheckEvaluation(
            asset_key=key,
            check_name="keys_unique",
            passed=False,
            metadata={},
            target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
                storage_id=latest.storage_id, run_id=latest.run_id, timestamp=latest.timestamp
            ),
        )
        instance.report_runless_asset_event(evaluation)


def damage(project: Project) -> None:
    path = project.parquet / "small" / "queries.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def remove(*parts: str) -> Change:
    return lambda project: project.home.joinpath(*parts).unlink()


CHANGES: dict[str, Change] = {
    "run by Dagster": materialize_by_dagster,
    "wipe": wipe,
    "check fails": fail_check,
    "damage": damage,
    "table gone": remove("parquet", "small", "chunk_stats.parquet"),
    "report gone": remove("reports", "small", "client.html"),
    "views gone": remove("spanbench.duckdb"),
    "setting": lambda p: edit(p, "small", "max_chars = 300", "max_chars = 250"),
    "operations": lambda p: (p.home / "operations.toml").write_text("[regression]\nlevel = 0.2\n"),
    "index damaged": lambda p: (p.home / "index" / "small.json").write_text("{}"),
}


def test_the_index_answers_after_a_run_and_leaves_the_home_as_it_is(ran: Project) -> None:
    assert not agrees(ran)  # what ran it was not the command
    full_run = command(ran)
    assert agrees(ran)
    before = sorted(path for path in ran.home.rglob("*"))
    home = HomeState(ran)
    assert home.experiments.files == experiments(graphs.build(ran)).files
    assert home.state(["small"]).stale == {}
    assert "graph" not in vars(home)  # no full look was needed
    assert command(ran) == full_run
    assert sorted(path for path in ran.home.rglob("*")) == before
    assert IndexReader(ran).idle
    with closing(sqlite3.connect(ran.dagster / "history" / "runs.db")) as runs, runs:
        runs.execute("UPDATE runs SET status = 'STARTED' WHERE id = (SELECT max(id) FROM runs)")
    assert not IndexReader(ran).idle  # a run was killed, or is at work


def test_random_histories_never_contradict_a_full_look(ran: Project) -> None:
    """Each change is made at some time after a run; the next run restores the index."""
    rng = random.Random(20)
    waiting = rng.sample(sorted(CHANGES), len(CHANGES))
    while waiting:
        command(ran)
        assert agrees(ran)
        for name in [waiting.pop() for _ in range(min(len(waiting), rng.randrange(1, 4)))]:
            CHANGES[name](ran)
            assert not agrees(ran), name
    told = status(ran, ["small"])
    shutil.rmtree(ran.home / "index")
    assert status(ran, ["small"]) == told


def test_another_corpus_leaves_the_index_of_this_one(small: Project) -> None:
    text = (small.root / "data" / "experiments" / "small.toml").read_text()
    (small.root / "data" / "experiments" / "other.toml").write_text(
        text.replace('corpus = "small"', 'corpus = "other"')
    )
    command(small)
    run_command.run(small, ["other"])
    assert indexed(small) == full(small)
    small.downloads.mkdir(exist_ok=True)
    (small.downloads / "archive.zip").write_bytes(b"fetched")  # it may decide what any corpus is
    assert indexed(small) is None
    time.sleep(0.12)
    run_command.run(small, ["other"])
    assert indexed(small) == full(small)  # though it did not run
    assert indexed(small, "other") == full(small, "other")


def test_tables_that_were_never_made_are_not_said_to_be_out_of_date(
    small: Project, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with open_instance(small) as instance:  # what fetch leaves of a corpus that never ran
        runner = Runner(small, instance, graphs.build(small).of(["small"]))
        runner.materialize([("small", "source_archive")], {})
    assert (small.parquet / "small" / "source_archive.parquet").exists()
    sql(small, "SELECT count(*) AS n FROM source_files", "csv", None)
    rows = int(capsys.readouterr().out.split()[-1])
    assert rows > 0
    assert "out of date" not in caplog.text


def test_no_index_where_dagster_stores_elsewhere_or_an_experiment_is_broken(ran: Project) -> None:
    settings = ran.dagster / "dagster.yaml"
    settings.write_text(settings.read_text() + "# of a person's own\n")
    command(ran)
    assert indexed(ran) is None
    settings.write_text(state_index.SETTINGS)
    (ran.root / "data" / "experiments" / "broken.toml").write_text("corpus = 3\n")
    command(ran)
    assert indexed(ran) is None
    assert HomeState(ran).experiments.broken.keys() == {"broken"}
