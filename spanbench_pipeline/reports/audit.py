"""Audit files: everything needed to check a configuration's figures by hand, one line a query."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.reports.inputs import MEASURED, ReportInputs, rows_of

Row = dict[str, Any]

_RANKS = {"dense": "dense_rank", "bm25": "bm25_rank"}
"""The channels whose rank a line states, and as what."""
_ASKED = ("query_id", "query", "clause_type", "doc_id")
# JSON leaves these bare, yet many readers of lines would break a line at them.
_LINE_BREAKS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"})


@dataclass(frozen=True)
class Audit:
    """Two files of JSON lines: one line a query, and one line a failing query."""

    queries: str
    labels: str


def audit(inputs: ReportInputs, config: str, context: int = CONTEXT) -> Audit:
    """Return the audit files of one configuration, in the order of the query ids.

    A query's line holds its text, metrics, ranked chunk ids, every relevant chunk with the ranks
    each channel gave it (null: not in the ranking, or not in that channel's list), whether or not
    it came through fusion, and the gold spans under 50 % with their text (null: lists do not reach
    the context, so that nothing is measured there). A label's line holds
    label, lever and evidence. Raises NotMeasured for a configuration that did not run.
    """
    row = rows_of(inputs.configs, config=config)[0]
    if row["state"] != MEASURED:
        raise NotMeasured(row["state"].removeprefix("not measured: "))
    metrics = _by_query(rows_of(inputs.query_metrics, config=config))
    ranked = _by_query(rows_of(inputs.rankings, config=config))
    missed = missed_spans(inputs, config, context)
    relevant = _relevant_chunks(inputs, row["chunker"])
    listed = _listed(inputs.candidates[config])
    to_top = bool(rows_of(inputs.span_outcomes, config=config, k=context)[:1])
    lines = [
        {
            "corpus": query["corpus"],
            "config": config,
            **{key: query[key] for key in _ASKED},
            "filters": dict(query["filters"]),
            "metrics": {
                metric_label(m["metric"], m["k"]): m["value"] for m in metrics[query["query_id"]]
            },
            "ranking": [chunk["chunk_id"] for chunk in ranked[query["query_id"]]],
            "relevant_chunks": _surfaced(
                relevant[query["query_id"]],
                ranked[query["query_id"]],
                listed.get(query["query_id"], {}),
            ),
            "missed_spans": missed.get(query["query_id"], []) if to_top else None,
        }
        for query in inputs.queries.to_pylist()
    ]
    labels = [
        label | {"evidence": json.loads(label["evidence"])}
        for label in rows_of(inputs.failure_labels, config=config)
    ]
    return Audit(_json_lines(lines), _json_lines(labels))


def missed_spans(inputs: ReportInputs, config: str, context: int) -> dict[str, list[Row]]:
    """Return query -> its gold spans with under half of their characters in the context, with
    text.
    """
    text_of = {(g["query_id"], g["span_no"]): g["text"] for g in inputs.gold_spans.to_pylist()}
    found: dict[str, list[Row]] = defaultdict(list)
    for span in rows_of(inputs.span_outcomes, config=config, k=context):
        if 2 * span["covered_chars"] < span["end_char"] - span["start_char"]:
            kept = ("span_no", "doc_id", "start_char", "end_char", "covered_chars")
            text = text_of[span["query_id"], span["span_no"]]
            found[span["query_id"]].append({key: span[key] for key in kept} | {"text": text})
    return dict(found)


def _relevant_chunks(inputs: ReportInputs, chunker: str) -> dict[str, list[str]]:
    """Return query -> ids of its relevant chunks, in the order of the chunks."""
    chunks = inputs.chunks.filter(pc.equal(inputs.chunks["chunker"], chunker))
    known = scored_run(None, inputs.gold_spans, chunks, inputs.queries)
    queries = known.query_ids.take(known.pair_query).to_pylist()
    ids = known.chunk_ids.take(known.pair_chunk).to_pylist()
    found: dict[str, list[str]] = defaultdict(list)
    for query, chunk in zip(queries, ids, strict=True):
        found[query].append(chunk)
    return found


def _listed(candidates: pa.Table) -> dict[str, dict[str, dict[str, int]]]:
    """Return query -> chunk -> channel -> the rank it has in that channel's list."""
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in candidates.to_pylist():
        found[row["query_id"]][row["chunk_id"]][row["channel"]] = row["rank"]
    return found


def _surfaced(
    relevant: Iterable[str], ranked: Iterable[Row], listed: Mapping[str, Mapping[str, int]]
) -> list[Row]:
    """Return each relevant chunk with its ranks, and the channels whose list it was in."""
    rank_of = {row["chunk_id"]: row for row in ranked}
    lines = []
    for chunk in relevant:
        row: Mapping[str, Any] = rank_of.get(chunk, {})
        by = listed.get(chunk, {})
        lines.append(
            {
                "chunk_id": chunk,
                "surfaced_by": sorted(by),
                "rank": row.get("rank"),
                **{column: by.get(channel) for channel, column in _RANKS.items()},
                "fused_rank": row.get("fused_rank"),
            }
        )
    return lines


def _by_query(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["query_id"]].append(row)
    return found


def _json_lines(rows: Iterable[Row]) -> str:
    return "".join(
        json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_LINE_BREAKS) + "\n"
        for row in rows
    )
