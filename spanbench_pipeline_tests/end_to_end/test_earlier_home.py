"""A home that an earlier version wrote is read, brought up to date, and gives the same values."""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT

ARCHIVE = CHECKOUT / "spanbench_pipeline_tests" / "data" / "earlier_home.tar.xz"
MADE_IN = "/srv/harbour"
"""Where the home lay; the experiment's paths are the only ones that matter."""
NOT_COMPARED = {"provenance", "files"}
"""Of a scoring: paths and the hash of the file, which hold where it lies."""


@dataclass(frozen=True)
class Earlier:
    """The folder with the home, what it was made from, what it exported, and what it printed."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def call(self, *arguments: str) -> int:
        return cli.main(["--home", str(self.home), *arguments])

    def printed(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "expected" / name).read_text())
        return content

    def exported(self, folder: str = "exported") -> dict[str, pa.Table]:
        files = sorted((self.folder / folder / "parquet").glob("*.parquet"))
        return {path.stem: pq.read_table(path, partitioning=None) for path in files}


def unpack(folder: Path) -> Earlier:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    experiment = folder / "home" / "experiments" / "harbour.toml"
    experiment.write_text(experiment.read_text().replace(MADE_IN, str(folder)))
    return Earlier(folder)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    """The home as it was left; it is only read."""
    return unpack(tmp_path_factory.mktemp("earlier"))


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    """The home brought up to date by a run, and exported again beside its earlier export."""
    made = unpack(tmp_path_factory.mktemp("updated"))
    assert made.call("run", "harbour") == 1  # it has regressed, and still says so
    assert made.call("run", "harbour") == 1
    assert made.call("export", "harbour", "--to", str(made.folder / "again")) == 0
    return made


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def history(made: Earlier) -> list[dict[str, Any]]:
    files = sorted((made.home / "history" / "harbour").glob("*.parquet"))
    return [row for path in files for row in pq.read_table(path, partitioning=None).to_pylist()]


def values_of_latest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the last run in a history, without what tells one run from another."""
    last = max(row["run_at"] for row in rows)
    return [
        {column: value for column, value in row.items() if column not in ("run_at", "run_id")}
        for row in rows
        if row["run_at"] == last
    ]


def test_status_knows_the_corpus(earlier: Earlier, capsys: pytest.CaptureFixture[str]):
    assert earlier.call("status", "harbour", "--format", "json") == 0
    (corpus,) = json.loads(capsys.readouterr().out)["corpora"]
    assert corpus["corpus"] == "harbour"
    assert corpus["never_run"] is False


def test_sql_reads_every_table(earlier: Earlier, capsys: pytest.CaptureFixture[str]):
    exported = earlier.exported()
    counts = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n FROM {name}" for name in exported
    )
    assert earlier.call("sql", counts, "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["n"] for row in rows} == {
        name: table.num_rows for name, table in exported.items()
    }


def test_a_run_gives_the_values_that_are_stored(updated: Earlier):
    """Fingerprints among them: an unchanged setting is hashed as it was."""
    before, now = updated.exported(), updated.exported("again")
    assert set(before) <= set(now)
    for name, table in before.items():
        assert now[name].select(table.column_names).to_pylist() == table.to_pylist(), name


def test_an_export_gives_the_rankings_and_hashes_that_were_exported(updated: Earlier):
    before, now = updated.folder / "exported", updated.folder / "again"
    assert contents(now / "jsonl") == contents(before / "jsonl")
    ranked = [
        [c["ranked"] for c in json.loads((folder / "manifest.json").read_text())["configurations"]]
        for folder in (before, now)
    ]
    assert ranked[1] == ranked[0]


def test_the_gate_judges_against_the_accepted_run_as_before(
    updated: Earlier, capsys: pytest.CaptureFixture[str]
):
    expected = updated.printed("gate.json")
    assert updated.call("gate", "harbour", "--format", "json") == expected["exit_code"] == 1
    judged = json.loads(capsys.readouterr().out)
    for field in ("result", "accepted", "rule", "verdicts", "regressions", "rows"):
        assert judged[field] == expected[field], field


def test_the_accepted_run_and_the_history_are_kept(earlier: Earlier, updated: Earlier):
    assert contents(updated.home / "accepted") == contents(earlier.home / "accepted")
    before, now = history(earlier), history(updated)
    assert len({row["run_id"] for row in before}) == 2
    assert now[: len(before)] == before
    assert values_of_latest(now) == values_of_latest(before)


def test_exported_rankings_are_scored_as_they_were(
    updated: Earlier, capsys: pytest.CaptureFixture[str]
):
    rankings = updated.folder / "exported" / "jsonl" / "clause_bm25.jsonl"
    asked = ("--rankings", str(rankings), "--corpus", "harbour", "--format", "json")
    assert updated.call("score", *asked) == 0
    scored = json.loads(capsys.readouterr().out)
    expected = updated.printed("score.json")
    for field in set(expected) - NOT_COMPARED:
        assert scored[field] == expected[field], field


def test_the_corpus_can_be_registered_again(earlier: Earlier, tmp_path: Path):
    shutil.copytree(earlier.folder, tmp_path / "copy")
    copied = Earlier(tmp_path / "copy")
    experiment = copied.home / "experiments" / "harbour.toml"
    before = experiment.read_text().replace(str(earlier.folder), str(copied.folder))
    given = copied.folder / "given"
    registering = ("--docs", str(given / "docs"), "--queries", str(given / "queries.jsonl"))
    assert copied.call("adapt", *registering, "--name", "harbour") == 0
    assert experiment.read_text() == before
