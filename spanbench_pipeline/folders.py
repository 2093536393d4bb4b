"""A folder of files that is written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from spanbench_pipeline.errors import InputError

Files = Iterable[tuple[str, Iterable[bytes]]]
"""Path below the folder -> its bytes, in pieces; made while it is written, so it may be large."""


def write_new(folder: Path, files: Files) -> None:
    """Write ``files`` into a folder that is new or empty; InputError where it holds something.

    They are staged beside it and renamed at once: what goes wrong leaves nothing behind.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder}: there is something already; give a folder that is new or empty"
        )
    staged = _staged(folder, files)
    try:
        staged.replace(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def replace(folder: Path, files: Files) -> None:
    """Write ``files`` into ``folder`` in the place of all that it held.

    Only one process at a time may write it; what one that was killed left of it is removed.
    """
    _remove_leftovers(folder)
    staged = _staged(folder, files)
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old.tmp")
    try:
        if folder.exists():
            folder.replace(old)
        staged.replace(folder)
    finally:
        for left in (staged, old):
            shutil.rmtree(left, ignore_errors=True)


def _staged(folder: Path, files: Files) -> Path:
    staged = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        staged.mkdir(parents=True)
        for name, pieces in files:
            path = staged / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.writelines(pieces)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return staged


def _remove_leftovers(folder: Path) -> None:
    for left in folder.parent.glob(f".{folder.name}.*.tmp"):
        shutil.rmtree(left, ignore_errors=True)
