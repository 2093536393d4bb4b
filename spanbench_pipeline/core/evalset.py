"""The boundary between data and measurement: documents, queries, gold spans.

Every corpus goes through :func:`assemble`, so that whatever is measured has been held to the same
invariants, whoever made it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.core.codepoints import is_blank, refuse_halves
from spanbench_pipeline.core.errors import LISTED_PROBLEMS, InputError, refuse_all
from spanbench_pipeline.core.suggestions import suggested

RESERVED_FIELDS = frozenset(
    {"chunk_id", "chunk_no", "chunker", "corpus", "doc_id", "end", "end_char", "n_chars", "rank"}
    | {"score", "source_file", "start", "start_char", "text", "text_sha256", "title", "vector"}
)
"""Names a chunk or document has of its own: metadata may not shadow them."""


@dataclass(frozen=True)
class Document:
    """A document as a source gives it; ``metadata`` is field -> value, both text."""

    doc_id: str
    title: str
    text: str
    source_file: str
    extractor: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GoldSpan:
    """Characters ``[start, end)`` of a document that answer a query.

    ``text`` is what the source says stands there; None where it says nothing.
    """

    doc_id: str
    start: int
    end: int
    text: str | None = None


@dataclass(frozen=True)
class Query:
    """A query with its gold; ``doc_id`` None means that it is not about one document."""

    query_id: str
    text: str
    gold: Sequence[GoldSpan]
    doc_id: str | None = None
    clause_type: str | None = None
    subset: str | None = None
    filters: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    """Where the source states it, for messages: ``queries.jsonl line 7``."""


@dataclass(frozen=True)
class EvalSet:
    """The three tables of ``tables.TABLES``: documents, queries, gold_spans."""

    documents: pa.Table
    queries: pa.Table
    gold_spans: pa.Table


def assemble(corpus: str, documents: Iterable[Document], queries: Iterable[Query]) -> EvalSet:
    """Return the eval set of a corpus, held to every invariant of the specification.

    Gold spans of a query that overlap or touch are merged, once, here. Raises InputError naming
    query, document and offsets: at the first violation of documents and ids, and then about every
    query that violates one.
    """
    docs = sorted(documents, key=lambda d: d.doc_id)
    asked = sorted(queries, key=lambda q: q.query_id)
    if not docs:
        raise InputError(f"corpus {corpus}: no documents")
    if not asked:
        raise InputError(f"corpus {corpus}: no queries")
    _check_ids(corpus, [d.doc_id for d in docs], "document")
    _check_ids(corpus, [q.query_id for q in asked], "query")
    for document in docs:
        _check_document(corpus, document)
    by_id = {d.doc_id: d for d in docs}
    declared = {name for d in docs for name in d.metadata}
    refuse_all(_query_problems(corpus, asked, by_id, declared), f"corpus {corpus}")
    return EvalSet(
        _document_table(corpus, docs),
        _query_table(corpus, asked),
        _gold_table(corpus, asked, by_id),
    )


def check_shows(gold: str, at: str) -> None:
    """Raise InputError, opening with ``at``, where a gold text shows nothing to a reader.

    As an answer it would count in every measure, and no retriever can look for it.
    """
    if is_blank(gold):
        raise InputError(
            f"{at}: the gold text {gold[:40]!a} is white space or invisible characters alone, "
            "which answer no query; give the words that do, or remove it"
        )


def loose_edges(gold_spans: pa.Table) -> list[str]:
    """Return the gold spans that begin or end with white space or invisible characters, one text
    each.

    They stay as they are: whoever marked them may have meant it, and every character counts.
    """
    rows = gold_spans.to_pylist()
    return [
        f"query {row['query_id']}, document {row['doc_id']}, "
        f"[{row['start_char']}, {row['end_char']})"
        for row in rows
        if is_blank(row["text"][:1]) or is_blank(row["text"][-1:])
    ]


def text_sha256(text: str) -> str:
    """Return sha256 of the text's UTF-8 bytes, as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def texts(documents: pa.Table) -> dict[str, str]:
    """Return doc_id -> text of a documents table."""
    return dict(zip(documents["doc_id"].to_pylist(), documents["text"].to_pylist(), strict=True))


