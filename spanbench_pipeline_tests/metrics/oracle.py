"""The specification by brute force: every span is a set of (document, character).

It shares no code with the package, and it is as slow as it looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spanbench_pipeline_tests.metrics.cases import Case, Place

Characters = frozenset[tuple[str, int]]


def characters(place: Place) -> Characters:
    doc_id, start, end = place
    return frozenset((doc_id, i) for i in range(start, end))


def gold_spans(case: Case, query: str) -> list[Place]:
    """The query's gold, merged: maximal runs of gold characters, by document and start."""
    union = set().union(*map(characters, case.gold[query]))
    runs = []
    for doc_id, i in sorted(union):
        if (doc_id, i - 1) not in union:
            end = i
            while (doc_id, end) in union:
                end += 1
            runs.append((doc_id, i, end))
    return runs


def ranking(case: Case, query: str) -> list[str]:
    """The query's list, each chunk at its first occurrence."""
    return list(dict.fromkeys(case.rankings[query]))


def touching(case: Case, place: Place) -> list[str]:
    """The chunks that share a character with a place."""
    return [c for c, piece in case.chunks.items() if characters(piece) & characters(place)]


def relevant(case: Case, query: str) -> set[str]:
    return {c for place in gold_spans(case, query) for c in touching(case, place)}


def covered(case: Case, query: str, place: Place, k: int = 5) -> int:
    top = [characters(case.chunks[c]) for c in ranking(case, query)[:k]]
    return len(characters(place) & frozenset().union(*top))


def failed(case: Case, query: str) -> list[Place]:
    """Gold spans with under half of their characters in the top 5."""
    return [
        place
        for place in gold_spans(case, query)
        if covered(case, query, place) * 2 < len(characters(place))
    ]


def metrics(case: Case, query: str) -> dict[tuple[str, int | None], float | None]:
    ranked, good, spans = ranking(case, query), relevant(case, query), gold_spans(case, query)
    ranks = [rank for rank, chunk in enumerate(ranked, 1) if chunk in good]
    gold_chars = sum(len(characters(place)) for place in spans)
    reached = len(spans) - len(failed(case, query))
    return {
        ("precision", 5): len([r for r in ranks if r <= 5]) / 5,
        ("recall", 10): len([r for r in ranks if r <= 10]) / len(good) if good else None,
        ("mrr", None): 1 / ranks[0] if ranks else 0,
        ("span_coverage", 5): sum(covered(case, query, p) for p in spans) / gold_chars,
        ("span_recall", 5): reached / len(spans),
        ("complete_grounding", 5): 1 if reached == len(spans) else 0,
        ("ndcg", 10): ndcg([r for r in ranks if r <= 10], len(good)),
    }


def ndcg(ranks: Sequence[int], n_relevant: int) -> float | None:
    """By the definition; equal to any other sum of the same but for the last bits."""
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(n_relevant, 10) + 1))
    return sum(1 / math.log2(rank + 1) for rank in ranks) / best if best else None


def label(case: Case, query: str) -> str | None:
    """The first of the five labels that holds; None for a query that does not fail."""
    lost = failed(case, query)
    if not lost:
        return None
    ranked, good = ranking(case, query), relevant(case, query)
    touches = [touching(case, place) for place in lost]
    flat = [chunk for chunks in touches for chunk in chunks]
    if 0 < len(good) < 5 and good <= set(ranked[:5]):
        return "ceiling-bound"
    if any(len(chunks) > 1 for chunks in touches):
        return "chunk-severance"
    if any(chunk not in ranked for chunk in flat):
        return "retrieval-miss"
    if any(chunk not in ranked[:5] for chunk in flat):
        return "rank-miss"
    return "partial-grounding"


def chunk_stats(case: Case) -> dict[str, float | None]:
    spans = [place for query in case.gold for place in gold_spans(case, query)]
    inside = [any(characters(p) <= characters(c) for c in case.chunks.values()) for p in spans]
    counts = [len(relevant(case, query)) for query in case.gold]
    lengths = sorted(len(characters(piece)) for piece in case.chunks.values())
    return {
        "n_chunks": len(lengths),
        "median_chars": lengths[len(lengths) // 2] if lengths else None,
        "spans_in_one_chunk": mean([len(touching(case, p)) == 1 for p in spans]),
        "spans_contained": mean(inside),
        "relevant_per_query": mean(counts),
        "precision_ceiling": mean([min(n, 5) for n in counts]) / 5,
        "truncated_share": None,
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
