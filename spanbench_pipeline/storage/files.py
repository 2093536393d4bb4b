"""A file written whole: the files of a home in one way, where a person said in another.

Both write under a temporary name and rename, so a reader meets the old file or the new one, never
half of one. What a person named may be no such file: a pipe, a device or a link is written through,
as a shell's ``>`` does; a rename would put a file in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.open_files import descriptor

LONGEST = 200
"""Bytes of a name that a temporary name keeps: common file systems take 255 in all."""
_NO_RENAME = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.ENOENT}
"""What a folder answers that takes no new file, and a file that is mounted: it is written in place,
if it may be."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file of the home, its folders made where they are missing.

    Whatever has that name is replaced, a link as well. A failure leaves what was there and nothing
    beside it.
    """
    with staged(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which takes its name when the block ends without an
    error.

    A regular file that is replaced hands on its mode and, where this process may, its owner.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        yield temporary
        _hand_on(path, temporary)
        temporary.replace(path)
    except OSError as error:
        name_place(error, path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def name_place(error: OSError, path: Path) -> None:
    """Note in an error where it was met, which the system leaves out of a failed write."""
    if error.errno is not None and not error.filename:
        error.filename = str(path)


def temporary_name(path: Path) -> Path:
    """Return the name beside ``path`` under which this process prepares it."""
    return path.with_name(f"{_beginning(path)}{os.getpid()}.tmp")


def remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed left of a file that they did not finish."""
    for left in path.parent.glob(f"{_beginning(path)}*.tmp*"):
        left.unlink(missing_ok=True)


def require_file(typed: str, option: str) -> None:
    """Raise InputError, in the person's words, where ``typed`` can be no file to write."""
    if not typed:
        raise InputError(f"{option} '': the name is empty; name a file")
    if typed.endswith(os.sep) or Path(typed).is_dir():
        raise InputError(f"{option} {typed}: this is a folder; name a file in it")


def write_to(typed: str, content: bytes) -> None:
    """Write to the place that a person named: a regular file is replaced, all else written through.

    A link's target gets the content. Raises OSError where the place cannot be written; a regular
    file is then as it was, unless only its folder refused and it was written in place.
    """
    open_file = descriptor(typed)
    target = Path(os.path.realpath(typed))
    if open_file is None and _may_be_replaced(typed, target):
        try:
            write_whole(target, content)
            return
        except OSError as error:
            if error.errno not in _NO_RENAME or not target.is_file():
                raise
    try:
        with _opened(Path(typed), open_file) as stream:
            stream.write(content)
    except OSError as error:
        error.filename = error.filename or typed
        raise


def _may_be_replaced(typed: str, target: Path) -> bool:
    """Return True where a rename gives what was asked for: the target is new or a regular file."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return True
    if not os.access(target, os.W_OK):  # a rename would not ask the file
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), typed)
    return stat.S_ISREG(found.st_mode)


def _opened(path: Path, descriptor: Path | None) -> IO[bytes]:
    """Return what is there, to write into; an open file of this process goes on where it stands."""
    own = (Path("/dev/fd"), Path(f"/proc/{os.getpid()}/fd"))
    if descriptor is not None and descriptor.parent in own and descriptor.name.isdecimal():
        return os.fdopen(os.dup(int(descriptor.name)), "wb")
    return path.open("wb")


def _hand_on(path: Path, temporary: Path) -> None:
    try:
        old = path.lstat()
    except OSError:
        return
    new = temporary.stat()
    if not stat.S_ISREG(old.st_mode):
        return
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(old.st_mode & 0o777)


def _beginning(path: Path) -> str:
    return f".{os.fsencode(path.name)[:LONGEST].decode('utf-8', 'ignore')}."
