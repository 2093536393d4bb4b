"""What status says of a corpus that cannot be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from spanbench_pipeline.cli.status import status
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.end_to_end import conftest
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, write_corpus


def test_a_missing_folder_of_documents_is_named(tmp_path: Path):
    write_corpus(tmp_path / "given")
    documents = tmp_path / "given" / "docs"
    root = tmp_path / "checkout"
    (root / "data" / "experiments").mkdir(parents=True)
    (root / "workspace.yaml").write_text("load_from: []\n")
    (root / "data" / "experiments" / "small.toml").write_text(
        BM25_ONLY.format(
            corpus="small", documents=documents, queries=tmp_path / "given" / "queries.jsonl"
        )
    )
    project = Project(root, root / "warehouse")
    assert status(project, ["small"]).count("\n") == 0
    shutil.move(documents, tmp_path / "elsewhere")
    assert str(documents) in status(project, ["small"])  # never run
    shutil.move(tmp_path / "elsewhere", documents)
    conftest.run(project)
    shutil.move(documents, tmp_path / "elsewhere")
    [line] = [x for x in status(project, ["small"]).splitlines() if "source_archive" in x]
    assert str(documents) in line
    [corpus] = json.loads(status(project, ["small"], "json"))["corpora"]
    [why] = [s["reasons"] for s in corpus["stale"] if s["asset"] == "small/source_archive"]
    assert str(documents) in why[0]
    assert len(why) > 1  # what is recorded differs from it, too
