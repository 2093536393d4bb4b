from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import folders


def listing(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def breaking() -> Iterator[tuple[str, list[bytes]]]:
    yield "first", [b"half"]
    raise OSError("disk full")


def test_a_new_folder_holds_every_file(tmp_path: Path) -> None:
    folders.write_new(tmp_path / "a" / "b", [("x.txt", [b"1", b"2"]), ("deep/y", [])])
    assert listing(tmp_path) == {"a/b/x.txt": b"12", "a/b/deep/y": b""}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    folders.write_new(tmp_path / "a", [("x", [b"1"])])
    assert listing(tmp_path) == {"a/x": b"1"}


@pytest.mark.parametrize("held", ["a/mine", "a"])
def test_what_is_there_is_never_written_over(tmp_path: Path, held: str) -> None:
    (tmp_path / held).parent.mkdir(exist_ok=True)
    (tmp_path / held).write_bytes(b"mine")
    with pytest.raises(InputError, match="there is something already"):
        folders.write_new(tmp_path / "a", [("x", [b"1"])])
    assert listing(tmp_path) == {held: b"mine"}


@pytest.mark.parametrize("write", [folders.write_new, folders.replace])
def test_what_breaks_leaves_nothing(tmp_path: Path, write) -> None:
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path / "a", breaking())
    assert list(tmp_path.iterdir()) == []


def test_replacing_removes_what_the_new_one_lacks(tmp_path: Path) -> None:
    folders.replace(tmp_path / "a", [("old", [b"1"]), ("both", [b"1"])])
    folders.replace(tmp_path / "a", [("both", [b"2"])])
    assert listing(tmp_path) == {"a/both": b"2"}


def test_a_broken_replacement_keeps_the_old_one(tmp_path: Path) -> None:
    folders.replace(tmp_path / "a", [("old", [b"1"])])
    with pytest.raises(OSError, match="disk full"):
        folders.replace(tmp_path / "a", breaking())
    assert listing(tmp_path) == {"a/old": b"1"}


def test_leftovers_of_a_killed_process_go(tmp_path: Path) -> None:
    (tmp_path / ".a.999.tmp").mkdir()
    (tmp_path / ".a.999.tmp" / "half").write_bytes(b"x")
    folders.replace(tmp_path / "a", [("x", [b"1"])])
    assert listing(tmp_path) == {"a/x": b"1"}


def test_a_folder_that_exists_stays_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir(mode=0o750)
    (tmp_path / "link").symlink_to("here")
    before = (tmp_path / "here").stat().st_ino
    monkeypatch.chdir(tmp_path / "here")
    folders.write_new(Path(), [("x/y", [b"1"]), ("z", [b"2"])])
    assert listing(tmp_path / "here") == {"x/y": b"1", "z": b"2"}
    assert sorted(p.name for p in Path().iterdir()) == ["x", "z"]  # also for whoever stands in it
    assert (tmp_path / "here").stat().st_ino == before
    with pytest.raises(InputError, match=r"^\.: there is something already \(x\)"):
        folders.write_new(Path(), [("a", [b"1"])])
    with pytest.raises(InputError, match=r"link: there is something already \(x\)"):
        folders.write_new(tmp_path / "link", [("a", [b"1"])])


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "nowhere").symlink_to("new")
    folders.write_new(tmp_path / "link", [("x", [b"1"])])
    folders.write_new(tmp_path / "nowhere", [("x", [b"2"])])
    assert listing(tmp_path / "empty") == {"x": b"1"}
    assert listing(tmp_path / "new") == {"x": b"2"}
    folders.replace(tmp_path / "link", [("y", [b"3"])])
    assert listing(tmp_path / "empty") == {"y": b"3"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "link", "new", "nowhere"]


def test_a_mount_point_is_filled_though_no_folder_can_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "replace", busy)
    folders.write_new(tmp_path, [("x", [b"1"])])
    assert listing(tmp_path) == {"x": b"1"}


@pytest.mark.parametrize("fails", [1, 2])
def test_what_breaks_in_an_empty_folder_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    with pytest.raises(OSError, match="disk full"):
        folders.write_new(tmp_path, breaking())
    assert list(tmp_path.iterdir()) == []
    calls = []
    rename = Path.rename

    def breaks(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) == fails:
            raise OSError("broken")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", breaks)
    with pytest.raises(OSError, match="broken"):
        folders.write_new(tmp_path, [("x/y", [b"1"]), ("z", [b"2"])])
    assert list(tmp_path.iterdir()) == []


def test_a_replacement_that_cannot_take_the_name_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.replace(tmp_path / "a", [("x", [b"old"])])
    calls = []
    replace = Path.replace

    def breaks(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) == 2:
            raise OSError("broken")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", breaks)
    with pytest.raises(OSError, match="broken"):
        folders.replace(tmp_path / "a", [("x", [b"new"])])
    assert listing(tmp_path) == {"a/x": b"old"}


@pytest.mark.parametrize("name", ["scores", "x" * 220])
def test_what_a_killed_process_took_away_comes_back(tmp_path: Path, name: str):
    """Killed between its two renames, it leaves the old folder under a name of its own."""
    folder = tmp_path / name
    folders.replace(folder, [("a", [b"old"])])
    beginning = f".{name[:200]}.4194304"
    folder.rename(tmp_path / f"{beginning}.old.tmp")
    (tmp_path / f"{beginning}.tmp").mkdir()

    def fails():
        yield "a", [b"new"]
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        folders.replace(folder, fails())
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (folder / "a").read_bytes() == b"old"


def test_a_write_that_fails_names_its_place(tmp_path: Path):
    def full():
        yield "a", [b"x"]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as raised:
        folders.write_new(tmp_path / "export", full())
    assert Path(raised.value.filename).parent == tmp_path
