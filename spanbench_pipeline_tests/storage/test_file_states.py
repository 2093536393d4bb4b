"""The digest of files changes with whatever is done to them, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spanbench_pipeline.storage.file_states import FileStates


def lay_out(folder: Path) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "one.txt").write_text("one")
    (folder / "a" / "b" / "two.txt").write_text("two")


def digest(folder: Path) -> str | None:
    return FileStates().digest([folder / "a", folder / "a" / "one.txt", folder / "absent"])


def rewrite(path: Path) -> None:
    """Other content of the same length, under the time of modification that the file had."""
    state = path.stat()
    path.write_text("xyz")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda f: rewrite(f / "a" / "one.txt"),
        lambda f: (f / "a" / "b" / "two.txt").unlink(),
        lambda f: (f / "a" / "b" / "three.txt").write_text(""),
        lambda f: (f / "a" / "b").rename(f / "a" / "c"),
        lambda f: (f / "absent").write_text(""),
        lambda f: (f / "a" / "new").mkdir(),
    ],
)
def test_every_change_is_seen(tmp_path: Path, change: Callable[[Path], object]) -> None:
    lay_out(tmp_path)
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    os.sync()
    change(tmp_path)
    assert digest(tmp_path) != before


def test_a_linked_folder_is_not_answered_for(tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "b")
    assert digest(tmp_path) is None


def test_newest_is_the_last_change_of_all(tmp_path: Path) -> None:
    lay_out(tmp_path)
    states = FileStates()
    states.digest([tmp_path / "a"])
    paths = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert states.newest == max(path.stat().st_ctime_ns for path in paths)
