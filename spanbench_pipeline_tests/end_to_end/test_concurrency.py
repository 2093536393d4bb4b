"""Two runs at once: of one corpus in turn, of two side by side; the bytes are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.storage import locks
from spanbench_pipeline_tests.end_to_end import corpus_jobs
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT, n_assets, run, stored
from spanbench_pipeline_tests.end_to_end.test_edits import DENSE
from spanbench_pipeline_tests.support import tiny_models


@pytest.fixture
def home(finished: Project, tmp_path: Path) -> Project:
    """An empty home of the checkout, with the corpus ``small`` registered in it."""
    project = Project(CHECKOUT, tmp_path / "home")
    project.registered.mkdir(parents=True)
    shutil.copy(finished.root / "data" / "experiments" / "small.toml", project.registered)
    return project


def start(project: Project, *corpora: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spanbench_pipeline.cli.main", "--home", str(project.home)]
    return subprocess.Popen(
        [*command, "run", *corpora],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def test_two_runs_of_one_corpus_do_its_work_once(home: Project, finished: Project):
    out, err = zip(*map(finish, [start(home, "small"), start(home, "small")]), strict=True)
    n = n_assets(home)
    assert sorted(f"materialized {n} of {n}" in text for text in out) == [False, True]
    assert sorted(f"nothing to do: all {n} assets" in text for text in out) == [False, True]
    waited = [text for text in err if text]
    assert len(waited) <= 1  # none, where the first was done before the second began
    for text in waited:
        assert "corpus small is at work in spanbench (process " in text
    assert stored(home) == stored(finished)


@pytest.mark.integration
def test_two_corpora_go_side_by_side(home: Project, finished: Project, tmp_path: Path):
    small = (home.registered / "small.toml").read_text()
    model = tiny_models.encoder(tmp_path / "model")
    for corpus, rest in (("other", None), ("dense", DENSE.format(model=model))):
        text = small.replace('corpus = "small"', f'corpus = "{corpus}"')
        text = text.partition("[[configurations]]")[0] + rest if rest else text
        (home.registered / f"{corpus}.toml").write_text(text)
    processes = [start(home, "dense"), start(home, "small"), start(home, "small", "other")]
    for process in processes:
        _, err = finish(process)
        assert "corpus dense" not in err  # nobody else works on it, so nobody waits for it
    alone = Project(home.root, tmp_path / "alone")
    shutil.copytree(home.registered, alone.registered)
    with dg.DagsterInstance.ephemeral() as instance:
        stages = graphs.build(alone).of(["small", "dense", "other"])
        assert not Runner(alone, instance, stages).run().failures
    # The warehouse asset notes how many files there were when it ran; the last run saw them all.
    assert stored(home) == stored(alone)
    with duckdb.connect(str(home.database), read_only=True) as connection:
        seen = connection.execute("SELECT DISTINCT corpus FROM rankings ORDER BY 1").fetchall()
    assert seen == [("dense",), ("other",), ("small",)]


def test_a_run_that_dagster_starts_waits_its_turn_too(ran: Project):
    """As the web UI and a sensor start one: a job of the definitions, without the command line."""
    stages = graphs.build(ran).of(["small"])
    done = threading.Event()
    results = []

    def launched() -> None:
        with open_instance(ran) as instance:
            result = dg.materialize(
                assets.definitions(stages, ran),
                instance=instance,
                resources=assets.resources(stages, ran),
                selection=dg.AssetSelection.assets(["small", "queries"]),
            )
            logs = [e.user_message for e in instance.all_logs(result.run_id)]
            results.append((result.success, logs))
        done.set()

    thread = threading.Thread(target=launched)
    with locks.hold(ran.locks, ["small"], group="another", what="a test", waiting=pytest.fail):
        thread.start()
        assert not done.wait(3)
    thread.join(120)
    ((success, logs),) = results
    assert success
    told = f"corpus small is at work in a test (process {os.getpid()}); waiting until it has"
    assert [line for line in logs if line.startswith(told)]


def test_what_was_stale_before_the_turn_came_may_be_done_by_then(ran: Project):
    edited = ran.root / "data" / "experiments" / "small.toml"
    edited.write_text(edited.read_text().replace("max_chars = 300", "max_chars = 150"))
    with open_instance(ran) as instance:
        stages = graphs.build(ran).of(["small"])
        runner = Runner(ran, instance, stages)
        assert runner.stale()
        run(ran)
        assert runner.run().materialized == []


@pytest.mark.integration
def test_the_multiprocess_executor_gives_the_same_bytes(
    small: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # One configuration: a process a step is slow to start.
    path = small.root / "data" / "experiments" / "small.toml"
    head, naive, _ = path.read_text().split("[[configurations]]")
    path.write_text(f"{head}[[configurations]]{naive}")
    monkeypatch.setenv(corpus_jobs.ROOT, str(small.root))
    monkeypatch.setenv(corpus_jobs.HOME, str(small.home))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    with open_instance(small) as instance:
        job = dg.reconstructable(corpus_jobs.run_small)
        with dg.execute_job(job, instance) as result:
            assert result.success
            starts = [e for e in result.all_events if e.event_type_value == "STEP_WORKER_STARTED"]
            # A process for every asset, which evaluates its checks too.
            assert len(starts) == n_assets(small)
    alone = Project(small.root, tmp_path / "alone")
    assert not run(alone).failures
    assert stored(small) == stored(alone)
    assert run(small).materialized == []
