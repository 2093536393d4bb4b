"""One member out of a zip that may lie, and the record of where it came from."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import files

BLOCK = 1 << 20
SHOWN = 5
"""The most members that a message names."""
LOCAL = "local archive"
AGAIN = "Get it again; nothing was kept."
UTF8_NAME = 1 << 11
"""The flag of a member whose name is UTF-8; without it zipfile reads code page 437."""
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,  # encrypted; NotImplementedError for what zipfile does not know
    ValueError,  # offsets before the file, names that are no text
    OverflowError,
    OSError,  # an offset that no file can have
)
"""What reading a zip that lies raises. Of it alone: writing has its own OSErrors."""


@dataclass(frozen=True)
class Member:
    """What was extracted: its size in bytes and the sha256 of these bytes."""

    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Provenance:
    """Where a corpus's member came from; hashes are sha256 in lower-case hexadecimal.

    ``origin`` is the URL that the archive was downloaded from, or ``local archive``.
    """

    archive: str
    archive_bytes: int
    archive_sha256: str
    member: str
    member_bytes: int
    member_sha256: str
    official_member_sha256: str
    origin: str

    @property
    def note(self) -> str | None:
        """Return both hashes of a member that is not the official one; None for the official
        one.
        """
        if self.member_sha256 == self.official_member_sha256:
            return None
        return (
            f"not the official member: sha256 {self.member_sha256}, "
            f"official {self.official_member_sha256}"
        )

    def to_bytes(self) -> bytes:
        """Return the record as a JSON file."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode("utf-8")


def read_provenance(path: Path, again: str) -> Provenance:
    """Return the record at ``path``; InputError where it is none, saying to run ``again``."""
    try:
        value = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a record of an archive; run: {again}") from error
    types = {"int": int, "str": str}
    expected = {field.name: types[str(field.type)] for field in fields(Provenance)}
    if not isinstance(value, dict) or {k: type(v) for k, v in value.items()} != expected:
        raise InputError(f"{path}: not a record of an archive; run: {again}")
    return Provenance(**value)


def extract_member(archive: Path, name: str, target: Path, *, max_bytes: int) -> Member:
    """Write the member called exactly ``name`` to ``target``, as a stream, hashed on the way.

    No path in the archive is ever used for writing, and no more than ``max_bytes`` are written,
    whatever the archive says of its sizes. Raises InputError for an archive that is no zip,
    truncated, damaged or encrypted, and for a member that is absent, given twice or too long;
    ``target`` is then removed.
    """
    try:
        with _opened(archive) as opened:
            found = [info for info in opened.infolist() if info.orig_filename == name]
            if not found:
                raise _absent(archive, name, opened.namelist())
            return _copy(opened, _entry(archive, found, name), target, max_bytes, archive)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def member_names(archive: Path) -> list[str]:
    """Return the names of the archive's members, in its order; folders are left out.

    Raises InputError for an archive that is no zip, truncated or damaged.
    """
    with _opened(archive) as opened:
        return [_name(i) for i in opened.infolist() if not i.orig_filename.endswith("/")]


def extract_members(
    archive: Path, targets: Mapping[str, Path], *, max_bytes: int, max_total: int
) -> dict[str, Member]:
    """Write each member named in ``targets``, which is name -> where to; what was written, by name.

    As :func:`extract_member`, with at most ``max_bytes`` written of one and ``max_total`` of all.
    What was written before an error stays: ``targets`` lie in a folder that the caller clears.
    """
    with _opened(archive) as opened:
        entries: dict[str, list[zipfile.ZipInfo]] = {}
        for info in opened.infolist():
            entries.setdefault(_name(info), []).append(info)
        if missing := sorted(targets.keys() - entries.keys()):
            raise _absent(archive, missing[0], opened.namelist())
        chosen = {name: _entry(archive, entries[name], name) for name in targets}
        # No more of a member is ever read than it claims, so the claims bound what is written.
        if sum(info.file_size for info in chosen.values()) > max_total:
            raise InputError(f"{archive}: longer than {max_total:,} bytes in all: refused")
        return {
            name: _copy(opened, info, targets[name], max_bytes, archive)
            for name, info in chosen.items()
        }


def _name(info: zipfile.ZipInfo) -> str:
    """Return a member's name; one that is not marked as UTF-8 is read as such where it can be."""
    if info.flag_bits & UTF8_NAME:
        return info.orig_filename
    try:
        return info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    """Yield the zip; whatever is wrong with it becomes an InputError."""
    try:
        opened = zipfile.ZipFile(archive)
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename:  # it could not be opened
            raise InputError(f"{archive}: cannot be read: {error.strerror}") from error
        raise InputError(
            f"{archive}: not a zip archive, or a damaged or truncated one: {_reason(error)}. "
            f"{AGAIN}"
        ) from error
    with opened:
        yield opened


def _blocks(opened: zipfile.ZipFile, info: zipfile.ZipInfo, archive: Path) -> Iterator[bytes]:
    """Yield a member's bytes; whatever is wrong with them becomes an InputError."""
    try:
        with opened.open(info) as member:
            while block := member.read(BLOCK):
                yield block
    except DAMAGED as error:
        raise InputError(
            f"{archive}: member {info.filename} cannot be read, the archive is damaged: "
            f"{_reason(error)}. {AGAIN}"
        ) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _entry(archive: Path, found: Sequence[zipfile.ZipInfo], name: str) -> zipfile.ZipInfo:
    """Return the one entry of that name; orig_filename is the whole name, filename is cut at a
    NUL.
    """
    if len(found) > 1:
        raise InputError(f"{archive}: {len(found)} members {name}; exactly one is needed")
    info = found[0]
    if info.flag_bits & 1:
        raise InputError(f"{archive}: member {name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{archive}: member {name} is compressed by an unsupported method")
    return info


def _absent(archive: Path, name: str, there: Sequence[str]) -> InputError:
    """Return the error about a member that the archive has not, with those that may be meant for
    it.
    """
    base = name.rpartition("/")[2].casefold()
    alike = [other for other in there if other.casefold().endswith(base)] or list(there)
    shown = ", ".join(map(repr, alike[:SHOWN])) + (" and others" if len(alike) > SHOWN else "")
    return InputError(
        f"{archive}: no member {name}; exactly one is needed, by that whole name. "
        f"Found: {shown or 'nothing'}. Pack it again so."
    )


def _copy(
    opened: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, max_bytes: int, archive: Path
) -> Member:
    digest = hashlib.sha256()
    n_bytes = 0
    with target.open("wb") as out:
        for block in _blocks(opened, info, archive):
            n_bytes += len(block)
            if n_bytes > max_bytes:
                raise InputError(
                    f"{archive}: member {info.filename} is longer than {max_bytes:,} bytes: refused"
                )
            digest.update(block)
            out.write(block)
    if n_bytes != info.file_size:
        raise InputError(
            f"{archive}: member {info.filename} has {n_bytes} bytes, but the archive says "
            f"{info.file_size}: it is truncated. {AGAIN}"
        )
    return Member(n_bytes, digest.hexdigest())
