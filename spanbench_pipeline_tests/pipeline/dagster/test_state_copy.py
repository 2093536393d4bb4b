"""A copy of Dagster's state is of one moment, though a process is at work on it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from spanbench_pipeline.pipeline.dagster.instance import _copy_state


def test_a_database_in_use_is_copied_as_of_one_moment(tmp_path: Path) -> None:
    home, copy = tmp_path / "a b#", tmp_path / "copy"
    (home / "history").mkdir(parents=True)
    (home / "history" / "runs.db-shm.bak").write_bytes(b"")
    with closing(sqlite3.connect(home / "history" / "runs.db")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE rows (n INTEGER)")
        writer.execute("INSERT INTO rows VALUES (7)")
        writer.commit()
        _copy_state(home, copy)
    assert [path.name for path in (copy / "history").glob("runs.db*")] == ["runs.db"]
    with closing(sqlite3.connect(copy / "history" / "runs.db")) as reader:
        assert reader.execute("SELECT n FROM rows").fetchall() == [(7,)]


def test_what_is_no_database_is_copied_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a" / "history").mkdir(parents=True)
    (tmp_path / "a" / "history" / "runs.db").write_bytes(b"no database" * 100)
    _copy_state(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "history" / "runs.db").read_bytes() == b"no database" * 100
