"""The accepted run: per-query values and fingerprints that later runs are held against.

``<home>/accepted/<corpus>/`` holds a folder named by what is in it, with two Parquet files, and the
file ``current`` with the folder's name. Accepting writes a new folder and then replaces
``current``, in one step: whoever is killed on the way leaves the old acceptance or the new one.
Nothing but ``spanbench accept`` writes here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import Code, InputError
from spanbench_pipeline.storage import disk, files, parquet

TABLES = ("query_metrics", "fingerprints")
_RESTORE = "restore the folder from a copy, or accept a run again: spanbench accept {corpus}"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Accepted:
    """An accepted run as it is stored; ``digest`` is a hash of both files."""

    digest: str
    query_metrics: pa.Table
    fingerprints: pa.Table


def folder(project: Project, corpus: str) -> Path:
    """Return where a corpus's accepted run lies."""
    return project.home / "accepted" / corpus


def current(project: Project, corpus: str) -> str | None:
    """Return the digest of the accepted run; None where none was accepted."""
    path = folder(project, corpus) / "current"
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, corpus) from error
    if not _DIGEST.fullmatch(text):
        raise _damaged(path, corpus)
    return text


def current_or_damaged(project: Project, corpus: str) -> str:
    """Return what of the accepted run decides a comparison: its digest, or that there is none or
    why.

    What ``current`` says is not enough: a comparison with files that were changed since is stale.
    """
    try:
        digest = current(project, corpus)
        if digest is not None:
            _require_whole(folder(project, corpus) / digest, corpus)
        return digest or "none"
    except InputError as error:
        return f"damaged: {error}"


def read(project: Project, corpus: str) -> Accepted | None:
    """Return the accepted run; None where none was accepted.

    Raises InputError where a file is missing or is not the one that was accepted, or holds another
    corpus's figures or another layout of the tables.
    """
    while (digest := current(project, corpus)) is not None:
        try:
            return _read(folder(project, corpus) / digest, corpus)
        except InputError:
            # Another acceptance may have taken this one's place while it was being read.
            if current(project, corpus) == digest:
                raise
    return None


def _read(place: Path, corpus: str) -> Accepted:
    paths = _require_whole(place, corpus)
    return Accepted(
        place.name,
        *(_table(path, name, corpus) for path, name in zip(paths, TABLES, strict=True)),
    )


def _require_whole(place: Path, corpus: str) -> list[Path]:
    """Return the files of a folder; InputError where they are not those that it is named by."""
    paths = [place / f"{name}.parquet" for name in TABLES]
    for path in paths:
        if not path.is_file():
            raise _damaged(path, corpus)
    try:
        whole = _digest(paths) == place.name
    except OSError as error:
        raise _damaged(place, corpus) from error
    if not whole:
        raise _damaged(place, corpus)
    return paths


def _table(path: Path, name: str, corpus: str) -> pa.Table:
    try:
        table = parquet.read(path, name).table
    except InputError as error:
        # The bytes are those that were accepted: what read them was of another version.
        raise InputError(
            f"the accepted run lacks columns that table {name} has now",
            code=Code.NOT_COMPARABLE,
            place=path,
            hint=f"accept a run again: spanbench accept {corpus}",
        ) from error
    others = sorted(set(table["corpus"].unique().to_pylist()) - {corpus})
    if others:
        raise InputError(
            f"the accepted run is one of corpus {others[0]!r}, not of {corpus!r}",
            code=Code.MISMATCH,
            place=path,
            hint=_RESTORE.format(corpus=corpus),
        )
    return table


def write(
    project: Project, corpus: str, query_metrics: pa.Table, fingerprints: pa.Table
) -> Accepted:
    """Make these tables the accepted run, in the place of the one before."""
    home = folder(project, corpus)
    try:
        digest = _store(home, query_metrics, fingerprints)
        _clear_folder(home / "current")
        files.write_whole(home / "current", f"{digest}\n".encode())
    except OSError as error:
        told = disk.explain(error, project.home)
        raise InputError(told or f"{home}: cannot be written ({error.strerror})") from error
    for old in home.iterdir():
        if old.is_dir() and old.name != digest:
            shutil.rmtree(old, ignore_errors=True)
    return Accepted(digest, query_metrics, fingerprints)


def _clear_folder(path: Path) -> None:
    """Remove a folder that lies where a file belongs: no file can take its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _store(home: Path, query_metrics: pa.Table, fingerprints: pa.Table) -> str:
    """Write a folder of its own for the tables; return its name, the digest."""
    staged = home / f".new.{os.getpid()}"
    shutil.rmtree(staged, ignore_errors=True)
    for name, table in zip(TABLES, (query_metrics, fingerprints), strict=True):
        parquet.write(staged / f"{name}.parquet", name, table)
    digest = _digest([staged / f"{name}.parquet" for name in TABLES])
    kept = [home / digest / f"{name}.parquet" for name in TABLES]
    if all(path.is_file() for path in kept) and _digest(kept) == digest:
        shutil.rmtree(staged)
    else:
        shutil.rmtree(home / digest, ignore_errors=True)
        staged.rename(home / digest)
    return digest


def _digest(paths: list[Path]) -> str:
    hashes = "\n".join(parquet.file_sha256(path) for path in paths)
    return hashlib.sha256(hashes.encode()).hexdigest()


def _damaged(path: Path, corpus: str) -> InputError:
    return InputError(
        "the accepted run is damaged or was changed",
        code=Code.MISMATCH,
        place=path,
        hint=_RESTORE.format(corpus=corpus),
    )
