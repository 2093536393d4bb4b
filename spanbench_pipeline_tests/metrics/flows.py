"""A case with what each stage of a pipeline kept: channels, the fused list, routed documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, Place, places, tiles

Lists = Mapping[str, Sequence[str]]
"""Query -> chunk ids (or document ids), best first."""

CANDIDATES = pa.schema(
    [(c, pa.string()) for c in ("corpus", "config", "query_id", "source")]
    + [("rank", pa.int64()), ("chunk_id", pa.string()), ("doc_id", pa.string())]
    + [("start_char", pa.int64()), ("end_char", pa.int64()), ("score", pa.float64())]
)
ROUTED = pa.schema(
    [(c, pa.string()) for c in ("corpus", "config", "query_id")]
    + [("rank", pa.int64()), ("doc_id", pa.string()), ("score", pa.float64())]
)


@dataclass(frozen=True)
class Flow:
    """``case.rankings`` is the final list; ``fused`` and ``routed`` are None without that stage."""

    case: Case
    channels: Mapping[str, Lists]
    fused: Lists | None = None
    routed: Lists | None = None
    reranker: bool = False

    def candidate_table(self) -> pa.Table:
        rows = [
            self._row(query, rank, chunk) | {"source": source}
            for source, lists in self.channels.items()
            for query, chunks in lists.items()
            for rank, chunk in enumerate(chunks, 1)
        ]
        return pa.Table.from_pylist(rows, CANDIDATES)

    def ranking_table(self) -> pa.Table:
        return tables.from_rows(
            "rankings",
            [
                self._row(query, rank, chunk)
                | {"fused_rank": self.fused and list(self.fused[query]).index(chunk) + 1}
                for query, chunks in self.case.rankings.items()
                for rank, chunk in enumerate(chunks, 1)
            ],
        )

    def routed_table(self) -> pa.Table | None:
        if self.routed is None:
            return None
        rows = [
            {"corpus": CORPUS, "config": CONFIG, "query_id": query, "rank": rank, "doc_id": doc_id}
            | {"score": 1 / rank}
            for query, kept in self.routed.items()
            for rank, doc_id in enumerate(kept, 1)
        ]
        return pa.Table.from_pylist(rows, ROUTED)

    def _row(self, query: str, rank: int, chunk: str) -> dict[str, Any]:
        doc_id, start, end = self.case.chunks[chunk]
        return {
            "corpus": CORPUS,
            "config": CONFIG,
            "query_id": query,
            "rank": rank,
            "chunk_id": chunk,
            "doc_id": doc_id,
            "start_char": start,
            "end_char": end,
            "score": 1 / rank,
        }


@st.composite
def pieces(draw: st.DrawFn, lengths: Mapping[str, int]) -> dict[str, Place]:
    """Tiles of one size, most of them, and some chunks anywhere."""
    size = draw(st.integers(3, 9))
    tiled = {c: p for d, n in lengths.items() for c, p in tiles(d, n, size).items()}
    gone = draw(st.sets(st.sampled_from(sorted(tiled)), max_size=2))
    any_where = sorted(draw(st.sets(places(lengths), max_size=3)))
    return {c: p for c, p in tiled.items() if c not in gone} | {
        f"any{n}": place for n, place in enumerate(any_where)
    }


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """A random case through random stages: each keeps most of what the one before kept."""
    lengths = draw(
        st.dictionaries(st.sampled_from("AÄB"), st.integers(8, 24), min_size=1, max_size=2)
    )
    chunks = draw(pieces(lengths))
    query_ids = [f"q{n}" for n in range(draw(st.integers(1, 3)))]
    gold = {q: draw(st.lists(places(lengths), min_size=1, max_size=3)) for q in query_ids}
    routed: dict[str, list[str]] | None = None
    if draw(st.integers(0, 2)) == 0:
        kept = st.lists(st.sampled_from([*sorted(lengths), "no such"]), unique=True, min_size=1)
        routed = {query: draw(kept) for query in query_ids}
    two, reranker = draw(st.booleans()), draw(st.booleans())
    channels: dict[str, dict[str, list[str]]] = {s: {} for s in ["dense", "bm25"][: 1 + two]}
    before: dict[str, list[str]] = {}
    for query in query_ids:
        allowed = [c for c, p in chunks.items() if routed is None or p[0] in routed[query]]
        for lists in channels.values():
            lists[query] = draw(st.permutations(allowed))[: draw(st.integers(0, 12))]
        union = sorted({c for lists in channels.values() for c in lists[query]})
        fused = draw(st.permutations(union))[: draw(st.integers(0, 12))]
        before[query] = fused if two else channels["dense"][query]
    final = {q: draw(st.permutations(c)) if reranker else c for q, c in before.items()}
    subsets = {q: draw(st.sampled_from([None, "east", "west"])) for q in query_ids}
    texts = {d: "x" * n for d, n in lengths.items()}
    case = Case(texts, chunks, gold, final, subsets)
    return Flow(case, channels, before if two else None, routed, reranker)
