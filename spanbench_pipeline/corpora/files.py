"""Reading and hashing files, with the messages a person needs."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from spanbench_pipeline.core.codepoints import CONTROL_CODES, LINE_SEPARATORS
from spanbench_pipeline.core.errors import InputError

UNFIT_IN_NAMES = re.compile(rf"[\t\n{CONTROL_CODES}{LINE_SEPARATORS}]")
"""What a document's file name may not hold: it would break the lines of messages and files."""


def at_home(path: Path) -> Path:
    """Return the path with an opening ``~`` or ``~user`` replaced by that home folder.

    Raises InputError where there is none, and for a path that no system takes.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} cannot be read: a path cannot hold NUL")
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: no home folder is known for {path.parts[0]!r}") from error


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file; InputError names it where it cannot be read."""
    with _opened(path) as file:
        return file.read()


def hash_file(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 (hexadecimal) of a file, read as a stream.

    Raises InputError naming the file where it cannot be read.
    """
    with _opened(path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()


def hash_bytes(data: bytes) -> tuple[int, str]:
    """Size and sha256 (hexadecimal) of bytes in memory."""
    return len(data), hashlib.sha256(data).hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Yield the file to read as a whole; InputError where it is no regular one, or changes
    meanwhile.

    Opened without waiting: a pipe without a writer would keep its reader for ever.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise InputError(f"{path}: cannot be read: not a regular file")
            yield file
            after = os.fstat(file.fileno())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"{path}: cannot be read: {_reason(error)}") from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InputError(f"{path}: the file was changed while it was read; run the command again")


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
