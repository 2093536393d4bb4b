"""Removes what Dagster's state holds of one corpus, without a trace of it in the files.

Dagster itself marks a wiped asset and keeps rows: of checks, of the runs' jobs, of ticks; and what
it deletes stays in the files' free pages. So this goes to the SQLite files of the home's instance
(``dagster/history``, ``dagster/schedules``) while nothing else has them open.

- A run that was about the corpus, alone or with others, is removed with its log and its job.
- What runs recorded of other corpora's assets and checks stays, whichever run it was: that decides
  what is stale.
- What was recorded of the warehouse names all corpora; it is recorded again afterwards.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.stages.views import KEY as WAREHOUSE

BUSY_SECONDS = 20
_ASSET_TABLES = ("asset_keys", "asset_event_tags", "asset_check_executions")
_SAYING = {
    "schedules.db": ("job_ticks", "asset_daemon_asset_evaluations"),
    "runs.db": ("bulk_actions", "backfill_tags", "daemon_heartbeats", "kvs"),
}
"""Tables whose rows go where they name the corpus: what was said at some time."""
_IN_NAMES = "|".join(f"(?<={before}{_})" for before in ("run", "nightly") for _ in ("_", "__"))
"""What stands before a corpus in the names of jobs and steps."""


def corpora(folder: Path) -> set[str]:
    """Return the corpora of which an asset is recorded."""
    path = _index(folder)
    if not path.is_file():
        return set()
    with _opened(path) as connection:
        keys = [
            json.loads(text) for (text,) in connection.execute("SELECT asset_key FROM asset_keys")
        ]
    return {key[0] for key in keys if len(key) > 1}


def runs(folder: Path, corpus: str) -> list[str]:
    """Return the ids of the runs that were about a corpus, or whose job names it."""
    path = folder / "history" / "runs.db"
    if not path.is_file():
        return []
    with _opened(path) as connection:
        return sorted(_runs(connection, corpus, _snapshots(connection, corpus)))


def forget(folder: Path, corpus: str) -> None:
    """Remove a corpus from the state in ``folder``; again where it was interrupted.

    Raises InputError where another process is writing it.
    """
    gone = runs(folder, corpus)
    for run_id in gone:
        for left in (folder / "history" / "runs").glob(f"{run_id}.db*"):
            left.unlink()
        _remove(folder / "storage" / run_id)
    _remove(folder / "storage" / corpus)
    _forget_logs(folder / "storage", corpus)
    for path in _databases(folder):
        with _opened(path) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with connection:
                _forget_events(connection, corpus, gone, index=path == _index(folder))
                _forget_said(connection, corpus, _SAYING.get(path.name, ()))
    # Last: what says which runs were the corpus's has to stay until all else of them is gone.
    path = folder / "history" / "runs.db"
    if path.is_file():
        with _opened(path) as connection, connection:
            connection.execute("PRAGMA secure_delete = ON")
            _forget_runs(connection, corpus)


def settle(folder: Path) -> None:
    """Rewrite the files without the free pages and logs that still hold what was removed."""
    for path in _databases(folder):
        with _opened(path) as connection:
            if path == _index(folder):
                with connection:
                    connection.execute(
                        "DELETE FROM event_logs "
                        "WHERE event = '' AND id < (SELECT max(id) FROM event_logs)"
                    )
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def named(corpus: str) -> re.Pattern[str]:
    """Return where a text names a corpus, as a word or as the first part of a step's name."""
    name = re.escape(corpus)
    return re.compile(rf"(?:(?<![A-Za-z0-9_])|{_IN_NAMES}){name}(?=__|[^A-Za-z0-9_]|$)")


def _as_a_name(corpus: str) -> re.Pattern[str]:
    """Return the same in what programs write: not where prose has a word that is a corpus's name
    too.

    A step's input is named by corpus and stage with one ``_`` between them, which another corpus's
    name might go on with; so there the stage has to be one of ours.
    """
    stages = "|".join([*tables.TABLES, "reports", "source_archive"])
    behind = rf'(?=__|[^A-Za-z0-9_ ]|$|_(?:{stages})")'
    before = rf"(?:(?<![A-Za-z0-9_ ])|{_IN_NAMES})"
    return re.compile(before + re.escape(corpus) + behind)


