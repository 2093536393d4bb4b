"""A whole small corpus in plain values, as tables, and made at random by hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st

from spanbench_pipeline.calibration.oracle import Asked
from spanbench_pipeline.calibration.world import Place
from spanbench_pipeline.core import evalset, tables

CORPUS = "tiny"
CHUNKER = "pieces"
CONFIG = "mine"


@dataclass(frozen=True)
class Case:
    """Texts and places in plain values; ``rankings`` lists chunk ids, best first."""

    texts: Mapping[str, str]
    chunks: Mapping[str, Place]
    gold: Mapping[str, Sequence[Place]]
    rankings: Mapping[str, Sequence[str]]
    subsets: Mapping[str, str | None] = field(default_factory=dict)

    def eval_set(self) -> evalset.EvalSet:
        return evalset.assemble(
            CORPUS,
            [evalset.Document(d, d, text, f"{d}.txt", "text") for d, text in self.texts.items()],
            [
                evalset.Query(
                    q,
                    f"what is {q}?",
                    [evalset.GoldSpan(*place) for place in places],
                    subset=self.subsets.get(q),
                )
                for q, places in self.gold.items()
            ],
        )

    def chunk_table(self, chunker: str = CHUNKER) -> pa.Table:
        numbers: dict[str, int] = {}
        rows = []
        for chunk_id, (doc_id, start, end) in self.chunks.items():
            numbers[doc_id] = numbers.get(doc_id, -1) + 1
            rows.append(
                {
                    "corpus": CORPUS,
                    "chunker": chunker,
                    "chunk_id": chunk_id,
                    "doc_id": doc_id,
                    "chunk_no": numbers[doc_id],
                    "start_char": start,
                    "end_char": end,
                }
            )
        return tables.from_rows("chunks", rows)

    def ranking_table(self, config: str = CONFIG) -> pa.Table:
        rows = []
        for query_id, chunk_ids in self.rankings.items():
            for rank, chunk_id in enumerate(chunk_ids, 1):
                doc_id, start, end = self.chunks[chunk_id]
                rows.append(
                    {
                        "corpus": CORPUS,
                        "config": config,
                        "query_id": query_id,
                        "rank": rank,
                        "chunk_id": chunk_id,
                        "doc_id": doc_id,
                        "start_char": start,
                        "end_char": end,
                        "score": 1 / rank,
                    }
                )
        return tables.from_rows("rankings", rows)

    def asked(self, query: str) -> Asked:
        """Return a query as the oracle takes it."""
        ranked = [self.chunks[chunk_id] for chunk_id in self.rankings.get(query, ())]
        return Asked(self.gold[query], ranked, list(self.chunks.values()))

    def ids(self, pieces: Iterable[Place]) -> list[str]:
        """Return the ids of chunks that are given by place, in their order."""
        chunk_ids = {piece: chunk_id for chunk_id, piece in self.chunks.items()}
        return [chunk_ids[piece] for piece in pieces]

    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
        """Rankings, gold spans, chunks, queries: what a measure of a configuration takes."""
        known = self.eval_set()
        return self.ranking_table(), known.gold_spans, self.chunk_table(), known.queries


def beside_another(table: pa.Table, column: str) -> pa.Table:
    """The rows, and the same again with "other" in a column: two corpora, say, in one table."""
    at = table.schema.get_field_index(column)
    other = pa.array(["other"] * table.num_rows, pa.string())
    return pa.concat_tables([table, table.set_column(at, table.schema.field(at), other)])


def tiles(doc_id: str, length: int, size: int) -> dict[str, Place]:
    """Chunks ``<doc_id>0``, ``<doc_id>1``, ... of ``size`` characters, end to end."""
    starts = range(0, length, size)
    return {f"{doc_id}{i}": (doc_id, s, min(s + size, length)) for i, s in enumerate(starts)}


@st.composite
def places(draw: st.DrawFn, lengths: Mapping[str, int]) -> Place:
    doc_id = draw(st.sampled_from(sorted(lengths)))
    start = draw(st.integers(0, lengths[doc_id] - 1))
    return doc_id, start, draw(st.integers(start + 1, lengths[doc_id]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to three documents with any chunks (nested, overlapping, gaps, none) and any rankings.

    A ranking may be empty and may repeat chunks.
    """
    lengths = draw(
        st.dictionaries(st.sampled_from("AÄB"), st.integers(1, 30), min_size=1, max_size=3)
    )
    pieces = sorted(draw(st.sets(places(lengths), max_size=14)))
    chunks = {f"{d}:{i}": (d, start, end) for i, (d, start, end) in enumerate(pieces)}
    query_ids = [f"q{i}" for i in range(draw(st.integers(1, 4)))]
    one_ranking = st.lists(st.sampled_from(sorted(chunks)), max_size=16) if chunks else st.just([])
    return Case(
        texts={d: ("abcdé" * n)[:n] for d, n in lengths.items()},
        chunks=chunks,
        gold={q: draw(st.lists(places(lengths), min_size=1, max_size=4)) for q in query_ids},
        rankings={q: draw(one_ranking) for q in query_ids},
        subsets={q: draw(st.sampled_from([None, "east", "west"])) for q in query_ids},
    )
