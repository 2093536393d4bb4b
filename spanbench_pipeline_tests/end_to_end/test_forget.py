"""Forgetting a corpus: nothing of its texts is left in the home, and nothing else is touched.

The corpus ``acme`` has a word of its own in each of its documents, queries, answers, names of files
and of configurations; it lived beside ``kept``, was run alone and with it, scored, accepted and
alerted about.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from spanbench_pipeline.cli import accept, export, forget, score, serve
from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring import alerts
from spanbench_pipeline.monitoring.alert import Alert, fault
from spanbench_pipeline.monitoring.ledger import LEDGER
from spanbench_pipeline.pipeline import encoded_texts, removal
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.storage import locks
from spanbench_pipeline_tests.end_to_end.conftest import CONTRACTS, names, run, stored
from spanbench_pipeline_tests.support import tiny_models

MARK = "zanzibar"
EXPERIMENT = """
corpus = "{corpus}"
description = "the {word} contracts"
[source]
kind = "directory"
documents = "{given}/docs"
queries = "{given}/queries.jsonl"
[chunkers]
naive = {{ size = 200, step = 150 }}
[encoders.tiny]
model = "{model}"
max_length = 32
[[configurations]]
name = "{word} hybrid"
chunker = "naive"
retriever = "hybrid"
routing = 1
[[configurations]]
name = "{word} bm25"
chunker = "naive"
retriever = "bm25"
"""


def write(given: Path, word: str) -> None:
    """Two contracts, one of them the other corpus's too, and two queries."""
    (given / "docs").mkdir(parents=True)
    text = f"The {word}text is governed by the laws of {word}land. " + "Recital. " * 60
    (given / "docs" / f"{word}-file.txt").write_text(text)
    (given / "docs" / "beta.txt").write_text(CONTRACTS["beta"])
    queries = [
        (
            f"{word}-q1",
            f"Which law governs the {word}query?",
            f"{word}-file",
            f"laws of {word}land",
        ),
        ("q2", "What does the customer pay each month?", "beta", "500 dollars each month"),
    ]
    lines = [
        json.dumps({"query_id": q, "query": text, "doc_id": doc, "gold_texts": [gold]})
        for q, text, doc, gold in queries
    ]
    (given / "queries.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Both corpora with everything that commands leave of them; copy it, change nothing."""
    folder = tmp_path_factory.mktemp("forget")
    root = folder / "checkout"
    (root / "data" / "experiments").mkdir(parents=True)
    (root / "workspace.yaml").write_text("load_from: []\n")
    project = Project(root, root / "warehouse")
    project.registered.mkdir(parents=True)
    model = tiny_models.encoder(folder / "model")
    for corpus, word in (("kept", "plain"), ("acme", MARK)):
        write(folder / corpus, word)
        text = EXPERIMENT.format(corpus=corpus, word=word, given=folder / corpus, model=model)
        (project.registered / f"{corpus}.toml").write_text(text)
    with open_instance(project) as instance:  # both in the same runs
        names(Runner(project, instance, graphs.build(project).of(["acme", "kept"])).run())
    accept.accept(project, "acme")
    accept.accept(project, "kept")
    # Each alone: what is accepted is compared with, and other chunks have other vectors.
    names(run(project, "kept"))
    path = project.registered / "acme.toml"
    path.write_text(path.read_text().replace("size = 200", "size = 220"))
    names(run(project, "acme"))
    export.export(project, "acme", folder / "exported", ["jsonl"])
    rankings = next((folder / "exported" / "jsonl").glob("*bm25.jsonl"))
    score.score(project, score.Asked(rankings=rankings, corpus="acme"), "text")
    (project.home / "tuned" / "acme").mkdir(parents=True)
    (project.home / "tuned" / "acme" / "x.json").write_text(f"{MARK}")
    (project.registered / "acme.manifest.json").write_text(f"{MARK}")  # as adapt leaves it
    (project.home / "traceback.txt").write_text(f"of {MARK}text")
    tell(project, "acme", "acme/chunks/naive", f"{MARK}text")
    tell(project, "", "warehouse", f"parquet/acme/x.parquet: {MARK}")
    tell(project, "kept", "kept/chunks/naive", "plaintext")
    return project


def tell(project: Project, corpus: str, asset: str, details: str) -> None:
    alert = Alert(corpus, asset, "ERROR", details, fault(asset), error="failed")
    alerts.report([alert], operations.Alerts(), project.home)


@pytest.fixture
def project(lived: Project, tmp_path: Path) -> Project:
    shutil.copytree(lived.root, tmp_path / "checkout")
    return Project(tmp_path / "checkout", tmp_path / "checkout" / "warehouse")


def removed(project: Project, corpus: str = "acme") -> str:
    return forget.forget(project, corpus, dry_run=False, agreed=True)


def holding(project: Project, text: str) -> list[str]:
    """Where in the home a text stands: in a path, in a file's bytes or in a packed row."""
    wanted = text.encode()
    found = []
    for path in sorted(project.home.rglob("*")):
        if wanted in str(path.relative_to(project.home)).encode().lower():
            found.append(f"path {path}")
        if path.is_file() and wanted in path.read_bytes().lower():
            found.append(f"bytes {path}")
    for key, body in rows(project, "runs.db", "SELECT snapshot_id, snapshot_body FROM snapshots"):
        if wanted in zlib.decompress(body).lower():
            found.append(f"snapshot {key}")
    return found


def rows(project: Project, name: str, query: str) -> list[tuple]:
    [path] = (project.dagster / "history").rglob(name)
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def vectors(project: Project) -> set[bytes]:
    with closing(sqlite3.connect(project.vectors)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM vectors")}


def test_no_byte_of_its_texts_is_left_and_the_other_corpus_goes_on(project: Project):
    kinds = {found.split()[0] for found in holding(project, MARK)}
    assert kinds == {"path", "bytes", "snapshot"}, "what is not there cannot be missed"
    others = {k: v for k, v in stored(project).items() if "/acme/" not in k}
    graph = graphs.build(project)
    needed = encoded_texts.needed(project, [graph.experiments["kept"]])
    before = vectors(project)
    [(last,)] = rows(project, "index.db", "SELECT max(id) FROM event_logs")
    said = removed(project)

    assert holding(project, MARK) == []
    assert holding(project, "acme") == []
    assert "still stands" not in said
    assert f"vectors removed: {len(before) - len(before & needed)}" in said
    assert len(before & needed) < len(before)
    assert vectors(project) == before & needed
    assert {k: v for k, v in stored(project).items() if "/acme/" not in k} == others
    with duckdb.connect(str(project.database), read_only=True) as connection:
        found = connection.execute("SELECT DISTINCT corpus FROM query_metrics").fetchall()
    assert found == [("kept",)]
    lines = (project.home / "alerts.jsonl").read_text().splitlines()
    assert [json.loads(line)["corpus"] for line in lines] == ["kept"]
    ledger = (project.home / LEDGER).read_text().splitlines()
    about = [json.loads(line)["about"] for line in ledger]
    assert about == ["warehouse run", "kept/chunks/naive run"]
    # Sensors go on from an id: none comes again. Nothing of the kept corpus is stale.
    [(newest, empty)] = rows(project, "index.db", "SELECT max(id), sum(event = '') FROM event_logs")
    assert newest > last
    assert empty == 0
    with open_instance(project) as instance:
        assert Runner(project, instance, graphs.build(project).of(["kept"])).stale() == {}
    assert accept.show(project, "kept")

    (project.parquet / "kept" / "embeddings" / "naive.parquet").unlink()
    again = run(project, "kept")
    assert "kept/embeddings/naive" in names(again)
    assert sum(facts.get("texts encoded now", 0) for facts in again.facts.values()) == 0
    assert {k: v for k, v in stored(project).items() if "/acme/" not in k} == others


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (forget, "_remove_folder"),
        (removal, "_forget_events"),
        (forget, "_forget_vectors"),
        (forget, "_make_views"),
    ],
)
def test_an_interrupted_one_is_finished_by_the_next(
    project: Project, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
):
    does = getattr(module, step)

    def killed(*arguments: object, **named: object) -> None:
        does(*arguments, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module, step, killed)
        with pytest.raises(Killed):
            removed(project)
    removed(project)
    assert holding(project, MARK) == []
    assert holding(project, "acme") == []
    with open_instance(project) as instance:
        assert Runner(project, instance, graphs.build(project).of(["kept"])).stale() == {}