def _index(folder: Path) -> Path:
    return folder / "history" / "runs" / "index.db"


def _databases(folder: Path) -> list[Path]:
    return sorted(
        path for part in ("history", "schedules") for path in (folder / part).rglob("*.db")
    )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise InputError(
            f"{path}: Dagster's state cannot be changed ({error}); stop spanbench ui and what else "
            "has it open, and run the same command again"
        ) from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in found}


def _snapshots(connection: sqlite3.Connection, corpus: str) -> set[str]:
    """Return the jobs and plans that name the corpus."""
    pattern = _as_a_name(corpus)
    found = connection.execute("SELECT snapshot_id, snapshot_body FROM snapshots")
    return {key for key, body in found if pattern.search(_inflated(body))}


def _inflated(body: bytes) -> str:
    try:
        return zlib.decompress(body).decode("utf-8", "replace")
    except zlib.error:  # damaged: no use to anybody, and searched as it is
        return body.decode("utf-8", "replace")


def _runs(connection: sqlite3.Connection, corpus: str, snapshots: set[str]) -> set[str]:
    pattern = _as_a_name(corpus)
    rows = connection.execute("SELECT run_id, snapshot_id, run_body FROM runs").fetchall()
    found = set()
    for run_id, snapshot, body in rows:
        plan = json.loads(body).get("execution_plan_snapshot_id")
        if pattern.search(body) or snapshots & {snapshot, plan}:
            found.add(run_id)
    tags = connection.execute("SELECT run_id, value FROM run_tags").fetchall()
    return found | {run_id for run_id, value in tags if pattern.search(value or "")}


def _forget_runs(connection: sqlite3.Connection, corpus: str) -> None:
    snapshots = _snapshots(connection, corpus)
    gone = [(run_id,) for run_id in _runs(connection, corpus, snapshots)]
    connection.executemany("DELETE FROM run_tags WHERE run_id = ?", gone)
    connection.executemany("DELETE FROM runs WHERE run_id = ?", gone)
    named_so = [(key,) for key in snapshots]
    connection.executemany("DELETE FROM snapshots WHERE snapshot_id = ?", named_so)


def _forget_events(
    connection: sqlite3.Connection, corpus: str, gone: list[str], *, index: bool
) -> None:
    """Remove the rows of the corpus's assets and steps, and what runs that are gone said.

    An empty row takes the next id and stays until there is a higher one (``settle``): sensors go on
    from an id, which must not come again.
    """
    present = _tables(connection)
    ours = "(substr(asset_key, 1, ?) = ? OR asset_key = ?)"
    key = json.dumps([corpus])[:-1] + ","
    assets = (len(key), key, json.dumps(list(WAREHOUSE)))
    for table in present & set(_ASSET_TABLES):
        connection.execute(f"DELETE FROM {table} WHERE {ours}", assets)
    if "event_logs" not in present:
        return
    if index:
        connection.execute(
            "INSERT INTO event_logs (run_id, event) "
            "SELECT '', '' WHERE EXISTS (SELECT 1 FROM event_logs)"
        )
    step = f"{corpus}__"
    connection.execute("DELETE FROM event_logs WHERE substr(step_key, 1, ?) = ?", (len(step), step))
    for whole in (f"nightly_{corpus}", f"nightly__{corpus}", "__".join(WAREHOUSE)):
        connection.execute("DELETE FROM event_logs WHERE step_key = ?", (whole,))
    connection.execute(f"DELETE FROM event_logs WHERE {ours}", assets)
    connection.executemany(
        "DELETE FROM event_logs WHERE run_id = ? AND asset_key IS NULL", [(r,) for r in gone]
    )


def _forget_said(connection: sqlite3.Connection, corpus: str, tables: tuple[str, ...]) -> None:
    pattern = named(corpus)
    for table in _tables(connection) & set(tables):
        rows = connection.execute(f"SELECT rowid, * FROM {table}").fetchall()
        gone = [(row[0],) for row in rows if any(pattern.search(str(value)) for value in row[1:])]
        connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", gone)


def _forget_logs(storage: Path, corpus: str) -> None:
    """Remove what other runs printed where it names the corpus."""
    pattern = re.compile(named(corpus).pattern.encode())
    for path in storage.glob("*/compute_logs/*"):
        if pattern.search(path.read_bytes()):
            path.unlink()


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
