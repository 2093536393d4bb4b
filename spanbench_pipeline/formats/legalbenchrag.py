"""LegalBench-RAG's result file: each test with what was retrieved for it, best first.

``{"qa_result_list": [{"qa_gt": {"query", "snippets"}, "retrieved_snippets": [{"file_path", "span",
"answer", "score"}]}], "weights": [...]}``. A test has no id in it: it is found again by its query
and, where two tests ask the same, by its gold.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet, texts
from spanbench_pipeline.formats import Entry, GivenList, Rankings, fields, stamp, strict_json
from spanbench_pipeline.formats import legalbench_names as names
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.ids import closest, unknown
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.formats.strict_json import kind, shown
from spanbench_pipeline.storage.folders import Files

LISTS, FOUND = "qa_result_list", "retrieved_snippets"
Place = tuple[str, int, int]


def recognizes(given: Given) -> bool:
    """Return whether a file's JSON values are one result file."""
    values = given.json_values
    return len(values) == 1 and isinstance(values[0][1], dict) and LISTS in values[0][1]


def parse(given: Given, config: str | None, corpus: str) -> Rankings:
    """Return the rankings of a result file."""
    values = given.json_values
    if len(values) != 1:
        raise InputError(f"{given.where}: {len(values)} JSON values, not the one of a result file")
    value = values[0][1]
    return Rankings(
        lambda evalset, chunks: lists(value, given.where, evalset), stamp_of(value, given.where)
    )


def write(results: Results) -> Files:
    """Yield a result file a configuration."""
    for config in results.measured:
        of = results.stamps[config.chunker]
        content = result_file(results.rankings(config), results.evalset, of)
        yield f"{config.slug}.json", content


def result_file(rankings: pa.Table, evalset: EvalSet, of: Stamp | None = None) -> Iterator[bytes]:
    """Yield the result file of one configuration: every query of the corpus, weighing the same.

    ``file_path`` is the published name where the document is one of LegalBench-RAG's, else the
    doc_id and ``.txt``. Beside what LegalBench-RAG writes each entry has ``query_id``, and the file
    the stamp ``of`` what was ranked, if there is one.
    """
    text_of = texts(evalset.documents)
    gold, ranked = (_by_query(table) for table in (evalset.gold_spans, rankings))

    def snippet(row: Mapping[str, Any]) -> dict[str, Any]:
        doc_id, start, end = row["doc_id"], row["start_char"], row["end_char"]
        answer = text_of[doc_id][start:end]
        return {"file_path": file_path(doc_id), "span": [start, end], "answer": answer}

    def results() -> Iterator[dict[str, Any]]:
        for query in evalset.queries.to_pylist():
            query_id = query["query_id"]
            snippets = [snippet(row) for row in gold[query_id]]
            yield {
                "query_id": query_id,
                "qa_gt": {"query": query["query"], "snippets": snippets},
                FOUND: [snippet(row) | {"score": row["score"]} for row in ranked[query_id]],
            }

    yield f'{{"{LISTS}": [\n'.encode()
    for number, result in enumerate(results()):
        opening = ",\n" if number else ""
        yield (opening + json.dumps(result, ensure_ascii=False, allow_nan=False)).encode()
    yield f'\n], "weights": {json.dumps([1.0] * evalset.queries.num_rows)}'.encode()
    if of is not None:
        yield f', "{stamp.KEY}": {json.dumps(of.said(), ensure_ascii=False)}'.encode()
    yield b"}\n"


def file_path(doc_id: str) -> str:
    """Return what LegalBench-RAG calls a document; ``<doc_id>.txt`` for one that is not of it."""
    path = doc_id + names.SUFFIX
    ours = names.can_be_stored(path) and names.canonical(path) == path
    return names.published(path) if ours else path


def lists(value: Any, where: str, evalset: EvalSet) -> list[GivenList]:
    """Return the lists of a result file, given as parsed JSON, in its order.

    Raises InputError naming file, result and query for JSON of another shape, a query or a file
    that the corpus does not have, gold that is not the query's, and a query that two of the
    corpus's ask in the same words with the same gold (``query_id`` then says which).
    """
    results = _array(value, LISTS, where)
    identify, document = _identifier(evalset), _documents(evalset)
    found = []
    for number, result in enumerate(results, 1):
        at = f"{where} result {number}"
        query_id = identify(result, at, document)
        others: set[str] = set()
        entries = [
            _entry(snippet, f"{at}, query {query_id}, entry {n}", n, document, others)
            for n, snippet in enumerate(_array(result, FOUND, at), 1)
        ]
        found.append(GivenList(query_id, tuple(entries), at, others=frozenset(others)))
    return found


def stamp_of(value: Any, where: str) -> Stamp | None:
    """Return what the file says that it ranks."""
    return stamp.of_json(value.get(stamp.KEY) if isinstance(value, dict) else None, where)


_OURS = ("file_path", "span", "answer")
"""What a snippet calls document, place and text."""


def _entry(
    value: Any, where: str, number: int, document: Callable[[str, str], str], others: set[str]
) -> Entry:
    doc_id, start, end = _place(value, where, document)
    others |= fields.others(value, (*_OURS, *fields.ENTRY), where)
    said = fields.statements(value, where)
    own: dict[str, str | int | None] = {"doc_id": doc_id, "start": start, "end": end}
    own["text"] = strict_json.text(value, "answer", where)
    for key, stated in own.items():
        if stated is not None and said[key] not in (None, stated):
            raise InputError(
                f"{where}: {key} {_quoted(said[key])} is not what {', '.join(_OURS)} say: "
                f"{_quoted(stated)}"
            )
        said[key] = said[key] if stated is None else stated
    return Entry(number, **said)


