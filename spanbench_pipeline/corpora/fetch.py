"""Bringing a corpus's archive: downloaded or local, verified, one member kept with its record."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import archive as archives
from spanbench_pipeline.corpora import cuad, files
from spanbench_pipeline.corpora.archive import Provenance
from spanbench_pipeline.corpora.download import Download, download
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.storage import locks

OFFICIAL = "https://github.com/TheAtticusProject/cuad/raw/main/data.zip"
STAGED = "archive.zip"
"""Name of a downloaded archive until its member is extracted."""


@dataclass(frozen=True)
class Bundle:
    """An archive of which one member is kept, and how large each may be at most, in bytes.

    ``check`` is given the member's bytes and raises InputError where they are not what a reader
    can read: a declared hash says which bytes are meant, not that they are any good.
    """

    member: str
    official_sha256: str
    max_archive_bytes: int
    max_member_bytes: int
    check: Callable[[bytes], object]


@dataclass(frozen=True)
class Origin:
    """An archive to install from: where it lies now, its own name, and where it came from."""

    path: Path
    name: str
    origin: str


CUAD = Bundle(
    member=cuad.MEMBER,
    official_sha256="ed0b77d85bdf4014d7495800e8e4a70565b48ee6f8a2e5dca9cf8655dbf10eae",
    max_archive_bytes=500_000_000,
    max_member_bytes=500_000_000,
    check=lambda data: cuad.parse(data, excluded=frozenset()),
)


def fetch_cuad(
    project: Project,
    *,
    archive: Path | None = None,
    sha256: str | None = None,
    url: str = OFFICIAL,
    progress: bool = True,
) -> Provenance:
    """Bring CUAD's member into the project's downloads, with the record of where it came from.

    ``archive`` is a local bundle; without one ``url`` is downloaded. ``sha256`` is the hash that
    the member must have, the official one by default. Raises InputError as :func:`fetch_bundle`.
    """
    folder = project.downloads / cuad.FOLDER
    return fetch_bundle(
        CUAD, folder, cuad.RECORD, archive=archive, sha256=sha256, url=url, progress=progress
    )


def fetch_bundle(
    bundle: Bundle,
    folder: Path,
    record: str,
    *,
    archive: Path | None,
    sha256: str | None,
    url: str,
    progress: bool = True,
    attempts: int = 5,
    pause: float = 0.5,
) -> Provenance:
    """Put the bundle's member into ``folder``, and beside it the provenance as file ``record``.

    The member's hash and content are verified before it appears there. Raises InputError for a
    wrong hash or content, an archive that cannot be had or read, and a second fetch at the same
    time; nothing new is then kept, and an earlier good copy stays.
    """
    expected = _expected(bundle, sha256)
    if archive is not None and not archive.is_file():
        raise InputError(f"{archive}: no such file; --archive wants the path of a zip archive")
    job = Download(url, folder / STAGED, bundle.max_archive_bytes, progress, attempts, pause)
    with locked(folder):
        try:
            if archive is not None:
                origin = Origin(archive, archive.name, archives.LOCAL)
            else:
                download(job)
                origin = Origin(job.target, Path(urlsplit(url).path).name or STAGED, url)
            return _install(bundle, folder, record, origin, expected)
        finally:
            for path in folder.glob(f"{STAGED}*"):  # also what a killed fetch left
                path.unlink()


def _expected(bundle: Bundle, sha256: str | None) -> str:
    if sha256 is None:
        return bundle.official_sha256
    if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(
            f"--sha256 {sha256!r}: must be 64 hexadecimal digits, the hash of member "
            f"{bundle.member}"
        )
    return sha256.lower()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Yield the folder, made if need be, for one fetch at a time; removed again if it stays
    empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The kernel lets go of the lock when the process ends, however it ends.
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            locks.lock(handle, wait=False)
        except BlockingIOError as error:
            raise InputError(f"{folder}: another fetch is at work there; wait for it") from error
        yield
    finally:
        os.close(handle)
        for path in (folder, folder.parent):
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()


def _install(
    bundle: Bundle,
    folder: Path,
    record: str,
    origin: Origin,
    expected: str,
) -> Provenance:
    """Extract, verify, and put member and record in place; nothing is kept of a wrong one."""
    n_bytes, sha256 = files.hash_file(origin.path)
    staged = folder / f".{bundle.member}.tmp"
    try:
        member = archives.extract_member(
            origin.path, bundle.member, staged, max_bytes=bundle.max_member_bytes
        )
        if member.sha256 != expected:
            raise _wrong_hash(bundle, origin.name, member.sha256, expected)
        _check_readable(bundle, origin.name, staged)
        provenance = Provenance(
            archive=origin.name,
            archive_bytes=n_bytes,
            archive_sha256=sha256,
            member=bundle.member,
            member_bytes=member.n_bytes,
            member_sha256=member.sha256,
            official_member_sha256=bundle.official_sha256,
            origin=origin.origin,
        )
        # Between these two a reader finds a member that is not the recorded one, and refuses it.
        staged.replace(folder / bundle.member)
        writing.write_whole(folder / record, provenance.to_bytes())
        return provenance
    finally:
        staged.unlink(missing_ok=True)


def _check_readable(bundle: Bundle, name: str, staged: Path) -> None:
    try:
        bundle.check(staged.read_bytes())
    except InputError as error:
        raise InputError(f"{name}: {error}. Refused, nothing was kept.") from error


def _wrong_hash(bundle: Bundle, name: str, found: str, expected: str) -> InputError:
    official = expected == bundle.official_sha256
    whose = "the official bundle's" if official else "the one declared by --sha256"
    hint = (
        " For a bundle of another making, declare its member's hash: --sha256" if official else ""
    )
    return InputError(
        f"{name}: member {bundle.member} has sha256 {found}, but {expected} is expected, "
        f"{whose}. Refused, nothing was kept.{hint}"
    )
