"""An eval set written out as a directory corpus: documents, queries and metadata in files."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.corpora.extract import extract
from spanbench_pipeline.corpora.files import UNFIT_IN_NAMES
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.storage import folders
from spanbench_pipeline.storage.folders import Files

DOCUMENTS, QUERIES, METADATA = "documents", "queries.jsonl", "metadata.json"
LONGEST_NAME = 255
"""Bytes that a file's name may have on common file systems."""


def save(evalset: EvalSet, folder: Path) -> None:
    """Write ``documents/<doc_id>.txt``, ``queries.jsonl`` and ``metadata.json`` into ``folder``.

    Adapted again they give an equal eval set: ids, texts, hashes, metadata, queries, filters, gold
    spans. Only what a directory cannot say differs: a document's title becomes its doc_id, and
    source_file and extractor tell of the text file. Raises InputError, with nothing written, where
    ``folder`` holds something already, a doc_id cannot be a file's name, or a query is not about
    one document or belongs to a subset, which a line of queries cannot say.
    """
    folders.write_new(folder, files(evalset))


def write(results: Results) -> Files:
    """Return the files of the format ``directory``; raise InputError as :func:`save` does."""
    return files(results.evalset)


def files(evalset: EvalSet) -> list[tuple[str, list[bytes]]]:
    """Return every file of the folder, as ``folders`` takes them; InputError as :func:`save`
    says.
    """
    return [(name, [data]) for name, data in _contents(evalset).items()]


def _contents(evalset: EvalSet) -> dict[str, bytes]:
    """Return every file of the folder: path within it -> bytes."""
    found: dict[str, bytes] = {}
    metadata: dict[str, dict[str, str]] = {}
    for doc in evalset.documents.select(["doc_id", "text", "metadata"]).to_pylist():
        name, data = _file_name(doc["doc_id"]), doc["text"].encode("utf-8")
        extract(name, data, name)
        found[f"{DOCUMENTS}/{name}"] = data
        if doc["metadata"]:
            metadata[doc["doc_id"]] = dict(doc["metadata"])
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(evalset))
    declared = json.dumps(metadata, ensure_ascii=False, indent=1) + "\n"
    return found | {QUERIES: lines.encode("utf-8"), METADATA: declared.encode("utf-8")}


def _file_name(doc_id: str) -> str:
    name = f"{doc_id}.txt"
    unfit = "/" in doc_id or UNFIT_IN_NAMES.search(doc_id)
    if doc_id.startswith(".") or unfit or len(name.encode()) > LONGEST_NAME:
        raise InputError(f"document {doc_id!r}: the id cannot be the name of a file")
    return name


def _lines(evalset: EvalSet) -> list[dict[str, Any]]:
    """Return one object a query, in the shape of a line of queries."""
    gold = defaultdict(list)
    for span in evalset.gold_spans.to_pylist():
        gold[span["query_id"]].append(span)
    return [_line(query, gold[query["query_id"]]) for query in evalset.queries.to_pylist()]


def _line(query: dict[str, Any], gold: list[dict[str, Any]]) -> dict[str, Any]:
    if query["subset"] is not None:
        raise InputError(
            f"query {query['query_id']}: it belongs to a subset, which no line can say"
        )
    if any(span["doc_id"] != query["doc_id"] for span in gold):
        raise InputError(
            f"query {query['query_id']}: it is not about one document alone, which no line can say"
        )
    line = {
        "query_id": query["query_id"],
        "query": query["query"],
        "doc_id": query["doc_id"],
        "clause_type": query["clause_type"],
        "filters": dict(query["filters"]),
        "gold_spans": [
            {"start": s["start_char"], "end": s["end_char"], "text": s["text"]} for s in gold
        ],
    }
    return {key: value for key, value in line.items() if value not in (None, {})}
