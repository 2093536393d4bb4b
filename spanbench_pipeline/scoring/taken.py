"""What a file says was retrieved, held to the corpus: the table of rankings that is measured.

The rules, each with a message that names file, line and query where it is broken:

- The order of a list is its ranking. Scores must not rise down the list, since then the file says
  two things; equal scores are ties, and stand as given. ``order`` settles it otherwise.
- A query has one list. One that the file leaves out has an empty list, and is named; where a whole
  part of the corpus is left out, or every list is empty, nothing was measured: an error.
- A place may stand twice in a list: it is counted, and each measure says what it makes of it.
- Documents, queries and chunks must be known, offsets inside the text, and a text that is given
  must be what stands there.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline import tables
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.evalset import EvalSet, texts
from spanbench_pipeline.exchange import Entry, GivenList
from spanbench_pipeline.exchange.ids import closest
from spanbench_pipeline.scoring.places import outside

ORDERS = ("given", "score")
"""What may order a list whose scores rise: the file's own order, or the scores, ties as given."""

Place = tuple[str, int, int]


@dataclass(frozen=True)
class Taken:
    """The rankings of one configuration as they were given, and what was noticed on the way."""

    rankings: pa.Table
    """Repeats included, so that ranks are places in the file's list."""
    missing: tuple[str, ...]
    """Queries of the corpus that the file leaves out, sorted."""
    empty: tuple[str, ...]
    """Queries whose list in the file is empty, sorted."""
    repeats: int
    """Entries whose place stands earlier in their list."""
    n_lists: int
    longest: int


@dataclass(frozen=True)
class Known:
    """What the lists are held to."""

    n_chars: Mapping[str, int]
    texts: Mapping[str, str]
    place_of: Mapping[str, Place] | None
    """Chunk id -> its place; None without a chunk table."""
    chunk_at: Mapping[Place, str]

    @classmethod
    def of(cls, evalset: EvalSet, chunks: pa.Table | None) -> Known:
        """What is known of a corpus, and of one chunker's chunks."""
        columns = (evalset.documents[c].to_pylist() for c in ("doc_id", "n_chars"))
        places = {} if chunks is None else _places(chunks)
        return cls(
            n_chars=dict(zip(*columns, strict=True)),
            texts=texts(evalset.documents),
            place_of=None if chunks is None else places,
            chunk_at={place: chunk_id for chunk_id, place in places.items()},
        )


def of_part(lists: Sequence[GivenList], whole: EvalSet, part: EvalSet) -> list[GivenList]:
    """The lists without those of queries that the corpus has and the part of it has not."""
    asked = set(part.queries["query_id"].to_pylist())
    others = set(whole.queries["query_id"].to_pylist()) - asked
    return [given for given in lists if given.query_id not in others]


def take(
    lists: Sequence[GivenList],
    evalset: EvalSet,
    chunks: pa.Table | None,
    *,
    corpus: str,
    config: str,
    where: str,
    order: str | None = None,
) -> Taken:
    """The lists of a file as the table ``rankings`` of the configuration ``config``.

    Without ``chunks`` a chunk's id is made of its place. Where the file gives no scores, the
    table's are 1 / rank. Raises InputError as the module says.
    """
    known = Known.of(evalset, chunks)
    _check_queries(lists, evalset, where)
    missing = _missing(lists, evalset, where)
    rows: list[dict[str, Any]] = []
    repeats = 0
    for given in sorted(lists, key=lambda one: one.query_id):
        ordered = _ordered(given, order)
        placed = [_placed(entry, given, known) for entry in ordered]
        repeats += len(placed) - len(set(placed))
        rows += _rows(given, ordered, placed, known)
    named = {"corpus": corpus, "config": config}
    none = {"dense_rank": None, "bm25_rank": None, "fused_rank": None}
    return Taken(
        tables.from_rows("rankings", [named | row | none for row in rows]),
        missing,
        tuple(sorted(given.query_id for given in lists if not given.entries)),
        repeats,
        len(lists),
        max((len(given.entries) for given in lists), default=0),
    )


def _check_queries(lists: Sequence[GivenList], evalset: EvalSet, where: str) -> None:
    if not any(given.entries for given in lists):
        raise InputError(
            f"{where}: not measured: the file holds no entry for any query; a run that never "
            "happened is no run that failed"
        )
    known = dict.fromkeys(evalset.queries["query_id"].to_pylist())
    first: dict[str, GivenList] = {}
    for given in lists:
        if given.query_id not in known:
            raise InputError(
                f"{given.where}: unknown query {given.query_id!r}{closest(given.query_id, known)}"
            )
        if given.query_id in first:
            raise InputError(
                f"{given.where}: query {given.query_id} has two lists, the first in "
                f"{first[given.query_id].where}; a query has one"
            )
        first[given.query_id] = given


