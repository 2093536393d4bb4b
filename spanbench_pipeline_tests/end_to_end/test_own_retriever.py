"""A retriever of one's own: the page's module and a row, and nothing else changes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline import retrieval
from spanbench_pipeline.config import experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.end_to_end.conftest import names, run
from spanbench_pipeline_tests.pipeline.test_code_version import CACHES, rewrite
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

# Ten characters a chunk: the first holds all three words of the query, the second two of them, the
# third none; the fourth, of the other document, all three.
TEXTS = {"one": "aa bb cc. aa bb dd. xx yy zz. ".replace(".", " "), "two": "cc bb aa  "}
TENS = "naive = { size = 10, step = 10 }"


@pytest.fixture
def own(tmp_path: Path, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch):
    """A project whose two configurations use the page's channel, alone and fused with BM25."""
    (tmp_path / "modules").mkdir()
    code = module_of(DEVELOPING, "distinct words they hold")
    (tmp_path / "modules" / "overlap.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(retrieval, "__path__", [*retrieval.__path__, str(tmp_path / "modules")])
    monkeypatch.setitem(experiment.RETRIEVERS, "overlap", ("overlap",))
    monkeypatch.setitem(experiment.RETRIEVERS, "bm25 + overlap", ("bm25", "overlap"))
    (tmp_path / "docs").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "docs" / f"{name}.txt").write_text(text)
    query = {"query": "AA bb cc", "doc_id": "one", "gold_texts": ["aa bb dd"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query))
    made = make_project(
        own=f'''
corpus = "own"
[source]
kind = "directory"
documents = "{tmp_path / "docs"}"
queries = "{tmp_path / "queries.jsonl"}"
[chunkers]
{TENS}
[[configurations]]
name = "counted"
chunker = "naive"
retriever = "overlap"
doc_scope = false
[[configurations]]
name = "fused"
chunker = "naive"
retriever = "bm25 + overlap"
'''
    )
    forget()
    yield made
    forget()


def forget() -> None:
    """What a new process would not know: the loaded module, and the hash of its code."""
    sys.modules.pop("spanbench_pipeline.retrieval.overlap", None)
    importlib.invalidate_caches()
    for cached in CACHES:
        cached.cache_clear()


def ranking(project: Project, config: str) -> list[dict]:
    path = project.parquet / "own" / "rankings" / f"{config}.parquet"
    return pa.parquet.read_table(path, partitioning=None).to_pylist()


def test_the_pages_retriever_ranks_alone_and_fused(own: Project):
    assert "own/rankings/counted" in names(run(own, "own"))
    assert [(r["chunk_id"], r["score"]) for r in ranking(own, "counted")] == [
        ("one:naive:0", 3.0),  # the tie in chunk order
        ("two:naive:0", 3.0),
        ("one:naive:1", 2.0),
    ]
    # Inside document one, both channels have chunk 0 first and chunk 1 second.
    fused = [(r["chunk_id"], r["bm25_rank"], r["fused_rank"]) for r in ranking(own, "fused")]
    assert fused == [("one:naive:0", 1, 1), ("one:naive:1", 2, 2)]
    assert ranking(own, "fused")[0]["score"] == pytest.approx(2 / 61)


def test_a_change_of_its_module_runs_what_uses_it(own: Project, tmp_path: Path):
    run(own, "own")
    module = tmp_path / "modules" / "overlap.py"
    rewrite(module, module.read_text().replace("scores[rows] > 0", "scores[rows] > 2"))
    forget()
    made = names(run(own, "own"))
    assert {"own/rankings/counted", "own/rankings/fused"} <= made
    assert not {"own/chunks/naive", "own/documents"} & made
    assert len(ranking(own, "counted")) == 2
