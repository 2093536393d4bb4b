from __future__ import annotations

import hashlib
import os
import shutil
import struct
import zipfile
from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import legalbench_copy, source
from spanbench_pipeline.corpora.legalbench_copy import CopyRecord
from spanbench_pipeline.corpora.legalbench_fetch import Limits, fetch_legalbench
from spanbench_pipeline_tests.corpora import builders
from spanbench_pipeline_tests.corpora import legalbench_builders as copies

SMALL = copies.members({}, {})
KEPT = "downloads/legalbenchrag"


def fetch(tmp_path: Path, archive: Path, sha256: str | None = None, **limits: int) -> CopyRecord:
    return fetch_legalbench(
        builders.project(tmp_path / "home"),
        archive=archive,
        sha256=sha256,
        limits=Limits(**limits),
    )


def refused(tmp_path: Path, archive: Path | None, sha256: str | None = None, **limits: int) -> str:
    """The message that refuses; nothing may be kept, and nothing changed outside."""
    before = outside(tmp_path)
    with pytest.raises(InputError) as caught:
        fetch_legalbench(
            builders.project(tmp_path / "home"),
            archive=archive,
            sha256=sha256,
            limits=Limits(**limits),
        )
    assert outside(tmp_path) == before
    return str(caught.value)


def outside(tmp_path: Path) -> dict[str, bytes | None]:
    """Everything but the home."""
    found = builders.listing(tmp_path)
    return {name: data for name, data in found.items() if name.split("/")[0] != "home"}


def kept(tmp_path: Path) -> dict[str, bytes | None]:
    return builders.listing(tmp_path / "home" / KEPT)


@pytest.mark.parametrize("prefix", ["", "data/", "a/b/"])
def test_a_zip_with_its_layout_at_the_top_or_below(tmp_path: Path, prefix: str) -> None:
    archive = copies.zipped(tmp_path / "mine.zip", SMALL, prefix)
    record = fetch(tmp_path, archive)
    assert (record.archive, record.origin) == ("mine.zip", "local archive")
    data = archive.read_bytes()
    assert (record.archive_bytes, record.archive_sha256) == (len(data), builders.sha256(data))
    assert {k: v for k, v in kept(tmp_path).items() if v is not None} == {
        f"data/{name}": content for name, content in SMALL.items()
    } | {"provenance.json": record.to_bytes()}
    assert str(tmp_path).encode() not in record.to_bytes()
    assert legalbench_copy.read_record(tmp_path / "home" / KEPT) == record


@pytest.mark.parametrize("prefix", ["", "data/"])
def test_a_folder_and_a_zip_of_it_have_one_content_hash(tmp_path: Path, prefix: str) -> None:
    folder = copies.unpacked(tmp_path / "mine", SMALL, prefix)
    (folder / "README.md").write_text("passed over")
    record = fetch(tmp_path, folder)
    lines = "".join(f"{builders.sha256(SMALL[name])}  {name}\n" for name in sorted(SMALL))
    content = hashlib.sha256(lines.encode()).hexdigest()
    assert (record.archive, record.origin) == ("mine", "local folder")
    assert (record.archive_sha256, record.content_sha256) == (content, content)
    assert record.archive_bytes == sum(len(data) for data in SMALL.values())
    of_zip = fetch(tmp_path, copies.zipped(tmp_path / "mine.zip", SMALL))
    assert (of_zip.content_sha256, of_zip.files) == (content, record.files)


def test_what_is_no_part_of_the_layout_is_passed_over(tmp_path: Path) -> None:
    other = {
        "README.md": b"x",
        "__MACOSX/corpus/cuad/._plain.txt": b"x",
        "corpus/cuad/.hidden.txt": b"x",
        "corpus/cuad/.trash/a.txt": b"x",
        "corpus/cuad/notes.md": b"x",
        "corpus/other/a.txt": b"x",
        "corpus/a.txt": b"x",
        "benchmarks/other.json": b"x",
        "../../corpus/cuad/up.txt": b"x",
        "/corpus/cuad/absolute.txt": b"x",
        "corpus/../../cuad/up.txt": b"x",
    }
    record = fetch(tmp_path, copies.zipped(tmp_path / "mine.zip", SMALL | other))
    assert sorted(record.files) == sorted(SMALL)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "mine.zip"]


@pytest.mark.parametrize(
    "name", ["../x.txt", "..%2F..%2Fx.txt", "%2e%2e/x.txt", "a\\..\\x.txt", "C:/x.txt"]
)
def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    archive = copies.zipped(tmp_path / "mine.zip", SMALL | {f"corpus/cuad/{name}": b"text"})
    try:
        record = fetch(tmp_path, archive)
    except InputError:
        assert not (tmp_path / "home" / "downloads").exists()
    else:
        assert all(path.count("/") <= 2 for path in record.files)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "home") == ["mine.zip"]
    assert {p.name for p in tmp_path.rglob("*.txt")} <= {
        "plain.txt",
        "a\\..\\x.txt",
        "C__x.txt",
    }