def _missing(lists: Sequence[GivenList], evalset: EvalSet, where: str) -> tuple[str, ...]:
    """The queries without a list; InputError where a whole part of the corpus has no entry."""
    there = {given.query_id for given in lists}
    filled = {given.query_id for given in lists if given.entries}
    rows = evalset.queries.select(["query_id", "subset"]).to_pylist()
    asked = Counter(row["subset"] for row in rows)
    found = Counter(row["subset"] for row in rows if row["query_id"] in filled)
    absent = sorted(str(subset) for subset in asked if not found[subset])
    if absent:
        named = sorted(str(subset) for subset in found)
        raise InputError(
            f"{where}: not measured: no query of {', '.join(absent)} has an entry; a part that "
            f"never ran is no part that failed. Score the others alone: --subset {' '.join(named)}"
        )
    return tuple(sorted(row["query_id"] for row in rows if row["query_id"] not in there))


def _ordered(given: GivenList, order: str | None) -> Sequence[Entry]:
    """The entries in the order of the ranking; InputError where the scores say another one."""
    scores = [entry.score for entry in given.entries]
    if order == "given" or not any(score is not None for score in scores):
        return given.entries
    for entry in given.entries:
        if entry.score is None:
            raise InputError(f"{_at(given, entry)}: no score, but others of the list have one")
    if order == "score":
        return sorted(given.entries, key=lambda entry: -_score(entry))
    for before, entry in itertools.pairwise(given.entries):
        if _score(entry) > _score(before):
            raise InputError(
                f"{_at(given, entry)}: score {entry.score} is above the {before.score} before it, "
                "so the scores say another order than the list; --order given takes the list's, "
                "--order score the scores'"
            )
    return given.entries


def _score(entry: Entry) -> float:
    return 0.0 if entry.score is None else entry.score


def _placed(entry: Entry, given: GivenList, known: Known) -> Place:
    """Where an entry is, held to documents, texts and chunks."""
    at = _at(given, entry)
    place = _stated(entry, at, known)
    if place is None:
        return _of_chunk(entry, at, known)
    doc_id, start, end = place
    if known.place_of is not None and place not in known.chunk_at:
        raise InputError(
            f"{at}: {doc_id} [{start}, {end}) is no chunk of the chunk table; give the "
            "table of the chunks that were ranked, or none"
        )
    if entry.chunk_id is not None and known.place_of is not None:
        true = _of_chunk(entry, at, known)
        if true != place:
            raise InputError(
                f"{at}: chunk {entry.chunk_id} is placed at {doc_id} [{start}, {end}), but is "
                f"{true[0]} [{true[1]}, {true[2]})"
            )
    return place


def _stated(entry: Entry, at: str, known: Known) -> Place | None:
    """The place that an entry states itself; None where it names a chunk alone."""
    if entry.doc_id is None or entry.start is None or entry.end is None:
        return None
    place = entry.doc_id, entry.start, entry.end
    doc_id, start, end = place
    if doc_id not in known.n_chars:
        raise InputError(f"{at}: unknown document {doc_id!r}{closest(doc_id, known.n_chars)}")
    if problem := outside(start, end, known.n_chars[doc_id], doc_id):
        raise InputError(f"{at}: {problem}")
    if entry.text is not None and entry.text != known.texts[doc_id][start:end]:
        there = known.texts[doc_id][start : min(end, start + 60)]
        raise InputError(
            f"{at}: the text at {doc_id} [{start}, {end}) begins {there!r}, but the file says "
            f"{entry.text[:60]!r}. Offsets count Unicode code points, a BOM and both characters of "
            "a CR LF included"
        )
    return place


def _of_chunk(entry: Entry, at: str, known: Known) -> Place:
    """Where the chunk that an entry names is."""
    if known.place_of is None:
        raise InputError(
            f"{at}: chunk {entry.chunk_id} does not say where it is; give the chunk table with "
            "--chunks FILE or --chunker NAME"
        )
    place = known.place_of.get(str(entry.chunk_id))
    if place is None:
        raise InputError(
            f"{at}: unknown chunk {entry.chunk_id!r}{closest(str(entry.chunk_id), known.place_of)}"
        )
    return place


def _rows(
    given: GivenList, entries: Iterable[Entry], placed: Iterable[Place], known: Known
) -> Iterable[dict[str, Any]]:
    for rank, (entry, place) in enumerate(zip(entries, placed, strict=True), 1):
        doc_id, start, end = place
        yield {
            "query_id": given.query_id,
            "rank": rank,
            "chunk_id": known.chunk_at.get(place, f"{doc_id}:{start}:{end}"),
            "doc_id": doc_id,
            "start_char": start,
            "end_char": end,
            "score": 1 / rank if entry.score is None else entry.score,
        }


def _places(chunks: pa.Table) -> dict[str, Place]:
    columns = [chunks[c].to_pylist() for c in ("chunk_id", "doc_id", "start_char", "end_char")]
    return {
        chunk_id: (doc_id, start, end)
        for chunk_id, doc_id, start, end in zip(*columns, strict=True)
    }


def _at(given: GivenList, entry: Entry) -> str:
    return f"{given.where}, query {given.query_id}, {given.counted} {entry.at}"
