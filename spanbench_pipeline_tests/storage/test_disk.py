"""A full disk and a place that may only be read are told as such, however deep they are wrapped."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import zipfile
from pathlib import Path

import duckdb
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import status
from spanbench_pipeline.cli.run import StageFailed, raise_failures
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.runner import Failure, Result
from spanbench_pipeline.storage import disk


def wrapped(error: BaseException) -> BaseException:
    """As a library raises what the system said: from it, and once more while handling that."""
    try:
        try:
            raise RuntimeError("the event could not be stored") from error
        except RuntimeError:
            raise zipfile.BadZipFile("no such run")  # noqa: B904
    except zipfile.BadZipFile as outer:
        return outer


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    sqlite3.OperationalError("database or disk is full"),
    duckdb.IOException('Could not write file "x": No space left on device'),
    OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"),
]


@pytest.mark.parametrize("error", FULL, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("how", [lambda e: e, wrapped], ids=["plain", "wrapped"])
def test_a_full_disk_is_named_with_what_is_free(tmp_path: Path, error, how) -> None:
    told = disk.explain(how(error), tmp_path / "home")
    assert str(tmp_path / "home") in told
    assert "disk is full" in told
    assert "bytes free" in told
    assert "move it away" not in told


def test_a_folder_that_is_named_is_told_of(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "out" / "x.csv"))
    assert disk.explain(error, Path("/home")).startswith(f"{tmp_path / 'out'}: ")


def test_a_disk_error_is_a_full_disk_where_nothing_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = wrapped(sqlite3.OperationalError("disk I/O error"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10 * disk.ROOM))
    assert disk.explain(error, tmp_path) == ""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=65_536))
    assert "65,536 bytes free" in disk.explain(error, tmp_path)
    assert not disk.takes_writes(tmp_path, [])


def test_a_home_that_is_only_read_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (
        OSError(errno.EROFS, "Read-only file system", str(tmp_path / "locks" / "a.lock")),
        sqlite3.OperationalError("attempt to write a readonly database"),
    ):
        told = disk.explain(wrapped(error), tmp_path)
        assert str(tmp_path) in told
        assert "--home" in told
    (tmp_path / "a").write_bytes(b"")
    refused = OSError(errno.EACCES, "Permission denied", str(tmp_path / "a"))
    assert "cannot be written" in disk.explain(refused, tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # then it was to be read
    assert disk.explain(refused, tmp_path) == ""
    elsewhere = OSError(errno.EACCES, "Permission denied", "/elsewhere/x")
    assert disk.explain(elsewhere, tmp_path) == ""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        FileNotFoundError(2, "No such file", "a"),
        OSError(36, "Too long", "x" * 300),
    ],
)
def test_what_no_disk_caused_is_not_told_as_such(tmp_path: Path, error) -> None:
    assert disk.explain(wrapped(error), tmp_path) == ""


def test_what_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.require_writable(tmp_path / "new" / "folder")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OSError, match=str(tmp_path)):
        disk.require_writable(tmp_path / "new" / "folder")


def test_a_stage_that_met_a_full_disk_is_wrong_input(tmp_path: Path) -> None:
    def result(message: str) -> Result:
        return Result(failures=[Failure(("c", "chunks"), "OperationalError", message, "trace")])

    project = Project(tmp_path, tmp_path)
    with pytest.raises(InputError, match="disk is full"):
        raise_failures(result("(sqlite3.OperationalError) database or disk is full"), project)
    with pytest.raises(StageFailed):
        raise_failures(result("no such table: vectors"), project)


def test_words_that_a_text_may_hold_tell_of_no_disk(tmp_path: Path) -> None:
    quoted = "no gold text 'if the disk is full the vendor' in this read-only database"
    assert disk.explain(InputError(quoted), tmp_path) == ""
    result = Result(failures=[Failure(("c", "queries"), "InputError", quoted, "trace")])
    with pytest.raises(InputError, match="the vendor"):
        raise_failures(result, Project(tmp_path, tmp_path))


def test_a_fault_met_while_handling_a_refusal_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    fault = KeyError("x")
    fault.__context__ = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "a"))
    assert disk.explain(fault, tmp_path) == ""
    fault.__cause__ = fault.__context__
    assert "cannot be written" in disk.explain(fault, tmp_path)


def test_the_exit_code_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise wrapped(sqlite3.OperationalError("database or disk is full"))

    monkeypatch.setattr(status, "status", fails)
    assert cli.main(["--home", str(tmp_path), "status"]) == 2
    shown = capsys.readouterr().err
    assert "disk is full" in shown
    assert shown.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
