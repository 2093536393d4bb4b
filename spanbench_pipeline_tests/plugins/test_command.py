"""A command as a plug-in: one file, and ``spanbench documents`` runs it."""

from __future__ import annotations

import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline_tests.end_to_end.conftest import run
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.commands": {"documents": "acme_documents"}}
BM25 = """
[chunkers]
naive = { size = 200, step = 150 }
[[configurations]]
name = "naive"
chunker = "naive"
retriever = "bm25"
"""


def spanbench(*arguments: str) -> int:
    """The exit code of a command, also where argparse ends the process."""
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def test_it_runs_with_its_own_arguments(acme, corpus, capsys: pytest.CaptureFixture[str]):
    acme({"acme_documents.py": module_of(DEVELOPING, "SUMMARY")}, GROUP)
    project = corpus(BM25)
    run(project)
    home = str(project.home)
    assert spanbench("--home", home, "documents", "small") == 0
    assert capsys.readouterr().out.split() == ["alpha", "beta"]
    assert spanbench("documents", "--longest", "1", "small", "--home", home) == 0
    longest = capsys.readouterr().out.split()
    assert longest == ["alpha"]  # of 671 and 669 characters
    assert spanbench("documents", "--home", home) == 2
    assert "CORPUS" in capsys.readouterr().err


def test_help_lists_it_after_ours(acme, capsys: pytest.CaptureFixture[str]):
    acme({"acme_documents.py": module_of(DEVELOPING, "SUMMARY")}, GROUP)
    assert spanbench("--help") == 0
    told = capsys.readouterr().out
    assert told.index("    alerts ") < told.index("    documents\n")
    assert spanbench("documents", "--help") == 0
    told = capsys.readouterr().out
    assert "--longest" in told
    assert "--home" in told


def test_a_broken_one_stops_no_other_command(acme, capsys: pytest.CaptureFixture[str]):
    modules = {"acme_documents.py": "import no_such_module", "acme_good.py": "SUMMARY = 'be good'"}
    acme(modules, {"spanbench.commands": {"documents": "acme_documents", "good": "acme_good"}})
    assert spanbench("--help") == 0
    told = capsys.readouterr().out
    assert "no_such_module" in told
    assert "be good" in told
    assert spanbench("documents", "small") == 2
    told = capsys.readouterr().err
    assert "no_such_module" in told
    assert "acme 1.0" in told
    assert spanbench("no_such_command") == 2


def test_a_name_of_ours_stays_ours(acme, capsys: pytest.CaptureFixture[str], tmp_path):
    acme({"acme_run.py": "raise SystemExit(7)"}, {"spanbench.commands": {"report": "acme_run"}})
    assert spanbench("report", "--help") == 0
    assert "--baseline" in capsys.readouterr().out
    assert spanbench("--help") == 2
    assert "'report'" in capsys.readouterr().err
