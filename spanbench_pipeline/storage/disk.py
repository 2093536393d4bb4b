"""What a person is told of a disk that is full, or of a place that may only be read."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
# Databases and libraries tell it in words alone, each in its own.
_FULL_WORDS = ("no space left on device", "disk is full", "disk quota exceeded")
_UNSURE_WORDS = ("disk i/o error",)
"""What SQLite says of a full disk, and of a broken one: how much is free tells."""
ROOM = 1 << 20
"""Bytes that Dagster's databases need at least to be opened to write."""
_TELLING = {"OSError", "OperationalError", "DatabaseError", "IOException", "ArrowException"}
"""Errors of the system, of SQLite (SQLAlchemy's as well), DuckDB and Arrow, by class: the words of
every other may quote a text or a name."""
_READ_ONLY_WORDS = ("read-only file system", "readonly database", "read-only database")


def explain(error: BaseException, home: Path) -> str:
    """Return what to tell of ``error`` where a disk is its cause; empty where none is.

    The errors that it was raised from are looked at as well: libraries wrap what the system said.
    """
    for cause in _chain(error):
        number = cause.errno if isinstance(cause, OSError) else None
        place = _place(cause, home)
        kinds = {kind.__name__ for kind in type(cause).__mro__}
        if number in _FULL or is_full(kinds, str(cause), home):
            return full(place)
        inside = place.is_relative_to(home)
        refused = number in _READ_ONLY and inside and _may_read(cause, place)
        if refused or (kinds & _TELLING and _said(str(cause), _READ_ONLY_WORDS)):
            return f"{place}: cannot be written ({_reason(cause)}){_READERS if inside else ''}"
    return ""


_READERS = (
    "; sql, status, report, gate, export and run --dry-run only read a home, all else needs one "
    "that can be written: choose another with --home DIR"
)


def is_full(kinds: Iterable[str], message: str, home: Path) -> bool:
    """Return whether an error of these classes, by name, tells of a full disk in its message."""
    if _TELLING.isdisjoint(kinds):
        return False
    return _said(message, _FULL_WORDS) or (_said(message, _UNSURE_WORDS) and not _has_room(home))


def full(place: Path) -> str:
    """Return what to tell of a full disk: which one, how much is free, and what to do."""
    there = _existing(place)
    mount = next(p for p in (there, *there.parents) if p.is_mount() or p == p.parent)
    free = shutil.disk_usage(there).free
    counted = os.statvfs(there)
    entries = " and no file entry" if counted.f_files and not counted.f_favail else ""
    return (
        f"{place}: the disk is full: {mount} has {free:,} bytes{entries} free. "
        "Remove what is not needed there, or choose another place; what was finished is kept, and "
        "the same command goes on from it"
    )


def takes_writes(folder: Path, files: Iterable[Path]) -> bool:
    """Return whether this process may change a folder and those of ``files`` that exist, and has
    room.
    """
    there = [folder, *(path for path in files if path.exists())]
    return all(os.access(path, os.W_OK) for path in there) and _has_room(folder)


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(_existing(folder)).free >= ROOM


def require_writable(folder: Path) -> None:
    """Raise OSError where nothing can be written into ``folder``, which may not exist yet."""
    there = _existing(folder)
    if not os.access(there, os.W_OK):
        only_read = os.statvfs(there).f_flag & os.ST_RDONLY
        number = errno.EROFS if only_read else errno.EACCES
        raise OSError(number, os.strerror(number), str(there))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it was raised from, each once.

    What it was raised while handling counts for a library's own errors alone: those wrap. A
    KeyError met on the way is a fault of its own.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        wraps = type(error).__module__.split(".")[0] not in ("builtins", "spanbench_pipeline")
        error = error.__cause__ or (error.__context__ if wraps else None)


def _place(error: BaseException, home: Path) -> Path:
    """Return the folder that the error names, else the home."""
    named = error.filename if isinstance(error, OSError) else None
    if not isinstance(named, str | bytes) or not named:
        return home
    place = Path(os.path.realpath(os.fsdecode(named)))
    return place if os.path.isdir(place) else place.parent  # noqa: PTH112 - as below


def _may_read(error: BaseException, place: Path) -> bool:
    """Return whether what was refused was to write: what is there may be read."""
    named = getattr(error, "filename", None)
    there = [path for path in (place, named) if path and os.path.exists(path)]  # noqa: PTH110
    return all(os.access(path, os.R_OK) for path in there)


def _existing(place: Path) -> Path:
    whole = Path(os.path.realpath(place))
    # A name that no system takes is one that is not there; Path.exists would raise.
    return next(path for path in (whole, *whole.parents) if os.path.exists(path))  # noqa: PTH110


def _reason(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return said or " ".join(str(error).split("\n", 1)[0].split())


def _said(message: str, words: tuple[str, ...]) -> bool:
    return any(word in message.lower() for word in words)
