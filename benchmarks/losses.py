"""What stages and headroom take at the size of LegalBench-RAG's mini set, on a made-up corpus.

    python benchmarks/losses.py [--queries N] [--chunks N] [--depth N]

Windows of 512 characters every 384, up to six gold spans a query, some of them thousands of
characters long. Times depend on the machine; the last line shows how the optimum grows.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from timing import timed

from spanbench_pipeline.analysis.headroom import headroom
from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics.minimum_cover import fewest
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.metrics.stages import before_reranking, lost_stages

N_DOCUMENTS, SIZE, STEP = 72, 512, 384
KS = (1, 2, 4, 5, 8, 16, 32, 64)


def main() -> None:
    """Print a line a measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=int, default=776)
    parser.add_argument("--chunks", type=int, default=30_000)
    parser.add_argument("--depth", type=int, default=64)
    asked = parser.parse_args()
    for line in (*both(asked.queries, asked.chunks, asked.depth), *growth()):
        sys.stdout.write(line + "\n")


def both(n_queries: int, n_chunks: int, depth: int) -> list[str]:
    """Stages and headroom of one fused and reranked configuration."""
    random = np.random.default_rng(0)
    chunks = _chunks(n_chunks // N_DOCUMENTS)
    queries = _queries(n_queries)
    gold = _gold(random, n_queries, (n_chunks // N_DOCUMENTS) * STEP)
    lists = [_lists(random, queries, chunks, depth) for _ in ("dense", "bm25")]
    candidates = pa.concat_tables(
        part.append_column("source", pa.repeat(source, len(part)))
        for source, part in zip(("dense", "bm25"), lists, strict=True)
    )
    rankings = lists[0].append_column("fused_rank", lists[0]["rank"])
    run = scored_run(rankings, gold, chunks, queries)
    offered = run.with_lists(candidates)
    before = before_reranking(run, rankings, candidates, has_fusion=True)
    seconds, stages = timed(
        lambda: lost_stages(run, offered, before=before, has_fusion=True, ks=KS)
    )
    also, _ = timed(
        lambda: headroom(run, offered, queries, corpus="made_up", config="random", ks=KS)
    )
    what = f"{n_queries} queries, {len(gold)} gold spans, {len(chunks)} chunks, depth {depth}"
    return [
        f"stages at {len(KS)} depths, {what}: {seconds:.2f} s, {len(stages)} rows",
        f"headroom at {len(KS)} depths, the same: {also:.2f} s",
    ]


def growth() -> list[str]:
    """Return the optimum where every piece overlaps 500 others, and twice, four times, ... as
    many.
    """
    lines: list[str] = []
    for n in (50_000, 100_000, 200_000):
        start = np.arange(n)
        pieces = spans.make(np.zeros_like(start), start, start + 500)
        begin = np.arange(n // 50) * 50
        gold = spans.make(np.zeros_like(begin), begin, begin + 31)
        seconds, _ = timed(lambda gold=gold, pieces=pieces: fewest(gold, pieces, 1, 64))
        lines.append(f"fewest of {n} overlapping pieces, {len(gold)} gold spans: {seconds:.2f} s")
    return lines


def _chunks(per_document: int) -> pa.Table:
    number = np.tile(np.arange(per_document), N_DOCUMENTS)
    doc_ids = np.repeat([f"doc{d:02}" for d in range(N_DOCUMENTS)], per_document).tolist()
    return tables.from_columns(
        "chunks",
        {
            "corpus": ["made_up"] * len(number),
            "chunker": ["windows"] * len(number),
            "chunk_id": [f"{d}:windows:{n}" for d, n in zip(doc_ids, number.tolist(), strict=True)],
            "doc_id": doc_ids,
            "chunk_no": number,
            "start_char": number * STEP,
            "end_char": number * STEP + SIZE,
        },
    )


def _queries(n: int) -> pa.Table:
    return tables.from_rows(
        "queries",
        [
            {"corpus": "made_up", "query_id": f"q{i:04}", "query": "?", "clause_type": None}
            | {"subset": f"part{i % 4}", "doc_id": None, "filters": []}
            for i in range(n)
        ],
    )


def _gold(random: np.random.Generator, n_queries: int, doc_chars: int) -> pa.Table:
    """Return one to six spans a query, apart from one another; one in ten is long."""
    rows: list[dict[str, Any]] = []
    for query in range(n_queries):
        n = int(random.integers(1, 7))
        room = doc_chars // n
        for number in range(n):
            length = int(random.integers(20, 800)) * (10 if random.random() < 0.1 else 1)
            start = number * room + int(random.integers(0, room - length))
            rows.append(
                {"corpus": "made_up", "query_id": f"q{query:04}", "span_no": number}
                | {"doc_id": f"doc{query % N_DOCUMENTS:02}", "start_char": start}
                | {"end_char": start + length, "text": ""}
            )
    return tables.from_rows("gold_spans", rows)


def _lists(
    random: np.random.Generator, queries: pa.Table, chunks: pa.Table, depth: int
) -> pa.Table:
    """Return distinct chunks in random order, half of each list from the query's own document."""
    n, n_chunks = len(queries), len(chunks)
    per_document = n_chunks // N_DOCUMENTS
    rows = []
    for query in range(n):
        near = query % N_DOCUMENTS * per_document + random.permutation(per_document)[: depth // 2]
        far = np.setdiff1d(random.permutation(n_chunks)[: 2 * depth], near)[: depth - depth // 2]
        rows.append(random.permutation(np.concatenate([near, far])))
    placed = chunks.take(pa.array(np.concatenate(rows)))
    return pa.table(
        {
            "corpus": placed["corpus"],
            "config": pa.repeat("random", len(placed)),
            "query_id": np.repeat(np.array(queries["query_id"].to_pylist(), object), depth),
            "rank": np.tile(np.arange(1, depth + 1), n),
            **{c: placed[c] for c in ("chunk_id", "doc_id", "start_char", "end_char")},
        }
    )


if __name__ == "__main__":
    main()
