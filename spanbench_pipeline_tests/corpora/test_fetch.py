from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import fetch
from spanbench_pipeline.corpora.cuad import CuadSource
from spanbench_pipeline.storage import files
from spanbench_pipeline_tests.corpora import builders

MEMBER = b'{"data": []}'
ANOTHER = b'{"version": "another", "data": []}'


def bundle(tmp_path: Path, member: bytes = MEMBER) -> Path:
    return builders.zipped(tmp_path / "mine.zip", CUADv1_json=member)


def test_a_local_bundle_with_the_declared_hash(tmp_path: Path) -> None:
    archive = bundle(tmp_path)
    project = builders.project(tmp_path / "home")
    found = fetch.fetch_cuad(project, archive=archive, sha256=builders.sha256(MEMBER))
    assert (found.archive, found.origin) == ("mine.zip", "local archive")
    assert found.archive_sha256 == builders.sha256(archive.read_bytes())
    assert archive.exists()
    assert sorted(builders.listing(tmp_path / "home")) == [
        "downloads",
        "downloads/cuad",
        "downloads/cuad/CUADv1.json",
        "downloads/cuad/provenance.json",
    ]
    assert str(tmp_path) not in (project.downloads / "cuad" / "provenance.json").read_text()
    assert [row.file for row in CuadSource(project.downloads / "cuad").files()] == [
        "mine.zip",
        "CUADv1.json",
    ]


def test_a_local_bundle_that_is_not_the_official_one_is_refused(tmp_path: Path) -> None:
    project = builders.project(tmp_path / "home")
    with pytest.raises(InputError) as caught:
        fetch.fetch_cuad(project, archive=bundle(tmp_path))
    for part in ("mine.zip", builders.sha256(MEMBER), "ed0b77d8", "--sha256", "nothing was kept"):
        assert part in str(caught.value)
    assert not (tmp_path / "home" / "downloads").exists()


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"])
def test_a_declared_hash_must_be_one(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        fetch.fetch_cuad(
            builders.project(tmp_path / "home"), archive=bundle(tmp_path), sha256=wrong
        )
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["absent.zip", "."])
def test_an_archive_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        fetch.fetch_cuad(builders.project(tmp_path / "home"), archive=tmp_path / name)
    assert not (tmp_path / "home").exists()


def test_a_refused_bundle_leaves_an_earlier_good_copy_untouched(tmp_path: Path) -> None:
    project = builders.project(tmp_path / "home")
    fetch.fetch_cuad(project, archive=bundle(tmp_path), sha256=builders.sha256(MEMBER))
    before = builders.listing(tmp_path / "home")
    other = bundle(tmp_path, b"another")
    with pytest.raises(InputError):
        fetch.fetch_cuad(project, archive=other, sha256=builders.sha256(MEMBER))
    assert builders.listing(tmp_path / "home") == before


@pytest.mark.parametrize(
    ("member", "parts"),
    [
        (b'{"data": [', ["not valid JSON"]),
        (b"{}", ["key 'data' is missing"]),
        (
            b'{"data": [{"title": "T", "paragraphs": [{"context": "One year.", "qas": '
            b'[{"id": "T__Term", "question": "Details: how long?"}]}]}]}',
            ["contract 'T'", "question 'T__Term'", "key 'answers' is missing"],
        ),
        (
            b'{"data": [{"title": "T", "paragraphs": [{"context": "One year.", "qas": '
            b'[{"id": "T__Term", "question": "Details: how long?", '
            b'"answers": [{"text": "One", "answer_start": 9}]}]}]}]}',
            ["question 'T__Term'", "[9, 12) is outside the text, which has 9 characters"],
        ),
    ],
)
def test_a_member_that_no_run_could_read_is_not_kept(
    tmp_path: Path, member: bytes, parts: list[str]
) -> None:
    """Its hash is the declared one: that says which bytes are meant, not that they are any good."""
    project = builders.project(tmp_path / "home")
    with pytest.raises(InputError) as caught:
        fetch.fetch_cuad(project, archive=bundle(tmp_path, member), sha256=builders.sha256(member))
    for part in ["mine.zip", "CUADv1.json", *parts, "nothing was kept"]:
        assert part in str(caught.value)
    assert not (tmp_path / "home" / "downloads").exists()


def test_a_stop_between_member_and_record_leaves_what_readers_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = builders.project(tmp_path / "home")
    source = CuadSource(project.downloads / "cuad")
    fetch.fetch_cuad(project, archive=bundle(tmp_path), sha256=builders.sha256(MEMBER))

    def stop(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_whole", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch.fetch_cuad(
                project, archive=bundle(tmp_path, ANOTHER), sha256=builders.sha256(ANOTHER)
            )
    with pytest.raises(InputError, match="run again: spanbench fetch cuad"):
        source.files()
    fetch.fetch_cuad(project, archive=bundle(tmp_path, ANOTHER), sha256=builders.sha256(ANOTHER))
    assert source.files()[1].sha256 == builders.sha256(ANOTHER)


def test_one_fetch_at_a_time(tmp_path: Path) -> None:
    project = builders.project(tmp_path / "home")
    folder = project.downloads / "cuad"
    folder.mkdir(parents=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another fetch is at work"):
            fetch.fetch_cuad(project, archive=bundle(tmp_path), sha256=builders.sha256(MEMBER))
    finally:
        os.close(handle)
    fetch.fetch_cuad(project, archive=bundle(tmp_path), sha256=builders.sha256(MEMBER))


def test_what_a_killed_fetch_left_is_cleared_away(tmp_path: Path) -> None:
    project = builders.project(tmp_path / "home")
    folder = project.downloads / "cuad"
    folder.mkdir(parents=True)
    for name in (".CUADv1.json.tmp", "archive.zip", "archive.zip.part", "archive.zip.part.json"):
        (folder / name).write_bytes(b"left")
    fetch.fetch_cuad(project, archive=bundle(tmp_path), sha256=builders.sha256(MEMBER))
    assert sorted(p.name for p in folder.iterdir()) == ["CUADv1.json", "provenance.json"]
