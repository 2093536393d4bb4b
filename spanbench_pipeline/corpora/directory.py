"""An own corpus: a directory of documents, a JSONL file of queries and, optionally, metadata."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Interval

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError, refuse_all
from spanbench_pipeline.core.evalset import Document, Query
from spanbench_pipeline.corpora import files, manifest, queryfile, source
from spanbench_pipeline.corpora.extract import EXTRACTORS, Extracted, extract
from spanbench_pipeline.corpora.manifest import Manifest
from spanbench_pipeline.corpora.source import SourceFile
from spanbench_pipeline.formats import strict_json

MAX_DOCUMENTS = 250
MAX_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Settings:
    """What [source] may hold beside ``kind``."""

    documents: str
    queries: str
    metadata: str | None = None
    manifest: str | None = None
    max_documents: Annotated[int, Interval(ge=1)] = MAX_DOCUMENTS
    max_bytes: Annotated[int, Interval(ge=1)] = MAX_BYTES


@dataclass(frozen=True)
class DirectorySource:
    """A corpus in files of one's own.

    ``documents`` is a folder that holds nothing but documents: a file's name without its extension
    is its doc_id. ``queries`` is JSONL, ``metadata`` JSON ``{doc_id: {field: value}}``. With a
    ``manifest``, documents whose text is not the recorded one are refused.
    """

    documents: Path
    queries: Path
    metadata: Path | None = None
    manifest: Path | None = None
    max_documents: int = MAX_DOCUMENTS
    max_bytes: int = MAX_BYTES

    def drawn(self) -> dict[str, str]:
        """Return nothing is drawn; see ``source.Source``."""
        return {"sampling": "none: every document and query"}

    def files(self) -> list[SourceFile]:
        """Return documents by name, then queries and metadata; see ``source.Source``.

        A document's note is what the manifest notes of it.
        """
        notes = manifest.notes(self.manifest) if self.manifest else {}
        found = [("document", path) for path in self.listed()]
        found.append(("queries", self.queries))
        if self.metadata:
            found.append(("metadata", self.metadata))
        rows: dict[str, SourceFile] = {}
        for role, path in found:
            n_bytes, sha256 = files.hash_file(path)
            # Queries or metadata may bear the name of a document, which lies in another folder.
            name = f"{role}: {path.name}" if path.name in rows else path.name
            note = notes.get(_doc_id(path)) if role == "document" else None
            rows[name] = SourceFile(name, role, n_bytes, sha256, "; ".join(note) if note else None)
        return list(rows.values())

    def read(self) -> tuple[list[Document], list[Query]]:
        """Return documents by name and queries in file order; see ``source.Source``."""
        documents, entries = self.extracted()
        if self.manifest:
            manifest.check(self.manifest, entries)
        return documents, self.asked(documents, entries)

    def asked(self, documents: Iterable[Document], entries: Manifest) -> list[Query]:
        """Return the queries about ``documents``, in file order; ``entries`` is what is known of
        these.
        """
        texts = {d.doc_id: d.text for d in documents}
        problems = queryfile.Problems()
        try:
            data = files.read_bytes(self.queries)
            return queryfile.read(data, str(self.queries), texts, problems)
        except InputError as error:
            raise InputError(f"{error}{_unread(problems.absent, entries)}") from error

    def extracted(self) -> tuple[list[Document], Manifest]:
        """Return the documents with text and metadata, and what a manifest is to record of them.

        Raises InputError naming everything in the folder that is no document or has no text.
        """
        paths, problems = self._found()
        made: dict[Path, Extracted] = {}
        entries: Manifest = {}
        for path in paths:
            try:
                data = files.read_bytes(path)
                made[path] = extract(path.name, data, str(path))
                entries[_doc_id(path)] = manifest.entry(data, made[path])
            except InputError as error:
                problems.append(str(error))
        refuse_all(problems, str(self.documents))
        metadata = self._metadata({_doc_id(path) for path in paths})
        return [_document(path, text, metadata) for path, text in made.items()], entries

    def listed(self) -> list[Path]:
        """Return the documents' files, sorted by doc_id; no text is read.

        Raises InputError naming everything in the folder that is no document and files with one
        stem, and for more documents or bytes than the caps allow.
        """
        paths, problems = self._found()
        refuse_all(problems, str(self.documents))
        return paths

    def _found(self) -> tuple[list[Path], list[str]]:
        """Return the documents' files, sorted by doc_id, and what is wrong with the others."""
        try:
            found = sorted(self.documents.iterdir(), key=lambda path: path.name)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise InputError(
                f"{self.documents}: the folder of documents cannot be read: "
                f"{getattr(error, 'strerror', None) or error}. Correct `documents` in the "
                "experiment, or register the corpus again: spanbench adapt"
            ) from error
        if not found:
            raise InputError(f"{self.documents}: the folder holds no documents")
        wrong = {path: problem for path in found if (problem := _why_no_document(path))}
        paths = [path for path in found if path not in wrong]
        self._check_caps(paths)
        return sorted(paths, key=_doc_id), [*wrong.values(), *_clashes(paths)]

    def _check_caps(self, paths: list[Path]) -> None:
        n_bytes = sum(path.stat().st_size for path in paths)
        for key, most, actual, what in (
            ("max_documents", self.max_documents, len(paths), "documents"),
            ("max_bytes", self.max_bytes, n_bytes, "bytes of documents"),
        ):
            if actual > most:
                raise InputError(
                    f"{self.documents}: {actual:,} {what}, but the cap is {most:,}; if that many "
                    f"are meant, raise it: spanbench adapt --{key.replace('_', '-')} N"
                )

    def _metadata(self, known: set[str]) -> dict[str, dict[str, str]]:
        """Metadata by doc_id, values as text."""
        if not self.metadata:
            return {}
        where = str(self.metadata)
        text = strict_json.decode(files.read_bytes(self.metadata), where)
        value = strict_json.parse(text.removeprefix(strict_json.BOM), where)
        if not isinstance(value, dict):
            raise InputError(
                f"{where}: must be an object {{doc_id: {{field: value}}}}, "
                f"not {strict_json.kind(value)}"
            )
        problems = queryfile.Problems()
        found = {}
        for doc_id, fields in value.items():
            at = f"{where}, document {doc_id!r}"
            if doc_id not in known:
                hint = problems.hinted
                problems.append(queryfile.unknown_document(where, doc_id, known, hint=hint))
            found[doc_id] = queryfile.field_values(fields, at, "metadata", problems)
        refuse_all(problems, where)
        return found


