"""A corpus small enough to work out by hand, measured by the real measures.

Documents: ``a`` (200 characters, markup in [40,60)) and ``b|<i>`` (100). Chunker ``halves`` cuts
pieces of 50, so the first gold span lies half in one piece and half in the next.

- q1 asks a[40,60), q2 asks b[0,10) and b[60,80), q3 asks a[150,170).
- ``halves`` grounds q3. q1 fails: severed. q2 fails: the piece with [60,80) is not in the list.
- ``halves + hybrid`` grounds q1 (exactly half) and q2. q3 fails: its piece is not in the list.
- ``halves, unfiltered`` grounds q2 and q3. q1 fails: severed.
- ``halves + rerank`` has no weights.

q1 is of the part ``east``, q2 and q3 of ``west``, where the corpus is pooled.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline.analysis import aggregate, comparisons, fingerprints, label_cross
from spanbench_pipeline.analysis.backlog import backlog
from spanbench_pipeline.analysis.config_stats import config_stats
from spanbench_pipeline.config.experiment import (
    ChunkerSettings,
    Configuration,
    Encoder,
    Experiment,
    Reranker,
)
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline_tests.metrics import measure as measures
from spanbench_pipeline_tests.metrics.measure import chunk_stats

B = "b|<i>"
NASTY = "<script>a|b</script>"
ASKED = "*Where* is <b>it</b> | `here`?"
WHY = "not measured: no weights of <r|r>"

DOCUMENTS = [
    Document("a", "A", "x" * 40 + NASTY + "x" * 140, "a.txt", "utf-8"),
    Document(B, "B", "y" * 100, f"{B}.txt", "utf-8", {"year": "7"}),
]
QUERIES = [
    Query("q1", ASKED, [GoldSpan("a", 40, 60)], "a", "X"),
    Query("q2", "second", [GoldSpan(B, 0, 10), GoldSpan(B, 60, 80)], B, "Y"),
    Query("q3", "third", [GoldSpan("a", 150, 170)], "a", "Y"),
]
CHUNKS = [("a", 0), ("a", 1), ("a", 2), ("a", 3), (B, 0), (B, 1)]
# configuration -> query -> (document, number of the chunk, dense rank, BM25 rank)
RANKED: dict[str, dict[str, list[tuple[str, int, int | None, int | None]]]] = {
    "halves": {
        "q1": [("a", 2, 1, None), ("a", 3, 2, None)],
        "q2": [(B, 0, 1, None)],
        "q3": [("a", 3, 1, None), ("a", 0, 2, None)],
    },
    "halves + hybrid": {
        "q1": [("a", 0, None, 1), ("a", 2, 1, None)],
        "q2": [(B, 0, 1, 1), (B, 1, 2, 2)],
        "q3": [("a", 0, 1, None)],
    },
    "halves, unfiltered": {
        "q1": [(B, 0, 1, None)],
        "q2": [(B, 0, 1, None), (B, 1, 2, None)],
        "q3": [(B, 1, 1, None), ("a", 3, 2, None)],
    },
}
EXPERIMENT = Experiment(
    corpus="tiny",
    path=Path("tiny.toml"),
    description="two made-up documents",
    source={"kind": "directory"},
    chunkers={"halves": ChunkerSettings("halves", "halves", {"size": 50})},
    configurations=(
        Configuration("halves", "halves", encoder="e"),
        Configuration("halves + hybrid", "halves", retriever="hybrid", encoder="e"),
        Configuration("halves + rerank", "halves", reranker="r", encoder="e"),
        Configuration("halves, unfiltered", "halves", doc_scope=False, encoder="e"),
    ),
    encoders={"e": Encoder("e", package="p")},
    rerankers={"r": Reranker("r", model="m")},
    baseline="halves",
)
MODELS = {"e": "weights of e", "r": "absent"}
NAMES = [c.name for c in EXPERIMENT.configurations]


PARTS = {"q1": "east", "q2": "west", "q3": "west"}


def inputs(
    baseline: str | None = "halves", *, pooled: bool = False, depth: int = EXPERIMENT.depth
) -> ReportInputs:
    """Everything measured anew; without a backlog for ``baseline`` None.

    ``pooled``: the queries are of the parts ``PARTS``. ``depth``: what is measured at each k ends
    there; no list is cut, since none holds more than two chunks.
    """
    queries = [replace(q, subset=PARTS[q.query_id]) if pooled else q for q in QUERIES]
    evalset = assemble("tiny", DOCUMENTS, queries)
    chunks = _chunks()
    rankings = {name: _rankings(name) for name in RANKED}
    measured = {
        measure.__name__: pa.concat_tables(
            measure(
                rankings[name],
                evalset.gold_spans,
                chunks,
                evalset.queries,
                corpus="tiny",
                config=name,
            )
            for name in RANKED
        )
        for measure in (
            measures.query_metrics,
            measures.span_outcomes,
            measures.failure_labels,
        )
    }
    candidates = {name: _candidates(rankings.get(name)) for name in NAMES}
    deep = _at_depths(rankings, candidates, evalset, chunks, depth)
    metrics, gold = measured["query_metrics"], evalset.gold_spans
    metrics = pa.concat_tables([metrics, deep.pop("query_metrics")])
    measured["query_metrics"] = metrics
    all_rankings = pa.concat_tables(rankings.values())
    configurations = EXPERIMENT.configurations
    stats = chunk_stats(chunks, gold, evalset.queries, corpus="tiny", chunker="halves")
    pairs = comparisons.config_pairs(configurations, metrics, all_rankings, gold, corpus="tiny")
    means = aggregate.config_metrics(metrics, evalset.queries)
    labels = measured["failure_labels"]
    return ReportInputs(
        documents=evalset.documents,
        queries=evalset.queries,
        gold_spans=gold,
        source_files=_source_files(),
        chunks=chunks,
        rankings=all_rankings,
        config_metrics=means,
        clause_type_metrics=aggregate.clause_type_metrics(metrics, evalset.queries),
        config_stats=config_stats(
            configurations, metrics, stats, all_rankings, gold, corpus="tiny"
        ),
        config_pairs=pairs,
        chunk_stats=pa.concat_tables([stats, _headerless()]),
        configs=_configs(),
        backlog=backlog(EXPERIMENT, labels, pairs, means, baseline) if baseline else None,
        provenance={"spanbench": "0.1.0", "weights of e": "sha256 `1|2`"},
        candidates=candidates,
        label_cross=label_cross.label_cross(labels, deep["forensic_labels"], corpus="tiny"),
        fingerprints=fingerprints.fingerprints(
            EXPERIMENT, evalset.documents, evalset.queries, gold, {"halves": chunks}, MODELS
        ),
        **measured,
        **deep,
    )


def _at_depths(
    rankings: dict[str, pa.Table],
    candidates: dict[str, pa.Table],
    evalset: EvalSet,
    chunks: pa.Table,
    depth: int,
) -> dict[str, pa.Table]:
    """What is measured at every k to ``depth``, of all configurations that ran."""
    gold, queries = evalset.gold_spans, evalset.queries
    ks = [k for k in registry.label_ks() if k <= depth]
    found: dict[str, list[pa.Table]] = {}
    for name, ranked in rankings.items():
        named = {"corpus": "tiny", "config": name}
        to_depth = named | {"depth": depth}
        listed = candidates[name].append_column("config", pa.repeat(name, len(candidates[name])))
        made = {
            "query_metrics": measures.character_metrics(ranked, gold, queries, **to_depth),
            "forensic_labels": measures.forensic_labels(ranked, gold, chunks, queries, **to_depth),
            "span_states": measures.span_states(ranked, gold, chunks, queries, **to_depth),
            "headroom": measures.headroom(ranked, listed, gold, chunks, queries, ks=ks, **named),
        }
        fused = EXPERIMENT.configuration(name).fusion is not None
        lost = measures.lost_stages(
            *(ranked, listed, None, gold, chunks, queries),
            has_fusion=fused,
            has_reranker=False,
            ks=ks,
        )
        rows = {(r["query_id"], r["span_no"], r["k"]): r["lost_stage"] for r in lost.to_pylist()}
        told = [
            row | {"lost_stage": rows[row["query_id"], row["span_no"], row["k"]]}
            for row in made["span_states"].to_pylist()
        ]
        made["span_states"] = tables.from_rows("span_states", told)
        for table, rows_of in made.items():
            found.setdefault(table, []).append(rows_of)
    return {table: pa.concat_tables(parts) for table, parts in found.items()}


def _chunks() -> pa.Table:
    return tables.from_rows(
        "chunks",
        [
            {"corpus": "tiny", "chunker": "halves", "chunk_id": f"{doc}:halves:{n}"}
            | {"doc_id": doc, "chunk_no": n, "start_char": 50 * n, "end_char": 50 * n + 50}
            for doc, n in CHUNKS
        ],
    )


def _candidates(ranked: pa.Table | None) -> pa.Table:
    """The lists that a ranking came from, were nothing lost on the way."""
    rows = [
        {key: row[key] for key in ("corpus", "query_id", "chunk_id", "doc_id")}
        | {"start_char": row["start_char"], "end_char": row["end_char"], "score": row["score"]}
        | {"source": f"halves_{channel}", "channel": channel, "rank": row[f"{channel}_rank"]}
        for channel in ("dense", "bm25")
        for row in (ranked.to_pylist() if ranked else [])
        if row[f"{channel}_rank"] is not None
    ]
    return tables.from_rows("candidates", rows)


def _rankings(name: str) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {"corpus": "tiny", "config": name, "query_id": query, "rank": rank}
        | {"chunk_id": f"{doc}:halves:{n}", "doc_id": doc}
        | {"start_char": 50 * n, "end_char": 50 * n + 50, "score": 1 / rank}
        | {"dense_rank": dense, "bm25_rank": bm25, "fused_rank": None}
        for query, ranked in RANKED[name].items()
        for rank, (doc, n, dense, bm25) in enumerate(ranked, 1)
    ]
    return tables.from_rows("rankings", rows)


def _configs() -> pa.Table:
    return tables.from_rows(
        "configs",
        [
            {"corpus": "tiny", "config": c.name, "chunker": c.chunker, "retriever": c.retriever}
            | {"reranker": c.reranker, "doc_scope": c.doc_scope, "encoder": c.encoder}
            | {"metadata_filters": c.metadata_filters}
            | {"state": "measured" if c.name in RANKED else WHY}
            for c in EXPERIMENT.configurations
        ],
    )


def _source_files() -> pa.Table:
    note = "the official file's sha256 is another: " + "e" * 64
    rows = [
        {"corpus": "tiny", "file": "a.zip", "role": "archive", "n_bytes": 1234, "sha256": "c" * 64}
        | {"note": None},
        {"corpus": "tiny", "file": "m.json", "role": "member", "n_bytes": 9, "sha256": "d" * 64}
        | {"note": note},
    ]
    return tables.from_rows("source_files", rows)


def _headerless() -> pa.Table:
    row = {"corpus": "tiny", "chunker": "halves", "stat": "documents_without_header", "value": 2.0}
    return tables.from_rows("chunk_stats", [row])
