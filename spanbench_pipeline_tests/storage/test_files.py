"""A regular file is replaced whole; a pipe, a device and a link are written through."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import files


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_new_file_and_its_folders(tmp_path: Path) -> None:
    files.write_to(str(tmp_path / "a" / "b"), b"1")
    assert (tmp_path / "a" / "b").read_bytes() == b"1"
    assert names(tmp_path / "a") == ["b"]


@pytest.mark.parametrize("write", [files.write_whole, lambda p, b: files.write_to(str(p), b)])
def test_a_file_that_is_replaced_keeps_its_mode_and_owner(tmp_path: Path, write) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12346)
    before = path.stat()
    write(path, b"new")
    after = path.stat()
    assert path.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino


def test_what_breaks_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="space"):
        files.write_to(str(tmp_path / "a"), b"new")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_links_target_gets_the_content(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "two").symlink_to(Path("far") / "file")
    (tmp_path / "one").symlink_to("two")
    files.write_to(str(tmp_path / "one"), b"new")
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    (tmp_path / "far" / "file").unlink()  # now it leads nowhere
    files.write_to(str(tmp_path / "one"), b"again")
    assert (tmp_path / "far" / "file").read_bytes() == b"again"
    assert names(tmp_path) == ["far", "one", "two"]


@pytest.mark.parametrize("through", ["fifo", "link"])
def test_a_pipe_stays_a_pipe(tmp_path: Path, through: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    files.write_to(str(tmp_path / through), b"content")
    reader.join(10)
    assert got == [b"content"]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_device_stays_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"probe")
    except OSError:  # not as this user, or on this mount: then one that only says that it is one
        device.unlink(missing_ok=True)
        device.write_bytes(b"")
        monkeypatch.setattr(stat, "S_ISREG", lambda mode: False)
    before = device.stat().st_ino
    files.write_to(str(device), b"content")
    assert device.stat().st_ino == before
    assert names(tmp_path) == ["null"]


def test_an_open_file_goes_on_where_it_stands(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb", buffering=0) as stream:
        stream.write(b"before ")
        files.write_to(f"/dev/fd/{stream.fileno()}", b"content")
        stream.write(b" after")
    assert (tmp_path / "out").read_bytes() == b"before content after"
    reading, out = os.pipe()  # what >(...) of a shell is
    files.write_to(f"/dev/fd/{out}", b"content")
    os.close(out)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == b"content"
    with pytest.raises(OSError, match="/dev/fd/9999") as error:
        files.write_to("/dev/fd/9999", b"content")
    assert error.value.errno == errno.EBADF or error.value.errno == errno.ENOENT


def test_a_file_whose_folder_takes_no_other_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounted").write_bytes(b"old and longer")
    before = (tmp_path / "mounted").stat().st_ino

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "replace", busy)
    files.write_to(str(tmp_path / "mounted"), b"new")
    assert (tmp_path / "mounted").read_bytes() == b"new"
    assert (tmp_path / "mounted").stat().st_ino == before
    assert names(tmp_path) == ["mounted"]


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("ž" * 127)  # 254 bytes
    files.write_to(str(path), b"1")
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("typed", ["", ".", "..", "/", "folder", "folder/", "new/"])
def test_what_is_no_file_is_refused_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="--output") as error:
        files.require_file(typed, "--output")
    assert (typed or "''") in str(error.value)


def test_a_write_that_fails_names_its_file(tmp_path: Path):
    """The system says which call failed, not on which file: another disk may be full."""
    path = tmp_path / "a.csv"
    with pytest.raises(OSError, match="No space") as raised, files.staged(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(path)
