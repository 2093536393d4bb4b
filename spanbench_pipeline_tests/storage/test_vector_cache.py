from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage.vector_cache import LOOKUP, Entry, VectorCache, key


def entry(number: int) -> Entry:
    return Entry(number + 2, np.arange(number, number + 8, dtype=np.float32) / 7)


ENTRIES = {key(f"text {i}", "model"): entry(i) for i in range(300)}


def same(found: Entry, expected: Entry) -> bool:
    return found.n_tokens == expected.n_tokens and np.array_equal(found.vector, expected.vector)


def filled(path: Path) -> Path:
    with VectorCache(path) as cache:
        cache.put(ENTRIES)
    return path


def read(path: Path) -> dict[bytes, Entry]:
    with VectorCache(path) as cache:
        return cache.get(list(ENTRIES))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all of ENTRIES."""
    return filled(tmp_path_factory.mktemp("whole") / "vectors.sqlite")


class TestAddress:
    def test_depends_on_text_and_model(self):
        keys = {key("a", "m"), key("b", "m"), key("a", "n"), key("", "m"), key("am", "")}
        assert len(keys) == 5
        assert key("a", "m") == key("a", "m")

    def test_takes_any_string(self):
        assert len(key("\ud800 \U0001f600", "m")) == 32


class TestRoundTrip:
    def test_gives_what_was_put(self, tmp_path):
        found = read(filled(tmp_path / "new" / "folder" / "vectors.sqlite"))
        assert found.keys() == ENTRIES.keys()
        assert all(same(found[k], ENTRIES[k]) for k in ENTRIES)
        assert all(e.vector.dtype == np.float32 for e in found.values())

    def test_more_keys_than_one_query_takes(self, tmp_path):
        many = {key(str(i), "m"): entry(i % 5) for i in range(2 * LOOKUP + 1)}
        with VectorCache(tmp_path / "c.sqlite") as cache:
            cache.put(many)
            assert cache.get(list(many)).keys() == many.keys()

    def test_absent_keys_are_left_out(self, tmp_path):
        path = filled(tmp_path / "c.sqlite")
        with VectorCache(path) as cache:
            assert cache.get([key("text 1", "another model")]) == {}
            assert cache.get([]) == {}

    def test_a_second_put_replaces(self, tmp_path):
        first = next(iter(ENTRIES))
        with VectorCache(filled(tmp_path / "c.sqlite")) as cache:
            cache.put({first: entry(99)})
            assert same(cache.get([first])[first], entry(99))


class TestDamagedRow:
    @pytest.mark.parametrize(
        "change",
        [
            "vector = zeroblob(32)",
            "vector = substr(vector, 1, 28)",
            "vector = substr(vector, 1, 31)",
            "vector = x''",
            "vector = 'text'",
            "n_tokens = n_tokens + 1",
            "n_tokens = 'many'",
            "n_tokens = -9223372036854775808",
            "checksum = zeroblob(32)",
            "checksum = 7",
        ],
    )
    def test_counts_as_absent_and_can_be_put_again(self, tmp_path, change):
        path = filled(tmp_path / "c.sqlite")
        hit = list(ENTRIES)[7]
        with sqlite3.connect(path) as connection:
            changed = connection.execute(f"UPDATE vectors SET {change} WHERE key = ?", (hit,))
            assert changed.rowcount == 1
        connection.close()
        assert read(path).keys() == ENTRIES.keys() - {hit}
        with VectorCache(path) as cache:
            cache.put({hit: ENTRIES[hit]})
        assert same(read(path)[hit], ENTRIES[hit])

    def test_a_row_under_anothers_key_counts_as_absent(self, tmp_path):
        path = filled(tmp_path / "c.sqlite")
        one, other = list(ENTRIES)[:2]
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM vectors WHERE key = ?", (one,))
            connection.execute("UPDATE vectors SET key = ? WHERE key = ?", (one, other))
        connection.close()
        assert read(path).keys() == ENTRIES.keys() - {one, other}


def check_survives(path: Path, *, must_warn: bool = False) -> None:
    """No error, no wrong vector, and a cache that works afterwards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read(path)
        assert all(same(found[k], ENTRIES[k]) for k in found)
        filled(path)
        assert len(read(path)) == len(ENTRIES)
    assert len(caught) <= 1
    if must_warn:
        assert len(caught) == 1
        assert "damaged" in str(caught[0].message)
        assert path.with_name(f"{path.name}.damaged").exists()


