"""The standing sentences of the reports: what metrics, statistics and labels mean; the limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.reports.render.blocks import Inline, Items, Strong

FAILS = " A query fails when it is 0."
"""What is said of complete grounding at the context."""


def meaning(name: str, context: int = CONTEXT) -> str:
    """Return what ``metric@k`` says, in a line; "" where there is no line for it."""
    bare, _, k = name.partition("@")
    metric = registry.metrics().get(bare)
    line = "" if metric is None or metric.shown == "characters" else metric.meaning.format(k=k)
    return line + (FAILS if name == f"complete_grounding@{context}" else "")


@dataclass(frozen=True)
class Stat:
    """How a statistic is titled, formatted and explained."""

    title: str
    format: str
    meaning: str

    def at(self, context: int) -> Stat:
        """Return the same, with the context in its words."""
        return replace(
            self, title=self.title.format(k=context), meaning=self.meaning.format(k=context)
        )


CHUNK_STATS: dict[str, Stat] = {
    "n_chunks": Stat("chunks", "count", "number of chunks."),
    "median_chars": Stat("median characters", "count", "upper median of the chunks' lengths."),
    "spans_in_one_chunk": Stat(
        "spans in one chunk", "share", "gold spans that exactly one chunk touches."
    ),
    "spans_contained": Stat(
        "spans contained",
        "share",
        "gold spans that lie whole inside at least one chunk: the fair figure where chunks "
        "overlap.",
    ),
    "relevant_per_query": Stat(
        "relevant per query", "number", "mean number of relevant chunks of a query."
    ),
    "precision_ceiling": Stat(
        "ceiling on precision@{k}",
        "number",
        "the highest precision@{k} that any ranking of these chunks can reach: the mean of "
        "min(relevant, {k}), divided by {k}.",
    ),
    "truncated_share": Stat(
        "truncated",
        "share",
        "chunks with more word pieces than the encoder reads: their end is not in the vector.",
    ),
    "documents_without_header": Stat(
        "documents without header",
        "count",
        "documents in which the chunker finds no header to split at.",
    ),
}

LABELS: dict[str, str] = {
    "ceiling-bound": "The query has fewer than {k} relevant chunks and all of them are in the top "
    "{k}. No ranking of these chunks could bring more: an artifact of the metric, not a fault.",
    "chunk-severance": "A missed passage is spread over several chunks. (Where chunks overlap, "
    "one of them may still hold all of it.)",
    "depth-bound": "A chunk with part of a missed passage is not in the top {k}, where the ranking "
    "ends, so it is not known whether it would rank lower or not at all. A depth above {k} tells.",
    "retrieval-miss": "A chunk with part of a missed passage is nowhere in the ranking.",
    "rank-miss": "The chunks of the missed passages were found, but rank below the top {k}.",
    "partial-grounding": "Every chunk of the missed passages is in the top {k}, but they hold less "
    "than half of a passage: the chunker left the rest of it out.",
}
"""What each label says of a query, ``k`` being the context, in the order they are tried."""

FORENSIC_LABELS: dict[str, str] = {
    "DRM": "Document retrieval miss: none of the first k chunks is in a document that holds gold.",
    "ICR": "Incorrect region: a gold document was reached, but none of its gold; or some gold was, "
    "and still no gold span is covered.",
    "CBF": "Chunk boundary failure: a gold span that no single chunk holds is not covered, though "
    "a piece of it was retrieved.",
    "SGP": "Span gap: of several gold spans at least one is covered and at least one is not.",
    "OVR": "Over-retrieval: every gold span is covered, by chunks with at least 3 times as many "
    "characters as the gold.",
    "OK": "Every gold span is covered.",
}
"""What each forensic label says of a query at k chunks; covered: at least half of a span."""

STATES: dict[str, str] = {
    "covered": "At least half of the span's characters are in the first k chunks.",
    "partial": "Some are, but less than half.",
    "missed": "None is.",
}
"""What each state says of a gold span at k chunks."""

_LIMITS: tuple[tuple[str, str], ...] = (
    (
        "Precision and recall are not comparable across chunkers.",
        "They count chunks, and each chunker makes different ones. The span metrics count "
        "characters of the answers and are comparable.",
    ),
    (
        "Retrieval only.",
        "Whether an answer written from the retrieved text would be right is not measured.",
    ),
    (
        "The 50 % threshold.",
        "A passage counts as found when at least half of its characters are in the top {k}. This "
        "is a convention, the same for every configuration and corpus, and never tuned.",
    ),
    (
        "A label attributes, it does not prove.",
        "It names the first cause that applies. Only a measured change shows what a lever does.",
    ),
)


def limits(n_documents: int, n_queries: int, n_spans: int, context: int = CONTEXT) -> Items:
    """Return what every report says about how far its figures go."""
    size: tuple[Inline, ...] = (
        Strong("Sample size."),
        f" {n_queries:,} queries with {n_spans:,} gold passages in {n_documents:,} documents. With "
        "few queries, a small difference between configurations can be due to chance; no "
        "significance is claimed.",
    )
    return Items((*((Strong(name), f" {text.format(k=context)}") for name, text in _LIMITS), size))


def character_lines() -> Items:
    """Return a line of explanation for each metric that counts characters."""
    lines = {name: registry.metrics()[name].meaning for name in registry.characters()}
    return Items(tuple((Strong(name), f": {line}") for name, line in lines.items()))


def metric_lines(names: list[str], context: int = CONTEXT) -> Items:
    """Return a line of explanation for each metric that has one."""
    lines = {name: meaning(name, context) for name in names}
    return Items(tuple((Strong(name), f": {line}") for name, line in lines.items() if line))
