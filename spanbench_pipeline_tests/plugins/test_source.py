"""A corpus source as a plug-in: one file, and ``kind = "one_file"`` in an experiment."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline_tests.end_to_end.conftest import names, run
from spanbench_pipeline_tests.pipeline.test_code_version import rewrite
from spanbench_pipeline_tests.plugins.conftest import forget
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.sources": {"one_file": "acme_one_file"}}
EXPERIMENT = """
corpus = "own"
[source]
kind = "one_file"
file = "contracts.json"
[chunkers]
naive = { size = 20, step = 20 }
[[configurations]]
name = "naive"
chunker = "naive"
retriever = "bm25"
"""
CONTENT = {
    "documents": {"a": "Fees are due monthly. The law of Ohio governs.", "b": "No fees at all."},
    "questions": [{"id": "q1", "ask": "Which law governs?", "in": "a", "answer": "law of Ohio"}],
}


@pytest.fixture
def own(make_project) -> Project:
    project: Project = make_project(own=EXPERIMENT)
    (project.root / "contracts.json").write_text(json.dumps(CONTENT))
    return project


def table(project: Project, name: str) -> list[dict]:
    return pq.read_table(project.parquet / "own" / f"{name}.parquet", partitioning=None).to_pylist()


def test_its_documents_and_gold_are_measured(acme, own: Project):
    folder = acme({"acme_one_file.py": module_of(DEVELOPING, "in one JSON file")}, GROUP)
    assert "own/query_metrics/naive" in names(run(own, "own"))
    assert [d["doc_id"] for d in table(own, "documents")] == ["a", "b"]
    (gold,) = table(own, "gold_spans")
    assert (gold["query_id"], gold["start_char"], gold["end_char"]) == ("q1", 26, 37)
    assert [f["file"] for f in table(own, "source_archive")] == ["contracts.json"]

    module = folder / "acme_one_file.py"
    rewrite(module, module.read_text().replace("every question", "all of it"))
    forget()
    assert {"own/source_archive", "own/documents"} <= names(run(own, "own"))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import no_such_module", "acme 1.0"),
        ("def open_source(experiment, project):\n    raise KeyError('x')", "acme_one_file"),
    ],
)
def test_a_broken_one_breaks_the_experiments_that_name_it(acme, own: Project, code: str, told: str):
    acme({"acme_one_file.py": code}, GROUP)
    broken = graphs.build(own).broken["own"]
    assert isinstance(broken, InputError)
    assert "own.toml: source" in str(broken)
    assert told in str(broken)
