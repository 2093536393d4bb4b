"""Reading, hashing and replacing files, with the messages a person needs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from spanbench_pipeline.errors import InputError


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; InputError names it where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def hash_file(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 (hexadecimal) of a file, read as a stream.

    Raises InputError naming the file where it cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return file.tell(), digest.hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def hash_bytes(data: bytes) -> tuple[int, str]:
    """Size and sha256 (hexadecimal) of bytes in memory."""
    return len(data), hashlib.sha256(data).hexdigest()


def replace_with(path: Path, data: bytes) -> None:
    """Put ``data`` in place of ``path`` at once: a reader sees the old bytes or the new ones.

    A failure leaves what was there and nothing beside it.
    """
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        staged.write_bytes(data)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be read: {error.strerror or error}")