def test_the_declared_hash_of_a_zip(tmp_path: Path) -> None:
    archive = copies.zipped(tmp_path / "mine.zip", SMALL)
    found = builders.sha256(archive.read_bytes())
    message = refused(tmp_path, archive, "0" * 64)
    for part in ("mine.zip", found, "0" * 64, "--sha256", "nothing was kept"):
        assert part in message
    assert fetch(tmp_path, archive, found.upper()).archive_sha256 == found


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 64, "0" * 63, "0" * 64 + "\n"])
def test_a_declared_hash_must_be_one(tmp_path: Path, wrong: str) -> None:
    archive = copies.zipped(tmp_path / "mine.zip", SMALL)
    assert "64 hexadecimal digits" in refused(tmp_path, archive, wrong)


def test_a_folder_takes_no_hash(tmp_path: Path) -> None:
    folder = copies.unpacked(tmp_path / "mine", SMALL)
    assert "a folder; --sha256 is the hash of a zip" in refused(tmp_path, folder, "0" * 64)


def test_without_an_archive_it_says_where_to_get_one(tmp_path: Path) -> None:
    message = refused(tmp_path, None)
    assert "github.com/zeroentropy-ai/legalbenchrag" in message
    assert "spanbench fetch legalbenchrag --archive PATH" in message


def without(*names: str) -> dict[str, bytes]:
    return {name: data for name, data in SMALL.items() if name not in names}


@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "not LegalBench-RAG"),
        ({"a.txt": b"x"}, "not LegalBench-RAG"),
        ({"benchmarks/a.txt": b"x"}, "found: 'benchmarks/a.txt'"),
        (without("benchmarks/maud.json"), "benchmarks/maud.json is missing"),
        (without("corpus/maud/plain.txt"), "no documents: corpus/maud/*.txt"),
        (SMALL | {"x/" + name: data for name, data in SMALL.items()}, "2 of them: , x/"),
        (
            SMALL | {"corpus/cuad/a|b.txt": b"x", "corpus/cuad/a_b.txt": b"x"},
            "'corpus/cuad/a_b.txt' and 'corpus/cuad/a|b.txt' are both 'cuad/a_b.txt'",
        ),
        (SMALL | {"corpus/cuad/a%00b.txt": b"x"}, "'corpus/cuad/a%00b.txt' cannot be"),
        (SMALL | {"corpus/cuad/plain.txt": b"The term\xff"}, "corpus/cuad/plain.txt: not UTF-8"),
        (SMALL | {"corpus/cuad/plain.txt": b"Other text"}, "benchmarks/cuad.json, test 1"),
        (
            SMALL | {"corpus/cuad/plain.txt": b"The term\0"},
            "corpus/cuad/plain.txt: no text: byte 8",
        ),
        (
            SMALL | {"corpus/cuad/plain.txt": b"\xff", "corpus/maud/plain.txt": b"\xff"},
            "corpus/maud/plain.txt: not UTF-8",
        ),
        (SMALL | {"corpus/cuad/blank.txt": b" \n"}, "no text but white space"),
        (SMALL | {"corpus/cuad/blank.txt": b"\xe2\x80\x8b"}, "no text but white space"),
        (SMALL | {"benchmarks/cuad.json": b"{}"}, "key 'tests' is missing"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, found: dict[str, bytes], message: str, as_folder: bool
) -> None:
    if as_folder:
        (tmp_path / "mine").mkdir()
        archive = copies.unpacked(tmp_path / "mine", found)
    else:
        archive = copies.zipped(tmp_path / "mine", found)
    said = refused(tmp_path, archive)
    assert message in said
    assert str(archive) in said
    assert not (tmp_path / "home" / "downloads").exists()


def test_paths_that_are_not_there_or_no_zip(tmp_path: Path) -> None:
    assert "no such file or folder" in refused(tmp_path, tmp_path / "absent.zip")
    (tmp_path / "no.zip").write_bytes(b"<html>" * 100)
    assert "not a zip archive" in refused(tmp_path, tmp_path / "no.zip")
    whole = copies.zipped(tmp_path / "a.zip", SMALL).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) * 2 // 3])
    assert "truncated" in refused(tmp_path, tmp_path / "cut.zip")


