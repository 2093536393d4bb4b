"""Removing a corpus's records by its name as a whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spanbench_pipeline.pipeline import removal


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme", True),
        ('["acme", "chunks"]', True),
        ("acme__chunks", True),
        ("run_acme", True),
        ("nightly_acme", True),
        ("of acme.", True),
        ("acme_two", False),
        ("acme_two__chunks", False),
        ("my_acme", False),
        ("acmes", False),
    ],
)
def test_a_name_is_found_as_a_whole(text: str, found: bool):
    assert bool(removal.named("acme").search(text)) == found


def test_records_of_corpora_with_longer_names_stay(tmp_path: Path):
    """Steps of other corpora begin as those of the corpus, or of what all corpora share, do."""
    path = tmp_path / "history" / "runs" / "index.db"
    path.parent.mkdir(parents=True)
    ours = ["acme__documents", "nightly_acme", "nightly__acme", "warehouse"]
    others = ["acme_two__documents", "nightly_acme_two", "warehouse_x__documents", "acme_two"]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE event_logs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, "
            "event TEXT NOT NULL, step_key TEXT, asset_key TEXT)"
        )
        connection.executemany(
            "INSERT INTO event_logs (run_id, event, step_key) VALUES ('r', '{}', ?)",
            [(step,) for step in ours + others],
        )
    removal.forget(tmp_path, "acme")
    with closing(sqlite3.connect(path)) as connection:
        left = connection.execute("SELECT step_key FROM event_logs WHERE run_id = 'r'").fetchall()
    assert sorted(step for (step,) in left) == sorted(others)