def test_what_would_be_removed_is_only_listed(project: Project):
    before = stored(project)
    said = forget.forget(project, "acme", dry_run=True, agreed=False)
    for part in ("tables: ", "scored rankings: ", "alerts: 3 lines", "acme.toml", "acme/docs"):
        assert part in said
    assert "backups" in said
    assert stored(project) == before
    assert (project.registered / "acme.toml").exists()


def test_a_person_has_to_type_the_name(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(InputError, match="--yes"):
        forget.forget(project, "acme", dry_run=False, agreed=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer in ("", "y", "kept"):
        said = forget.forget(
            project, "acme", dry_run=False, agreed=False, ask=lambda _, a=answer: a
        )
        assert said == "nothing was removed"
    assert (project.parquet / "acme").is_dir()
    said = forget.forget(project, "acme", dry_run=False, agreed=False, ask=lambda _: "acme\n")
    assert said.startswith("removed of corpus acme")
    assert not (project.parquet / "acme").exists()


@pytest.mark.parametrize("state", ["gone", "broken", "only in Dagster's state"])
def test_a_corpus_without_an_experiment_can_be_forgotten(project: Project, state: str):
    path = project.registered / "acme.toml"
    path.write_text(f"{MARK} = [")
    if state != "broken":
        path.unlink()
    if state.startswith("only"):
        for part in (*forget.FOLDERS, "locks"):
            shutil.rmtree(project.home / part / "acme", ignore_errors=True)
        (project.locks / "acme.lock").unlink()
    removed(project)
    assert holding(project, MARK) == []
    assert holding(project, "acme") == []


def test_an_unknown_corpus_is_refused_with_the_nearest_name(project: Project):
    for name in ("acm", "../kept", "", ".", "_warehouse"):
        with pytest.raises(InputError, match="nothing of a corpus") as error:
            removed(project, name)
    with pytest.raises(InputError, match="did you mean 'acme'"):
        removed(project, "acm")
    assert "kept" in str(error.value)
    assert not (project.locks / "acm.lock").exists()


def test_it_waits_for_nobody(project: Project):
    def never(name: str, holder: locks.Holder | None) -> None:
        raise AssertionError

    for held, corpus in (("acme", "acme"), ("kept", "kept"), (score.lock_name("acme"), "acme")):
        with (
            locks.hold(project.locks, [held], group="g", what="run 12", waiting=never),
            pytest.raises(InputError, match=f"corpus {corpus} is at work in run 12"),
        ):
            removed(project)
    with serve.only_one(project), pytest.raises(InputError, match="already runs"):
        removed(project)
    assert (project.parquet / "acme").is_dir()
    assert (project.registered / "acme.toml").exists()


def test_a_bundled_corpus_loses_its_results_and_keeps_its_experiment(project: Project):
    bundled = project.root / "data" / "experiments" / "acme.toml"
    (project.registered / "acme.toml").rename(bundled)
    said = removed(project)
    assert "data/experiments/acme.toml" in said
    assert "still stands" not in said
    assert bundled.exists()
    assert holding(project, f"{MARK}text") == []
    with open_instance(project) as instance:
        stale = Runner(project, instance, graphs.build(project).of(["acme", "kept"])).stale()
    assert {key[0] for key in stale} == {"acme"}


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(tmp_path), "forget", "sampel", "--yes"]) == 2
    assert "did you mean 'sample'" in capsys.readouterr().err
    assert cli.main(["--home", str(tmp_path), "forget", "sample", "--dry-run"]) == 0
    assert not (tmp_path / "dagster").exists()


def test_a_model_that_is_not_there_is_told_beforehand(lived: Project):
    experiment = graphs.build(lived).experiments["kept"]
    assert encoded_texts.unknown(lived, [experiment]) == []
    absent = replace(
        experiment, encoders={"tiny": replace(experiment.encoders["tiny"], model="/nowhere")}
    )
    assert encoded_texts.unknown(lived, [absent]) == ["kept"]


def test_a_run_whose_corpus_was_removed_while_it_waited_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    graph = graphs.build(project)
    with open_instance(project) as instance:
        waiting = Runner(project, instance, graph.of(["acme"]))
        held = waiting._lock.hold

        def removed_meanwhile(tell):
            (project.registered / "acme.toml").unlink()
            return held(tell)

        monkeypatch.setattr(waiting._lock, "hold", removed_meanwhile)
        with pytest.raises(InputError, match="acme was removed"):
            waiting.run()
