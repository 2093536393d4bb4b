"""Vectors kept by what they were made from, in one SQLite file.

A row's key is a hash of the text and of the model's fingerprint, so nothing here is ever out of
date: another model, other weights or another maximum length have other keys. A row carries a
checksum; a damaged one counts as absent. A damaged file is moved aside and a new one begun. Several
processes may use the file at a time.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spanbench_pipeline.core.errors import InputError

T = TypeVar("T")

LOOKUP = 500
"""Keys in one query: below the fewest parameters that any SQLite takes."""

BUSY_SECONDS = 60
"""How long to wait for another process that writes."""

_NOT_DAMAGE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_AUTH,
}
"""SQLite's errors that say something of the machine; all others say that the file is damaged."""


@dataclass(frozen=True)
class Entry:
    """What is kept of one text: word pieces before any cut, and the float32 vector."""

    n_tokens: int
    vector: NDArray[np.float32]


def key(text: str, fingerprint: str) -> bytes:
    """Return the address of a text's vector under a model: 32 bytes."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(digest + fingerprint.encode()).digest()


class VectorCache:
    """The cache in the file ``path``, which is made with its folders where it does not exist.

    A context manager. Every ``put`` is one transaction, so that a run that is interrupted, by
    whatever means, keeps what it had put. Raises InputError where the file cannot be used for a
    reason that is not its content (no permission, disk full, locked for a minute).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """Return the entries that are there and whole, by key."""
        return self._with_file(lambda connection: dict(_read(connection, keys)))

    def put(self, entries: Mapping[bytes, Entry]) -> None:
        """Keep entries, in place of any with the same keys."""
        rows = [
            (key, entry.n_tokens, blob, _checksum(key, entry.n_tokens, blob))
            for key, entry in entries.items()
            for blob in (np.ascontiguousarray(entry.vector, dtype="<f4").tobytes(),)
        ]
        self._with_file(lambda connection: _write(connection, rows))

    def keep_only(self, keys: Iterable[bytes]) -> int:
        """Remove all entries but these, with every trace of them in the file; count them."""
        kept = [(key,) for key in keys]
        return self._with_file(lambda connection: _keep_only(connection, kept))

    def _with_file(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return ``work`` on the open file; once more on a new file if this one is damaged."""
        try:
            try:
                return work(self._open())
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _is_damage(error, self.path):
                    raise
                self._begin_anew(error)
            return work(self._open())
        except (sqlite3.OperationalError, OSError) as error:
            raise InputError(f"{self.path}: the vector cache cannot be used: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
            self._file = _identity(self.path)
            _prepare(self._connection)
        return self._connection

    def _begin_anew(self, error: Exception) -> None:
        """Move the file aside, unless another process has just done so."""
        self.close()
        if _identity(self.path) != self._file:
            return
        aside = self.path.with_name(f"{self.path.name}.damaged")
        # A log left behind by the damaged file must not be taken for the new one's.
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").replace(f"{aside}{suffix}")
        with suppress(FileNotFoundError):
            self.path.replace(aside)
        warnings.warn(
            f"{self.path}: the vector cache is damaged ({error}); it was moved to {aside.name} "
            "and a new one begun, so texts are encoded again",
            stacklevel=2,
        )


def _prepare(connection: sqlite3.Connection) -> None:
    """Set the database up and make the table. A changed column gets another table name, as with
    a new format.
    """
    connection.text_factory = bytes
    _persist(connection, "PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    with connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, n_tokens INTEGER NOT NULL,"
            " vector BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID"
        )


def _persist(connection: sqlite3.Connection, statement: str) -> None:
    """Change the journal's mode, waiting here for other processes: SQLite does not."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if (
                _primary(error.sqlite_errorcode) != sqlite3.SQLITE_BUSY
                or time.monotonic() > deadline
            ):
                raise
            time.sleep(0.02)


def _read(connection: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, Entry]]:
    waiting = iter(keys)
    while part := list(islice(waiting, LOOKUP)):
        marks = ", ".join("?" * len(part))
        query = f"SELECT key, n_tokens, vector, checksum FROM vectors WHERE key IN ({marks})"
        for row in connection.execute(query, part):
            if _is_whole(*row):
                yield row[0], Entry(row[1], np.frombuffer(row[2], dtype="<f4").astype(np.float32))


def _write(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    with connection:
        connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)


def _keep_only(connection: sqlite3.Connection, kept: Sequence[tuple[bytes]]) -> int:
    """Delete all other vectors, overwrite the freed pages, and rewrite the file without them."""
    connection.execute("PRAGMA secure_delete = ON")
    with connection:
        connection.execute("CREATE TEMP TABLE kept (key BLOB PRIMARY KEY)")
        connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", kept)
        gone = "DELETE FROM vectors WHERE key NOT IN (SELECT key FROM kept)"
        removed = connection.execute(gone).rowcount
    connection.execute("DROP TABLE kept")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return removed


def _is_whole(key: Any, n_tokens: Any, blob: Any, checksum: Any) -> bool:
    """Return whether a row is as it was written; damage may have changed even a value's type."""
    if not isinstance(n_tokens, int) or not isinstance(blob, bytes) or len(blob) % 4:
        return False
    return bool(_checksum(key, n_tokens, blob) == checksum)


def _checksum(key: bytes, n_tokens: int, blob: bytes) -> bytes:
    return hashlib.sha256(key + n_tokens.to_bytes(8, "little", signed=True) + blob).digest()


def _is_damage(error: Exception, path: Path) -> bool:
    """Return whether an error comes of the file's content; one of Python's own making does not."""
    if isinstance(error, UnicodeDecodeError):  # A message that quotes the damaged file.
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return False
    if _primary(code) == sqlite3.SQLITE_READONLY:
        return _is_of_a_later_format(path)
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or _primary(code) not in _NOT_DAMAGE


def _is_of_a_later_format(path: Path) -> bool:
    """Return whether the header names a write format that SQLite does not know.

    SQLite opens such a file for reading alone, as it does one of a read-only place. We write the
    formats 1 and 2 only, so another number is damage.
    """
    with path.open("rb") as stream:
        return stream.read(19)[18:] not in (b"\x01", b"\x02")


def _primary(code: int) -> int:
    """Return the kind of error of one of SQLite's extended codes."""
    return code & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file stands at ``path`` now."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino
