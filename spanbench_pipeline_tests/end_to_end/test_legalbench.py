"""A pooled corpus of documents with odd names, from the zip to reports and audit files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.corpora import legalbench_builders as copies

EXPERIMENT = """
corpus = "pool"
depth = 64
[source]
kind = "legalbenchrag"
sample = "all"
[chunkers]
clause = { min_chars = 20, max_chars = 300 }
[[configurations]]
name = "clause + bm25"
chunker = "clause"
retriever = "bm25"
doc_scope = false
"""
LONG = "A" * 150 + ", Inc._B & C%20D's Corp.pdf||Amendment No. 1"
CANONICAL = "A" * 150 + ", Inc._B & C D's Corp.pdf__Amendment No. 1"


def small_copy(path: Path) -> Path:
    """A zip with two odd names, one of them long, and a text that opens with a BOM."""
    text = "\ufeffThe Merger Agreement.\r\nThe termination fee is five million dollars.\r\n"
    other = "Screen: time app.\nWe collect the location of the device.\n"
    found = copies.members(
        {f"maud/{LONG}.txt": text, "privacy_qa/Tick: Tock.txt": other},
        {
            "maud": [
                copies.asked(
                    "Consider A's merger agreement; what is the termination fee?",
                    copies.snippet(f"maud/{LONG}.txt", text, "five million dollars"),
                )
            ],
            "privacy_qa": [
                copies.asked(
                    "Does the app collect location?",
                    copies.snippet("privacy_qa/Tick: Tock.txt", other, "location of the device"),
                )
            ],
        },
    )
    return copies.zipped(path, found)


def test_from_the_zip_to_the_reports(
    make_project: Callable[..., Project],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = make_project(pool=EXPERIMENT)
    monkeypatch.setattr("spanbench_pipeline.config.project.find", lambda home=None: project)
    archive = small_copy(tmp_path / "given.zip")
    assert cli.main(["fetch", "legalbenchrag", "--archive", str(archive)]) == 0
    printed = capsys.readouterr().out
    assert "archive  given.zip  sha256 " in printed
    assert "next: spanbench run pool" in printed
    assert cli.main(["run", "pool"]) == 0

    def table(*parts: str) -> list[dict[str, object]]:
        path = project.parquet.joinpath("pool", *parts).with_suffix(".parquet")
        rows: list[dict[str, object]] = pq.read_table(path).to_pylist()
        return rows

    assert {d["doc_id"] for d in table("documents")} == {
        f"maud/{CANONICAL}",
        "privacy_qa/Tick_ Tock",
        "contractnli/plain",
        "cuad/plain",
    }
    ranked = table("rankings", "clause_bm25")
    first = {r["query_id"]: r["doc_id"] for r in ranked if r["rank"] == 1}
    assert first["maud-0001"] == f"maud/{CANONICAL}"
    assert first["privacy_qa-0001"] == "privacy_qa/Tick_ Tock"
    assert {r["chunk_id"] for r in ranked if r["doc_id"] == f"maud/{CANONICAL}"} <= {
        f"maud/{CANONICAL}:clause:{n}" for n in range(10)
    }
    means = {
        (row["subset"], row["k"]): row["value"]
        for row in table("config_metrics")
        if row["metric"] == "complete_grounding"
    }
    assert means[None, 5] == means["maud", 5] == 1
    audit = project.reports / "pool" / "audit" / "clause_bm25.queries.jsonl"
    lines = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
    assert [line["query_id"] for line in lines] == [f"{b}-0001" for b in copies.BENCHMARKS]
    assert (project.reports / "pool" / "client.html").is_file()
