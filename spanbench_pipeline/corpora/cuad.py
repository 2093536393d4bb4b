"""CUAD v1: contracts with expert-marked clauses, sampled as published or taken whole.

CUAD v1 is by The Atticus Project, CC BY 4.0. ``spanbench fetch cuad`` brings its archive; this
module reads the one member that was extracted, and only if its bytes are the recorded ones.
"""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.codepoints import join_surrogates
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, GoldSpan, Query
from spanbench_pipeline.corpora import archive, files, source
from spanbench_pipeline.corpora.archive import Provenance
from spanbench_pipeline.corpora.source import SourceFile
from spanbench_pipeline.formats.strict_json import field

FOLDER = "cuad"
"""Where ``fetch`` puts member and record, below ``Project.downloads``."""
MEMBER = "CUADv1.json"
RECORD = "provenance.json"
FETCH = "spanbench fetch cuad"
EXTRACTOR = "CUAD v1 JSON"

HEADER_TYPES = frozenset(
    {"Document Name", "Parties", "Agreement Date", "Effective Date", "Expiration Date"}
)
"""Clause types that are header extraction: left out unless ``include_metadata_clauses``."""
REFERRING_TYPES = frozenset({"Competitive Restriction Exception"})
"""Clause types whose questions refer to other questions: always left out."""


@dataclass(frozen=True)
class Settings:
    """What [source] may hold beside ``kind``."""

    sample: bool = True
    include_metadata_clauses: bool = False


@dataclass(frozen=True)
class Sampling:
    """How much of the archive a corpus takes. None: no limit.

    Documents of ``min_chars`` to ``max_chars`` characters (both included) with at least
    ``min_questions`` eligible questions are drawn from; ``n_documents`` of them are taken. Of the
    questions at most ``per_document`` a document, ``per_clause_type`` a clause type, ``n_queries``
    in all.
    """

    n_documents: int | None
    n_queries: int | None
    per_document: int | None
    per_clause_type: int | None
    min_chars: int
    max_chars: int | None
    min_questions: int
    seed: int = 42


PUBLISHED = Sampling(
    n_documents=20,
    n_queries=50,
    per_document=3,
    per_clause_type=4,
    min_chars=15_000,
    max_chars=80_000,
    min_questions=5,
)
WHOLE = Sampling(
    n_documents=None,
    n_queries=None,
    per_document=None,
    per_clause_type=None,
    min_chars=0,
    max_chars=None,
    min_questions=0,
)


@dataclass(frozen=True)
class Question:
    """An eligible question: about one clause type of one contract, with at least one answer."""

    question_id: str
    clause_type: str
    query: str
    answers: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Contract:
    """A contract with its whole text and its eligible questions, in the archive's order."""

    title: str
    text: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class CuadSource:
    """CUAD as ``fetch`` left it in ``folder``."""

    folder: Path
    sampling: Sampling = PUBLISHED
    include_metadata_clauses: bool = False

    def files(self) -> list[SourceFile]:
        """Return the archive as recorded, and the member as it is; see ``source.Source``."""
        record = self._record()
        self._check(record, *files.hash_file(self.folder / MEMBER))
        return [
            SourceFile(
                record.archive,
                "archive",
                record.archive_bytes,
                record.archive_sha256,
                record.origin,
            ),
            SourceFile(MEMBER, "member", record.member_bytes, record.member_sha256, record.note),
        ]

    def drawn(self) -> dict[str, str]:
        """Return the sampling's size and seed; see ``source.Source``."""
        sampling = self.sampling
        if sampling.n_documents is None:
            return {"sampling": "none: every document and eligible query"}
        size = f"{sampling.n_documents} documents, {sampling.n_queries} queries"
        return {"sampling": size, "sampling seed": str(sampling.seed)}

    def read(self) -> tuple[list[Document], list[Query]]:
        """Return the sampled documents and queries; see ``source.Source``."""
        record = self._record()
        data = files.read_bytes(self.folder / MEMBER)
        self._check(record, *files.hash_bytes(data))
        excluded = REFERRING_TYPES | (
            frozenset() if self.include_metadata_clauses else HEADER_TYPES
        )
        contracts, turn = draw_documents(parse(data, excluded), self.sampling)
        return _evalset(contracts, draw_questions(turn, self.sampling))

    def _record(self) -> Provenance:
        for name in (MEMBER, RECORD):
            if not (self.folder / name).is_file():
                raise InputError(f"{self.folder / name}: not here yet; run: {FETCH}")
        return archive.read_provenance(self.folder / RECORD, FETCH)

    def _check(self, record: Provenance, n_bytes: int, sha256: str) -> None:
        if (record.member_bytes, record.member_sha256) != (n_bytes, sha256):
            raise InputError(
                f"{self.folder / MEMBER}: {n_bytes} bytes with sha256 {sha256}, but "
                f"{record.member_bytes} bytes with sha256 {record.member_sha256} were fetched; "
                f"run again: {FETCH}"
            )


