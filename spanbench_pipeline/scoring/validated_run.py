"""What a file says was retrieved, held to the corpus: the table of rankings that is measured.

The rules, each with a message that names file, line and query where it is broken:

- The order of a list is its ranking. Scores must not rise down the list, and ranks beside it must,
  or the file says two things; equal scores are ties, and stand as given. ``order`` settles it.
- A query has one list. One that the file leaves out has an empty list, and is named; where a whole
  part of the corpus is left out, or every list is empty, nothing was measured: an error.
- A place may stand twice in a list: it is counted, and each measure says what it makes of it.
- Documents, queries and chunks must be known, offsets inside the text. Whatever else an entry
  says, of place, chunk, text or query, must be so: no statement is passed over for another.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet, texts
from spanbench_pipeline.formats import Entry, GivenList, ids
from spanbench_pipeline.formats.offsets import differing, outside
from spanbench_pipeline.formats.strict_json import shown

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
    left_alone: tuple[str, ...] = ()
    """Keys of the entries that say nothing to score, sorted."""


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
        """Return what is known of a corpus, and of one chunker's chunks."""
        columns = (evalset.documents[c].to_pylist() for c in ("doc_id", "n_chars"))
        places = {} if chunks is None else _places(chunks)
        return cls(
            n_chars=dict(zip(*columns, strict=True)),
            texts=texts(evalset.documents),
            place_of=None if chunks is None else places,
            chunk_at={place: chunk_id for chunk_id, place in places.items()},
        )


def of_part(lists: Sequence[GivenList], whole: EvalSet, part: EvalSet) -> list[GivenList]:
    """Return the lists without those of queries that the corpus has and the part of it has not."""
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
    """Return the lists of a file as the table ``rankings`` of the configuration ``config``.

    Without ``chunks`` a chunk's id is made of its place. Where the file gives no scores, the
    table's are 1 / rank. Raises InputError as the module says.
    """
    known = Known.of(evalset, chunks)
    _check_queries(lists, evalset, where, corpus)
    missing = _missing(lists, evalset, where)
    rows: list[dict[str, Any]] = []
    repeats = 0
    place_of: dict[str, tuple[Place, str]] = {}
    for given in sorted(lists, key=lambda one: one.query_id):
        ordered = _ordered(given, order)
        placed = [_placed(entry, given, known) for entry in ordered]
        _check_ids(given, ordered, placed, place_of)
        repeats += len(placed) - len(set(placed))
        rows += _rows(given, ordered, placed, known)
    named = {"corpus": corpus, "config": config}
    return Taken(
        tables.from_rows("rankings", [named | row for row in rows]),
        missing,
        tuple(sorted(given.query_id for given in lists if not given.entries)),
        repeats,
        len(lists),
        max((len(given.entries) for given in lists), default=0),
        tuple(sorted({key for given in lists for key in given.others})),
    )


def _check_queries(lists: Sequence[GivenList], evalset: EvalSet, where: str, corpus: str) -> None:
    if not any(given.entries for given in lists):
        raise InputError(
            f"{where}: not measured: the file holds no entry for any query; a run that never "
            "happened is no run that failed"
        )
    columns = (evalset.queries[c].to_pylist() for c in ("query_id", "query"))
    known = dict(zip(*columns, strict=True))
    first: dict[str, GivenList] = {}
    for given in lists:
        if given.query_id not in known:
            raise InputError(f"{given.where}: {ids.unknown('query', given.query_id, known)}")
        if given.query_id in first:
            raise InputError(
                f"{given.where}: query {given.query_id} has two lists, the first in "
                f"{first[given.query_id].where}; a query has one"
            )
        first[given.query_id] = given
        _check_asked(given, known[given.query_id], corpus)


def _check_asked(given: GivenList, query: str, corpus: str) -> None:
    """Refuse a list whose query text or corpus is not that of the corpus that is scored."""
    if given.corpus not in (None, corpus):
        raise InputError(
            f"{given.where}, query {given.query_id}: a ranking of corpus {given.corpus!r}, but "
            f"{corpus!r} is scored"
        )
    if given.query is not None and given.query.split() != query.split():
        raise InputError(
            f"{given.where}, query {given.query_id}: it asks {shown(query)}, but the file "
            f"says {shown(given.query)}; a query that was reworded belongs under another key"
        )


def _missing(lists: Sequence[GivenList], evalset: EvalSet, where: str) -> tuple[str, ...]:
    """Return the queries without a list; InputError where a whole part of the corpus has no
    entry.
    """
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


