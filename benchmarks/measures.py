"""How measuring compares with sets of characters, and how it grows: ratios, measured in one run.

    python benchmarks/measures.py [--documents N] [--doublings N]

Both sides of a ratio run one after the other on the same made-up corpus and give the same answer,
which is checked first; absolute times depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from timing import growth, timed

from spanbench_pipeline import chunkers
from spanbench_pipeline.config.experiment import ChunkerSettings
from spanbench_pipeline.core import evalset, tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.failure_labels import failure_labels
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run

DOC_CHARS, QUERIES_A_DOCUMENT, SPANS_A_QUERY, SPAN_CHARS, DEPTH = 20_000, 10, 2, 300, 30

Corpus = tuple[pa.Table, pa.Table, pa.Table, pa.Table]
"""Rankings, gold spans, chunks, queries."""


def main() -> None:
    """Print a line a ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--doublings", type=int, default=4)
    asked = parser.parse_args()
    times = growth(
        "metrics and labels, corpus",
        asked.doublings,
        lambda factor: _corpus(asked.documents * factor),
        lambda corpus: (_metrics(corpus), _labels(corpus)),
    )
    for line in (*against_sets(asked.documents), *times):
        sys.stdout.write(line + "\n")


def against_sets(n_documents: int) -> list[str]:
    """Span coverage and relevant chunks of every query: arrays against sets of characters."""
    corpus = _corpus(n_documents)
    ours, scored = timed(lambda: _metrics(corpus))
    theirs, expected = timed(lambda: _by_sets(corpus))
    wanted = {"span_coverage", "recall"}
    found = {
        (row["query_id"], row["metric"]): row["value"]
        for row in scored.to_pylist()
        if row["metric"] in wanted
    }
    if found != expected:
        raise AssertionError("the two sides differ")
    what = f"{n_documents * QUERIES_A_DOCUMENT} queries x {corpus[2].num_rows} chunks"
    return [
        f"six metrics, {what}: sets (two metrics) {theirs:.3f} s, arrays {ours:.3f} s, "
        f"ratio {theirs / ours:.0f}"
    ]


def _metrics(corpus: Corpus) -> pa.Table:
    return query_metrics(
        scored_run(*corpus), corpus="made_up", config="random", metrics=registry.of_results()
    )


def _labels(corpus: Corpus) -> pa.Table:
    return failure_labels(scored_run(*corpus), corpus="made_up", config="random")


def _by_sets(corpus: Corpus) -> dict[tuple[str, str], float | None]:
    """Span coverage and recall as anybody would first write them."""
    rankings, gold_spans, chunks, _ = corpus
    held = {row["chunk_id"]: _characters(row) for row in chunks.to_pylist()}
    gold: dict[str, set[tuple[str, int]]] = {}
    for row in gold_spans.to_pylist():
        gold.setdefault(row["query_id"], set()).update(_characters(row))
    ranked: dict[str, list[str]] = {}
    for row in rankings.to_pylist():
        ranked.setdefault(row["query_id"], []).append(row["chunk_id"])
    found: dict[tuple[str, str], float | None] = {}
    for query, wanted in gold.items():
        relevant = {
            chunk for chunk, characters in held.items() if not wanted.isdisjoint(characters)
        }
        covered = set().union(*(held[chunk] for chunk in ranked[query][:5]))
        found[query, "span_coverage"] = len(wanted & covered) / len(wanted)
        hits = len(relevant.intersection(ranked[query][:10]))
        found[query, "recall"] = hits / len(relevant) if relevant else None
    return found


def _characters(row: dict[str, Any]) -> set[tuple[str, int]]:
    return {(row["doc_id"], i) for i in range(row["start_char"], row["end_char"])}


def _corpus(n_documents: int) -> Corpus:
    random = np.random.default_rng(0)
    doc_ids = [f"doc{i:06}" for i in range(n_documents)]
    known = evalset.assemble(
        "made_up",
        [evalset.Document(d, d, "x" * DOC_CHARS, d, "made up") for d in doc_ids],
        [
            evalset.Query(f"{d}q{i}", "?", _gold(random, d))
            for d in doc_ids
            for i in range(QUERIES_A_DOCUMENT)
        ],
    )
    chunker = chunkers.load(ChunkerSettings("naive", "naive"), "benchmark")
    chunks = chunkers.chunk_documents("made_up", known.documents, chunker)
    return _rankings(random, known.queries, chunks), known.gold_spans, chunks, known.queries


def _gold(random: np.random.Generator, doc_id: str) -> list[evalset.GoldSpan]:
    starts = random.integers(0, DOC_CHARS - SPAN_CHARS, SPANS_A_QUERY).tolist()
    return [evalset.GoldSpan(doc_id, start, start + SPAN_CHARS) for start in starts]


def _rankings(random: np.random.Generator, queries: pa.Table, chunks: pa.Table) -> pa.Table:
    """Return lists of distinct chunks in random order, half of each from the query's own
    document.
    """
    n_queries, n_chunks = queries.num_rows, chunks.num_rows
    per_document = n_chunks // (n_queries // QUERIES_A_DOCUMENT)
    own, rest = DEPTH // 2, DEPTH - DEPTH // 2
    rows = []
    for i in range(n_queries):
        begin = i // QUERIES_A_DOCUMENT * per_document
        near = begin + random.permutation(per_document)[:own]
        far = begin + per_document + random.permutation(n_chunks - per_document)[:rest]
        rows.append(random.permutation(np.concatenate([near, far % n_chunks])))
    placed = chunks.take(pa.array(np.concatenate(rows)))
    n = placed.num_rows
    nothing = pa.nulls(n, pa.int64())
    return tables.from_columns(
        "rankings",
        {
            "corpus": placed["corpus"],
            "config": pa.repeat("random", n),
            "query_id": np.repeat(np.array(queries["query_id"].to_pylist(), object), DEPTH),
            "rank": np.tile(np.arange(1, DEPTH + 1), n_queries),
            "chunk_id": placed["chunk_id"],
            "doc_id": placed["doc_id"],
            "start_char": placed["start_char"],
            "end_char": placed["end_char"],
            "score": np.zeros(n),
            "dense_rank": nothing,
            "bm25_rank": nothing,
            "fused_rank": nothing,
        },
    )


if __name__ == "__main__":
    main()
