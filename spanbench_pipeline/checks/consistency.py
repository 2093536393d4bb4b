"""What must hold between what was retrieved and what was said of it, looked at on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows, list_name
from spanbench_pipeline.checks.scope import admitted
from spanbench_pipeline.config.experiment import LEVERS
from spanbench_pipeline.metrics import TOP


def unordered_scores(rankings: pa.Table) -> Rows:
    """Ranked chunks (or documents) with a higher score than the one before them, or with none."""
    wrong: Rows = []
    last: dict[tuple[str, str], float] = {}
    order = [list_name(rankings), "query_id", "rank"]
    ranked = rankings.select(
        [c for c in (*order, "chunk_id", "doc_id", "score") if c in rankings.column_names]
    )
    for row in ranked.sort_by([(column, "ascending") for column in order]).to_pylist():
        key = (row[order[0]], row["query_id"])
        if not math.isfinite(row["score"]) or row["score"] > last.get(key, math.inf):
            wrong.append(row)
        last[key] = row["score"]
    return wrong


def outside_scope(
    rankings: pa.Table,
    queries: pa.Table,
    documents: pa.Table,
    *,
    doc_scope: bool,
    metadata_filters: bool,
    routed: pa.Table | None = None,
) -> Rows:
    """Ranked chunks of unknown queries, or of documents that the query's scope shuts out.

    ``routed`` is the configuration's ``routed_documents``, None where it does not route.
    """
    inside = admitted(
        queries.to_pylist(),
        documents,
        doc_scope=doc_scope,
        metadata_filters=metadata_filters,
        routed=routed,
    )
    wrong: Rows = []
    for row in rankings.select(["query_id", "rank", "chunk_id", "doc_id"]).to_pylist():
        if row["query_id"] not in inside:
            wrong.append(row | {"problem": "no such query"})
        elif row["doc_id"] not in inside[row["query_id"]]:
            wrong.append(row | {"problem": "outside the query's scope"})
    return wrong


def unlike_candidates(rankings: pa.Table, lists: Sequence[pa.Table], depth: int) -> Rows:
    """Ranked chunks that stand in no list, or at another rank than stated; rankings cut short.

    ``lists`` are the ``candidates`` of the configuration's channels. A ranking holds as many of
    their distinct chunks as fit into ``depth``. Only ``dense`` and ``bm25`` have a column that
    states their rank.
    """
    stated: dict[str, dict[tuple[str, str], int]] = {}
    for table in lists:
        for row in table.select(["channel", "query_id", "chunk_id", "rank"]).to_pylist():
            place = (row["query_id"], row["chunk_id"])
            stated.setdefault(row["channel"], {})[place] = row["rank"]
    union = set().union(*stated.values())
    wrong: Rows = []
    found: Counter[str] = Counter()
    columns = ["query_id", "rank", "chunk_id", "dense_rank", "bm25_rank"]
    for row in rankings.select(columns).to_pylist():
        place = (row["query_id"], row["chunk_id"])
        found[row["query_id"]] += 1
        ranks = [stated.get(channel, {}).get(place) for channel in ("dense", "bm25")]
        if place not in union or ranks != [row["dense_rank"], row["bm25_rank"]]:
            wrong.append(row | {"dense_list": ranks[0], "bm25_list": ranks[1]})
    to_rank = Counter(query for query, _ in union)
    wrong += [
        {"query_id": query, "n_ranked": found[query], "n_to_rank": min(depth, n)}
        for query, n in sorted(to_rank.items())
        if found[query] != min(depth, n)
    ]
    return wrong


def wrong_outcomes(span_outcomes: pa.Table, gold_spans: pa.Table) -> Rows:
    """Outcomes of no gold span, of another place, or with more characters than the span has."""
    place = ["query_id", "span_no", "doc_id", "start_char", "end_char"]
    gold = {tuple(row.values()) for row in gold_spans.select(place).to_pylist()}
    rows = span_outcomes.to_pylist()
    found = {tuple(row[c] for c in place) for row in rows}
    absent = [dict(zip(place, key, strict=True)) | {"problem": "absent"} for key in gold - found]
    return sorted(absent, key=str) + [
        row
        for row in rows
        if tuple(row[c] for c in place) not in gold
        or not 0 <= row["covered_chars"] <= row["end_char"] - row["start_char"]
    ]


def metrics_unlike_outcomes(query_metrics: pa.Table, span_outcomes: pa.Table) -> Rows:
    """Span metrics that do not follow from the characters covered of each gold span."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in span_outcomes.to_pylist():
        length = row["end_char"] - row["start_char"]
        spans[row["config"], row["query_id"]].append((row["covered_chars"], length))
    wrong: Rows = []
    for row in query_metrics.to_pylist():
        follows = _SPAN_METRICS.get(row["metric"])
        if follows is None:
            continue
        expected = follows(spans[row["config"], row["query_id"]])
        if row["value"] is None or abs(row["value"] - expected) > TOLERANCE:
            wrong.append(row | {"expected": expected})
    return wrong


def _coverage(spans: list[tuple[int, int]]) -> float:
    return sum(covered for covered, _ in spans) / max(1, sum(length for _, length in spans))


def _recall(spans: list[tuple[int, int]]) -> float:
    return sum(2 * covered >= length for covered, length in spans) / max(1, len(spans))


def _grounding(spans: list[tuple[int, int]]) -> float:
    return float(bool(spans) and all(2 * covered >= length for covered, length in spans))


_SPAN_METRICS = {
    "span_coverage": _coverage,
    "span_recall": _recall,
    "complete_grounding": _grounding,
}


