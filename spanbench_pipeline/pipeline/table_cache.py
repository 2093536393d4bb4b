"""Stored tables that a run has read, so that its stages and checks read and hash each file once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.parquet import Stored

MOST_BYTES = 400_000_000
"""How much of tables is kept; what was used longest ago goes first."""


class TableCache:
    """Tables and hashes of files by their state: inode, size and times."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], Any] = {}

    def read(self, path: Path, table: str) -> Stored:
        """Return the declared ``table`` from its file, as ``parquet.read``."""
        stored: Stored = self._get("table", path, lambda: parquet.read(path, table), table)
        self._shrink()
        return stored

    def sha256(self, path: Path) -> str:
        """Return the sha256 of a file's bytes."""
        digest: str = self._get("sha256", path, lambda: parquet.file_sha256(path))
        return digest

    def _get(self, kind: str, path: Path, make: Callable[[], Any], *more: str) -> Any:
        key = (kind, path, *more, *_state(path))
        value = self._entries.pop(key, None)
        self._entries[key] = make() if value is None else value
        return self._entries[key]

    def _shrink(self) -> None:
        tables = {k: v.table.nbytes for k, v in self._entries.items() if isinstance(v, Stored)}
        total = sum(tables.values())
        for key, size in tables.items():
            if total <= MOST_BYTES:
                return
            del self._entries[key]
            total -= size


def _state(path: Path) -> tuple[int, ...]:
    """Return what differs when a file was replaced or written; () where there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
