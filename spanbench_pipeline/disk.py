"""What a person is told of a disk that is full, or of a place that may only be read."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
# Databases and libraries tell it in words alone, each in its own.
_FULL_WORDS = ("no space left on device", "disk is full", "disk quota exceeded")
_READ_ONLY_WORDS = ("read-only file system", "readonly database", "read-only database")


def explain(error: BaseException, home: Path) -> str:
    """What to tell of ``error`` where a disk is its cause; empty where none is.

    The errors that it was raised from are looked at as well: libraries wrap what the system said.
    """
    for cause in _chain(error):
        number = cause.errno if isinstance(cause, OSError) else None
        place = _place(cause, home)
        if number in _FULL or is_full(str(cause)):
            return full(place)
        inside = place.is_relative_to(home)
        if (number in _READ_ONLY and inside) or _said(str(cause), _READ_ONLY_WORDS):
            return f"{place}: cannot be written ({_reason(cause)}){_READERS if inside else ''}"
    return ""


_READERS = (
    "; sql, status, report, gate and export only read a home, all else needs one that can be "
    "written: choose another with --home DIR"
)


def is_full(message: str) -> bool:
    """Whether the message of an error tells of a full disk."""
    return _said(message, _FULL_WORDS)


def full(place: Path) -> str:
    """What to tell of a full disk: which one, how much is free, and what to do."""
    there = _existing(place)
    mount = next(p for p in (there, *there.parents) if p.is_mount() or p == p.parent)
    free = shutil.disk_usage(there).free
    entries = os.statvfs(there).f_favail
    return (
        f"{place}: the disk is full: {mount} has {free:,} bytes and {entries:,} file entries free. "
        "Remove what is not needed there, or choose another place; what was finished is kept, and "
        "the same command goes on from it"
    )


def is_writable(folder: Path) -> bool:
    """Whether this process may make and change the files of a folder that exists."""
    return all(os.access(path, os.W_OK) for path in (folder, *folder.rglob("*.db")))


def require_writable(folder: Path) -> None:
    """Raise OSError where nothing can be written into ``folder``, which may not exist yet."""
    there = _existing(folder)
    if not os.access(there, os.W_OK):
        only_read = os.statvfs(there).f_flag & os.ST_RDONLY
        number = errno.EROFS if only_read else errno.EACCES
        raise OSError(number, os.strerror(number), str(there))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it was raised from or while handling, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _place(error: BaseException, home: Path) -> Path:
    """The folder that the error names, else the home."""
    named = error.filename if isinstance(error, OSError) else None
    if not isinstance(named, str | bytes) or not named:
        return home
    return Path(os.path.realpath(os.fsdecode(named))).parent


def _existing(place: Path) -> Path:
    whole = Path(os.path.realpath(place))
    return next(path for path in (whole, *whole.parents) if path.exists())


def _reason(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return said or " ".join(str(error).split("\n", 1)[0].split())


def _said(message: str, words: tuple[str, ...]) -> bool:
    return any(word in message.lower() for word in words)
