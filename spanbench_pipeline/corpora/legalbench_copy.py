"""The kept copy of LegalBench-RAG: its files under canonical names, and the record of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import files

FOLDER = "legalbenchrag"
"""Where ``fetch`` puts files and record, below ``Project.downloads``."""
DATA = "data"
"""The files, below ``FOLDER``: ``benchmarks/<benchmark>.json``, ``corpus/<canonical path>``."""
RECORD = "provenance.json"
FETCH = "spanbench fetch legalbenchrag --archive PATH"
ZIP, DIRECTORY = "local archive", "local folder"


@dataclass(frozen=True)
class FileRecord:
    """One kept file: its size in bytes and the sha256 of these bytes."""

    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class CopyRecord:
    """Where the kept files came from, and what they are: path below ``DATA`` -> record.

    ``archive_sha256`` is a zip's own hash; a folder has none but ``content_sha256``, which then
    stands there too. ``origin`` is ``local archive`` or ``local folder``.
    """

    archive: str
    archive_bytes: int
    archive_sha256: str
    content_sha256: str
    origin: str
    files: Mapping[str, FileRecord]

    def to_bytes(self) -> bytes:
        """Return the record as a JSON file."""
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1, sort_keys=True)
        return (text + "\n").encode("utf-8")


def content_sha256(kept: Mapping[str, FileRecord]) -> str:
    """Return one hash of all files: the sha256 of the lines ``<sha256>  <path>``, sorted by path.

    Paths are canonical, so a zip, a folder, and copies with other names have one content hash if
    the bytes of their files are the same.
    """
    lines = "".join(f"{kept[path].sha256}  {path}\n" for path in sorted(kept))
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def read_record(folder: Path) -> CopyRecord:
    """Return the record in ``folder``; InputError where there is none, or it is damaged."""
    path = folder / RECORD
    if not path.is_file():
        raise InputError(f"{path}: not here yet; run: {FETCH}")
    try:
        return _record(json.loads(files.read_bytes(path)))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise InputError(f"{path}: not a record of LegalBench-RAG; run: {FETCH}") from error


def hashed(path: Path, recorded: FileRecord) -> None:
    """Hold a kept file to its record; InputError where it is absent or another."""
    _present(path)
    _same(path, files.hash_file(path), recorded)


def read(path: Path, recorded: FileRecord) -> bytes:
    """Return a kept file's bytes; InputError where it is absent or not what was recorded."""
    _present(path)
    data = files.read_bytes(path)
    _same(path, files.hash_bytes(data), recorded)
    return data


def _present(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: it was fetched and is gone; run again: {FETCH}")


def _same(path: Path, found: tuple[int, str], recorded: FileRecord) -> None:
    if found != (recorded.n_bytes, recorded.sha256):
        raise InputError(
            f"{path}: {found[0]} bytes with sha256 {found[1]}, but {recorded.n_bytes} bytes with "
            f"sha256 {recorded.sha256} were fetched; run again: {FETCH}"
        )


def _record(value: Any) -> CopyRecord:
    kept = {path: FileRecord(**entry) for path, entry in value.pop("files").items()}
    record = CopyRecord(**value, files=kept)
    if record.content_sha256 != content_sha256(kept):
        raise ValueError("the files recorded are not those that the content's hash is of")
    return record