def open_source(experiment: Experiment, project: Project) -> CuadSource:
    """Return CUAD as [source] wants it; InputError names the experiment file and the wrong key."""
    found = source.settings(experiment, Settings)
    sampling = PUBLISHED if found.sample else WHOLE
    return CuadSource(project.downloads / FOLDER, sampling, found.include_metadata_clauses)


def parse(data: bytes, excluded: frozenset[str]) -> list[Contract]:
    """Return the archive's contracts with their eligible questions, in the archive's order.

    A question is eligible when it has an answer and its clause type is not ``excluded``. Every
    question is checked, eligible or not. Raises InputError naming title and question for JSON that
    is not CUAD's and for an answer that is not what stands at its offset.
    """
    try:
        entries = json.loads(data.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{MEMBER}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{MEMBER}: not valid JSON: nested too deep") from error
    contracts = [
        _contract(entry, f"{MEMBER}, contract number {number}", excluded)
        for number, entry in enumerate(field(entries, "data", list, MEMBER), 1)
    ]
    for title, count in Counter(c.title for c in contracts).items():
        if count > 1:
            raise InputError(f"{MEMBER}: title {title!r} is given {count} times")
    return contracts


def draw_documents(
    contracts: Iterable[Contract], sampling: Sampling
) -> tuple[list[Contract], list[Contract]]:
    """Return the sample's documents, sorted by title, and again in the order of a turn.

    Eligible ones sorted by title; ``Random(seed).sample``, sorted by title; the same generator
    then shuffles them into the order in which they give questions. Raises InputError where fewer
    are eligible than wanted.
    """
    eligible = sorted(
        (
            c
            for c in contracts
            if sampling.min_chars <= len(c.text) <= _limit(sampling.max_chars)
            and len(c.questions) >= sampling.min_questions
        ),
        key=lambda c: c.title,
    )
    wanted = len(eligible) if sampling.n_documents is None else sampling.n_documents
    if len(eligible) < wanted:
        raise InputError(f"{MEMBER}: {len(eligible)} documents are eligible, {wanted} are wanted")
    generator = random.Random(sampling.seed)
    drawn = sorted(generator.sample(eligible, wanted), key=lambda c: c.title)
    turn = list(drawn)
    generator.shuffle(turn)
    return drawn, turn


def draw_questions(turn: Sequence[Contract], sampling: Sampling) -> list[tuple[Contract, Question]]:
    """Return the sample's questions with their contracts, sorted by (title, question id).

    Round-robin over the contracts in the order of ``turn``: each gives the first of its remaining
    questions, shuffled by a fresh ``Random(seed)``, whose clause type is still under its limit;
    ``per_document`` turns, or until none has any to give.
    """
    left = {c.title: _shuffled(c.questions, sampling.seed) for c in turn}
    by_type: Counter[str] = Counter()
    taken: list[tuple[Contract, Question]] = []
    done = 0
    while done < _limit(sampling.per_document):
        before = len(taken)
        for contract in turn:
            question = _next(left[contract.title], by_type, _limit(sampling.per_clause_type))
            if question and len(taken) < _limit(sampling.n_queries):
                left[contract.title].remove(question)
                by_type[question.clause_type] += 1
                taken.append((contract, question))
        if len(taken) == before:
            break
        done += 1
    return sorted(taken, key=lambda pair: (pair[0].title, pair[1].question_id))


def document_ids(titles: Iterable[str]) -> list[str]:
    """Return one id a title, in order: ASCII, lower case, at most 60 characters before ``-2``,
    ``-3``.

    Titles are to be given sorted: of two that fold to one id the later gets the number.
    """
    found: dict[str, None] = {}
    for title in titles:
        ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii")
        base = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower())[:60].rstrip("-")
        name, number = base, 1
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found[name] = None
    return list(found)


