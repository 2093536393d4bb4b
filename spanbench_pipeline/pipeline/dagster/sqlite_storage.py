"""Dagster's SQLite storage with connections that stay open.

Dagster opens and closes a connection for every event, each time with a checkpoint of the journal:
of a run without models that was more than half of the time. Files and tables are Dagster's own, so
the web server, the daemon and earlier versions read and write the same databases.

``synchronous = NORMAL`` leaves out the wait for the disk at each commit. A killed process loses
nothing by it. After a power cut the last events may be missing; then the assets they recorded are
out of date, and run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy.engine import Connection, Engine

OPEN_RUNS = 4
"""How many runs' event logs stay open; the least recently used is closed."""


class _Engines:
    """Engines by the address of their database, each with the connections it has open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._engines: dict[str, Engine] = {}

    def of(self, address: str) -> Engine:
        """Return the engine of a database, made where it is not open."""
        engine = self._engines.pop(address, None) or _engine(address)
        self._engines[address] = engine
        while len(self._engines) > self._most:
            self._engines.pop(next(iter(self._engines))).dispose()
        return engine

    def close(self) -> None:
        """Close every connection."""
        for engine in self._engines.values():
            engine.dispose()
        self._engines.clear()


def _engine(address: str) -> Engine:
    """Return an engine whose connections do not wait for the disk at each commit."""
    engine = sqlalchemy.create_engine(
        address, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
    )

    @sqlalchemy.event.listens_for(engine, "connect")
    def relax(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")

    return engine


class PooledEventLog(SqliteEventLogStorage):
    """The event log: one database a run, and one over all of them."""

    def __init__(self, base_dir: str) -> None:
        super().__init__(base_dir)
        self._engines = _Engines(OPEN_RUNS + 1)
        self._tables: set[str] = set()

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table; Dagster asks at each event of a check."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            engine = self._engines.of(self.conn_string_for_shard(shard))
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def dispose(self) -> None:
        """Close every connection."""
        super().dispose()
        self._engines.close()


class PooledRuns(SqliteRunStorage):
    """The list of runs, in one database."""

    def __init__(self, conn_string: str, inst_data: Any = None) -> None:
        super().__init__(conn_string, inst_data)
        self._engines = _Engines(1)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection in a transaction that is committed at the end."""
        with self._engines.of(self._conn_string).begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close every connection."""
        super().dispose()
        self._engines.close()


class PooledStorage(DagsterSqliteStorage):
    """Dagster's SQLite storage, runs and events over connections that stay open."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        super().__init__(base_dir, inst_data)
        self._run_storage = PooledRuns.from_local(f"{base_dir}/history/")
        self._event_log_storage = PooledEventLog(f"{base_dir}/history/runs/")

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> PooledStorage:
        """Return the storage that an instance's settings describe."""
        return cls(inst_data=inst_data, **config_value)
