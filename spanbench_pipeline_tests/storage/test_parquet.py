"""Stored tables come back equal, whole or not at all, and the same bytes every time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import parquet

ROWS = [
    {"corpus": "c", "config": "b", "query_id": "q", "metric": "mrr", "k": None, "value": 0.5},
    {"corpus": "c", "config": "a", "query_id": "q", "metric": "recall", "k": 10, "value": None},
]


def table() -> pa.Table:
    return tables.from_rows("query_metrics", ROWS)


def test_round_trip_with_state_and_equal_bytes(tmp_path: Path):
    first = parquet.write(tmp_path / "x" / "a.parquet", "query_metrics", table())
    second = parquet.write(tmp_path / "b.parquet", "query_metrics", table())
    assert first == second
    assert first.sha256 == parquet.file_sha256(tmp_path / "b.parquet")
    stored = parquet.read(tmp_path / "b.parquet", "query_metrics")
    assert stored.table.equals(table())
    assert stored.state == "measured"
    empty = tables.empty("query_metrics")
    third = parquet.write(tmp_path / "b.parquet", "query_metrics", empty, "not measured: why")
    assert third.sha256 != first.sha256
    assert parquet.read(tmp_path / "b.parquet", "query_metrics").state == "not measured: why"
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["b.parquet"]


def test_every_single_flipped_or_missing_byte_is_noticed_or_harmless(tmp_path: Path):
    path = tmp_path / "a.parquet"
    parquet.write(path, "query_metrics", table())
    whole = path.read_bytes()
    refused = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            found = parquet.read(path, "query_metrics").table
        except InputError:
            refused += 1
        else:
            assert found.equals(table()), f"byte {at} changed a value unnoticed"
    assert refused > 20
    path.write_bytes(whole[:-10])
    with pytest.raises(InputError, match=r"a\.parquet.*damaged"):
        parquet.read(path, "query_metrics")


def test_a_missing_file_and_a_foreign_table_are_named(tmp_path: Path):
    with pytest.raises(InputError, match="not there"):
        parquet.read(tmp_path / "none.parquet", "query_metrics")
    parquet.write(tmp_path / "a.parquet", "query_metrics", table())
    with pytest.raises(InputError, match="not the columns of table rankings"):
        parquet.read(tmp_path / "a.parquet", "rankings")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path):
    path = tmp_path / "a.parquet"
    parquet.write(path, "query_metrics", table())
    with pytest.raises(tables.TableError):
        parquet.write(path, "query_metrics", table().drop_columns(["value"]))
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
    assert parquet.read(path, "query_metrics").table.equals(table())
