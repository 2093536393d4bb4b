"""``run --dry-run``, ``run -v``, ``status --why`` and ``status --format json``."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.config import project
from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.end_to_end.conftest import edit, n_assets, names, run


@pytest.fixture
def call(ran: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Calls the command line on the project; gives exit code, what it printed, and errors."""
    monkeypatch.setattr("spanbench_pipeline.config.project.find", lambda *_: ran)

    def called(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


def everything(folder: Path) -> dict[str, bytes]:
    """All files, Dagster's included, but for SQLite's logs, which readers make as well."""
    return {
        str(p): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.endswith(("-wal", "-shm"))
    }


def test_a_dry_run_prints_the_waves_and_changes_nothing(ran: Project, call):
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    before = everything(ran.home)
    code, out, err = call("run", "small", "--dry-run")
    assert (code, err) == (0, "")
    assert everything(ran.home) == before
    lines = out.splitlines()
    # The chunks, and the fingerprints, which state the chunker's parameters.
    assert lines[0].startswith(f"dry run of small: 2 of {n_assets(ran)} assets would run now, ")
    assert lines[1:5] == [
        "wave 1, now: 2",
        "  small/chunks/clause  its code, parameters or models changed",
        "      parameter params.max_chars: 300 -> 150",
        "  small/fingerprints   its code, parameters or models changed",
    ]
    assert "  small/candidates/clause_bm25  waits for small/chunks/clause" in lines
    said = {line.split()[0] for line in lines if line.startswith("  ")}
    done = names(run(ran))
    assert done <= said  # what it did not name does not run
    assert call("run", "small", "--dry-run")[1] == (
        f"nothing to do: all {n_assets(ran)} assets of small are up to date\n"
    )


def test_a_dry_run_in_a_home_that_is_not_there_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    home = tmp_path / "home"
    assert cli.main(["--home", str(home), "run", "--dry-run"]) == 0
    assert f"wave 1, now: {n_assets(project.find(str(home)), 'sample')}" in capsys.readouterr().out
    assert cli.main(["--home", str(home), "status"]) == 0
    assert cli.main(["--home", str(home), "run", "smaple", "--dry-run"]) == 2
    assert "did you mean 'sample'" in capsys.readouterr().err
    assert not home.exists()


def test_verbose_names_each_asset_and_why_it_ran(ran: Project, call):
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    code, _, err = call("run", "small", "-v")
    assert code == 0
    lines = err.splitlines()
    assert lines[:3] == [
        "a wave of 2:",
        "small/chunks/clause: its code, parameters or models changed",
        "small/fingerprints: its code, parameters or models changed",
    ]
    assert "small/candidates/clause_bm25: input changed: small/chunks/clause" in lines
    assert [line for line in lines if line.startswith("small/rankings/clause_bm25  ")]


def test_why_explains_a_stale_asset_a_waiting_one_and_a_fresh_one(ran: Project, call):
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    stale = call("status", "--why", "small/chunks/clause")[1]
    assert stale.startswith("small/chunks/clause: stale: it will run\n")
    assert "  parameter params.max_chars: 300 -> 150\n" in stale
    assert "  module     spanbench_pipeline.chunkers.clause\n" in stale
    assert '  parameter  params = {"max_chars": 150, "min_chars": 20}\n' in stale
    waiting = call("status", "--why", "small/rankings/clause_bm25")[1]
    assert "it waits to see whether its inputs change" in waiting.splitlines()[0]
    assert "  below what is stale: small/chunks/clause\n" in waiting
    fresh = call("status", "--why", "small/rankings/naive_bm25")[1]
    assert fresh.startswith("small/rankings/naive_bm25: up to date\n")
    assert call("status", "--why", "warehouse")[1].startswith("warehouse: up to date, but it waits")


def test_why_shows_inputs_that_changed_and_checks_that_failed(
    ran: Project, call, monkeypatch: pytest.MonkeyPatch
):
    from spanbench_pipeline.checks import consistency

    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    with monkeypatch.context() as patched:
        rows = [{"query_id": "q1", "rank": 7}]
        patched.setattr(consistency, "unlike_candidates", lambda *_: rows)
        assert call("run", "small")[0] == 1
    asked = ("status", "--format", "json", "--why")
    found = json.loads(call(*asked, "small/rankings/clause_bm25")[1])
    assert found["state"] == "stale"
    assert found["reasons"] == ["blocking check failed: made_of_its_candidates"]
    checks = {check["check"]: check for check in found["checks"]}
    assert checks["no_duplicate_chunks"]["result"] == "passed"
    assert checks["made_of_its_candidates"]["result"] == "failed"
    assert checks["made_of_its_candidates"]["rows"] == 1
    assert "| q1 | 7 |" in checks["made_of_its_candidates"]["first"]
    below = json.loads(
        call("status", "--why", "small/query_metrics/clause_bm25", "--format", "json")[1]
    )
    inputs = {dep["asset"]: dep for dep in below["inputs"]}
    ranking = inputs["small/rankings/clause_bm25"]
    assert ranking["recorded"] != ranking["current"] is not None
    assert "| q1 | 7 |" in call("status", "--why", "small/rankings/clause_bm25")[1]


def test_why_of_what_was_never_made_or_was_wiped(ran: Project, call):
    from spanbench_pipeline.pipeline.dagster.instance import open_instance

    with open_instance(ran) as instance:
        instance.wipe_assets([dg.AssetKey(["small", "chunks", "naive"])])
    found = json.loads(call("status", "--why", "small/chunks/naive", "--format", "json")[1])
    assert found["reasons"] == ["never materialized"]
    assert found["code_version"]["recorded"] is None
    assert {check["result"] for check in found["checks"]} <= {"not evaluated", "outdated"}


@pytest.mark.parametrize(
    ("asset", "message"),
    [
        ("small/chunk/clause", "did you mean 'small/chunks/clause'"),
        ("smal/chunks/clause", "did you mean 'small'"),
        ("warehose", "did you mean 'warehouse'"),
        ("zzz", "no asset 'zzz' (an asset's name is corpus/stage/name)"),
    ],
)
def test_an_unknown_asset_names_the_nearest(call, asset: str, message: str):
    code, out, err = call("status", "--why", asset)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_status_as_json(ran: Project, call):
    assert json.loads(call("status", "small", "--format", "json")[1]) == {
        "corpora": [
            {
                "corpus": "small",
                "assets": n_assets(ran),
                "never_run": False,
                "stale": [],
                "waiting": [],
            }
        ],
        "broken": [],
    }
    (ran.parquet / "small" / "configs.parquet").unlink()
    (ran.root / "data" / "experiments" / "broken.toml").write_text("x = 1\n")
    found = json.loads(call("status", "--format", "json")[1])
    assert found["corpora"][0]["stale"] == [
        {"asset": "small/configs", "reasons": ["its file is missing"]}
    ]
    assert found["corpora"][0]["waiting"] == ["small/regression", "small/reports", "warehouse"]
    assert found["broken"][0]["experiment"] == "broken"
    code, _, err = call("status", "small", "--why", "small/configs")
    assert code == 2
    assert "one of the two" in err
