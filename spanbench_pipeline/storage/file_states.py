"""Whether files changed, without reading them: a hash of what the file system says of each.

A file counts with its inode, size, and the times at which its content and the file itself were last
changed; no program can set the latter.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_CACHES = {"__pycache__"}
"""Folders that the interpreter fills while it runs; nothing reads a source from them."""


@dataclass
class FileStates:
    """Reads the states of files below some paths, each path once.

    ``newest`` is the latest change that was met, of files and of folders, in nanoseconds.
    """

    newest: int = 0
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def digest(self, paths: Iterable[str | Path]) -> str | None:
        """Return a hash of all that lies at ``paths`` and below; absent ones count as absent.

        None where a folder is linked: what lies behind it is not looked at.
        """
        lines: list[str] = []
        for path in map(str, paths):
            if path not in self._lines:
                self._lines[path] = list(self._read(path))
            lines += [path, *self._lines[path]]
        if "link" in lines:
            return None
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def _read(self, path: str) -> Iterator[str]:
        try:
            state = Path(path).stat()
        except OSError as error:
            yield f"absent: {error.errno}"
            return
        if stat.S_ISDIR(state.st_mode):
            self._note(state)
            yield from self._below(path, "")
        else:
            yield self._line("", state)

    def _below(self, folder: str, prefix: str) -> Iterator[str]:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = prefix + entry.name
            try:
                state = entry.stat()
            except OSError as error:  # gone since, or a link to nothing
                yield f"{name} absent: {error.errno}"
                continue
            if not stat.S_ISDIR(state.st_mode):
                yield self._line(name, state)
            elif entry.is_symlink():
                yield "link"
            elif entry.name not in _CACHES:
                self._note(state)
                yield f"{name}/"
                yield from self._below(entry.path, f"{name}/")

    def _line(self, name: str, state: os.stat_result) -> str:
        self._note(state)
        values = state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
        return f"{name} {values}"

    def _note(self, state: os.stat_result) -> None:
        self.newest = max(self.newest, state.st_ctime_ns, state.st_mtime_ns)


def folder_times(paths: Iterable[str]) -> list[str]:
    """Return when an entry of each folder was last added or removed; not what lies below."""
    found = []
    for path in paths:
        try:
            state = Path(path).stat()
        except OSError:
            continue
        found.append(f"{path} {state.st_ino} {state.st_mtime_ns}")
    return found
