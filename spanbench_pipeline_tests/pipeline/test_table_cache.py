"""Tables that a run reads once, and files that change behind its back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import table_cache
from spanbench_pipeline.pipeline.table_cache import TableCache
from spanbench_pipeline.storage import parquet


def write(path: Path, *rows: int) -> str:
    """Store a table of report files with a row for each number; return the file's sha256."""
    table = tables.from_rows(
        "report_files",
        [{"corpus": "c", "file": f"{n}.md", "sha256": f"{n:064}", "baseline": ""} for n in rows],
    )
    return parquet.write(path, "report_files", table).sha256


def files(table: pa.Table) -> list[str]:
    return table["file"].to_pylist()


def test_a_file_is_read_and_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, cache = tmp_path / "t.parquet", TableCache()
    digest = write(path, 1, 2)
    table = cache.read(path, "report_files").table
    assert (files(table), cache.sha256(path)) == (["1.md", "2.md"], digest)
    monkeypatch.setattr(parquet, "read", None)
    monkeypatch.setattr(parquet, "file_sha256", None)
    assert cache.read(path, "report_files").table is table
    assert cache.sha256(path) == digest


def test_a_replaced_file_is_read_again(tmp_path: Path):
    path, cache = tmp_path / "t.parquet", TableCache()
    before = write(path, 1)
    cache.read(path, "report_files")
    assert cache.sha256(path) == before
    after = write(path, 2)
    assert files(cache.read(path, "report_files").table) == ["2.md"]
    assert cache.sha256(path) == after != before


def test_a_file_changed_in_place_is_read_again_though_its_time_is_set_back(tmp_path: Path):
    path, cache = tmp_path / "t.parquet", TableCache()
    digest = write(path, 1)
    cache.read(path, "report_files")
    assert cache.sha256(path) == digest
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=times)
    assert cache.sha256(path) == hashlib.sha256(content).hexdigest() != digest
    with pytest.raises(InputError):
        cache.read(path, "report_files")


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two, three = (tmp_path / f"{n}.parquet" for n in "abc")
    for path in (one, two, three):
        write(path, 1)
    size = parquet.read(one, "report_files").table.nbytes
    monkeypatch.setattr(table_cache, "MOST_BYTES", 2 * size)
    cache = TableCache()
    first = cache.read(one, "report_files").table
    second = cache.read(two, "report_files").table
    assert cache.read(one, "report_files").table is first
    cache.read(three, "report_files")
    assert cache.read(one, "report_files").table is first
    assert cache.read(two, "report_files").table is not second