class TestDamagedFile:
    @pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
    def test_truncated(self, tmp_path, whole, share):
        path = tmp_path / "c.sqlite"
        path.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
        # What lacks less than a page is read as rows that lost their end.
        check_survives(path, must_warn=share < 0.99)

    @pytest.mark.parametrize(
        "content", [b"not a database, only garbage\n" * 999, b"SQLite format 3\0" * 300]
    )
    def test_garbage(self, tmp_path, content):
        path = tmp_path / "c.sqlite"
        path.write_bytes(content)
        check_survives(path, must_warn=True)
        assert path.with_name("c.sqlite.damaged").read_bytes() == content

    def test_another_database_with_a_table_of_that_name(self, tmp_path):
        path = tmp_path / "c.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE vectors (other)")
        connection.close()
        check_survives(path, must_warn=True)

    def test_empty_file_is_a_new_cache(self, tmp_path):
        path = tmp_path / "c.sqlite"
        path.touch()
        check_survives(path)
        assert not path.with_name("c.sqlite.damaged").exists()

    def test_log_of_a_damaged_file_is_not_taken_for_the_new_ones(self, tmp_path, whole):
        path = tmp_path / "c.sqlite"
        with VectorCache(path) as cache:
            cache.put(ENTRIES)
            log = Path(f"{path}-wal").read_bytes()
        assert log
        path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 3])
        Path(f"{path}-wal").write_bytes(log[: len(log) // 2])
        check_survives(path)

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(data=st.data())
    def test_flipped_bytes(self, tmp_path, whole, data):
        """Wherever they are: in vectors, keys, page headers or the schema."""
        path = tmp_path / "c.sqlite"
        damaged = bytearray(whole.read_bytes())
        # Half of the damage goes to the first page, which holds the header and the schema.
        places = st.integers(0, len(damaged) - 1) | st.integers(0, 4095)
        for place in data.draw(st.lists(places, min_size=1, max_size=20)):
            damaged[place] ^= data.draw(st.integers(1, 255))
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes(damaged)
        check_survives(path)

    def test_a_format_that_sqlite_only_reads(self, tmp_path, whole):
        """Byte 18 of the header is the format to write; above 2 SQLite refuses to write."""
        path = tmp_path / "c.sqlite"
        damaged = bytearray(whole.read_bytes())
        damaged[18] = 7
        path.write_bytes(damaged)
        check_survives(path)


class TestUnusable:
    def test_a_folder_in_its_place(self, tmp_path):
        (tmp_path / "c.sqlite").mkdir()
        with pytest.raises(InputError, match=r"c\.sqlite: the vector cache cannot be used"):
            read(tmp_path / "c.sqlite")

    def test_a_file_in_its_folders_place(self, tmp_path):
        (tmp_path / "folder").write_text("")
        with pytest.raises(InputError, match="cannot be used"):
            read(tmp_path / "folder" / "c.sqlite")

    def test_locked_for_too_long(self, tmp_path, monkeypatch):
        path = filled(tmp_path / "c.sqlite")
        monkeypatch.setattr("spanbench_pipeline.storage.vector_cache.BUSY_SECONDS", 0.1)
        other = sqlite3.connect(path)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="locked"):
            filled(path)
        other.close()
        assert len(read(path)) == len(ENTRIES)


WRITER = """
import sys
import numpy as np
from pathlib import Path
from spanbench_pipeline.storage.vector_cache import Entry, VectorCache, key

path, start, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with VectorCache(path) as cache:
    for i in range(start, stop):
        cache.put({key(str(i), "m"): Entry(i, np.full(8, i, dtype=np.float32))})
        print(i, flush=True)
        assert key(str(i), "m") in cache.get([key(str(i), "m")])
"""


def writer(path: Path, start: int, stop: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(start), str(stop)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class TestProcesses:
    def test_several_at_once(self, tmp_path):
        """All begin on a file that does not exist yet, and write overlapping ranges."""
        path = tmp_path / "c.sqlite"
        writers = [writer(path, 50 * i, 50 * i + 100) for i in range(4)]
        for process in writers:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
        keys = {key(str(i), "m"): i for i in range(250)}
        with VectorCache(path) as cache:
            found = cache.get(list(keys))
        assert {k: e.n_tokens for k, e in found.items()} == keys

    def test_killed_while_writing(self, tmp_path):
        path = tmp_path / "c.sqlite"
        process = writer(path, 0, 1_000_000)
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 100:
                process.kill()
                break
        process.wait()
        process.stdout.close()
        with warnings.catch_warnings(), VectorCache(path) as cache:
            warnings.simplefilter("error")
            found = cache.get([key(str(i), "m") for i in range(101)])
        assert len(found) == 101
