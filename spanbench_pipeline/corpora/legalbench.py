"""LegalBench-RAG: four benchmarks over contracts and privacy policies, pooled or each alone.

``spanbench fetch legalbenchrag`` brings a copy; this module reads the files that a corpus is made
of, and only if their bytes are the recorded ones. Queries name their document in words, so they
are unscoped: no query has a doc_id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.config.settings import Rule, one_of
from spanbench_pipeline.core.errors import InputError, refuse_all
from spanbench_pipeline.core.evalset import Document, Query
from spanbench_pipeline.corpora import legalbench_benchmark, legalbench_copy, source
from spanbench_pipeline.corpora.legalbench_benchmark import BenchmarkTest
from spanbench_pipeline.corpora.legalbench_copy import CopyRecord
from spanbench_pipeline.corpora.source import SourceFile
from spanbench_pipeline.formats import legalbench_names as names
from spanbench_pipeline.formats.strict_json import decode

MINI, ALL = "mini", "all"
EXTRACTOR = "UTF-8 text"


def _each_once(chosen: tuple[str, ...]) -> str:
    sound = chosen and len(set(chosen)) == len(chosen)
    return "" if sound else "must name each benchmark once, and at least one"


@dataclass(frozen=True)
class Settings:
    """What [source] may hold beside ``kind``: by default every benchmark, and the mini set."""

    benchmarks: Annotated[
        tuple[Annotated[str, one_of(names.BENCHMARKS)], ...], Rule(_each_once)
    ] = names.BENCHMARKS
    sample: Annotated[str, one_of((MINI, ALL))] = MINI


@dataclass(frozen=True)
class LegalBenchSource:
    """LegalBench-RAG as ``fetch`` left it in ``folder``.

    ``sample`` "all" takes every document of the benchmarks and every test, "mini" the mini set's
    tests and only the documents that these touch.
    """

    folder: Path
    benchmarks: tuple[str, ...] = names.BENCHMARKS
    sample: str = MINI

    def files(self) -> list[SourceFile]:
        """Return the archive as recorded, then benchmarks and documents as they are."""
        record = legalbench_copy.read_record(self.folder)
        tests = self._tests(record)
        paths = [legalbench_benchmark.file_of(b) for b in self.benchmarks]
        rows = [_archive_row(record)]
        for path in [*paths, *self._documents(record, tests)]:
            kept = record.files[path]
            legalbench_copy.hashed(self._path(path), kept)
            role = "queries" if path in paths else "document"
            rows.append(SourceFile(path, role, kept.n_bytes, kept.sha256))
        return rows

    def drawn(self) -> dict[str, str]:
        """Return what was taken; see ``source.Source``."""
        which = ", ".join(self.benchmarks)
        if self.sample == ALL:
            return {"sampling": f"none: every document and test of {which}"}
        size = f"{legalbench_benchmark.MINI_TESTS} tests of each of {which}"
        return {
            "sampling": f"the mini set: {size}, and the documents they touch",
            "sampling seed": "each test's own: the path of its first snippet",
        }

    def read(self) -> tuple[list[Document], list[Query]]:
        """Return documents and queries, each snippet equal to its answer; see ``source.Source``."""
        record = legalbench_copy.read_record(self.folder)
        tests = self._tests(record)
        texts = self._texts(record, self._documents(record, tests))
        for test in tests:
            legalbench_benchmark.check(test, texts)
        documents = [_document(path, text) for path, text in texts.items()]
        return documents, [legalbench_benchmark.query(test) for test in tests]

    def _texts(self, record: CopyRecord, paths: Iterable[str]) -> dict[str, str]:
        """Canonical path -> text; InputError naming every file that is no text."""
        texts: dict[str, str] = {}
        problems: list[str] = []
        for path in paths:
            try:
                texts[path.removeprefix("corpus/")] = decode(self._bytes(record, path), path)
            except InputError as error:
                problems.append(str(error))
        refuse_all(problems, str(self.folder))
        return texts

    def _tests(self, record: CopyRecord) -> list[BenchmarkTest]:
        found: list[BenchmarkTest] = []
        for benchmark in self.benchmarks:
            path = legalbench_benchmark.file_of(benchmark)
            if path not in record.files:
                raise InputError(
                    f"{self.folder}: {path} is not recorded; run: {legalbench_copy.FETCH}"
                )
            tests = _parsed(self._bytes(record, path), benchmark)
            found += legalbench_benchmark.mini(tests) if self.sample == MINI else tests
        return found

    def _documents(self, record: CopyRecord, tests: Iterable[BenchmarkTest]) -> list[str]:
        """Return the corpus's files, by name; in the mini set those of them that a test touches.

        A file that a test touches and nobody recorded is missed when the test is checked.
        """
        if self.sample == MINI:
            touched = {f"corpus/{s.document}" for test in tests for s in test.snippets}
            return sorted(touched & record.files.keys())
        prefixes = tuple(f"corpus/{benchmark}/" for benchmark in self.benchmarks)
        return sorted(path for path in record.files if path.startswith(prefixes))

    def _bytes(self, record: CopyRecord, path: str) -> bytes:
        return legalbench_copy.read(self._path(path), record.files[path])

    def _path(self, path: str) -> Path:
        return self.folder / legalbench_copy.DATA / path


def open_source(experiment: Experiment, project: Project) -> LegalBenchSource:
    """Return LegalBench-RAG as [source] wants it; InputError names file and key."""
    found = source.settings(experiment, Settings)
    folder = project.downloads / legalbench_copy.FOLDER
    return LegalBenchSource(folder, tuple(sorted(found.benchmarks)), found.sample)


@lru_cache(maxsize=2 * len(names.BENCHMARKS))
def _parsed(data: bytes, benchmark: str) -> Sequence[BenchmarkTest]:
    """Return a benchmark's tests; several corpora read one file."""
    return tuple(legalbench_benchmark.parse(data, benchmark))


def _archive_row(record: CopyRecord) -> SourceFile:
    note = record.origin
    if record.origin == legalbench_copy.DIRECTORY:
        note += "; its hash is of its files' hashes and canonical names"
    return SourceFile(record.archive, "archive", record.archive_bytes, record.archive_sha256, note)


def _document(path: str, text: str) -> Document:
    doc_id = names.document_id(path)
    return Document(
        doc_id=doc_id,
        title=doc_id.partition("/")[2],
        text=text,
        source_file=f"corpus/{path}",
        extractor=EXTRACTOR,
    )
