"""An own corpus: a directory of documents, a JSONL file of queries and, optionally, metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from spanbench_pipeline.corpora import files, manifest, queryfile, source, strict_json
from spanbench_pipeline.corpora.extract import EXTRACTORS, extract
from spanbench_pipeline.corpora.manifest import Manifest
from spanbench_pipeline.corpora.source import SourceFile
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.evalset import Document, Query
from spanbench_pipeline.experiment import Experiment
from spanbench_pipeline.project import Project

MAX_DOCUMENTS = 250
MAX_BYTES = 2_000_000_000
SETTINGS = {
    "documents": str,
    "queries": str,
    "metadata": str,
    "manifest": str,
    "max_documents": int,
    "max_bytes": int,
}
"""What [source] may hold beside ``kind``; documents and queries must be there."""


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
        """Nothing is drawn; see ``source.Source``."""
        return {"sampling": "none: every document and query"}

    def files(self) -> list[SourceFile]:
        """Documents by name, then queries and metadata; see ``source.Source``."""
        found = [("document", path) for path in self.listed()]
        found.append(("queries", self.queries))
        if self.metadata:
            found.append(("metadata", self.metadata))
        rows: dict[str, SourceFile] = {}
        for role, path in found:
            n_bytes, sha256 = files.hash_file(path)
            # Queries or metadata may bear the name of a document, which lies in another folder.
            name = f"{role}: {path.name}" if path.name in rows else path.name
            rows[name] = SourceFile(name, role, n_bytes, sha256)
        return list(rows.values())

    def read(self) -> tuple[list[Document], list[Query]]:
        """Documents by name and queries in file order; see ``source.Source``."""
        documents, entries = self.extracted()
        if self.manifest:
            manifest.check(self.manifest, entries)
        return documents, self.asked(documents)

    def asked(self, documents: Iterable[Document]) -> list[Query]:
        """The queries about ``documents``, in file order."""
        texts = {d.doc_id: d.text for d in documents}
        return queryfile.read(files.read_bytes(self.queries), str(self.queries), texts)

    def extracted(self) -> tuple[list[Document], Manifest]:
        """The documents with text and metadata, and what a manifest is to record of them."""
        paths = self.listed()
        metadata = self._metadata({_doc_id(path) for path in paths})
        documents: list[Document] = []
        entries: Manifest = {}
        for path in paths:
            data = files.read_bytes(path)
            made = extract(path.name, data, str(path))
            doc_id = _doc_id(path)
            documents.append(
                Document(
                    doc_id=doc_id,
                    title=doc_id,
                    text=made.text,
                    source_file=path.name,
                    extractor=made.extractor,
                    metadata=metadata.get(doc_id, {}),
                )
            )
            entries[doc_id] = manifest.entry(data, made)
        return documents, entries

    def listed(self) -> list[Path]:
        """The documents' files, sorted by doc_id; no text is read.

        Raises InputError for anything in the folder that is no document, two files with one stem,
        and more documents or bytes than the caps allow.
        """
        try:
            paths = sorted(self.documents.iterdir(), key=lambda path: path.name)
        except OSError as error:
            raise InputError(
                f"{self.documents}: the folder of documents cannot be read: {error.strerror}. "
                "Correct `documents` in the experiment, or register the corpus again: "
                "spanbench adapt"
            ) from error
        if not paths:
            raise InputError(f"{self.documents}: the folder holds no documents")
        for path in paths:
            _check_is_document(path)
        _check_stems(paths)
        self._check_caps(paths)
        return sorted(paths, key=_doc_id)

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
        for doc_id in value:
            if doc_id not in known:
                raise queryfile.unknown_document(where, doc_id, known)
        return {
            doc_id: queryfile.field_values(fields, f"{where}, document {doc_id!r}", "metadata")
            for doc_id, fields in value.items()
        }


def open_source(experiment: Experiment, project: Project) -> DirectorySource:
    """The directory that [source] names; relative paths start at the project's root.

    Raises InputError naming the experiment file and the key that is wrong.
    """
    found = source.settings(experiment, SETTINGS, required=("documents", "queries"))

    def path(key: str) -> Path:
        return project.root / Path(found[key]).expanduser()

    return DirectorySource(
        documents=path("documents"),
        queries=path("queries"),
        metadata=path("metadata") if "metadata" in found else None,
        manifest=path("manifest") if "manifest" in found else None,
        max_documents=found.get("max_documents", MAX_DOCUMENTS),
        max_bytes=found.get("max_bytes", MAX_BYTES),
    )


def _doc_id(path: Path) -> str:
    """The file's name without its extension, verbatim."""
    return path.name.rpartition(".")[0]


def _check_is_document(path: Path) -> None:
    """InputError unless it is a readable file whose extension says that it is a document."""
    allowed = f"Only {', '.join(EXTRACTORS)} may stand there: move it elsewhere."
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{str(path)!r}: the file's name is not UTF-8; rename it") from error
    if path.name.startswith("."):
        raise InputError(f"{path}: a hidden file in the folder of documents. {allowed}")
    if path.is_dir():
        raise InputError(f"{path}: a folder in the folder of documents. {allowed}")
    if path.suffix.lower() not in EXTRACTORS:
        raise InputError(f"{path}: not a document. {allowed}")
    if not path.is_file():
        raise InputError(f"{path}: no file, or a link to one that is not there")


def _check_stems(paths: Iterable[Path]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        doc_id = _doc_id(path)
        if doc_id in seen:
            raise InputError(
                f"{path.parent}: {seen[doc_id]!r} and {path.name!r} would both be document "
                f"{doc_id!r}; rename one"
            )
        seen[doc_id] = path.name