def _limit(number: int | None) -> float:
    return float("inf") if number is None else number


def _shuffled(questions: Iterable[Question], seed: int) -> list[Question]:
    """By id, then shuffled by a generator of the document's own."""
    ordered = sorted(questions, key=lambda q: q.question_id)
    random.Random(seed).shuffle(ordered)
    return ordered


def _next(left: Iterable[Question], by_type: Mapping[str, int], most: float) -> Question | None:
    return next((q for q in left if by_type[q.clause_type] < most), None)


def _evalset(
    contracts: Sequence[Contract], questions: Sequence[tuple[Contract, Question]]
) -> tuple[list[Document], list[Query]]:
    """Return documents and queries with their ids; a query's ``origin`` is its question id in
    CUAD.
    """
    ids = document_ids(c.title for c in contracts)
    id_of = {c.title: doc_id for c, doc_id in zip(contracts, ids, strict=True)}
    width = max(3, len(str(len(questions))))
    documents = [
        Document(id_of[c.title], c.title, c.text, source_file=MEMBER, extractor=EXTRACTOR)
        for c in contracts
    ]
    queries = [
        Query(
            query_id=f"q{number:0{width}d}",
            text=question.query,
            gold=[
                GoldSpan(id_of[contract.title], start, start + len(text), text)
                for start, text in question.answers
            ],
            doc_id=id_of[contract.title],
            clause_type=question.clause_type,
            origin=question.question_id,
        )
        for number, (contract, question) in enumerate(questions, 1)
    ]
    return documents, queries


def _contract(entry: Any, where: str, excluded: frozenset[str]) -> Contract:
    title = field(entry, "title", str, where)
    where = f"{MEMBER}, contract {title!r}"
    paragraphs = field(entry, "paragraphs", list, where)
    if len(paragraphs) != 1:
        raise InputError(f"{where}: {len(paragraphs)} paragraphs; a contract is exactly one")
    text = join_surrogates(field(paragraphs[0], "context", str, where), where)
    if "\0" in text:
        raise InputError(f"{where}: character {text.index(chr(0))} is NUL, which no text holds")
    entries = field(paragraphs[0], "qas", list, where)
    questions = [_question(qa, title, text, where) for qa in entries]
    for question_id, count in Counter(q.question_id for q in questions).items():
        if count > 1:
            raise InputError(f"{where}: question {question_id!r} is given {count} times")
    eligible = (q for q in questions if q.answers and q.clause_type not in excluded)
    return Contract(title, text, tuple(eligible))


def _question(entry: Any, title: str, text: str, where: str) -> Question:
    question_id = field(entry, "id", str, where)
    where = f"{where}, question {question_id!r}"
    prefix, clause_type = f"{title}__", question_id[len(title) + 2 :]
    if not question_id.startswith(prefix) or not clause_type:
        raise InputError(f"{where}: a question's id must be <title>__<clause type>")
    _, found, details = field(entry, "question", str, where).partition("Details:")
    query = " ".join(details.split())  # no-break spaces are white space to split()
    if not found or not query:
        raise InputError(f"{where}: the question has nothing after 'Details:'")
    answers = field(entry, "answers", list, where)
    return Question(
        question_id, clause_type, query, tuple(_answer(answer, text, where) for answer in answers)
    )


def _answer(entry: Any, text: str, where: str) -> tuple[int, str]:
    """Return an answer's offset and text, which must be what stands there."""
    start, answer = field(entry, "answer_start", int, where), field(entry, "text", str, where)
    if not 0 <= start < start + len(answer) <= len(text):
        raise InputError(
            f"{where}: answer [{start}, {start + len(answer)}) is outside the text, which has "
            f"{len(text)} characters, or without characters"
        )
    if not text.startswith(answer, start):
        there = text[start : start + len(answer)]
        raise InputError(
            f"{where}: the text at [{start}, {start + len(answer)}) is {there[:120]!r}, but the "
            f"answer is {answer[:120]!r}"
        )
    return start, answer
