"""Locks over processes: one group at a time, its members together, free when the holder dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from spanbench_pipeline.storage import locks
from spanbench_pipeline.storage.locks import Holder

fork = multiprocessing.get_context("fork")


def quiet(name: str, holder: Holder | None) -> None:
    pass


def hold(folder: Path, group: str, ready, release, names=("a",)) -> None:
    with locks.hold(folder, names, group=group, what="a test", waiting=quiet):
        ready.set()
        release.wait(30)


def started(folder: Path, group: str):
    ready, release = fork.Event(), fork.Event()
    process = fork.Process(target=hold, args=(folder, group, ready, release))
    process.start()
    return process, ready, release


def test_another_group_waits_and_the_same_group_does_not(tmp_path: Path):
    first, ready, release = started(tmp_path, "one")
    assert ready.wait(120)
    assert locks.holder(tmp_path, "a") == Holder("one", first.pid, "a test")
    assert locks.holder(tmp_path, "b") is None
    member, member_ready, member_release = started(tmp_path, "one")
    assert member_ready.wait(120)
    other, other_ready, other_release = started(tmp_path, "two")
    assert not other_ready.wait(0.5)
    release.set()
    first.join()
    assert not other_ready.wait(0.5)  # a member still holds it
    member_release.set()
    assert other_ready.wait(120)
    assert locks.holder(tmp_path, "a") == Holder("two", other.pid, "a test")
    other_release.set()
    other.join()
    member.join()
    assert locks.holder(tmp_path, "a") is None


def test_a_killed_holder_leaves_it_free(tmp_path: Path):
    process, ready, _ = started(tmp_path, "one")
    assert ready.wait(120)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert locks.holder(tmp_path, "a") is None
    with locks.hold(tmp_path, ["a"], group="two", what="a test", waiting=pytest.fail):
        pass


def test_who_waits_is_told_once_and_by_whom(tmp_path: Path):
    process, ready, release = started(tmp_path, "one")
    assert ready.wait(120)
    told: list[tuple[str, Holder | None]] = []

    def waiting(name: str, holder: Holder | None) -> None:
        told.append((name, holder))
        release.set()

    with locks.hold(tmp_path, ["b", "a"], group="two", what="a test", waiting=waiting):
        assert told == [("a", Holder("one", process.pid, "a test"))]
        assert str(told[0][1]) == f"a test (process {process.pid})"
    process.join()


@pytest.mark.parametrize("left", [b"", b'["one", 12', b"[]", b'{"group": 1}'])
def test_what_a_dead_process_left_in_the_file_does_not_matter(tmp_path: Path, left: bytes):
    (tmp_path / "a.lock").write_bytes(left)
    assert locks.holder(tmp_path, "a") is None
    with locks.hold(tmp_path, ["a"], group="two", what="a test", waiting=pytest.fail):
        pass


def crowd(folder: Path, number: int, names: list[str], log: Path) -> None:
    for turn in range(15):
        group = f"{number % 3}-{turn}" if number % 2 else f"{number}-{turn}"
        with locks.hold(folder, names, group=group, what="a test", waiting=quiet):
            for name in names:
                with log.with_name(f"{name}.log").open("a") as stream:
                    stream.write(f"in {group}\n")
            time.sleep(0.002)
            for name in names:
                with log.with_name(f"{name}.log").open("a") as stream:
                    stream.write(f"out {group}\n")


def test_a_crowd_never_mixes_groups_and_never_deadlocks(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(locks, "POLL_SECONDS", 0.001)
    sets = [["a", "b"], ["b", "a"], ["b"], ["a", "b", "c"], ["c", "b"], ["a"], ["c", "a"]]
    crowd_of = [
        fork.Process(target=crowd, args=(tmp_path / "locks", i, names, tmp_path / "log"))
        for i, names in enumerate(sets)
    ]
    for process in crowd_of:
        process.start()
    for process in crowd_of:
        process.join(60)
        assert process.exitcode == 0
    for name in "abc":
        inside: list[str] = []
        for line in (tmp_path / f"{name}.log").read_text().splitlines():
            what, group = line.split()
            if what == "in":
                inside.append(group)
                assert set(inside) == {group}
            else:
                inside.remove(group)
        assert not inside


def test_a_lock_whose_file_was_removed_is_taken_on_the_new_one(tmp_path: Path):
    """Who waits on the old file and who opens a new one would otherwise both be inside."""
    first, ready, release = started(tmp_path, "one")
    assert ready.wait(120)
    waiting, waiting_ready, waiting_release = started(tmp_path, "two")
    assert not waiting_ready.wait(0.3)
    (tmp_path / "a.lock").unlink()
    assert waiting_ready.wait(120)  # on the new file: the old one is no lock any more
    third, third_ready, third_release = started(tmp_path, "three")
    assert not third_ready.wait(0.3)
    for process, event in ((first, release), (waiting, waiting_release), (third, third_release)):
        event.set()
        process.join(120)
    assert third_ready.is_set()
