"""A broken experiment file: refused by name, shown to whoever looks, and nobody else's trouble."""

from __future__ import annotations

import logging
import shutil
import sys
from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline import definitions
from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.config import project as projects
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.end_to_end.conftest import n_assets

WELL = """corpus = "{corpus}"
depth = 30
[source]
kind = "directory"
documents = "."
queries = "."
[chunkers]
clause = {{}}
[[configurations]]
name = "a"
chunker = "clause"
retriever = "bm25"
"""
TWICE = '[[configurations]]\nname = "a"\nchunker = "clause"\nretriever = "bm25"\n'
BROKEN = {
    "unknown_key": ("depth = 30", "dept = 30", "unknown key 'dept'; did you mean 'depth'?"),
    "unknown_chunker": ("clause", "claus", "'claus' is unknown; did you mean 'clause'?"),
    "duplicate": (
        "[[configurations]]",
        f"{TWICE}[[configurations]]",
        "the name 'a' is given twice",
    ),
    "wrong_type": ("depth = 30", 'depth = "30"', "depth = '30' must be a valid integer"),
}
"""Name of the file -> what is replaced in a sound one, by what, and the message."""


MODULES = {
    "syntax": ("def chunk(:", "SyntaxError"),
    "missing_import": ("import no_such_thing", "No module named 'no_such_thing'"),
    "breaks": ("1 / 0", "ZeroDivisionError: division by zero"),
}
"""Name of a chunker's module -> its source, and what is said of it."""
BROKEN |= {
    f"module_{name}": ("clause = {}", f'clause = {{ strategy = "broken_cutters.{name}" }}', said)
    for name, (_, said) in MODULES.items()
}


@pytest.fixture
def home(finished: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one corpus that is well, files that are broken, and ones whose module is."""
    (tmp_path / "code" / "broken_cutters").mkdir(parents=True)
    for name, (source, _) in MODULES.items():
        (tmp_path / "code" / "broken_cutters" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "code")
    monkeypatch.delitem(sys.modules, "broken_cutters", raising=False)
    folder = tmp_path / "home" / "experiments"
    folder.mkdir(parents=True)
    shutil.copy(finished.root / "data" / "experiments" / "small.toml", folder)
    for stem, (old, new, _) in BROKEN.items():
        (folder / f"{stem}.toml").write_text(WELL.format(corpus=stem).replace(old, new))
    return tmp_path / "home"


def test_the_web_ui_shows_what_is_wrong_and_has_the_other_corpora(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("SPANBENCH_HOME", str(home))
    log = logging.getLogger("spanbench")
    monkeypatch.setattr(log, "propagate", True)
    monkeypatch.setattr(log, "handlers", [])
    loaded = definitions.definitions()
    specs = {spec.key: spec for spec in loaded.resolve_all_asset_specs()}
    for stem, (*_, message) in BROKEN.items():
        spec = specs[dg.AssetKey(["broken_experiments", stem])]
        assert message in spec.description
        assert f"{stem}.toml" in spec.description
        assert spec.group_name == "broken_experiments"
        assert any(message in line for line in caplog.messages)
        assert not [key for key in specs if key.path[0] == stem]
    assert dg.AssetKey(["small", "rankings", "clause_bm25"]) in specs
    executed = loaded.resolve_job_def("run_everything").asset_layer.executable_asset_keys
    assert dg.AssetKey(["small", "documents"]) in executed
    assert not [key for key in executed if key.path[0] == "broken_experiments"]


def test_the_command_line_says_it_and_runs_the_others(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["--home", str(home), "status", "small"]) == 0
    lines = capsys.readouterr().out.splitlines()
    n = n_assets(projects.find(str(home)))
    assert lines[0] == f"small: never run ({n} assets); spanbench run small"
    for stem, (*_, message) in BROKEN.items():
        assert [x for x in lines if x.startswith(f"{stem}: broken experiment: ") and message in x]
        assert cli.main(["--home", str(home), "run", stem]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert cli.main(["--home", str(home), "run", "small", "--dry-run"]) == 0
    assert f"{n} of {n} assets would run now" in capsys.readouterr().out