def wrong_label_cross(
    label_cross: pa.Table, failure_labels: pa.Table, forensic_labels: pa.Table
) -> Rows:
    """Labels of a configuration whose pairs do not sum to the queries that have them at k = 5."""
    at_top = [row for row in forensic_labels.to_pylist() if row["k"] == TOP]
    asked = Counter(row["config"] for row in at_top)
    failing = Counter((row["config"], row["label"]) for row in failure_labels.to_pylist())
    expected: dict[str, Counter[tuple[str, str | None]]] = {
        "forensic_label": Counter((row["config"], row["label"]) for row in at_top),
        "failure_label": Counter({key: n for key, n in failing.items() if asked[key[0]]}),
    }
    for config, n in asked.items():
        failed = sum(count for (of, _), count in failing.items() if of == config)
        if n - failed:
            expected["failure_label"][config, None] = n - failed
    wrong: Rows = []
    for column, counted in expected.items():
        found: Counter[tuple[str, str | None]] = Counter()
        for row in label_cross.to_pylist():
            found[row["config"], row[column]] += row["n_queries"]
        wrong += [
            {"config": config, column: label, "counted": found[config, label]}
            | {"queries": counted[config, label]}
            for config, label in sorted(found.keys() | counted.keys(), key=str)
            if found[config, label] != counted[config, label]
        ]
    return wrong


def malformed_labels(failure_labels: pa.Table, levers: dict[str, str | None]) -> Rows:
    """Labels that do not exist, with another lever than theirs, or without readable evidence."""
    wrong: Rows = []
    for row in failure_labels.to_pylist():
        try:
            sound = bool(json.loads(row["evidence"])["failed_spans"])
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound or row["label"] not in levers or levers[row["label"]] != row["lever"]:
            wrong.append(row)
    return wrong


def wrong_chunk_stats(chunk_stats: pa.Table, chunks: pa.Table) -> Rows:
    """Counts that are not the chunk table's, and shares outside [0, 1]."""
    counts: dict[str, int] = defaultdict(int)
    for chunker in chunks["chunker"].to_pylist():
        counts[chunker] += 1
    wrong: Rows = []
    for row in chunk_stats.to_pylist():
        value = row["value"]
        if row["stat"] == "n_chunks":
            sound = value == counts[row["chunker"]]
        elif row["stat"] in ("median_chars", "relevant_per_query", "documents_without_header"):
            sound = value is None or value >= 0
        else:
            sound = value is None or 0 <= value <= 1
        if not sound:
            wrong.append(row)
    return wrong


def wrong_pairs(config_pairs: pa.Table, query_metrics: pa.Table) -> Rows:
    """Comparisons that do not follow from the two configurations' grounded queries."""
    grounded: dict[str, dict[str, float]] = defaultdict(dict)
    for row in query_metrics.to_pylist():
        if (row["metric"], row["k"]) == ("complete_grounding", TOP):
            grounded[row["config"]][row["query_id"]] = row["value"]
    wrong: Rows = []
    for row in config_pairs.to_pylist():
        before, after = grounded[row["from_config"]], grounded[row["to_config"]]
        fixed = sorted(q for q in after if after[q] > before.get(q, 0))
        broken = sorted(q for q in before if before[q] > after.get(q, 0))
        delta = (sum(after.values()) - sum(before.values())) / max(1, len(after))
        sound = (
            (row["fixed_queries"], row["broken_queries"]) == (fixed, broken)
            and (row["fixed"], row["broken"]) == (len(fixed), len(broken))
            and abs(row["delta"] - delta) <= TOLERANCE
            and row["lever"] in LEVERS
        )
        if not sound:
            wrong.append(row | {"expected": {"delta": delta, "fixed": fixed, "broken": broken}})
    return wrong


def unknown_configurations(table: pa.Table, names: list[str]) -> Rows:
    """Configurations of a table that the experiment does not have, and the reverse."""
    unlike = set(table["config"].to_pylist()) ^ set(names)
    return [{"config": config, "in_experiment": config in names} for config in sorted(unlike)]


def out_of_unit(table: pa.Table, *unless: str) -> Rows:
    """Statistics outside [0, 1], those named in ``unless`` apart (they must not be negative).

    A ratio of two equal means may lie a rounding above 1.
    """
    return [
        row
        for row in table.to_pylist()
        if row["value"] is not None
        and not (row["value"] >= 0 and (row["value"] <= 1 + TOLERANCE or row["stat"] in unless))
    ]


def metric_means_by_type(
    clause_type_metrics: pa.Table, query_metrics: pa.Table, queries: pa.Table
) -> Rows:
    """Rows of clause_type_metrics that are not the mean of their queries' defined values."""
    kind: dict[str, Any] = {r["query_id"]: r["clause_type"] for r in queries.to_pylist()}
    values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in query_metrics.to_pylist():
        if kind.get(row["query_id"]) is not None and row["value"] is not None:
            key = (row["config"], kind[row["query_id"]], row["metric"], row["k"])
            values[key].append(row["value"])
    wrong: Rows = []
    for row in clause_type_metrics.to_pylist():
        of_row = values[row["config"], row["clause_type"], row["metric"], row["k"]]
        expected = sum(of_row) / len(of_row) if of_row else None
        same = (row["value"] is None) == (expected is None) and row["n_queries"] == len(of_row)
        if not same or (expected is not None and abs(row["value"] - expected) > TOLERANCE):
            wrong.append(row | {"expected": expected})
    return wrong