def _quoted(said: str | int) -> str:
    return shown(said) if isinstance(said, str) else str(said)


def _place(value: Any, where: str, document: Callable[[str, str], str]) -> Place:
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be an object with file_path and span, not {kind(value)}")
    doc_id = document(strict_json.required(value, "file_path", where), where)
    span = value.get("span")
    if not isinstance(span, list) or len(span) != 2:
        raise InputError(f"{where}: span must be [start, end], not {shown(span)}")
    start, end = (strict_json.whole(offset, "an offset of span", where) for offset in span)
    return doc_id, start, end


def _documents(evalset: EvalSet) -> Callable[[str, str], str]:
    """Return (file_path, where) -> the doc_id: the path as it stands, without .txt, or
    canonical.
    """
    known = set(evalset.documents["doc_id"].to_pylist())

    def find(path: str, where: str) -> str:
        canonical = names.document_id(names.canonical(path))
        for candidate in (names.document_id(path), path, canonical):
            if candidate in known:
                return candidate
        raise InputError(f"{where}: unknown document {shown(path)}{closest(canonical, known)}")

    return find


def _identifier(evalset: EvalSet) -> Callable[[Any, str, Callable[[str, str], str]], str]:
    """Return (result, where, documents) -> the id of the query that the result is about."""
    rows = evalset.queries.select(["query_id", "query"]).to_pylist()
    asks = {row["query_id"]: row["query"] for row in rows}
    by_text: dict[str, list[str]] = defaultdict(list)
    for query_id, query in asks.items():
        by_text[query].append(query_id)
    gold = _by_query(evalset.gold_spans)

    def find(result: Any, where: str, document: Callable[[str, str], str]) -> str:
        if not isinstance(result, dict):
            raise InputError(f"{where}: must be an object with qa_gt, not {kind(result)}")
        given, truth = strict_json.text(result, "query_id", where), result.get("qa_gt")
        if not isinstance(truth, dict) and (given is None or truth is not None):
            raise InputError(f"{where}: qa_gt must be an object, not {kind(truth)}")
        truth = truth or {}
        snippets = [] if truth.get("snippets") is None else _array(truth, "snippets", where)
        places = [_place(snippet, f"{where}, qa_gt", document) for snippet in snippets]
        if given is not None:
            _check_id(given, truth, where, asks)
            ids = [given]
        else:
            query = strict_json.required(truth, "query", where)
            ids = by_text.get(query, [])
            if len(ids) > 1:
                ids = [i for i in ids if _same_gold(places, gold[i])]
            if len(ids) != 1:
                raise InputError(f"{where}: {_unclear(query, ids, by_text)}")
        if places and not _same_gold(places, gold[ids[0]]):
            raise InputError(
                f"{where}: the snippets of qa_gt are not the gold spans of query {ids[0]}: the "
                "file was made for another version of the corpus"
            )
        return ids[0]

    return find


def _check_id(given: str, truth: Mapping[str, Any], where: str, asks: Mapping[str, str]) -> None:
    """Refuse an id that is unknown, or whose query is not the one that the result states."""
    if given not in asks:
        raise InputError(f"{where}: {unknown('query', given, asks)}")
    query = truth.get("query")
    if query is not None and query != asks[given]:
        raise InputError(
            f"{where}: query_id {given!r} asks {shown(asks[given])}, but qa_gt asks {shown(query)}"
        )


def _unclear(query: str, ids: Sequence[str], by_text: Mapping[str, Sequence[str]]) -> str:
    asked = by_text.get(query, [])
    if not asked:
        return f"no query of the corpus asks {shown(query)}"
    if not ids:
        return (
            f"{len(asked)} queries of the corpus ask {shown(query)}, none with this gold: "
            f"{', '.join(asked)}"
        )
    return (
        f"queries {', '.join(ids)} ask {shown(query)} with the same gold; say which with query_id"
    )


def _same_gold(places: Sequence[Place], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether snippets hold the same characters as gold spans, which may have been
    merged.
    """
    held = [(row["doc_id"], row["start_char"], row["end_char"]) for row in rows]
    inside = all(
        any(d == doc and s <= start and end <= e for d, s, e in held) for doc, start, end in places
    )
    edges = {(d, s) for d, s, _ in places}, {(d, e) for d, _, e in places}
    return inside and all((d, s) in edges[0] and (d, e) in edges[1] for d, s, e in held)


def _by_query(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    last = "rank" if "rank" in table.column_names else "span_no"
    for row in table.sort_by([("query_id", "ascending"), (last, "ascending")]).to_pylist():
        found[row["query_id"]].append(row)
    return found


def _array(value: Any, key: str, where: str) -> list[Any]:
    if not isinstance(value, dict) or key not in value:
        raise InputError(f"{where}: key {key!r} is missing: no result file of LegalBench-RAG")
    if not isinstance(value[key], list):
        raise InputError(f"{where}: {key} must be an array, not {kind(value[key])}")
    found: list[Any] = value[key]
    return found
