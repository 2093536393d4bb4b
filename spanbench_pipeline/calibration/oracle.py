"""Compute every measure by brute force: a span is the set of its (document, character) pairs.

It imports no arithmetic of the measures. ``spanbench calibrate`` and the tests compare with it.
``k`` and ``context`` count chunks of a list whose repeats have closed up; ``covered_from`` is a
share of a span's characters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from spanbench_pipeline.calibration.world import Place

Characters = frozenset[tuple[str, int]]
HALF = Fraction(1, 2)


@lru_cache(maxsize=4096)
def characters(place: Place) -> Characters:
    """Every character of a place."""
    doc_id, start, end = place
    return frozenset((doc_id, at) for at in range(start, end))


def union(places: Sequence[Place]) -> Characters:
    """Every character of several places, once."""
    return frozenset().union(*map(characters, places))


@dataclass(frozen=True)
class Asked:
    """One query: its gold as given, its list as given, and the chunker's chunks.

    Where ``chunks_known`` is false, nobody can say whether a chunk boundary severs a span.
    """

    given_gold: Sequence[Place]
    given: Sequence[Place]
    chunks: Sequence[Place]
    depth: int = 64
    chunks_known: bool = True

    @cached_property
    def gold_chars(self) -> Characters:
        """All gold characters."""
        return union(self.given_gold)

    @cached_property
    def gold(self) -> list[Place]:
        """Maximal runs of gold characters, by document and place."""
        runs = []
        for doc_id, start in sorted(self.gold_chars):
            if (doc_id, start - 1) not in self.gold_chars:
                end = start
                while (doc_id, end) in self.gold_chars:
                    end += 1
                runs.append((doc_id, start, end))
        return runs

    @cached_property
    def ranked(self) -> list[Place]:
        """The list with every place at its first occurrence, cut at the depth."""
        return list(dict.fromkeys(self.given))[: self.depth]

    @cached_property
    def relevant(self) -> list[Place]:
        """The chunks that hold a gold character."""
        return self.touching(*self.gold)

    def touching(self, *spans: Place) -> list[Place]:
        """Return the chunks that share a character with one of the spans, in the chunks' order."""
        wanted = union(spans)
        return [chunk for chunk in self.chunks if characters(chunk) & wanted]

    def failed(self, context: int) -> list[Place]:
        """Return the gold spans of which the first chunks hold less than half."""
        return [span for span in self.gold if not self.holds(self.ranked[:context], span)]

    def covered(self, span: Place, k: int) -> int:
        """Characters of a gold span in the first k."""
        return len(characters(span) & union(self.ranked[:k]))

    def holds(self, pieces: Sequence[Place], span: Place) -> bool:
        """Whether pieces hold at least half of a span."""
        return Fraction(len(characters(span) & union(pieces)), len(characters(span))) >= HALF


def metrics(asked: Asked, *, context: int) -> dict[str, float | None]:
    """Return the metrics of chunks and spans, by ``metric@k``, for a reader of so many chunks."""
    relevant = set(asked.relevant)
    ranks = [rank for rank, piece in enumerate(asked.ranked, 1) if piece in relevant]
    n_grounded = len(asked.gold) - len(asked.failed(context))
    found = asked.gold_chars & union(asked.ranked[:context])
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), 10) + 1))
    in_ten = sum(rank <= 10 for rank in ranks)
    return {
        f"precision@{context}": sum(rank <= context for rank in ranks) / context,
        "recall@10": in_ten / len(relevant) if relevant else None,
        "mrr": 1 / ranks[0] if ranks else 0.0,
        f"span_coverage@{context}": len(found) / len(asked.gold_chars),
        f"span_recall@{context}": n_grounded / len(asked.gold),
        f"complete_grounding@{context}": float(n_grounded == len(asked.gold)),
        "ndcg@10": gain / best if relevant else None,
    }


def character_metrics(asked: Asked, k: int, *, as_given: bool = True) -> dict[str, float]:
    """Return the metrics of characters at k; the paper's count repeats if ``as_given``."""
    retrieved = union(asked.ranked[:k])
    summed = asked.given[:k] if as_given else asked.ranked[:k]
    found = len(retrieved & asked.gold_chars)
    shared = sum(len(characters(c) & characters(g)) for c in summed for g in asked.gold)
    lengths = sum(len(characters(piece)) for piece in summed)
    return {
        "chars_retrieved": float(len(retrieved)),
        "char_precision_union": found / len(retrieved) if retrieved else 0.0,
        "char_recall_union": found / len(asked.gold_chars),
        "char_precision_paper": shared / lengths if lengths else 0.0,
        "char_recall_paper": shared / sum(len(characters(g)) for g in asked.gold),
    }


def severed(asked: Asked, span: Place) -> bool | None:
    """Return whether no single chunk holds the whole span; None where chunks are unknown."""
    if not asked.chunks_known:
        return None
    return not any(characters(span) <= characters(chunk) for chunk in asked.chunks)


