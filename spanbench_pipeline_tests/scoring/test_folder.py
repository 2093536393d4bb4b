"""Folders of scored rankings: each name has its own, and keeps it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.scoring.folder import folder_of, held_by


def score(scored: Path, name: str, folder: Path | None = None) -> Path:
    """What scoring leaves, as far as it matters: a table that has the name."""
    found = folder or folder_of(scored, name)
    found.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"config": [name, name]}), found / "config_metrics.parquet")
    return found


def test_names_with_one_slug_do_not_overwrite_each_other(tmp_path: Path):
    first = score(tmp_path, "model-v1")
    assert first.name == "model_v1"
    others = [score(tmp_path, name) for name in ("model v1", "Model_v1", "model_v1")]
    assert len({first, *others}) == 4
    for name, folder in zip(("model v1", "Model_v1", "model_v1"), others, strict=True):
        assert held_by(folder) == name
        assert folder_of(tmp_path, name) == folder
    assert (held_by(first), folder_of(tmp_path, "model-v1")) == ("model-v1", first)


def test_a_name_stays_where_it_is_when_the_slug_is_free_again(tmp_path: Path):
    first = score(tmp_path, "a-b")
    second = score(tmp_path, "a b")
    first.rename(tmp_path / "elsewhere")
    assert folder_of(tmp_path, "a b") == second


@pytest.mark.parametrize("name", ["модель", "条款", "x" * 300, "clause + hybrid", "модель v1"])
def test_every_name_has_a_folder(tmp_path: Path, name: str):
    folder = score(tmp_path, name)
    assert folder.parent == tmp_path
    assert len(folder.name) <= 200
    assert folder_of(tmp_path, name) == folder


def test_a_name_is_one_however_its_spaces_are(tmp_path: Path):
    before = score(tmp_path, "clause  1 ", tmp_path / "clause_1")  # as an earlier version wrote it
    assert folder_of(tmp_path, "clause 1") == before


def test_what_is_not_known_to_be_the_names_own_is_left_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    assert folder_of(tmp_path, "mine").name == "mine"  # empty
    (tmp_path / "mine" / "notes.txt").write_text("by hand")
    assert folder_of(tmp_path, "mine").name.startswith("mine__")
    (tmp_path / "mine" / "config_metrics.parquet").write_text("no table")
    assert folder_of(tmp_path, "mine").name.startswith("mine__")
    (tmp_path / "other").write_text("a file")
    assert folder_of(tmp_path, "other").name.startswith("other__")
