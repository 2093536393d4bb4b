"""Small tables, written as briefly as a test wants to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core import evalset, tables
from spanbench_pipeline.retrieval.dense import Vectors
from spanbench_pipeline.retrieval.lists import Lists, collect


def documents(
    texts: Mapping[str, str], metadata: Mapping[str, Mapping[str, str]] | None = None
) -> pa.Table:
    """A documents table from doc_id -> text, and doc_id -> metadata where there is any."""
    rows = [
        {
            "corpus": "small",
            "doc_id": doc_id,
            "title": doc_id,
            "n_chars": len(text),
            "text": text,
            "text_sha256": evalset.text_sha256(text),
            "source_file": f"{doc_id}.txt",
            "extractor": "text",
            "metadata": sorted((metadata or {}).get(doc_id, {}).items()),
        }
        for doc_id, text in texts.items()
    ]
    return tables.from_rows("documents", rows)


def chunks(spans: Iterable[tuple[str, int, int]]) -> pa.Table:
    """A chunks table from (doc_id, start, end), numbered within a document as they come."""
    numbers: dict[str, int] = {}
    rows = []
    for doc_id, start, end in spans:
        number = numbers[doc_id] = numbers.get(doc_id, -1) + 1
        rows.append(
            {
                "corpus": "small",
                "chunker": "lines",
                "chunk_id": f"{doc_id}:lines:{number}",
                "doc_id": doc_id,
                "chunk_no": number,
                "start_char": start,
                "end_char": end,
            }
        )
    return tables.from_rows("chunks", rows)


def lines(text_of: Mapping[str, Sequence[str]]) -> tuple[pa.Table, pa.Table]:
    """Documents of the given lines, and one chunk a line without its line break."""
    spans = []
    for doc_id, parts in text_of.items():
        start = 0
        for part in parts:
            spans.append((doc_id, start, start + len(part)))
            start += len(part) + 1
    return documents({d: "\n".join(parts) for d, parts in text_of.items()}), chunks(spans)


def queries(
    asked: Iterable[tuple[str, str | None, Mapping[str, str]]],
) -> pa.Table:
    """A queries table from (text, doc_id, filters), with ids q001, q002, ..."""
    rows = [
        {
            "corpus": "small",
            "query_id": f"q{number:03}",
            "query": text,
            "clause_type": None,
            "subset": None,
            "doc_id": doc_id,
            "filters": sorted(filters.items()),
        }
        for number, (text, doc_id, filters) in enumerate(asked, 1)
    ]
    return tables.from_rows("queries", rows)


def vectors(rows: Sequence[Sequence[float] | None]) -> Vectors:
    """Vectors of the given rows, scaled to length one; None: a text without a word piece."""
    width = max((len(r) for r in rows if r is not None), default=0)
    matrix = np.array([[0.0] * width if r is None else r for r in rows], np.float64)
    matrix = matrix.reshape(len(rows), width)
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = (matrix / np.where(length == 0, 1, length)).astype(np.float32)
    return Vectors(unit, np.array([r is not None for r in rows], dtype=bool))


def lists(*found: Sequence[int]) -> Lists:
    """One list a query, in the order given, with falling scores of no meaning."""
    return collect(
        (query, np.array(rows, np.int64), -np.arange(float(len(rows))))
        for query, rows in enumerate(found)
    )


def as_rows(given: Lists, n_queries: int) -> list[list[int]]:
    """The chunk rows of each query's list, best first."""
    return [given.row[given.query == query].tolist() for query in range(n_queries)]
