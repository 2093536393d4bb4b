"""The ``paper`` scoring against the formula as LegalBench-RAG publishes it (arXiv 2408.10343).

Precision: characters that retrieved snippets share with gold snippets, summed over the pairs, by
characters retrieved. Recall: the same by gold characters. Offsets alone, one pair at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.calibration.world import Place, large

AGAINST = "the published formula, pair by pair"
TOLERANCE = 1e-12


def compare(n_cases: int, seed: int) -> list[Tally]:
    """Both scores of ``n_cases`` random lists at every k."""
    tallies = Tallies(AGAINST, TOLERANCE)
    world = large(Random(seed), n_cases)
    measured = world.measured().tables
    gold: dict[str, list[Place]] = {}
    for row in world.evalset().gold_spans.to_pylist():
        place = row["doc_id"], row["start_char"], row["end_char"]
        gold.setdefault(row["query_id"], []).append(place)
    for row in measured["query_metrics"].to_pylist():
        if row["metric"] in ("char_precision_paper", "char_recall_paper"):
            query, k = row["query_id"], row["k"]
            precision, recall = scores(world.ranked[query][:k], gold[query])
            expected = precision if row["metric"] == "char_precision_paper" else recall
            tallies.add(f"{row['metric']}@k", f"{query}, k {k}", row["value"], expected)
    return tallies.all()


def scores(retrieved: Sequence[Place], gold: Sequence[Place]) -> tuple[float, float]:
    """Precision and recall; nothing retrieved: precision 0."""
    shared = sum(_shared(snippet, answer) for snippet in retrieved for answer in gold)
    n_retrieved = sum(end - start for _, start, end in retrieved)
    n_gold = sum(end - start for _, start, end in gold)
    return (shared / n_retrieved if n_retrieved else 0.0), shared / n_gold


def _shared(one: Place, other: Place) -> int:
    if one[0] != other[0]:
        return 0
    return max(0, min(one[2], other[2]) - max(one[1], other[1]))
