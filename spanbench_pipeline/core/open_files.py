"""Names that lead to an open file of a process, or to what can be read once only."""

from __future__ import annotations

import os
import re
from pathlib import Path

_DESCRIPTORS = re.compile(r"/dev/fd|/proc/[^/]+(/task/[^/]+)?/fd")
"""Folders whose entries are the open files of a process."""


def descriptor(typed: str | Path) -> Path | None:
    """Return the open file of a process that a name leads to, such as /dev/stdout or ``>(...)``.

    Whoever opened it may be at work on it: its name must not be given to another file.
    """
    hop = os.path.join(os.getcwd(), typed)  # noqa: PTH109, PTH118 - Path would drop a part
    for _ in range(40):  # as many links as Linux follows
        folder = os.path.realpath(os.path.dirname(hop))  # noqa: PTH120
        if _DESCRIPTORS.fullmatch(folder):
            return Path(folder, os.path.basename(hop))  # noqa: PTH119
        if not Path(hop).is_symlink():
            return None
        hop = os.path.join(folder, os.readlink(hop))  # noqa: PTH115, PTH118
    return None


def is_read_once(path: Path) -> bool:
    """Return whether what is there can be read once only: a pipe, or an open file of a process."""
    return descriptor(path) is not None or (path.exists() and not path.is_file())
