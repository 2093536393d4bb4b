"""What each kind of edit costs: exactly the assets that it changes, and none beside.

What must run is worked out without the resolver: two clean runs, before and after the edit, say
which files differ; an asset must run if its own code or parameters were edited, or if the file of
one of its inputs differs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline.cli import adapt as adapting
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import (
    BM25_ONLY,
    CHECKOUT,
    CONTRACTS,
    edit,
    n_assets,
    names,
    run,
    stored,
    write_corpus,
)
from spanbench_pipeline_tests.support import tiny_models

DENSE = """
[encoders.tiny]
model = "{model}"
max_length = 32
[[configurations]]
name = "naive"
chunker = "naive"
[[configurations]]
name = "clause"
chunker = "clause"
[[configurations]]
name = "naive + hybrid"
chunker = "naive"
retriever = "hybrid"
[[configurations]]
name = "clause + hybrid"
chunker = "clause"
retriever = "hybrid"
"""
SUMMARIES = {
    "configs",
    "chunk_stats",
    "config_metrics",
    "clause_type_metrics",
    "config_stats",
    "config_pairs",
    "label_cross",
    "fingerprints",
    "metric_history",
    "regression",
    "reports",
}


def must_run(project: Project, edited: set[str], after: dict[str, bytes]) -> set[str]:
    """The assets that an edit must run, from the files before it and ``after`` it."""
    before = stored(project)

    def differs(key: tuple[str, ...]) -> bool:
        path = "parquet/" + parquet.relative_path(key)
        return before.get(path) != after.get(path)

    stages = graphs.build(project).of(["own"])
    return edited | {name(s.key) for s in stages if any(differs(dep) for dep in s.deps)}


@pytest.fixture
def dense(tmp_path: Path, make_project: Callable[..., Project]) -> Project:
    """A project with one corpus, ``own``, in four configurations with a tiny encoder."""
    write_corpus(tmp_path / "given")
    model = tiny_models.encoder(tmp_path / "model")
    text = BM25_ONLY.format(
        corpus="own",
        documents=tmp_path / "given" / "docs",
        queries=tmp_path / "given" / "queries.jsonl",
    )
    return make_project(own=text.partition("[[configurations]]")[0] + DENSE.format(model=model))


def cleanly(project: Project) -> dict[str, bytes]:
    """The files of the same experiment in a home of its own, run from nothing; vectors cached."""
    other = Project(project.root, project.root / "clean")
    shutil.rmtree(other.home, ignore_errors=True)
    shutil.copytree(project.vectors.parent, other.vectors.parent)
    with dg.DagsterInstance.ephemeral() as instance:
        names(Runner(other, instance, graphs.build(other).of(["own"])).run())
    return stored(other)


def test_a_longer_clause_and_another_constant_cost_their_branches(dense: Project):
    run(dense, "own")

    edit(dense, "own", "max_chars = 300", "max_chars = 150")
    clean = cleanly(dense)
    expected = must_run(dense, {"own/chunks/clause"}, clean)
    again = names(run(dense, "own"))
    assert again == expected
    assert again >= {"own/chunks/clause", "own/embeddings/clause"} | {
        f"own/{table}/{config}"
        for table in ("rankings", "query_metrics", "span_outcomes", "failure_labels")
        for config in ("clause", "clause_hybrid")
    }
    assert not {asset for asset in again if "naive" in asset}
    others = {asset for asset in again if not asset.partition("/")[2].partition("/")[2]}
    assert others <= {f"own/{table}" for table in SUMMARIES} | {"warehouse"}
    assert stored(dense) == clean

    # One configuration's constant: its ranking, and what is told of the configurations as such.
    hybrid = 'name = "clause + hybrid"\nchunker = "clause"\nretriever = "hybrid"'
    edit(dense, "own", hybrid, f"{hybrid}\nrrf_k = 3")
    told = {f"own/{table}" for table in ("configs", "config_stats", "config_pairs", "reports")}
    told.add("own/fingerprints")
    edited = {"own/rankings/clause_hybrid"} | told
    clean = cleanly(dense)
    expected = must_run(dense, edited, clean)
    again = names(run(dense, "own"))
    assert again == expected
    assert "own/query_metrics/clause_hybrid" in again  # its scores changed
    branch = {asset for asset in again if asset.count("/") == 2}
    assert {asset.split("/")[2] for asset in branch} == {"clause_hybrid"}
    assert stored(dense) == clean


def test_an_edited_document_costs_its_own_corpus_only(
    tmp_path: Path, make_project: Callable[..., Project]
):
    # A registered corpus gets the sample's configurations: here a sample that loads no model.
    sample = BM25_ONLY.format(corpus="sample", documents=".", queries=".")
    project = make_project(sample=f'baseline = "naive + bm25"\n{sample}')
    for corpus in ("first", "second"):
        write_corpus(tmp_path / corpus)
        register(project, tmp_path / corpus)
        assert f"{corpus}/documents" in names(run(project, corpus))
    before = stored(project)

    (tmp_path / "first" / "docs" / "beta.txt").write_text("Preamble. " + CONTRACTS["beta"])
    register(project, tmp_path / "first")
    assert names(run(project, "second")) == set()
    again = names(run(project, "first"))
    assert {"first/source_archive", "first/documents", "first/chunks/clause"} <= again
    assert {asset.split("/")[0] for asset in again} == {"first", "warehouse"}
    changed = {path for path, content in stored(project).items() if before[path] != content}
    assert "parquet/first/documents.parquet" in changed
    assert not {path for path in changed if "/second/" in path}
    assert names(run(project, "second")) == set()


def test_another_context_costs_what_looks_at_it(
    tmp_path: Path, make_project: Callable[..., Project]
):
    write_corpus(tmp_path)
    given = {"documents": tmp_path / "docs", "queries": tmp_path / "queries.jsonl"}
    project = make_project(small=BM25_ONLY.format(corpus="small", **given))
    before = {asset.removeprefix("small/").split("/")[0] for asset in names(run(project))}

    edit(project, "small", 'corpus = "small"', 'corpus = "small"\ncontext = 2')
    again = {asset.removeprefix("small/").split("/")[0] for asset in names(run(project))}
    assert before - again >= {"documents", "queries", "chunks", "candidates", "rankings"}
    assert again >= {"query_metrics", "span_outcomes", "failure_labels", "config_metrics"}
    assert again <= before


def register(project: Project, folder: Path) -> None:
    """``spanbench adapt`` of a folder, under its name."""
    adapting.adapt(project, folder / "docs", folder / "queries.jsonl", None, folder.name)


class Copy:
    """The package copied to a checkout of its own, so that its code can be edited and run."""

    def __init__(self, project: Project) -> None:
        self.project = project
        ignore = shutil.ignore_patterns("__pycache__")
        package = project.root / "spanbench_pipeline"
        shutil.copytree(CHECKOUT / "spanbench_pipeline", package, ignore=ignore)

    def edit(self, module: str, *changes: tuple[str, str]) -> None:
        path = self.project.root / "spanbench_pipeline" / module
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path.write_text(text)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "spanbench_pipeline.cli.main", *arguments],
            cwd=self.project.root,
            env={**os.environ, "PYTHONPATH": str(self.project.root)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done

    def run(self) -> set[str]:
        """The assets that ``spanbench run -v`` names as made."""
        lines = self.call("run", "small", "-v").stderr.splitlines()
        return {line.split("  ")[0] for line in lines if re.search(r"  \d+\.\d s", line)}


def test_an_edit_of_the_code_costs_what_it_decides(ran: Project):
    copy = Copy(ran)
    shown = copy.call("run", "small", "-v")
    assert f"nothing to do: all {n_assets(ran)} assets of small are up to date" in shown.stdout
    assert shown.stderr == ""

    # (a) comments and docstrings: nothing.
    copy.edit(
        "chunkers/clause.py",
        ("    if not text:\n", "    # Nothing comes of nothing.\n    if not text:  # so\n"),
        ('"""Pieces that follow', '"""Some other words. Pieces that follow'),
    )
    assert copy.run() == set()

    # (c) other code that gives the same chunks: the chunks, and nothing below.
    copy.edit("chunkers/clause.py", ("    if not text:  # so\n", "    if len(text) == 0:\n"))
    planned = copy.call("run", "small", "--dry-run").stdout
    assert "module spanbench_pipeline.chunkers.clause changed" in planned
    assert copy.run() == {"small/chunks/clause"}

    # A page's template and style sheet count as code of the reports.
    copy.edit("reports/render/page.css", ("max-width: 80rem", "max-width: 81rem"))
    assert copy.run() == {"small/reports", "warehouse"}

    # What a stage does with its inputs counts as well, for all that share it.
    copy.edit(
        "pipeline/stages/rankings.py",
        (
            "    return Outcome(table)\n",
            "    return Outcome(table, {})\n",
        ),
    )
    assert copy.run() == {"small/rankings/naive_bm25", "small/rankings/clause_bm25"}
    assert copy.run() == set()