def text_violations(documents: pa.Table) -> list[str]:
    """Return the documents whose text is not of the recorded length and hash, one sentence each."""
    found = []
    for row in documents.select(["doc_id", "n_chars", "text", "text_sha256"]).to_pylist():
        if len(row["text"]) != row["n_chars"] or text_sha256(row["text"]) != row["text_sha256"]:
            found.append(f"document {row['doc_id']}: text differs from its recorded length or hash")
    return found


def gold_violations(evalset: EvalSet) -> list[str]:
    """Return every way in which stored gold spans break the invariants, one sentence each.

    For tables that come back from storage: what :func:`assemble` guarantees, looked at again.
    """
    found: list[str] = []
    text_of = texts(evalset.documents)
    previous: dict[tuple[str, str], int] = {}
    for row in evalset.gold_spans.to_pylist():
        start, end, key = row["start_char"], row["end_char"], (row["query_id"], row["doc_id"])
        where = f"query {row['query_id']}, document {row['doc_id']}, [{start}, {end})"
        if row["doc_id"] not in text_of:
            found.append(f"{where}: no such document")
        elif not 0 <= start < end <= len(text_of[row["doc_id"]]):
            found.append(f"{where}: outside the text")
        elif text_of[row["doc_id"]][start:end] != row["text"]:
            found.append(f"{where}: the recorded text is not what stands there")
        elif is_blank(row["text"]):
            found.append(f"{where}: white space or invisible characters alone")
        if previous.get(key, -1) >= start:
            found.append(f"{where}: not after the query's previous span")
        previous[key] = end
    without = set(evalset.queries["query_id"].to_pylist()) ^ {q for q, _ in previous}
    found += [f"query {q}: gold spans and queries do not match" for q in sorted(without)]
    return found


def shut_out(evalset: EvalSet) -> list[str]:
    """Return the queries whose own filters admit none of the documents that answer them, sorted."""
    metadata = dict(
        zip(
            evalset.documents["doc_id"].to_pylist(),
            (dict(fields) for fields in evalset.documents["metadata"].to_pylist()),
            strict=True,
        )
    )
    filters = dict(
        zip(
            evalset.queries["query_id"].to_pylist(),
            (dict(fields) for fields in evalset.queries["filters"].to_pylist()),
            strict=True,
        )
    )
    pairs = zip(
        evalset.gold_spans["query_id"].to_pylist(),
        evalset.gold_spans["doc_id"].to_pylist(),
        strict=True,
    )
    admitted = {q for q, doc_id in pairs if filters[q].items() <= metadata[doc_id].items()}
    return sorted(set(filters) - admitted)


def _check_ids(corpus: str, ids: Sequence[str], what: str) -> None:
    for name, count in Counter(ids).items():
        if not name:
            raise InputError(f"corpus {corpus}: a {what} has an empty id")
        if count > 1:
            raise InputError(f"corpus {corpus}: {what} id {name!r} is given {count} times")


def _check_document(corpus: str, document: Document) -> None:
    where = f"corpus {corpus}, document {document.doc_id!a} ({document.source_file!a})"
    fields = itertools.chain(*document.metadata.items())
    for text in (document.doc_id, document.title, document.text, *fields):
        refuse_halves(text, where)
    if is_blank(document.text):
        raise InputError(
            f"corpus {corpus}, document {document.doc_id} ({document.source_file}): no text but "
            "white space and characters that show nothing. A scanned PDF needs OCR first."
        )
    shadowed = sorted(set(document.metadata) & RESERVED_FIELDS)
    if shadowed:
        raise InputError(
            f"corpus {corpus}, document {document.doc_id}: metadata field {shadowed[0]!r} is a "
            "name that chunks have of their own; rename it"
        )


def _query_problems(
    corpus: str, queries: Sequence[Query], documents: Mapping[str, Document], declared: set[str]
) -> list[str]:
    """Return the first violation of each query that has one."""
    found: list[str] = []
    for query in queries:
        hint = suggested if len(found) < LISTED_PROBLEMS else _no_hint
        try:
            _check_query(corpus, query, documents, declared, hint)
        except InputError as error:
            found.append(str(error))
    return found