def _check_ids(
    given: GivenList,
    entries: Iterable[Entry],
    placed: Iterable[Place],
    seen: dict[str, tuple[Place, str]],
) -> None:
    """Without a chunk table too, a chunk's id must be one place in the whole file."""
    for entry, place in zip(entries, placed, strict=True):
        if entry.chunk_id is None:
            continue
        at = _at(given, entry)
        before, first = seen.setdefault(entry.chunk_id, (place, at))
        if before != place:
            raise InputError(
                f"{at}: chunk {entry.chunk_id} is placed at {place[0]} [{place[1]}, {place[2]}), "
                f"but in {first} at {before[0]} [{before[1]}, {before[2]}); an id is one chunk, so "
                "leave chunk_id out where it counts the chunks of each document"
            )


def _ordered(given: GivenList, order: str | None) -> Sequence[Entry]:
    """Return the entries in the order of the ranking; InputError where scores or ranks say another.

    ``order`` settles it: the list's order, or the scores', whatever else the file says.
    """
    if order is None:
        _check_ranks(given)
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


def _check_ranks(given: GivenList) -> None:
    """Ranks beside the list's order must rise down the list; where they start is left open."""
    stated = [entry for entry in given.entries if entry.rank is not None]
    if stated and len(stated) < len(given.entries):
        lacks = next(entry for entry in given.entries if entry.rank is None)
        raise InputError(f"{_at(given, lacks)}: no rank, but others of the list have one")
    for before, entry in itertools.pairwise(stated):
        if _rank(entry) <= _rank(before):
            raise InputError(
                f"{_at(given, entry)}: rank {entry.rank} follows rank {before.rank}, so the ranks "
                "say another order than the list; --order given takes the list's"
            )


def _rank(entry: Entry) -> int:
    return 0 if entry.rank is None else entry.rank


def _score(entry: Entry) -> float:
    return 0.0 if entry.score is None else entry.score


def _placed(entry: Entry, given: GivenList, known: Known) -> Place:
    """Return where an entry is: all that it says held to each other, to documents, texts and
    chunks.
    """
    at = _at(given, entry)
    place = _stated(entry, at, known)
    if entry.chunk_id is not None and (place is None or known.place_of is not None):
        true = _of_chunk(entry, at, known)
        _check_agrees(entry, true, at)
        place = true
    if place is None:
        raise InputError(f"{at}: it says no place; give doc_id, start and end, or chunk_id")
    doc_id, start, end = place
    if known.place_of is not None and place not in known.chunk_at:
        raise InputError(
            f"{at}: {doc_id} [{start}, {end}) is no chunk of the chunk table; give the "
            "table of the chunks that were ranked, or none"
        )
    if problem := differing(entry.text, known.texts[doc_id], place):
        raise InputError(f"{at}: {problem}")
    return place


def _stated(entry: Entry, at: str, known: Known) -> Place | None:
    """Return the place that an entry states itself; None where it leaves a part of it to its
    chunk.
    """
    if entry.doc_id is None or entry.start is None or entry.end is None:
        return None
    doc_id, start, end = entry.doc_id, entry.start, entry.end
    if doc_id not in known.n_chars:
        raise InputError(f"{at}: {ids.unknown('document', doc_id, known.n_chars)}")
    if problem := outside(start, end, known.n_chars[doc_id], doc_id):
        raise InputError(f"{at}: {problem}")
    return doc_id, start, end


def _check_agrees(entry: Entry, true: Place, at: str) -> None:
    """Refuse an entry that states another place or text than its chunk has."""
    stated = (entry.doc_id, entry.start, entry.end)
    if all(said in (None, is_so) for said, is_so in zip(stated, true, strict=True)):
        return
    doc_id, start, end = ("?" if said is None else said for said in stated)
    raise InputError(
        f"{at}: chunk {entry.chunk_id} is placed at {doc_id} [{start}, {end}), but is "
        f"{true[0]} [{true[1]}, {true[2]})"
    )


def _of_chunk(entry: Entry, at: str, known: Known) -> Place:
    """Return where the chunk that an entry names is."""
    if known.place_of is None:
        raise InputError(
            f"{at}: chunk {entry.chunk_id} does not say where it is; give the chunk table with "
            "--chunks FILE or --chunker NAME"
        )
    place = known.place_of.get(str(entry.chunk_id))
    if place is None:
        raise InputError(f"{at}: {ids.unknown('chunk', str(entry.chunk_id), known.place_of)}")
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