def open_source(experiment: Experiment, project: Project) -> DirectorySource:
    """Return the directory that [source] names; relative paths start at the project's root.

    Raises InputError naming the experiment file and the key that is wrong.
    """
    found = source.settings(experiment, Settings)

    def path(key: str) -> Path:
        try:
            return project.root / files.at_home(Path(getattr(found, key)))
        except InputError as error:
            raise source.error(experiment, f"{key} = {error}") from error

    return DirectorySource(
        documents=path("documents"),
        queries=path("queries"),
        metadata=None if found.metadata is None else path("metadata"),
        manifest=None if found.manifest is None else path("manifest"),
        max_documents=found.max_documents,
        max_bytes=found.max_bytes,
    )


def _doc_id(path: Path) -> str:
    """Return the file's name without its extension, verbatim."""
    return path.name.rpartition(".")[0]


def _document(path: Path, made: Extracted, metadata: Mapping[str, dict[str, str]]) -> Document:
    doc_id = _doc_id(path)
    return Document(
        doc_id=doc_id,
        title=doc_id,
        text=made.text,
        source_file=path.name,
        extractor=made.extractor,
        metadata=metadata.get(doc_id, {}),
    )


def _unread(doc_ids: Iterable[str], entries: Manifest) -> str:
    """Return what is noted of these documents, in which a gold text is not."""
    return "".join(
        f"\nOf document {doc_id!r}: {note}"
        for doc_id in sorted(doc_ids)
        for note in entries[doc_id].get("notes", ())
    )


def _why_no_document(path: Path) -> str | None:
    """Return why it is no readable file whose extension says that it is a document; None where it
    is.
    """
    allowed = f"Only {', '.join(EXTRACTORS)} may stand there: move it elsewhere."
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError:
        return f"{str(path)!r}: the file's name is not UTF-8; rename it"
    if files.UNFIT_IN_NAMES.search(path.name):
        return f"{str(path)!r}: the file's name holds a line break or control character; rename it"
    if path.name.startswith("."):
        return f"{path}: a hidden file in the folder of documents. {allowed}"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return f"{path}: no file, or a link to one that is not there"
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return f"{path}: a folder in the folder of documents. {allowed}"
    if path.suffix.lower() not in EXTRACTORS:
        return f"{path}: not a document. {allowed}"
    if not stat.S_ISREG(mode):
        return f"{path}: a pipe, socket or device, not a regular file. {allowed}"
    return None


def _clashes(paths: Iterable[Path]) -> Iterator[str]:
    """Yield what is wrong where files would be one document."""
    named = defaultdict[str, list[Path]](list)
    for path in paths:
        named[_doc_id(path)].append(path)
    for doc_id, (first, *others) in named.items():
        for other in others:
            yield (
                f"{first.parent}: {first.name!r} and {other.name!r} would both be document "
                f"{doc_id!r}; rename one"
            )
