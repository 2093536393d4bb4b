"""Names that lead to an open file of a process, and what can be read once only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spanbench_pipeline.core.open_files import descriptor, is_read_once


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_an_open_file_of_a_process(name: str, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(name)
    for path in (name, link):
        found = descriptor(path)
        assert found is not None
        assert found.name == "0"
        assert is_read_once(Path(path))


def test_a_pipe_is_read_once_but_is_no_open_file(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert descriptor(pipe) is None
    assert is_read_once(pipe)


def test_a_regular_file_and_none_at_all_are_neither(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("x")
    link = tmp_path / "link"
    link.symlink_to(file)
    for path in (file, link, tmp_path / "none", Path("/dev/fdx/0")):
        assert descriptor(path) is None
        assert not is_read_once(path)


def test_links_in_a_circle_end(tmp_path: Path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert descriptor(tmp_path / "a") is None