def state(asked: Asked, span: Place, k: int) -> str:
    """covered, partial or missed."""
    if asked.holds(asked.ranked[:k], span):
        return "covered"
    return "partial" if asked.covered(span, k) else "missed"


def excess(asked: Asked, k: int) -> float | None:
    """Characters of the relevant first k / gold characters; None where none is relevant."""
    return len(_relevant_chars(asked, k)) / len(asked.gold_chars) or None


def forensic_label(
    asked: Asked, k: int, covered_from: Fraction = HALF, factor: int = 3
) -> str | None:
    """Return the first forensic label that holds; None where that depends on unknown chunks."""
    documents = {doc_id for doc_id, _, _ in asked.gold}
    if not documents & {doc_id for doc_id, _, _ in asked.ranked[:k]}:
        return "DRM"
    found = {span: asked.covered(span, k) for span in asked.gold}
    if not any(found.values()):
        return "ICR"
    lost = [s for s in asked.gold if Fraction(found[s], len(characters(s))) < covered_from]
    cut = [severed(asked, span) for span in lost if found[span]]
    if True in cut:
        return "CBF"
    if None in cut:
        return None
    if lost:
        return "SGP" if len(lost) < len(asked.gold) else "ICR"
    return "OVR" if len(_relevant_chars(asked, k)) >= factor * len(asked.gold_chars) else "OK"


def stability(asked: Asked, k: int) -> dict[str, str | None]:
    """The label under each changed setting."""
    shares = {f"covered {text}": Fraction(text) for text in ("0.3", "0.7", "1.0")}
    changed = {name: forensic_label(asked, k, share) for name, share in shares.items()}
    return changed | {f"factor {n}": forensic_label(asked, k, factor=n) for n in (2, 5)}


def failure_label(asked: Asked, *, context: int) -> str | None:
    """Return the first failure label that holds; None for a query that does not fail."""
    failed = asked.failed(context)
    if not failed:
        return None
    top, relevant = set(asked.ranked[:context]), set(asked.relevant)
    touching = asked.touching(*failed)
    if relevant and len(relevant) < context and relevant <= top:
        return "ceiling-bound"
    if any(len(asked.touching(span)) > 1 for span in failed):
        return "chunk-severance"
    if any(chunk not in asked.ranked for chunk in touching):
        return "depth-bound" if asked.depth == context <= len(asked.given) else "retrieval-miss"
    if any(chunk not in top for chunk in touching):
        return "rank-miss"
    return "partial-grounding"


def chunk_stats(queries: Sequence[Asked], *, context: int) -> dict[str, float | None]:
    """Return the statistics of the chunks that all queries share; median: the larger middle."""
    chunks = queries[0].chunks
    spans = [(asked, span) for asked in queries for span in asked.gold]
    counts = [len(asked.relevant) for asked in queries]
    lengths = sorted(len(characters(chunk)) for chunk in chunks)
    return {
        "n_chunks": len(lengths),
        "median_chars": lengths[len(lengths) // 2] if lengths else None,
        "spans_in_one_chunk": mean([len(asked.touching(span)) == 1 for asked, span in spans]),
        "spans_contained": mean([not severed(asked, span) for asked, span in spans]),
        "relevant_per_query": mean(counts),
        "precision_ceiling": mean([min(n, context) for n in counts]) / context,
        "truncated_share": None,
    }


def mean(values: Sequence[float]) -> float:
    """Return the sum by the count; raises ZeroDivisionError for no values."""
    return sum(values) / len(values)


def lost_stage(asked: Asked, span: Place, k: int) -> str | None:
    """The stage that lost a span, of a list that is its own candidates; None: it is covered."""
    if asked.holds(asked.ranked[:k], span):
        return None
    if not asked.holds(asked.chunks, span):
        return "corpus"
    if fewest(asked, asked.chunks, [span]) > k:
        return "chunking"
    return "cut" if asked.holds(asked.ranked, span) else "candidates"


def bounds(asked: Asked, k: int) -> dict[str, float]:
    """Complete grounding at k as it is, and at best with these candidates and these chunks."""
    return {
        "actual": float(all(asked.holds(asked.ranked[:k], span) for span in asked.gold)),
        "candidates": float(fewest(asked, asked.ranked, asked.gold) <= k),
        "chunks": float(fewest(asked, asked.chunks, asked.gold) <= k),
        "perfect": 1.0,
    }


def fewest(asked: Asked, pieces: Sequence[Place], gold: Sequence[Place]) -> float:
    """The fewest pieces that hold half of each span, by trying all; infinite where none do."""
    wanted = union(gold)
    useful = list(dict.fromkeys(p for p in pieces if characters(p) & wanted))
    if not all(asked.holds(useful, span) for span in gold):
        return math.inf
    for n in range(1, len(useful) + 1):
        for chosen in itertools.combinations(useful, n):
            if all(asked.holds(chosen, span) for span in gold):
                return n
    return math.inf


def _relevant_chars(asked: Asked, k: int) -> Characters:
    return union([p for p in asked.ranked[:k] if characters(p) & asked.gold_chars])
