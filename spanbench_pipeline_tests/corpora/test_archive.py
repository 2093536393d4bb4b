from __future__ import annotations

import dataclasses
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import archive
from spanbench_pipeline_tests.corpora import builders

NAME = "CUADv1.json"
LOCAL_SIZE, CENTRAL_SIZE = 22, 24
"""Where the uncompressed size stands in a local header and in a central directory entry."""


def refused(path: Path, tmp_path: Path, max_bytes: int = 10_000_000) -> str:
    """The message that refuses the archive; nothing may be left in the target's folder."""
    folder = tmp_path / "out"
    folder.mkdir(exist_ok=True)
    before = builders.listing(tmp_path)
    with pytest.raises(InputError) as caught:
        archive.extract_member(path, NAME, folder / "member.tmp", max_bytes=max_bytes)
    assert builders.listing(tmp_path) == before
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_one_member_is_written_and_hashed_and_no_other(tmp_path: Path, method: int) -> None:
    data = bytes(range(256)) * 10_000
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("../../CUADv1.json", b"outside")
        made.writestr("/tmp/CUADv1.json", b"absolute")
        made.writestr("x/CUADv1.json", b"below")
        made.writestr("CUADv1.json.bak", b"beside")
        made.writestr(NAME, data)
    found = archive.extract_member(path, NAME, tmp_path / "m", max_bytes=len(data))
    assert found == archive.Member(2_560_000, builders.sha256(data))
    assert (tmp_path / "m").read_bytes() == data
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "m"]


@pytest.mark.parametrize(
    "name", ["../CUADv1.json", "x/CUADv1.json", "CUADv1.json\0.exe", "cuadv1.JSON"]
)
def test_only_the_exact_name_is_the_member(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        info = zipfile.ZipInfo("placeholder")
        info.filename = info.orig_filename = name
        made.writestr(info, b"{}")
    assert "no member CUADv1.json" in refused(path, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(NAME, b"good")
        made.writestr(NAME, b"bad")
    assert "2 members CUADv1.json; exactly one" in refused(path, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_truncated_archive(tmp_path: Path, share: float) -> None:
    whole = builders.zipped(tmp_path / "a.zip", CUADv1_json=bytes(range(256)) * 500).read_bytes()
    path = tmp_path / "cut.zip"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "not a zip archive, or a damaged or truncated one" in refused(path, tmp_path)


def test_no_zip_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"<html>Not found</html>" * 100)
    assert "not a zip archive" in refused(path, tmp_path)


def test_a_damaged_byte(tmp_path: Path) -> None:
    data = bytearray(builders.zipped(tmp_path / "a.zip", CUADv1_json=b"x" * 5000).read_bytes())
    data[45] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)
    assert "damaged" in refused(tmp_path / "a.zip", tmp_path)


@pytest.mark.parametrize("last", [b"\xb5\0\0\0", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"])
def test_an_offset_that_no_file_has_is_damage_of_the_named_archive(
    tmp_path: Path, last: bytes
) -> None:
    data = bytearray(builders.zipped(tmp_path / "a.zip", CUADv1_json=b"{}" * 90).read_bytes())
    at = data.rindex(b"PK\x05\x06") + 16  # where the central directory is said to begin
    data[at : at + 4] = last
    (tmp_path / "a.zip").write_bytes(data)
    assert "damaged" in refused(tmp_path / "a.zip", tmp_path)


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    data = bytearray(builders.zipped(tmp_path / "a.zip", CUADv1_json=b"{}" * 90).read_bytes())
    at = data.index(b"PK\x01\x02") + 42  # where the member's own header is said to be
    data[at : at + 4] = b"\xff\xff\xff\x7f"
    (tmp_path / "a.zip").write_bytes(data)
    message = refused(tmp_path / "a.zip", tmp_path)
    assert "damaged" in message
    assert "member CUADv1.json" in message


@pytest.mark.parametrize(
    ("members", "found"),
    [
        (["data/CUADv1.json", "x.txt"], "'data/CUADv1.json'."),
        (["cuadv1.JSON"], "'cuadv1.JSON'."),
        (["a.txt"], "'a.txt'."),
        ([f"{n}.txt" for n in range(7)], "'0.txt', '1.txt', '2.txt', '3.txt', '4.txt' and others"),
        ([], "nothing"),
    ],
)
def test_what_is_there_in_place_of_the_member_is_named(
    tmp_path: Path, members: list[str], found: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for name in members:
            made.writestr(name, b"{}")
    message = refused(tmp_path / "a.zip", tmp_path)
    assert "no member CUADv1.json" in message
    assert f"Found: {found}" in message


def resized(path: Path, claimed: int, crc: int | None = None) -> Path:
    """The archive with another uncompressed size claimed in both its headers."""
    data = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", LOCAL_SIZE), (b"PK\x01\x02", CENTRAL_SIZE)):
        start = data.index(signature)
        struct.pack_into("<I", data, start + at, claimed)
        if crc is not None:
            struct.pack_into("<I", data, start + at - 8, crc)
    path.write_bytes(data)
    return path


def test_a_bomb_that_admits_its_size_is_refused(tmp_path: Path) -> None:
    path = builders.zipped(tmp_path / "a.zip", CUADv1_json=bytes(3_000_000))
    assert path.stat().st_size < 5_000
    assert "longer than 1,000,000 bytes" in refused(path, tmp_path, max_bytes=1_000_000)


def test_a_bomb_that_claims_to_be_small_is_cut_and_refused(tmp_path: Path) -> None:
    path = resized(builders.zipped(tmp_path / "a.zip", CUADv1_json=bytes(3_000_000)), 10)
    assert "damaged" in refused(path, tmp_path, max_bytes=1_000_000)


def test_a_bomb_that_lies_about_its_checksum_too_never_exceeds_its_claim(tmp_path: Path) -> None:
    path = builders.zipped(tmp_path / "a.zip", CUADv1_json=bytes(3_000_000))
    resized(path, 10, zlib.crc32(bytes(10)))
    found = archive.extract_member(path, NAME, tmp_path / "m", max_bytes=1_000_000)
    assert found == archive.Member(10, builders.sha256(bytes(10)))


def test_a_member_shorter_than_it_claims(tmp_path: Path) -> None:
    path = resized(builders.zipped(tmp_path / "a.zip", CUADv1_json=b"short"), 500)
    assert "truncated" in refused(path, tmp_path)


def test_an_encrypted_member(tmp_path: Path) -> None:
    data = bytearray(builders.zipped(tmp_path / "a.zip", CUADv1_json=b"{}").read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + at] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert "member CUADv1.json is encrypted" in refused(tmp_path / "a.zip", tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_is_not_deflate(tmp_path: Path, method: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr(NAME, b"{}")
    assert "unsupported method" in refused(path, tmp_path)


def test_the_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    record = archive.Provenance("a.zip", 1, "0" * 64, NAME, 2, "1" * 64, "2" * 64, archive.LOCAL)
    (tmp_path / "p.json").write_bytes(record.to_bytes())
    assert archive.read_provenance(tmp_path / "p.json", "again") == record
    official = dataclasses.replace(record, member_sha256="2" * 64)
    assert official.note is None
    assert record.note == f"not the official member: sha256 {'1' * 64}, official {'2' * 64}"
