"""Projects to run: a checkout of its own in a temporary folder, with its own home."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spanbench_pipeline.config import project as projects
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.staleness import name

CHECKOUT = Path(projects.__file__).parents[2]

CONTRACTS = {
    "alpha": "ARTICLE I\nThe Supplier shall deliver the goods within thirty days.\n"
    "ARTICLE II\nThis Agreement is governed by the laws of Delaware.\n" + "Recital. " * 60,
    "beta": "1. Fees. The Customer pays 500 dollars each month.\n"
    "2. Termination. Either party may end this Agreement upon notice.\n" + "Whereas. " * 60,
}
QUERIES = [
    ("q1", "Which law governs the agreement?", "alpha", "laws of Delaware"),
    ("q2", "When are the goods delivered?", "alpha", "within thirty days"),
    ("q3", "What does the customer pay each month?", "beta", "500 dollars each month"),
]
BM25_ONLY = """
corpus = "{corpus}"
[source]
kind = "directory"
documents = "{documents}"
queries = "{queries}"
[chunkers]
naive = {{ size = 200, step = 150 }}
clause = {{ min_chars = 20, max_chars = 300 }}
[[configurations]]
name = "naive + bm25"
chunker = "naive"
retriever = "bm25"
[[configurations]]
name = "clause + bm25"
chunker = "clause"
retriever = "bm25"
"""


def write_corpus(folder: Path) -> None:
    """Two small contracts and three queries, as a person would lay them out."""
    (folder / "docs").mkdir(parents=True)
    for doc_id, text in CONTRACTS.items():
        (folder / "docs" / f"{doc_id}.txt").write_bytes(text.encode())
    lines = [
        json.dumps({"query_id": q, "query": text, "doc_id": doc, "gold_texts": [gold]})
        for q, text, doc, gold in QUERIES
    ]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[..., Project]:
    """Makes a project whose experiments are given by name and text."""

    def make(**experiments: str) -> Project:
        root = tmp_path / "checkout"
        (root / "data" / "experiments").mkdir(parents=True)
        (root / "workspace.yaml").write_text("load_from: []\n")
        for corpus, text in experiments.items():
            (root / "data" / "experiments" / f"{corpus}.toml").write_text(text)
        return Project(root, root / "warehouse")

    return make


@pytest.fixture
def small(tmp_path: Path, make_project: Callable[..., Project]) -> Project:
    """A project with one BM25-only corpus, ``small``, of two contracts."""
    write_corpus(tmp_path / "given")
    text = BM25_ONLY.format(
        corpus="small",
        documents=tmp_path / "given" / "docs",
        queries=tmp_path / "given" / "queries.jsonl",
    )
    return make_project(small=text)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the corpus ``small``, run once for all tests; copy it, change nothing."""
    folder = tmp_path_factory.mktemp("finished")
    write_corpus(folder / "given")
    root = folder / "checkout"
    (root / "data" / "experiments").mkdir(parents=True)
    (root / "workspace.yaml").write_text("load_from: []\n")
    (root / "data" / "experiments" / "small.toml").write_text(
        BM25_ONLY.format(
            corpus="small",
            documents=folder / "given" / "docs",
            queries=folder / "given" / "queries.jsonl",
        )
    )
    project = Project(root, root / "warehouse")
    run(project)
    return project


@pytest.fixture
def ran(finished: Project, tmp_path: Path) -> Project:
    """A copy of the project ``finished``."""
    root = tmp_path / "ran"
    shutil.copytree(finished.root, root)
    copied = Project(root, root / "warehouse")
    run(copied)  # the warehouse's views read another home's files
    return copied


def run(project: Project, corpus: str = "small") -> Result:
    """What ``spanbench run`` does, in this process; a failure is in the result."""
    graph = graphs.build(project)
    assert not graph.broken
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of([corpus])).run()


def n_assets(project: Project, corpus: str = "small") -> int:
    """How many assets a run of the corpus is about."""
    return len(graphs.build(project).of([corpus]))


def names(result: Result) -> set[str]:
    """The assets that a run materialized, all of them soundly."""
    assert not result.failures
    assert not result.failed_checks
    assert not result.held
    assert len(result.materialized) == len(set(result.materialized))
    return {name(key) for key in result.materialized}


def stored(project: Project) -> dict[str, bytes]:
    """Every Parquet and report file with its bytes, by its path in the home.

    But for ``metric_history``, the one table that holds times, and for ``warehouse``, which counts
    the files that history has.
    """
    return {
        path.relative_to(project.home).as_posix(): path.read_bytes()
        for folder in (project.parquet, project.reports)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stem not in ("metric_history", "warehouse")
    }


def edit(project: Project, corpus: str, old: str, new: str) -> None:
    """Changes an experiment file."""
    path = project.root / "data" / "experiments" / f"{corpus}.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def copy_experiment(project: Project, corpus: str) -> None:
    """Puts one of the checkout's own experiments into a project."""
    name = f"data/experiments/{corpus}.toml"
    shutil.copy(CHECKOUT / name, project.root / name)