def test_a_damaged_document_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        for name, data in SMALL.items():
            made.writestr(name, data)
    data = bytearray(path.read_bytes())
    data[data.index(b"The maud term")] ^= 1
    path.write_bytes(data)
    assert "damaged" in refused(tmp_path, path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_document_given_twice(tmp_path: Path) -> None:
    path = copies.zipped(tmp_path / "a.zip", SMALL)
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("corpus/cuad/plain.txt", b"another")
    assert "2 members corpus/cuad/plain.txt" in refused(tmp_path, path)


def test_limits_hold_for_a_zip_and_a_folder(tmp_path: Path) -> None:
    found = SMALL | {"corpus/cuad/long.txt": b"x" * 50_000}
    for archive in (
        copies.zipped(tmp_path / "a.zip", found),
        copies.unpacked(tmp_path / "a", found),
    ):
        assert "longer than 49,999 bytes" in refused(tmp_path, archive, file_bytes=49_999)
        assert "50,000" in refused(tmp_path, archive, all_bytes=50_000)
        assert "9 files, more than 8" in refused(tmp_path, archive, files=8)


def test_a_zip_that_lies_about_a_size_writes_no_more_than_it_claims(tmp_path: Path) -> None:
    path = copies.zipped(tmp_path / "a.zip", SMALL | {"corpus/cuad/bomb.txt": bytes(3_000_000)})
    data = bytearray(path.read_bytes())
    for at, offset in ((data.rindex(b"corpus/cuad/bomb.txt"), 46 - 24),):
        struct.pack_into("<I", data, at - offset, 10)
    path.write_bytes(data)
    assert "damaged" in refused(tmp_path, path)


def test_a_zip_whose_names_are_not_marked_as_utf8(tmp_path: Path) -> None:
    path = copies.zipped(tmp_path / "a.zip", SMALL | {"corpus/cuad/LECLANCHE\u0301.txt": b"text"})
    data = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := data.find(signature, start + 1)) >= 0:
            flags = struct.unpack_from("<H", data, start + at)[0]
            struct.pack_into("<H", data, start + at, flags & ~(1 << 11))
    path.write_bytes(data)
    assert "corpus/cuad/LECLANCH\u00c9.txt" in fetch(tmp_path, path).files


def test_a_refused_copy_leaves_an_earlier_one_untouched(tmp_path: Path) -> None:
    fetch(tmp_path, copies.zipped(tmp_path / "a.zip", SMALL))
    before = kept(tmp_path)
    refused(tmp_path, copies.zipped(tmp_path / "b.zip", SMALL | {"benchmarks/cuad.json": b"{}"}))
    assert kept(tmp_path) == before


def test_a_new_copy_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    fetch(tmp_path, copies.zipped(tmp_path / "a.zip", SMALL | {"corpus/cuad/old.txt": b"old"}))
    record = fetch(tmp_path, copies.zipped(tmp_path / "b.zip", SMALL))
    assert "data/corpus/cuad/old.txt" not in kept(tmp_path)
    assert sorted(p.name for p in (tmp_path / "home" / KEPT).iterdir()) == [
        "data",
        "provenance.json",
    ]
    assert legalbench_copy.read_record(tmp_path / "home" / KEPT) == record


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_stop_in_the_exchange_leaves_what_readers_refuse_or_a_whole_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    """Stopped before the first, second or third rename, as by a kill: nothing is tidied up."""
    fetch(tmp_path, copies.zipped(tmp_path / "a.zip", SMALL | {"corpus/cuad/old.txt": b"old"}))
    calls = 0

    def counted(real):  # type: ignore[no-untyped-def]
        def rename(self: Path, target: Path) -> Path:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise KeyboardInterrupt
            return real(self, target)

        return rename

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", counted(Path.rename))
        patched.setattr(Path, "replace", counted(Path.replace))
        with pytest.raises(KeyboardInterrupt):
            fetch(tmp_path, copies.zipped(tmp_path / "b.zip", SMALL))
    project = builders.project(tmp_path / "home")
    found = source.open_source(
        builders.experiment({"kind": "legalbenchrag", "sample": "all"}), project
    )
    if stop_at == 1:
        assert any(row.file == "corpus/cuad/old.txt" for row in found.files())
    else:
        with pytest.raises(InputError, match="run again: spanbench fetch legalbenchrag"):
            found.files()
    bad = copies.zipped(tmp_path / "bad.zip", SMALL | {"benchmarks/cuad.json": b"{}"})
    with pytest.raises(InputError):
        fetch(tmp_path, bad)
    if stop_at < 3:  # the earlier copy is back
        assert any(row.file == "corpus/cuad/old.txt" for row in found.files())
    fetch(tmp_path, tmp_path / "b.zip")
    assert not any(row.file == "corpus/cuad/old.txt" for row in found.files())
    assert sorted(p.name for p in (tmp_path / "home" / KEPT).iterdir()) == [
        "data",
        "provenance.json",
    ]


def test_one_fetch_at_a_time(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "home" / KEPT
    folder.mkdir(parents=True)
    archive = copies.zipped(tmp_path / "a.zip", SMALL)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert "another fetch is at work" in refused(tmp_path, archive)
    finally:
        os.close(handle)
    fetch(tmp_path, archive)


def test_a_link_to_a_document_that_is_gone_is_not_passed_over(tmp_path: Path) -> None:
    folder = copies.unpacked(tmp_path / "copy", SMALL)
    (folder / "corpus" / "maud" / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    assert "gone.txt: a link to " in refused(tmp_path, folder)
    assert kept(tmp_path) == {}


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    folder = copies.unpacked(tmp_path / "mine", without("benchmarks/cuad.json"))
    (folder / "corpus" / "cuad").rename(folder / "elsewhere")
    shutil.rmtree(folder / "corpus")
    (folder / "corpus").write_bytes(b"")
    message = refused(tmp_path, folder)
    assert f"{folder / 'corpus'}: cannot be read: Not a directory" in message
