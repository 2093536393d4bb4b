"""A small corpus in plain values, and everything that is measured of it, by plain keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.scoring.measured import Measured, measure

CORPUS, CONFIG, CHUNKER = "calibration", "random", "pieces"
Place = tuple[str, int, int]
"""(document, start, end)"""
Gold = Mapping[str, Sequence[Place]]


@dataclass(frozen=True)
class World:
    """Documents by length, one chunker's places, and for each query its gold and its list.

    Lists are of places among ``chunks``, best first, and may repeat one.
    """

    lengths: Mapping[str, int]
    chunks: Sequence[Place]
    gold: Gold
    ranked: Mapping[str, Sequence[Place]]
    subsets: Mapping[str, str | None] = field(default_factory=dict)
    depth: int = 64
    context: int = 5

    def evalset(self) -> EvalSet:
        """The eval set, held to every invariant, as any corpus is."""
        documents = [Document(d, d, "x" * n, d, "made") for d, n in self.lengths.items()]
        queries = [
            Query(q, "asked", [GoldSpan(*p) for p in places], subset=self.subsets.get(q))
            for q, places in self.gold.items()
        ]
        return assemble(CORPUS, documents, queries)

    def chunk_table(self) -> pa.Table:
        """The table ``chunks``."""
        numbers: dict[str, int] = {}
        rows = []
        for place in sorted(self.chunks):
            doc_id, start, end = place
            number = numbers[doc_id] = numbers.get(doc_id, -1) + 1
            rows.append(
                {
                    "corpus": CORPUS,
                    "chunker": CHUNKER,
                    "chunk_id": chunk_id(place),
                    "doc_id": doc_id,
                    "chunk_no": number,
                    "start_char": start,
                    "end_char": end,
                }
            )
        return tables.from_rows("chunks", rows)

    def rankings(self) -> pa.Table:
        """The table ``rankings``, repeats included."""
        rows = [
            {
                "corpus": CORPUS,
                "config": CONFIG,
                "query_id": query_id,
                "rank": rank,
                "chunk_id": chunk_id(place),
                "doc_id": place[0],
                "start_char": place[1],
                "end_char": place[2],
                "score": 1 / rank,
            }
            for query_id, places in self.ranked.items()
            for rank, place in enumerate(places, 1)
        ]
        return tables.from_rows("rankings", rows)

    def measured(self, *, with_chunks: bool = True) -> Measured:
        """Every measure, through the function that ``spanbench score`` uses."""
        chunks = self.chunk_table() if with_chunks else None
        return measure(
            self.rankings(),
            self.evalset(),
            chunks,
            corpus=CORPUS,
            config=CONFIG,
            depth=self.depth,
            context=self.context,
        )


def chunk_id(place: Place) -> str:
    """The id of a chunk."""
    return "{}:{}:{}".format(*place)


def small(random: Random, n_queries: int) -> World:
    """Three documents of up to 30 characters, up to 20 chunks of any kind, lists of up to 24.

    Chunks nest, overlap and leave gaps; gold spans overlap and touch before they are merged; a list
    may be empty and may repeat chunks; some queries are of no part of the corpus.
    """
    lengths = {doc_id: random.randint(9, 30) for doc_id in "ABC"}
    chunks = sorted({_place(random, lengths, 14) for _ in range(random.choice([1, 4, 9, 14, 20]))})
    queries = [f"q{n:03}" for n in range(n_queries)]
    return World(
        lengths,
        chunks,
        {q: [_place(random, lengths, 9) for _ in range(random.randint(1, 4))] for q in queries},
        {q: random.choices(chunks, k=random.choice([0, 1, 2, 3, 5, 8, 16, 24])) for q in queries},
        {q: random.choice([None, "east", "west"]) for q in queries},
        depth=16,
    )


def large(random: Random, n_queries: int) -> World:
    """Five documents of up to 100,000 characters with names that hold spaces and per cent signs,
    300 chunks, and lists of up to 64 that may repeat some.
    """
    names = ("a b/c", "50% + more", "50%25", "Größe|x: y", "plain")
    lengths = {name: random.randint(5_000, 100_000) for name in names}
    chunks = sorted({_place(random, lengths, 2_000) for _ in range(300)})
    queries = [f"query {n:03}" for n in range(n_queries)]
    return World(
        lengths,
        chunks,
        {q: [_near(random, chunks, lengths) for _ in range(random.randint(1, 5))] for q in queries},
        {q: random.choices(chunks, k=random.choice([0, 1, 7, 30, 64])) for q in queries},
    )


def _place(random: Random, lengths: Mapping[str, int], longest: int) -> Place:
    doc_id = random.choice(sorted(lengths))
    start = random.randrange(lengths[doc_id])
    return doc_id, start, min(start + random.randint(1, longest), lengths[doc_id])


def _near(random: Random, chunks: Sequence[Place], lengths: Mapping[str, int]) -> Place:
    """Gold that some chunk is likely to meet."""
    doc_id, start, end = random.choice(chunks)
    begin = random.randrange(start, end)
    return doc_id, begin, min(begin + random.randint(1, 600), lengths[doc_id])
