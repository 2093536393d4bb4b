"""How character metrics and forensic labels compare with sets of characters, and how they grow.

    python benchmarks/characters.py [--queries N] [--doublings N]

As many queries and ranks as LegalBench-RAG's mini set has, in made-up documents. Both sides of a
ratio run one after the other and give the same values, which is checked first; absolute times
depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from timing import growth, timed

from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import forensic_labels
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run

N_DOCS, DOC_CHARS, CHUNK_CHARS, SPANS_A_QUERY, SPAN_CHARS, DEPTH = 72, 100_000, 500, 3, 300, 64

Corpus = tuple[pa.Table, pa.Table, pa.Table, pa.Table]
"""Rankings, gold spans, chunks, queries."""
Cells = dict[tuple[str, str, int], float]
"""(query, metric, k) -> value"""


def main() -> None:
    """Print a line a ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=int, default=776)
    parser.add_argument("--doublings", type=int, default=3)
    asked = parser.parse_args()
    times = growth(
        "metrics and labels, queries",
        asked.doublings,
        lambda factor: _corpus(asked.queries * factor),
        lambda corpus: (_metrics(corpus), _labels(corpus)),
    )
    for line in (against_sets(asked.queries), *times):
        sys.stdout.write(line + "\n")


def against_sets(n_queries: int) -> str:
    """Return the union scoring at every k: arrays, which score both ways, against sets of
    characters.
    """
    corpus = _corpus(n_queries)
    ours, scored = timed(lambda: _metrics(corpus))
    theirs, expected = timed(lambda: _by_sets(corpus))
    rows = scored.to_pylist()
    found = {(r["query_id"], r["metric"], r["k"]): r["value"] for r in rows}
    if any(found[key] != value for key, value in expected.items()):
        raise AssertionError("the two sides differ")
    return (
        f"{n_queries} queries x {DEPTH} ranks, every k: sets (union only) {theirs:.3f} s, "
        f"arrays (union and paper) {ours:.3f} s, ratio {theirs / ours:.0f}"
    )


def _metrics(corpus: Corpus) -> pa.Table:
    rankings, gold_spans, _, queries = corpus
    named = {"corpus": "made_up", "config": "random"}
    run = scored_run(rankings, gold_spans, None, queries)
    wanted = [(name, k) for k in DEPTHS for name in registry.characters()]
    return query_metrics(run, **named, depth=DEPTH, metrics=wanted)


def _labels(corpus: Corpus) -> pa.Table:
    return forensic_labels(scored_run(*corpus), corpus="made_up", config="random", depth=DEPTH)


def _by_sets(corpus: Corpus) -> Cells:
    """Return precision and recall in characters as anybody would first write them."""
    rankings, gold_spans, _, _ = corpus
    gold: dict[str, set[tuple[str, int]]] = {}
    for row in gold_spans.to_pylist():
        gold.setdefault(row["query_id"], set()).update(_characters(row))
    retrieved: dict[str, set[tuple[str, int]]] = {query: set() for query in gold}
    found: Cells = {}
    for row in rankings.to_pylist():
        query, k, characters = row["query_id"], row["rank"], retrieved[row["query_id"]]
        characters |= _characters(row)
        if k in DEPTHS:
            hit = len(characters & gold[query])
            found[query, "chars_retrieved", k] = len(characters)
            found[query, "char_precision_union", k] = hit / len(characters)
            found[query, "char_recall_union", k] = hit / len(gold[query])
    return found


def _characters(row: dict[str, Any]) -> set[tuple[str, int]]:
    return {(row["doc_id"], i) for i in range(row["start_char"], row["end_char"])}


def _corpus(n_queries: int) -> Corpus:
    random = np.random.default_rng(0)
    query_ids = [f"q{i:06}" for i in range(n_queries)]
    own = random.integers(0, N_DOCS, n_queries)
    # Windows that overlap by half, so that the two scorings differ.
    step = CHUNK_CHARS // 2
    per_document = DOC_CHARS // step - 1
    chunk = np.arange(N_DOCS * per_document)
    chunks = _placed(chunk // per_document, chunk % per_document * step, CHUNK_CHARS) | {
        "chunker": pa.repeat("windows", len(chunk)),
        "chunk_id": [f"c{i}" for i in chunk],
        "chunk_no": chunk % per_document,
    }
    ranked = np.concatenate([_list(random, o, per_document) for o in own])
    n = len(ranked)
    rankings = _placed(ranked // per_document, ranked % per_document * step, CHUNK_CHARS) | {
        "config": pa.repeat("random", n),
        "query_id": np.repeat(np.array(query_ids, object), DEPTH),
        "rank": np.tile(np.arange(1, DEPTH + 1), n_queries),
        "chunk_id": [f"c{i}" for i in ranked],
        "score": np.zeros(n),
        **{f"{channel}_rank": pa.nulls(n, pa.int64()) for channel in ("dense", "bm25", "fused")},
    }
    # A span a stretch of the document, so that a query's spans are disjoint.
    stretch = DOC_CHARS // SPANS_A_QUERY
    start = np.tile(np.arange(SPANS_A_QUERY) * stretch, n_queries)
    start += random.integers(0, stretch - SPAN_CHARS - 1, len(start))
    gold = _placed(np.repeat(own, SPANS_A_QUERY), start, SPAN_CHARS) | {
        "query_id": np.repeat(np.array(query_ids, object), SPANS_A_QUERY),
        "span_no": np.tile(np.arange(SPANS_A_QUERY), n_queries),
        "text": pa.repeat("", len(start)),
    }
    nothing = pa.nulls(n_queries, pa.string())
    queries = {
        "corpus": pa.repeat("made_up", n_queries),
        "query_id": query_ids,
        "query": query_ids,
        "clause_type": nothing,
        "subset": nothing,
        "doc_id": nothing,
        "filters": [[] for _ in query_ids],
    }
    named = {"rankings": rankings, "gold_spans": gold, "chunks": chunks, "queries": queries}
    made = [tables.from_columns(name, columns) for name, columns in named.items()]
    return made[0], made[1], made[2], made[3]


def _placed(document: Any, start: Any, length: int) -> dict[str, Any]:
    doc_ids = np.array([f"doc{i:03}" for i in range(N_DOCS)], object)
    return {
        "corpus": pa.repeat("made_up", len(start)),
        "doc_id": doc_ids[document],
        "start_char": start,
        "end_char": start + length,
    }


def _list(random: np.random.Generator, own: int, per_document: int) -> Any:
    """Return distinct chunks in random order, half of them of the query's own document."""
    near = own * per_document + random.permutation(per_document)[: DEPTH // 2]
    others = random.choice((N_DOCS - 1) * per_document, DEPTH - DEPTH // 2, replace=False)
    far = others + per_document * (others >= own * per_document)
    return random.permutation(np.concatenate([near, far]))


if __name__ == "__main__":
    main()
