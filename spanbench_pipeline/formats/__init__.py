"""Rankings and eval sets in the formats of other tools, written and read.

One module a format. None of them measures anything: what is read is a list of entries a query, as
the file gives them, and ``scoring`` holds those to the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One retrieved piece as a file names it: by place, by chunk id, or by both.

    ``at`` is its number in the list, from 1, or the line of the file. ``text`` is what the file
    says stands there, ``rank`` the rank that it states beside the list's order; None where it says
    nothing. A place may be stated in part where a chunk id says the rest.
    """

    at: int
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None
    chunk_id: str | None = None
    score: float | None = None
    text: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class GivenList:
    """What a file says was retrieved for one query, best first.

    ``where`` is the list's place in the file, for messages; ``counted`` what ``Entry.at`` counts.
    ``query`` and ``corpus`` are what the file says was asked, and of what; None where it says
    nothing. ``others`` are keys of the entries that say nothing to score.
    """

    query_id: str
    entries: tuple[Entry, ...]
    where: str
    counted: str = "entry"
    query: str | None = None
    corpus: str | None = None
    others: frozenset[str] = frozenset()
