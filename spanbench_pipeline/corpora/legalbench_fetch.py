"""Bringing LegalBench-RAG: a zip or a folder, whole, verified, kept under canonical names.

Nothing is downloaded. What is given may be laid out at its top or in folders below, and may hold
other files, which are passed over: ``benchmarks/<benchmark>.json`` and ``corpus/<benchmark>/*.txt``
are what is kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import archive as archives
from spanbench_pipeline.corpora import fetch, files, legalbench, legalbench_benchmark
from spanbench_pipeline.corpora import legalbench_copy as copies
from spanbench_pipeline.corpora.legalbench_copy import CopyRecord, FileRecord
from spanbench_pipeline.formats import legalbench_names as names

HOME = "https://github.com/zeroentropy-ai/legalbenchrag"
"""The project of LegalBench-RAG: its README links to the data."""
BENCHMARK_FILES = tuple(legalbench_benchmark.file_of(b) for b in names.BENCHMARKS)
STAGED, REPLACED = ".staged", ".replaced"
"""A copy that is not complete, and the one before it for the moment of their exchange."""


@dataclass(frozen=True)
class Limits:
    """The most that is taken: bytes of one file and of all, number of files."""

    file_bytes: int = 100_000_000
    all_bytes: int = 2_000_000_000
    files: int = 20_000


LIMITS = Limits()


def fetch_legalbench(
    project: Project,
    *,
    archive: Path | None,
    sha256: str | None = None,
    limits: Limits = LIMITS,
) -> CopyRecord:
    """Put a copy of LegalBench-RAG into the project's downloads, with the record of its origin.

    ``archive`` is a zip or a folder; ``sha256`` the hash that a zip must have, if it is declared.
    The whole copy is read as a run would read it before it takes an earlier one's place: every
    name resolved, every snippet equal to its answer. Raises InputError for anything that is not so,
    and for a second fetch at the same time; nothing new is then kept and an earlier copy stays.
    """
    given = _given(archive, sha256)
    folder = project.downloads / copies.FOLDER
    with fetch.locked(folder):
        _clear(folder)
        staged = folder / STAGED
        try:
            kept = _stage(given, staged / copies.DATA, limits)
            record = _described(given, kept)
            (staged / copies.RECORD).write_bytes(record.to_bytes())
            _check(given, staged)
            _exchange(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return record


@dataclass(frozen=True)
class _Given:
    """What was given: a folder, or a zip with its size and hash."""

    path: Path
    zip_bytes: int = 0
    zip_sha256: str | None = None

    @property
    def name(self) -> str:
        """Return its own name, without the folders above it."""
        return self.path.resolve().name or self.path.anchor


def _given(archive: Path | None, sha256: str | None) -> _Given:
    if archive is None:
        raise InputError(
            f"fetch legalbenchrag downloads nothing: get the data as {HOME} says (the link stands "
            "in its README), then: spanbench fetch legalbenchrag --archive PATH (zip or folder)"
        )
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise InputError(f"--sha256 {sha256!r}: must be 64 hexadecimal digits, the hash of the zip")
    if archive.is_dir():
        if sha256 is not None:
            raise InputError(
                f"{archive}: a folder; --sha256 is the hash of a zip. The hash of a folder's "
                "content is recorded and printed"
            )
        return _Given(archive)
    if not archive.is_file():
        raise InputError(f"{archive}: no such file or folder; --archive wants a zip or a folder")
    n_bytes, found = files.hash_file(archive)
    if sha256 is not None and found != sha256.lower():
        raise InputError(
            f"{archive}: has sha256 {found}, but {sha256.lower()} is declared by --sha256. "
            "Refused, nothing was kept."
        )
    return _Given(archive, n_bytes, found)


def _stage(given: _Given, data: Path, limits: Limits) -> dict[str, FileRecord]:
    """Write every file of the layout below ``data`` under its canonical path."""
    if given.zip_sha256 is not None:
        there = archives.member_names(given.path)
    else:
        there = _listed(given.path)
    layout = _layout(there, str(given.path))
    if len(layout) > limits.files:
        raise InputError(f"{given.path}: {len(layout):,} files, more than {limits.files:,}")
    targets = {source: data / path for path, source in layout.items()}
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    if given.zip_sha256 is not None:
        written = archives.extract_members(
            given.path, targets, max_bytes=limits.file_bytes, max_total=limits.all_bytes
        )
        found = {source: FileRecord(m.n_bytes, m.sha256) for source, m in written.items()}
    else:
        found = _copied(given.path, targets, limits)
    return {path: found[source] for path, source in layout.items()}


def _listed(folder: Path) -> list[str]:
    """Return the files of the folder, relative to it, with ``/``.

    Only where the layout can be: in ``benchmarks`` and ``corpus``, at the top or one folder below.
    """
    below = folder.glob("*/benchmarks")
    roots = [folder, *(path.parent for path in below)]
    found = [
        (Path(at) / name).relative_to(folder).as_posix()
        for root in roots
        for part in ("benchmarks", "corpus")
        for at, _, present in os.walk(root / part, onerror=_unlistable)
        for name in present
        if (Path(at) / name).is_file() or _leads_nowhere(Path(at) / name)
    ]
    return sorted(found)


def _leads_nowhere(path: Path) -> bool:
    """Return False where a name is not a file; raise InputError for a link to a missing file."""
    if path.is_symlink():
        raise InputError(f"{path}: a link to {path.readlink()}, which is no file")
    return False


def _unlistable(error: OSError) -> None:
    """Raise InputError for a folder that cannot be listed; an absent one is reported elsewhere."""
    if not isinstance(error, FileNotFoundError):
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _layout(there: Iterable[str], where: str) -> dict[str, str]:
    """Canonical path -> path as given, for each file of the layout, sorted.

    Raises InputError where there is no layout or more than one, a benchmark has no tests or no
    documents, two names have one canonical form, or one that cannot be a file's.
    """
    paths = sorted(there)
    root = _root(paths, where)
    found: dict[str, str] = {name: root + name for name in BENCHMARK_FILES}
    for path in paths:
        inside = path.removeprefix(root + "corpus/")
        if inside == path or not _is_document(inside):
            continue
        kept = names.canonical(inside)
        if not names.can_be_stored(kept):
            raise InputError(f"{where}: the name {path!a} cannot be that of a document's file")
        if (before := found.setdefault(f"corpus/{kept}", path)) != path:
            raise InputError(
                f"{where}: {before!a} and {path!a} are both {kept!a} in canonical form, so a test "
                "that names it is ambiguous. Take one away"
            )
    for benchmark in names.BENCHMARKS:
        if not any(path.startswith(f"corpus/{benchmark}/") for path in found):
            raise InputError(f"{where}: no documents: {root}corpus/{benchmark}/*.txt")
    return dict(sorted(found.items()))


def _root(paths: Iterable[str], where: str) -> str:
    """Return the folder that holds ``benchmarks`` and ``corpus``, with its ``/``; empty at the
    top.
    """
    present = set(paths)
    ends = {p.removesuffix(name) for name in BENCHMARK_FILES for p in present if p.endswith(name)}
    roots = sorted(root for root in ends if root == "" or root.endswith("/"))
    if len(roots) != 1:
        what = f"{len(roots)} of them: {', '.join(roots)}" if roots else f"found: {_some(present)}"
        raise InputError(
            f"{where}: not LegalBench-RAG: it must hold benchmarks/cuad.json and its like once, "
            f"beside corpus/; {what}"
        )
    for name in BENCHMARK_FILES:
        if roots[0] + name not in present:
            raise InputError(f"{where}: {roots[0]}{name} is missing")
    return roots[0]


def _some(present: Iterable[str]) -> str:
    shown = sorted(present)
    return (", ".join(map(repr, shown[:5])) or "nothing") + (" and others" if shown[5:] else "")


def _is_document(inside: str) -> bool:
    """Return whether a path below ``corpus/`` is a benchmark's text; hidden files are nobody's
    text.
    """
    parts = PurePosixPath(inside).parts
    hidden = any(part.startswith(".") for part in parts)
    return (
        parts[0] in names.BENCHMARKS
        and len(parts) > 1
        and not hidden
        and (inside.endswith(names.SUFFIX))
    )


def _copied(folder: Path, targets: Mapping[str, Path], limits: Limits) -> dict[str, FileRecord]:
    found: dict[str, FileRecord] = {}
    total = 0
    for source, target in targets.items():
        path = folder / source
        total += path.stat().st_size
        if path.stat().st_size > limits.file_bytes or total > limits.all_bytes:
            raise InputError(
                f"{path}: longer than {limits.file_bytes:,} bytes, or with those before it than "
                f"{limits.all_bytes:,}: refused"
            )
        data = files.read_bytes(path)
        target.write_bytes(data)
        found[source] = FileRecord(*files.hash_bytes(data))
    return found


def _described(given: _Given, kept: Mapping[str, FileRecord]) -> CopyRecord:
    content = copies.content_sha256(kept)
    is_zip = given.zip_sha256 is not None
    return CopyRecord(
        archive=given.name,
        archive_bytes=given.zip_bytes if is_zip else sum(f.n_bytes for f in kept.values()),
        archive_sha256=given.zip_sha256 or content,
        content_sha256=content,
        origin=copies.ZIP if is_zip else copies.DIRECTORY,
        files=kept,
    )


def _check(given: _Given, staged: Path) -> None:
    """Read the copy as a run would: every document, every test, every snippet."""
    try:
        whole = legalbench.LegalBenchSource(staged, sample=legalbench.ALL)
        evalset.assemble(copies.FOLDER, *whole.read())
    except InputError as error:
        raise InputError(
            f"{given.path}: {str(error).rstrip('.')}. Refused, nothing was kept."
        ) from error


def _clear(folder: Path) -> None:
    """Remove what a killed fetch left; a copy that was about to be replaced comes back."""
    shutil.rmtree(folder / STAGED, ignore_errors=True)
    replaced, data = folder / REPLACED, folder / copies.DATA
    if replaced.is_dir() and not data.exists():
        replaced.rename(data)
    shutil.rmtree(replaced, ignore_errors=True)


def _exchange(folder: Path) -> None:
    """Put the staged copy in place of the one there; readers refuse what is between the two.

    Until the record is renamed it is of the copy before, whose files have other hashes.
    """
    data, replaced = folder / copies.DATA, folder / REPLACED
    if data.exists():
        data.rename(replaced)
    (folder / STAGED / copies.DATA).rename(data)
    (folder / STAGED / copies.RECORD).replace(folder / copies.RECORD)
    shutil.rmtree(replaced, ignore_errors=True)
