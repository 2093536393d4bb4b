"""Queries as JSON lines: one query a line, its gold as texts or as offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from spanbench_pipeline.core import evalset, suggestions
from spanbench_pipeline.core.codepoints import is_blank
from spanbench_pipeline.core.errors import LISTED_PROBLEMS, InputError, refuse_all
from spanbench_pipeline.core.evalset import GoldSpan, Query
from spanbench_pipeline.core.suggestions import suggested
from spanbench_pipeline.formats import strict_json
from spanbench_pipeline.formats.strict_json import kind

KEYS = ("query", "doc_id", "gold_texts", "gold_spans", "query_id", "clause_type", "filters")
SPAN_KEYS = ("start", "end", "text")
Fields = dict[str, Any]
MOST_COUNTED = 1000
"""Places of a gold text that are counted: in a text of one letter there is one at each."""
T = TypeVar("T")


class Absent(InputError):
    """A gold text is not in the document ``doc_id``."""

    def __init__(self, message: str, doc_id: str) -> None:
        """Keep the whole message, and the document."""
        super().__init__(message)
        self.doc_id = doc_id


class Problems(list[str]):
    """What is wrong with an input, a whole message each, so that all of it is said at once.

    ``absent`` are the documents that lack a gold text, of the messages that will be shown.
    """

    def __init__(self) -> None:
        """Start without any problem."""
        super().__init__()
        self.absent: set[str] = set()

    def tried(self, work: Callable[..., T], *given: Any) -> T | None:
        """Return what ``work`` makes of ``given``; None where it raises InputError, which is
        kept.
        """
        try:
            return work(*given)
        except InputError as error:
            if isinstance(error, Absent) and self.hinted:
                self.absent.add(error.doc_id)
            self.append(str(error))
            return None

    @property
    def hinted(self) -> bool:
        """Return whether the next one will be shown: a hint may take a while to find."""
        return len(self) < LISTED_PROBLEMS


def read(data: bytes, where: str, texts: Mapping[str, str], problems: Problems) -> list[Query]:
    """Return the queries of a JSONL file's bytes; ``texts`` is doc_id -> text of the documents.

    What is wrong goes to ``problems``, which are none before.

    A line without anything but white space is no query. A value of null is as if absent. Queries
    without ``query_id`` are named by their place in the file: q001, q002, ..., padded to the width
    of the number of queries. Raises one InputError about every line that is wrong, each with file
    (``where``) and line number.
    """
    queries = []
    name = where.replace("\\", "/").rpartition("/")[2]
    for number, line in _lines(strict_json.decode(data, where)):
        at = f"{where} line {number}"
        made = problems.tried(_query, line, at, f"{name} line {number}", texts, problems)
        queries.append((at, made))
    found = _identified(queries, problems)
    refuse_all(problems, where)
    return found


def unknown_document(at: str, doc_id: str, known: Collection[str], *, hint: bool = True) -> str:
    """Return the message about a doc_id that no document has, with the nearest that one has."""
    near = suggested(doc_id, known) if hint else ""
    return f"{at}: unknown doc_id {doc_id!r}{near} ({len(known)} documents)"


def field_values(values: Any, at: str, what: str, problems: Problems) -> dict[str, str]:
    """Metadata or filters, field -> value, as text; what is of any other shape is a problem."""
    if not isinstance(values, dict):
        problems.append(f"{at}: {what} must be an object of field and value, not {kind(values)}")
        return {}
    found = {}
    for name, value in values.items():
        text = strict_json.field_text(value)
        if text is None:
            problems.append(
                f"{at}: {what} field {name!r} is {kind(value)}; a value must be text, a number "
                "or a bool"
            )
        else:
            found[name] = text
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    """Return lines that hold something, with their numbers from 1.

    Split at newlines only: other line separators may stand inside a JSON text.
    """
    lines = text.removeprefix(strict_json.BOM).split("\n")
    return [(n, line) for n, line in enumerate(lines, 1) if line.strip(" \t\r")]


def _query(
    line: str, at: str, origin: str, texts: Mapping[str, str], problems: Problems
) -> Query | None:
    """Return the query of a line; None where ``problems`` were found in its gold or filters."""
    value = strict_json.parse(line, at)
    if not isinstance(value, dict):
        raise InputError(f"{at}: a query must be an object, not {kind(value)}")
    strict_json.known(value, KEYS, at)
    given = {key: found for key, found in value.items() if found is not None}
    text, doc_id = (_required(given, key, at) for key in ("query", "doc_id"))
    if doc_id not in texts:
        raise InputError(unknown_document(at, doc_id, texts, hint=problems.hinted))
    before = len(problems)
    made = Query(
        query_id=_optional(given, "query_id", at) or "",
        text=text,
        gold=_gold(given, at, doc_id, texts[doc_id], problems),
        doc_id=doc_id,
        clause_type=_optional(given, "clause_type", at),
        filters=field_values(given.get("filters", {}), at, "filters", problems),
        origin=origin,
    )
    return made if len(problems) == before else None


def _required(given: Fields, key: str, at: str) -> str:
    found = _optional(given, key, at)
    if found is None:
        raise InputError(f"{at}: key {key!r} is missing")
    return found


def _optional(given: Fields, key: str, at: str) -> str | None:
    found = strict_json.text(given, key, at)
    # A doc_id is a file's name, which may be blank; that one is found, or unknown.
    if found is not None and key != "doc_id" and is_blank(found):
        raise InputError(f"{at}: {key} is empty")
    return found


def _gold(given: Fields, at: str, doc_id: str, text: str, problems: Problems) -> list[GoldSpan]:
    """Return the gold spans of a query that are right; what is wrong with others is in
    ``problems``.
    """
    keys = [key for key in ("gold_texts", "gold_spans") if key in given]
    if len(keys) != 1:
        raise InputError(
            f"{at}: give exactly one of gold_texts and gold_spans, not "
            + ("both" if keys else "neither")
        )
    key = keys[0]
    entries: list[Any] = strict_json.field(given, key, list, at)
    if not entries:
        raise InputError(f"{at}: {key} is empty: a query needs a gold span")
    one = _located if key == "gold_texts" else _span
    made = [
        problems.tried(one, entry, f"{at}, {key}, number {n}", doc_id, text, problems.hinted)
        for n, entry in enumerate(entries, 1)
    ]
    return [span for span in made if span is not None]


def _located(entry: Any, at: str, doc_id: str, text: str, hint: bool) -> GoldSpan:
    """Return the one place where a gold text stands in its document."""
    if not isinstance(entry, str) or not entry:
        raise InputError(f"{at}: must be text with at least one character, not {_shown(entry)}")
    evalset.check_shows(entry, at)
    starts = list(islice(suggestions.occurrences(entry, text), MOST_COUNTED))
    if len(starts) != 1:
        many = f"{len(starts)}{' or more' if len(starts) == MOST_COUNTED else ''}"
        what = "is not in" if not starts else f"stands {many} times in"
        places = f", at {', '.join(map(str, starts[:5]))}" if starts else ""
        advice = "Give a longer text, or gold_spans." if starts else ""
        message = (
            f"{at}: gold text {_shown(entry)} {what} document {doc_id!r}{places}: it must match "
            f"exactly once, character for character. {advice or _meant(entry, text, hint)}"
        )
        raise InputError(message) if starts else Absent(message, doc_id)
    return GoldSpan(doc_id, starts[0], starts[0] + len(entry), entry)


def _meant(part: str, text: str, hint: bool) -> str:
    """Return what to do about a gold text that is not in a document, with what was meant, if it
    shows.
    """
    place = suggestions.find(part, text) if hint else None
    if place is None:
        return "Copy it from the text that spanbench reads, or give gold_spans."
    there = text[place.start : place.end]
    return (
        f"It would but for {' and '.join(place.differences)}: at [{place.start}, {place.end}) "
        f"stands {_shown(there)}; {suggestions.first_difference(part, there)}. Write it as it "
        "stands there, or give gold_spans."
    )


def _span(entry: Any, at: str, doc_id: str, text: str, _: bool) -> GoldSpan:
    """Return a gold span by its offsets, held to the text that it says stands there, if it says
    so.
    """
    offsets, expected = _span_fields(entry, at)
    start, end = (strict_json.whole(value, "an offset", at) for value in offsets)
    if not 0 <= start < end <= len(text):
        raise InputError(
            f"{at}: [{start}, {end}) must satisfy 0 <= start < end <= {len(text)}, the number "
            f"of characters of document {doc_id!r}"
        )
    if expected is not None and text[start:end] != expected:
        raise InputError(
            f"{at}: the text at [{start}, {end}) of document {doc_id!r} is "
            f"{_shown(text[start:end])}, but the gold text is {_shown(expected)}. Offsets count "
            "Unicode code points of the text as it stands (line endings and a BOM included)."
        )
    evalset.check_shows(text[start:end], f"{at}: [{start}, {end}) of document {doc_id!r}")
    return GoldSpan(doc_id, start, end, expected)


def _span_fields(entry: Any, at: str) -> tuple[list[Any], str | None]:
    """Start and end as they were given, and the text, of either shape of a gold span."""
    shape = 'must be [start, end] or {"start", "end", "text"}'
    if isinstance(entry, list) and len(entry) == 2:
        return entry, None
    if not isinstance(entry, dict):
        raise InputError(f"{at}: {shape}, not {_shown(entry)}")
    strict_json.known(entry, SPAN_KEYS, at)
    if not {"start", "end"} <= entry.keys():
        raise InputError(f"{at}: {shape}; start or end is missing")
    return [entry["start"], entry["end"]], strict_json.text(entry, "text", at)


def _identified(queries: list[tuple[str, Query | None]], problems: Problems) -> list[Query]:
    """Return the queries with an id each, given or by their place; where two are equal, a problem.

    A line that is wrong, None, has its place as well.
    """
    width = max(3, len(str(len(queries))))
    lines: dict[str, str] = {}
    found = []
    for place, (at, query) in enumerate(queries, 1):
        if query is None:
            continue
        query_id = query.query_id or f"q{place:0{width}d}"
        if query_id in lines:
            made = "" if query.query_id else " (made from its place in the file)"
            problems.append(f"{at}: query_id {query_id!r}{made} is taken by {lines[query_id]}")
        lines.setdefault(query_id, query.origin)
        found.append(replace(query, query_id=query_id))
    return found


def _shown(value: Any, most: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most] + "…"
