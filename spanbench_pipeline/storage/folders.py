"""A folder of files that is written whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage.files import name_place, temporary_name

Files = Iterable[tuple[str, Iterable[bytes]]]
"""Path below the folder -> its bytes, in pieces; made while it is written, so it may be large."""


def write_new(folder: Path, files: Files) -> None:
    """Write ``files`` into a folder that is new or empty; InputError where it holds something.

    A new one is staged beside its name and renamed at once. One that exists stays the folder that
    it is (a mount point, the working directory, a link's target): the files are staged in it, and
    moved to their names when all are written. What goes wrong leaves nothing behind.
    """
    place = Path(os.path.realpath(folder))
    _require_empty(folder, place)
    if place.exists():
        _fill(place, files)
        return
    staged = _staged(temporary_name(place), files)
    try:
        staged.replace(place)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def replace(folder: Path, files: Files) -> None:
    """Write ``files`` into ``folder`` in the place of all that it held.

    Only one process at a time may write it; what one that was killed left of it is removed, or
    put back where the folder had no name at that moment.
    """
    folder = Path(os.path.realpath(folder))
    _take_up(folder)
    staged = _staged(temporary_name(folder), files)
    old = temporary_name(folder).with_suffix(".old.tmp")
    try:
        if folder.exists():
            folder.replace(old)
        try:
            staged.replace(folder)
        except BaseException:
            if old.exists():
                old.replace(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _require_empty(folder: Path, place: Path) -> None:
    what = "a file" if place.exists() and not place.is_dir() else ""
    if place.is_dir():
        what = min((entry.name for entry in place.iterdir()), default="")
    if what:
        raise InputError(
            f"{folder}: there is something already ({what}); give a folder that is new or empty"
        )


def _fill(place: Path, files: Files) -> None:
    """Write ``files`` into an empty folder; its entries appear in the order in which they came."""
    entries: dict[str, None] = {}

    def noted() -> Files:
        for name, pieces in files:
            entries[name.split("/")[0]] = None
            yield name, pieces

    staged = _staged(place / f".{os.getpid()}.tmp", noted())
    moved: list[Path] = []
    try:
        for name in entries:
            moved.append(place / name)
            (staged / name).rename(place / name)
    except BaseException:
        for path in moved:
            _remove(path)
        raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _staged(staged: Path, files: Files) -> Path:
    try:
        staged.mkdir(parents=True)
        for name, pieces in files:
            path = staged / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(pieces)
    except BaseException as error:
        if isinstance(error, OSError):
            name_place(error, staged)
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return staged


def _take_up(folder: Path) -> None:
    """Clear away what killed processes left; what ``folder`` held last gets its name back."""
    beginning = temporary_name(folder).name.removesuffix(f"{os.getpid()}.tmp")
    for left in sorted(folder.parent.glob(f"{glob.escape(beginning)}*.tmp")):
        if left.name.endswith(".old.tmp") and not folder.exists():
            left.replace(folder)
        else:
            shutil.rmtree(left, ignore_errors=True)
