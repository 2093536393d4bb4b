"""Locks of files: one run of a corpus at a time, and one writer at a time.

A lock is a file that the kernel guards (flock), so it is free as soon as whoever held it has died,
by whatever means. A run's is held by a *group*: the processes of one run share it, all others wait.
Who holds several takes them in one order, by name; so no two can wait for each other.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: the group, one of its processes, and what it is doing."""

    group: str
    process: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} (process {self.process})"


def lock(file: IO[Any] | int, *, wait: bool = True) -> None:
    """Lock an open file or folder against all other processes until it is closed.

    Raises BlockingIOError where another process has it, unless it is to ``wait``.
    """
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def hold(
    folder: Path,
    names: Iterable[str],
    *,
    group: str,
    what: str,
    waiting: Callable[[str, Holder | None], None],
) -> Iterator[None]:
    """Hold the locks ``names`` together with the other members of ``group``.

    Where another group holds one, ``waiting`` is told its name and holder, once, and the call
    returns when it is free. The files stay behind; an unlocked one means nothing.
    """
    with ExitStack() as held:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(set(names)):
            stream = held.enter_context(_path(folder, name).open("a+b"))
            attempts = 0
            while not _taken(stream, group, what) or _is_removed(stream, _path(folder, name)):
                attempts += 1
                if attempts == 2:  # the first may have met one who only asked who holds it
                    waiting(name, _holder(stream))
                time.sleep(POLL_SECONDS)
                if _is_removed(stream, _path(folder, name)):
                    stream = held.enter_context(_path(folder, name).open("a+b"))
        yield


def holder(folder: Path, name: str) -> Holder | None:
    """Return who holds a lock now; None where nobody does. Writes nothing."""
    try:
        with _path(folder, name).open("rb") as stream:
            try:
                lock(stream, wait=False)
            except BlockingIOError:
                return _holder(stream) or Holder("", 0, "another run")
            return None
    except FileNotFoundError:
        return None


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"


def _taken(stream: IO[bytes], group: str, what: str) -> bool:
    """Return one attempt. All members hold the file shared; its first one writes the group's name
    in it.

    The name changes under the exclusive lock alone, hence never while a member holds it shared.
    Going from exclusive to shared is not atomic: another group may come between. So the name is
    read again under the shared lock, and it decides.
    """
    try:
        lock(stream, wait=False)
        _write(stream, Holder(group, os.getpid(), what))
    except BlockingIOError:
        pass
    try:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    found = _holder(stream)
    if found is not None and found.group == group:
        return True
    fcntl.flock(stream, fcntl.LOCK_UN)
    return False


def _is_removed(stream: IO[bytes], path: Path) -> bool:
    """Tell whether the file that is open is the lock no more: whoever comes next opens another."""
    try:
        return not os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return True


def _write(stream: IO[bytes], holder: Holder) -> None:
    stream.truncate(0)
    stream.write(json.dumps([holder.group, holder.process, holder.what]).encode())
    stream.flush()


def _holder(stream: IO[bytes]) -> Holder | None:
    """Return who wrote the file last; None where it is empty or half-written."""
    stream.seek(0)
    try:
        return Holder(*json.loads(stream.read()))
    except (ValueError, TypeError):
        return None
