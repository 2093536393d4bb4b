"""Corpora whose names hold what formats stumble over, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline_tests.metrics.cases import CHUNKER, CONFIG, CORPUS, Case, cases

NASTY = {"A": "a b/c d", "Ä": "50% %25\tGröße", "B": "x|y: “z”\u2028%20"}
"""What each document of a case is called here."""


@dataclass(frozen=True)
class Given:
    """Everything of one configuration that an export takes."""

    evalset: EvalSet
    chunks: pa.Table
    rankings: pa.Table


def renamed(case: Case, *, repeats: bool = False) -> Given:
    """A case with nasty names; lists without repeats unless asked for, as ours are."""
    documents = [Document(NASTY[d], d, text, f"{d}.txt", "t") for d, text in case.texts.items()]
    queries = [
        Query(
            f"q {q}%",
            f"what is {q}?",
            [GoldSpan(NASTY[d], s, e) for d, s, e in places],
            subset=case.subsets.get(q),
        )
        for q, places in case.gold.items()
    ]
    lists = case.rankings if repeats else {q: dict.fromkeys(c) for q, c in case.rankings.items()}
    rows: list[dict[str, Any]] = []
    for query_id, chunk_ids in lists.items():
        for rank, chunk in enumerate(chunk_ids, 1):
            d, start, end = case.chunks[chunk]
            rows.append(
                {"corpus": CORPUS, "config": CONFIG, "query_id": f"q {query_id}%", "rank": rank}
                | {"chunk_id": f"{NASTY[d]}:{chunk}", "doc_id": NASTY[d]}
                | {"start_char": start, "end_char": end, "score": 7 / rank}
            )
    numbers: dict[str, int] = {}
    pieces = []
    for chunk, (d, start, end) in case.chunks.items():
        numbers[d] = numbers.get(d, -1) + 1
        pieces.append(
            {"corpus": CORPUS, "chunker": CHUNKER, "chunk_id": f"{NASTY[d]}:{chunk}"}
            | {"doc_id": NASTY[d], "chunk_no": numbers[d], "start_char": start, "end_char": end}
        )
    return Given(
        assemble(CORPUS, documents, queries),
        tables.from_rows("chunks", pieces),
        tables.from_rows("rankings", rows),
    )


@st.composite
def worlds(draw: st.DrawFn) -> Given:
    """Random cases with nasty names."""
    return renamed(draw(cases()))
