"""The experiment ``legalbench_mini`` on one benchmark's first documents, with the real encoder.

What its tables say is held to the published files: gold is read from the benchmark's JSON, and
every figure at k is counted again with sets of characters.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.calibration.world import Place
from spanbench_pipeline.cli import fetch
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.corpora import legalbench_builders as copies
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT, edit, names, run
from spanbench_pipeline_tests.metrics.places import Placed

pytestmark = pytest.mark.integration

N_DOCUMENTS = 4
KS = (1, 8)
CONFIGURATIONS = {
    "recursive_dense",
    "recursive_bm25",
    "recursive_hybrid",
    "recursive_cc",
    "clause_cc",
    "section_cc",
    "recursive_cc_routing_3",
}


def doc_id(path: str) -> str:
    return unquote(path).removesuffix(".txt").replace(":", "_").replace("|", "_")


def place(snippet: dict[str, Any]) -> Place:
    return (doc_id(snippet["file_path"]), *snippet["span"])


@pytest.fixture(scope="module")
def published(shared: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tests about the first documents of contractnli, in file order, and these documents."""
    with zipfile.ZipFile(shared / "data" / "legalbenchrag" / "legalbenchrag.zip") as archive:
        stored = {name.partition("corpus/")[2]: name for name in archive.namelist()}
        (index,) = (n for n in archive.namelist() if n.endswith("benchmarks/contractnli.json"))
        tests = json.loads(archive.read(index))["tests"]
        paths = list(dict.fromkeys(s["file_path"] for t in tests for s in t["snippets"]))
        first = paths[:N_DOCUMENTS]
        texts = {path: archive.read(stored[path]).decode("utf-8") for path in first}
    kept = [t for t in tests if {s["file_path"] for s in t["snippets"]} <= set(first)]
    return kept, texts


@pytest.fixture
def project(
    published: tuple[list[dict[str, Any]], dict[str, str]],
    make_project: Callable[..., Project],
    tmp_path: Path,
) -> Project:
    tests, texts = published
    text = (CHECKOUT / "data" / "experiments" / "legalbench_mini.toml").read_text()
    whole = 'sample = "mini"'
    assert whole in text
    slice_of_it = 'sample = "all"\nbenchmarks = ["contractnli"]'
    project = make_project(legalbench_mini=text.replace(whole, slice_of_it))
    found = copies.members(texts, {"contractnli": tests})
    fetch.fetch(project, "legalbenchrag", copies.unpacked(tmp_path / "copy", found), None)
    return project


def table(project: Project, *parts: str) -> list[dict[str, Any]]:
    path = project.parquet.joinpath("legalbench_mini", *parts).with_suffix(".parquet")
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def case(project: Project, tests: list[dict[str, Any]], config: str) -> Placed:
    """A configuration's rankings as stored, beside gold as published."""
    ids = [row["query_id"] for row in table(project, "queries")]
    assert [row["query"] for row in table(project, "queries")] == [t["query"] for t in tests]
    ranked: dict[str, list[Place]] = {query: [] for query in ids}
    rows = table(project, "rankings", config)
    for row in sorted(rows, key=lambda row: (row["query_id"], row["rank"])):
        ranked[row["query_id"]].append((row["doc_id"], row["start_char"], row["end_char"]))
    gold = {q: [place(s) for s in t["snippets"]] for q, t in zip(ids, tests, strict=True)}
    chunks = table(project, "chunks", config.split("_")[0])
    return Placed(gold, ranked, [(c["doc_id"], c["start_char"], c["end_char"]) for c in chunks])


def test_the_tables_say_what_the_published_files_say(
    project: Project, published: tuple[list[dict[str, Any]], dict[str, str]]
):
    tests, texts = published
    names(run(project, "legalbench_mini"))
    given = {doc_id(path): text for path, text in texts.items()}
    cut = {row["doc_id"]: "" for row in table(project, "documents")}
    for chunk in sorted(
        table(project, "chunks", "recursive"), key=lambda c: (c["doc_id"], c["start_char"])
    ):
        cut[chunk["doc_id"]] += given[chunk["doc_id"]][chunk["start_char"] : chunk["end_char"]]
    assert cut == given
    rankings = project.parquet / "legalbench_mini" / "rankings"
    assert {path.stem for path in rankings.iterdir()} == CONFIGURATIONS
    for config in sorted(CONFIGURATIONS):
        placed = case(project, tests, config)
        values = {
            (r["query_id"], r["metric"], r["k"]): r["value"]
            for r in table(project, "query_metrics", config)
        }
        labels = {
            (r["query_id"], r["k"]): r["label"] for r in table(project, "forensic_labels", config)
        }
        for query in placed.gold:
            asked = placed.asked(query)
            for k in KS:
                scored = oracle.character_metrics(asked, k, as_given=False)
                for metric, expected in scored.items():
                    assert values[query, metric, k] == pytest.approx(expected, abs=1e-12)
                assert labels[query, k] == oracle.forensic_label(asked, k)

    # Another fusion constant: the lists, the vectors and every other configuration stay.
    edit(project, "legalbench_mini", 'name = "clause + CC"', 'name = "clause + CC"\nalpha = 0.5')
    again = names(run(project, "legalbench_mini"))
    assert "legalbench_mini/rankings/clause_cc" in again
    assert not [a for a in again if "/candidates/" in a or "/embeddings/" in a]
    assert not [a for a in again if "/rankings/" in a and not a.endswith("/clause_cc")]
