"""Anybody's rankings: places in documents, with or without the chunks they were taken from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spanbench_pipeline.calibration.oracle import Asked
from spanbench_pipeline.calibration.world import Place
from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.metrics import cases
from spanbench_pipeline_tests.metrics.cases import CHUNKER, CONFIG, CORPUS

NAMED: dict[str, str] = {"corpus": CORPUS, "config": CONFIG}


@dataclass(frozen=True)
class Placed:
    """Gold spans and ranked places of each query, best first; the chunker's chunks, if known."""

    gold: Mapping[str, Sequence[Place]]
    ranked: Mapping[str, Sequence[Place]]
    chunks: Sequence[Place] | None = field(default=None)
    subsets: Mapping[str, str | None] = field(default_factory=dict)

    def rankings(self, config: str = CONFIG) -> pa.Table:
        return tables.from_rows(
            "rankings",
            [
                {"corpus": CORPUS, "config": config, "query_id": query, "rank": rank}
                | {"chunk_id": "{}:{}:{}".format(*place), "score": 1 / rank, **placed(place)}
                for query, places in self.ranked.items()
                for rank, place in enumerate(places, 1)
            ],
        )

    def gold_spans(self) -> pa.Table:
        return tables.from_rows(
            "gold_spans",
            [
                {
                    "corpus": CORPUS,
                    "query_id": query,
                    "span_no": number,
                    "text": "",
                    **placed(place),
                }
                for query, places in self.gold.items()
                for number, place in enumerate(places)
            ],
        )

    def chunk_table(self) -> pa.Table | None:
        if self.chunks is None:
            return None
        numbers = {place: n for n, place in enumerate(sorted(set(self.chunks)))}
        return tables.from_rows(
            "chunks",
            [
                {"corpus": CORPUS, "chunker": CHUNKER, "chunk_no": n, **placed(place)}
                | {"chunk_id": "{}:{}:{}".format(*place)}
                for place, n in numbers.items()
            ],
        )

    def queries(self) -> pa.Table:
        none = {"clause_type": None, "doc_id": None, "filters": []}
        return tables.from_rows(
            "queries",
            [
                {"corpus": CORPUS, "query_id": q, "query": "?", "subset": self.subsets.get(q)}
                | none
                for q in self.gold
            ],
        )

    def asked(self, query: str) -> Asked:
        """Return a query as the oracle takes it."""
        known = self.chunks is not None
        ranked = self.ranked.get(query, [])
        return Asked(self.gold[query], ranked, self.chunks or [], chunks_known=known)

    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table | None, pa.Table]:
        """Rankings, gold spans, chunks (None: unknown), queries."""
        return self.rankings(), self.gold_spans(), self.chunk_table(), self.queries()


def placed(place: Place) -> dict[str, Any]:
    doc_id, start, end = place
    return {"doc_id": doc_id, "start_char": start, "end_char": end}


def one(gold: Sequence[Place], ranked: Sequence[Place], *chunks: Place) -> Placed:
    """One query, ``q``; the ranked places are chunks too."""
    return Placed({"q": gold}, {"q": ranked}, [*ranked, *chunks])


def A(start: int, end: int) -> Place:  # noqa: N802 (a document's name)
    return ("A", start, end)


def B(start: int, end: int) -> Place:  # noqa: N802
    return ("B", start, end)


LENGTHS = {"A": 24, "B": 16, "C": 9}


@st.composite
def disjoint(draw: st.DrawFn) -> list[Place]:
    """One to four gold spans that neither overlap nor touch, as an eval set has them."""
    return apart(draw(st.lists(cases.places(LENGTHS), min_size=1, max_size=4)))


def apart(places: Sequence[Place]) -> list[Place]:
    """Those that neither meet nor touch one before them, sorted."""
    kept: list[Place] = []
    for doc_id, start, end in places:
        if all(d != doc_id or end < s or e < start for d, s, e in kept):
            kept.append((doc_id, start, end))
    return sorted(kept)


def many(n_queries: int, seed: int) -> Placed:
    """So many random queries over thirty chunks, lists of up to seventy with repeats."""
    random = Random(seed)

    def place() -> Place:
        doc_id = random.choice(sorted(LENGTHS))
        start = random.randrange(LENGTHS[doc_id])
        return doc_id, start, min(start + random.randint(1, 12), LENGTHS[doc_id])

    chunks = [place() for _ in range(30)]
    queries = [f"q{number:04}" for number in range(n_queries)]
    return Placed(
        gold={q: apart([place() for _ in range(random.randint(1, 4))]) for q in queries},
        ranked={q: random.choices(chunks, k=random.choice([0, 1, 3, 9, 30, 70])) for q in queries},
        chunks=chunks,
    )


@st.composite
def placed_cases(draw: st.DrawFn, *, repeats: bool = True) -> Placed:
    """Up to three queries over any chunks; lists of up to twenty, empty and repeating ones too."""
    chunks = draw(st.lists(cases.places(LENGTHS), min_size=1, max_size=12, unique=True))
    query_ids = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    unlike = None if repeats else (lambda place: place)
    ranked = st.lists(st.sampled_from(chunks), max_size=20, unique_by=unlike)
    subsets = st.sampled_from([None, "east", "west"])
    return Placed(
        gold={q: draw(disjoint()) for q in query_ids},
        ranked={q: draw(ranked) for q in query_ids},
        chunks=chunks,
        subsets={q: draw(subsets) for q in query_ids},
    )
