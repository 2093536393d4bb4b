"""LegalBench-RAG's benchmark files: tests, each a query with the snippets that answer it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import GoldSpan, Query
from spanbench_pipeline.formats import legalbench_names as names
from spanbench_pipeline.formats import strict_json
from spanbench_pipeline.formats.strict_json import field, whole

MINI_TESTS = 194
"""Tests of each benchmark in the mini set."""


@dataclass(frozen=True)
class Snippet:
    """Characters ``[start, end)`` of a file of the corpus, and what the test says stands there."""

    path: str
    start: int
    end: int
    answer: str

    @property
    def document(self) -> str:
        """Return the file's canonical path."""
        return names.canonical(self.path)


@dataclass(frozen=True)
class BenchmarkTest:
    """One test of a benchmark; ``number`` is its place in the benchmark's file, from 1."""

    benchmark: str
    number: int
    query: str
    snippets: tuple[Snippet, ...]

    @property
    def where(self) -> str:
        """Return the test as messages name it."""
        return f"{file_of(self.benchmark)}, test {self.number}"

    @property
    def query_id(self) -> str:
        """Return ``<benchmark>-NNNN``: a test has one id in every corpus that it is in."""
        return f"{self.benchmark}-{self.number:04d}"


def file_of(benchmark: str) -> str:
    """Return where a benchmark's tests are: its path in the archive."""
    return f"benchmarks/{benchmark}.json"


def parse(data: bytes, benchmark: str) -> list[BenchmarkTest]:
    """Return the tests of a benchmark's file, in its order.

    Raises InputError naming file and test for JSON that is not of the format: no tests, a test
    without snippets, offsets that are no whole numbers, a file of another benchmark.
    """
    where = file_of(benchmark)
    text = strict_json.decode(data, where).removeprefix(strict_json.BOM)
    entries = field(strict_json.parse(text, where), "tests", list, where)
    if not entries:
        raise InputError(f"{where}: it holds no tests")
    return [_test(entry, benchmark, number) for number, entry in enumerate(entries, 1)]


def mini(tests: Sequence[BenchmarkTest]) -> list[BenchmarkTest]:
    """Return the tests of the mini set among a benchmark's, in the order of the benchmark's file.

    Sorted by the number that ``random.random()`` gives right after ``random.seed(path)``, where
    path is the first snippet's as published; the sort is stable; the first ``MINI_TESTS`` of them.
    Raises InputError where there are fewer.
    """
    if len(tests) < MINI_TESTS:
        what = f"{file_of(tests[0].benchmark)}: {len(tests)} tests" if tests else "no tests"
        raise InputError(
            f"{what}, but the mini set takes {MINI_TESTS}. Give the whole archive, or set "
            'sample = "all"'
        )
    drawn = sorted(tests, key=lambda test: _draw(names.published(test.snippets[0].path)))
    return sorted(drawn[:MINI_TESTS], key=lambda test: test.number)


def check(test: BenchmarkTest, texts: Mapping[str, str]) -> None:
    """Hold each snippet to the text of its file; ``texts`` is canonical path -> text.

    Raises InputError naming benchmark, test and file where there is no such file, or what stands
    at the offsets is not the answer.
    """
    for snippet in test.snippets:
        where = f"{test.where}: file_path {snippet.path!r}"
        text = texts.get(snippet.document)
        if text is None:
            raise InputError(
                f"{where}: the corpus has no such file; looked for {snippet.document!r}"
            )
        at = f"{where}, span [{snippet.start}, {snippet.end})"
        if not 0 <= snippet.start < snippet.end <= len(text):
            raise InputError(
                f"{at}: outside the text, which has {len(text)} characters, or without characters"
            )
        there = text[snippet.start : snippet.end]
        if there != snippet.answer:
            raise InputError(
                f"{at}: the text there is {there[:120]!r}, but the answer is "
                f"{snippet.answer[:120]!r}. Offsets count Unicode code points, a BOM and both "
                "characters of a CR LF included."
            )


def query(test: BenchmarkTest) -> Query:
    """Return the test as an unscoped query of its benchmark; ``check`` it first."""
    return Query(
        query_id=test.query_id,
        text=test.query,
        gold=[
            GoldSpan(names.document_id(s.document), s.start, s.end, s.answer) for s in test.snippets
        ],
        subset=test.benchmark,
        origin=test.where,
    )


def _draw(seed: str) -> float:
    return random.Random(seed).random()


def _test(entry: Any, benchmark: str, number: int) -> BenchmarkTest:
    where = f"{file_of(benchmark)}, test {number}"
    found = field(entry, "snippets", list, where)
    if not found:
        raise InputError(f"{where}: it has no snippets")
    snippets = tuple(_snippet(s, f"{where}, snippet {n}") for n, s in enumerate(found, 1))
    for snippet in snippets:
        if not snippet.document.startswith(f"{benchmark}/"):
            raise InputError(
                f"{where}: file_path {snippet.path!r} is not of this benchmark: it must open with "
                f"'{benchmark}/'"
            )
    return BenchmarkTest(benchmark, number, field(entry, "query", str, where), snippets)


def _snippet(entry: Any, where: str) -> Snippet:
    span = field(entry, "span", list, where)
    if len(span) != 2:
        raise InputError(f"{where}: span {span} must be [start, end]")
    return Snippet(
        field(entry, "file_path", str, where),
        whole(span[0], "an offset", where),
        whole(span[1], "an offset", where),
        field(entry, "answer", str, where),
    )