def _no_hint(name: str, known: Collection[str]) -> str:
    """Return no hint, for a problem that is counted and not shown: a search takes long."""
    return ""


def _check_query(
    corpus: str,
    query: Query,
    documents: Mapping[str, Document],
    declared: set[str],
    hint: Callable[[str, Collection[str]], str],
) -> None:
    where = f"corpus {corpus}, query {query.query_id}"
    where += f" ({query.origin})" if query.origin else ""
    kinds = (query.clause_type or "", query.subset or "")
    filters = itertools.chain(*query.filters.items())
    for text in (query.query_id, query.text, *kinds, *filters):
        refuse_halves(text, where)
    if is_blank(query.text):
        raise InputError(f"{where}: the query is empty")
    if not query.gold:
        raise InputError(f"{where}: no gold span")
    if query.doc_id is not None and query.doc_id not in documents:
        raise InputError(
            f"{where}: unknown document {query.doc_id!r}{hint(query.doc_id, documents)}"
        )
    for name in sorted(query.filters):
        if name not in declared:
            raise InputError(
                f"{where}: filter field {name!r} is declared by no document"
                f"{hint(name, declared)}; declared: {', '.join(sorted(declared)) or 'none'}"
            )
    for span in query.gold:
        _check_gold(where, span, documents, hint)


def _check_gold(
    where: str,
    span: GoldSpan,
    documents: Mapping[str, Document],
    hint: Callable[[str, Collection[str]], str],
) -> None:
    if span.doc_id not in documents:
        near = hint(span.doc_id, documents)
        raise InputError(f"{where}: gold span in unknown document {span.doc_id!r}{near}")
    text = documents[span.doc_id].text
    at = f"{where}, document {span.doc_id}, gold span [{span.start}, {span.end})"
    if not 0 <= span.start < span.end <= len(text):
        raise InputError(
            f"{at}: outside the text, which has {len(text)} characters, or without characters"
        )
    found = text[span.start : span.end]
    if span.text is not None and span.text != found:
        raise InputError(
            f"{at}: the text there is {_short(found)}, but the gold text is {_short(span.text)}. "
            "Offsets count Unicode code points of the text as it stands (line endings and a BOM "
            "included)."
        )
    check_shows(found, at)


def _short(text: str, most: int = 120) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")


def _document_table(corpus: str, documents: Sequence[Document]) -> pa.Table:
    return tables.from_rows(
        "documents",
        [
            {
                "corpus": corpus,
                "doc_id": d.doc_id,
                "title": d.title,
                "n_chars": len(d.text),
                "text": d.text,
                "text_sha256": text_sha256(d.text),
                "source_file": d.source_file,
                "extractor": d.extractor,
                "metadata": sorted(d.metadata.items()),
            }
            for d in documents
        ],
    )


def _query_table(corpus: str, queries: Sequence[Query]) -> pa.Table:
    return tables.from_rows(
        "queries",
        [
            {
                "corpus": corpus,
                "query_id": q.query_id,
                "query": q.text,
                "clause_type": q.clause_type,
                "subset": q.subset,
                "doc_id": q.doc_id,
                "filters": sorted(q.filters.items()),
            }
            for q in queries
        ],
    )


def _gold_table(
    corpus: str, queries: Sequence[Query], documents: Mapping[str, Document]
) -> pa.Table:
    keys = [(q.query_id, g.doc_id) for q in queries for g in q.gold]
    gold = [g for q in queries for g in q.gold]
    distinct = sorted(set(keys))
    code = {key: i for i, key in enumerate(distinct)}
    merged = spans.merge(
        spans.make([code[k] for k in keys], [g.start for g in gold], [g.end for g in gold])
    )
    rows, numbers = [], Counter[str]()
    for group, start, end in zip(
        merged.group.tolist(), merged.start.tolist(), merged.end.tolist(), strict=True
    ):
        query_id, doc_id = distinct[group]
        rows.append(
            {
                "corpus": corpus,
                "query_id": query_id,
                "span_no": numbers[query_id],
                "doc_id": doc_id,
                "start_char": start,
                "end_char": end,
                "text": documents[doc_id].text[start:end],
            }
        )
        numbers[query_id] += 1
    return tables.from_rows("gold_spans", rows)
