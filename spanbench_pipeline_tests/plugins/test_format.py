"""A format as a plug-in: one file; ``export`` writes it and ``score`` reads it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from spanbench_pipeline.cli.export import export
from spanbench_pipeline.cli.score import Asked, score
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import rankings_file
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline_tests.end_to_end.conftest import run
from spanbench_pipeline_tests.plugins.test_command import BM25
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.formats": {"lines": "acme_lines"}}
LINES = b"#ranked\nq1|alpha|0|9\nq1|beta|3|7\nq2|beta|0|1"


@pytest.fixture
def code() -> str:
    return module_of(DEVELOPING, "Rankings as lines")


def read(data: bytes, kind: str | None = None) -> rankings_file.RankingsFile:
    return rankings_file.read(Given(Path("mine.txt"), data), kind, None, "c")


def test_what_is_exported_is_scored_alike(acme, corpus, code: str, tmp_path: Path):
    acme({"acme_lines.py": code}, GROUP)
    project = corpus(BM25)
    run(project)
    out = tmp_path / "out"
    export(project, "small", out, ["lines", "jsonl"])
    assert sorted(path.name for path in out.iterdir()) == ["jsonl", "lines", "manifest.json"]
    scored = []
    for file in ("lines/naive.txt", "jsonl/naive.jsonl"):
        told, code_ = score(project, Asked(out / file, "small", chunker="naive"), "json")
        assert code_ == 0
        scored.append(json.loads(told)["metrics"])
    assert scored[0]
    assert scored[0] == scored[1]


def test_it_is_known_by_its_content_and_by_name(acme, code: str):
    acme({"acme_lines.py": code}, GROUP)
    assert read(LINES).kind == "lines"
    lists = read(LINES, "lines").lists(None, None)
    assert [(one.query_id, [e.doc_id for e in one.entries]) for one in lists] == [
        ("q1", ["alpha", "beta"]),
        ("q2", ["beta"]),
    ]
    assert read(b'{"query_id": "q", "ranking": []}').kind == "jsonl"
    with pytest.raises(InputError, match="line 2"):
        read(b"#ranked\nq1|alpha|x|9")
    with pytest.raises(InputError, match=r"acme 1\.0"):
        read(b"#ranked\nq1|alpha")  # its own mistake: ValueError
    with pytest.raises(InputError, match="'lines'"):
        read(LINES, "line")
    with pytest.raises(InputError, match="beir"):
        read(LINES, "beir")  # which is only written


def test_a_broken_one_is_passed_over_with_a_warning(acme, caplog: pytest.LogCaptureFixture):
    acme({"acme_lines.py": "import no_such_module"}, GROUP)
    with caplog.at_level(logging.WARNING, "spanbench"):
        assert read(b'{"query_id": "q", "ranking": []}').kind == "jsonl"
    assert "no_such_module" in caplog.text
    with pytest.raises(InputError, match="no_such_module"):
        read(LINES, "lines")
