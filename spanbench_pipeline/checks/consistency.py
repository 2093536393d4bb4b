"""What must hold between what was retrieved and what was said of it, looked at on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows, list_name
from spanbench_pipeline.checks.row_keys import in_groups, key_codes, n_codes, values_before
from spanbench_pipeline.checks.scope import admitted
from spanbench_pipeline.config.experiment import CONTEXT, LEVERS


def unordered_scores(rankings: pa.Table) -> Rows:
    """Return ranked chunks (or documents) with a higher score than the one before them, or with
    none.
    """
    key = [list_name(rankings), "query_id", "rank"]
    ranked = rankings.select(
        [c for c in (*key, "chunk_id", "doc_id", "score") if c in rankings.column_names]
    )
    (lists,) = key_codes(key[:2], ranked)
    order = in_groups(lists, ranked["rank"].to_numpy())
    scores = ranked["score"].to_numpy()[order]
    wrong = ~np.isfinite(scores) | (scores > values_before(scores, lists[order], math.inf))
    rows: Rows = (
        ranked.take(order[wrong]).sort_by([(column, "ascending") for column in key]).to_pylist()
    )
    return rows


def outside_scope(
    rankings: pa.Table,
    queries: pa.Table,
    documents: pa.Table,
    *,
    doc_scope: bool,
    metadata_filters: bool,
    routed: pa.Table | None = None,
) -> Rows:
    """Return ranked chunks of unknown queries, or of documents that the query's scope shuts out.

    ``routed`` is the configuration's ``routed_documents``, None where it does not route.
    """
    inside = admitted(
        queries.to_pylist(),
        documents,
        doc_scope=doc_scope,
        metadata_filters=metadata_filters,
        routed=routed,
    )
    pairs = zip(rankings["query_id"].to_pylist(), rankings["doc_id"].to_pylist(), strict=True)
    nothing: frozenset[str] = frozenset()
    wrong = [
        n for n, (query, doc_id) in enumerate(pairs) if doc_id not in inside.get(query, nothing)
    ]
    named = rankings.select(["query_id", "rank", "chunk_id", "doc_id"])
    problems = {True: "outside the query's scope", False: "no such query"}
    return [
        row | {"problem": problems[row["query_id"] in inside]}
        for row in named.take(pa.array(wrong, pa.int64())).to_pylist()
    ]


def unlike_candidates(rankings: pa.Table, lists: Sequence[pa.Table], depth: int) -> Rows:
    """Return ranked chunks that stand in no list, or at another rank than stated; rankings cut
    short.

    ``lists`` are the ``candidates`` of the configuration's channels. A ranking holds as many of
    their distinct chunks as fit into ``depth``. Only ``dense`` and ``bm25`` have a column that
    states their rank.
    """
    listed = pa.concat_tables(
        [table.select(["channel", "query_id", "chunk_id", "rank"]) for table in lists]
    )
    of_ranked, of_listed = key_codes(["query_id", "chunk_id"], rankings, listed)
    sound = np.isin(of_ranked, of_listed)
    in_lists = {}
    for channel in ("dense", "bm25"):
        here = pc.equal(listed["channel"], channel).to_numpy()
        rank = np.zeros(n_codes(of_ranked, of_listed), np.int64)
        rank[of_listed[here]] = listed["rank"].to_numpy()[here]
        in_lists[channel] = rank[of_ranked]
        sound &= in_lists[channel] == pc.fill_null(rankings[f"{channel}_rank"], 0).to_numpy()
    wrong = np.flatnonzero(~sound)
    stated = rankings.select(["query_id", "rank", "chunk_id", "dense_rank", "bm25_rank"])
    ranks = zip(*(in_lists[channel][wrong].tolist() for channel in in_lists), strict=True)
    rows: Rows = [
        row | {"dense_list": dense or None, "bm25_list": bm25 or None}
        for row, (dense, bm25) in zip(stated.take(wrong).to_pylist(), ranks, strict=True)
    ]
    return rows + _cut_short(rankings, listed, depth)


def _cut_short(rankings: pa.Table, listed: pa.Table, depth: int) -> Rows:
    n_ranked = Counter(rankings["query_id"].to_pylist())
    distinct = listed.select(["query_id", "chunk_id"]).group_by(["query_id", "chunk_id"])
    to_rank = Counter(distinct.aggregate([])["query_id"].to_pylist())
    return [
        {"query_id": query, "n_ranked": n_ranked[query], "n_to_rank": min(depth, n)}
        for query, n in sorted(to_rank.items())
        if n_ranked[query] != min(depth, n)
    ]


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
    """Span metrics that do not follow from the characters covered of each gold span.

    Those at a k that no outcome has are left alone.
    """
    metrics = query_metrics.filter(pc.is_in(query_metrics["metric"], pa.array(_SPAN_METRICS)))
    if span_outcomes.num_rows:
        metrics = metrics.filter(pc.is_in(metrics["k"], pc.unique(span_outcomes["k"])))
    of_metric, of_span = key_codes(["config", "query_id"], metrics, span_outcomes)
    n = n_codes(of_metric, of_span)
    covered = span_outcomes["covered_chars"].to_numpy()
    length = pc.subtract(span_outcomes["end_char"], span_outcomes["start_char"]).to_numpy()
    n_spans = np.bincount(of_span, minlength=n)
    n_held = np.bincount(of_span, 2 * covered >= length, n)
    follows = {
        "span_coverage": np.bincount(of_span, covered, n)
        / np.maximum(1, np.bincount(of_span, length, n)),
        "span_recall": n_held / np.maximum(1, n_spans),
        "complete_grounding": ((n_spans > 0) & (n_held == n_spans)).astype(float),
    }
    names = metrics["metric"].to_pylist()
    expected = np.array([follows[m][i] for m, i in zip(names, of_metric, strict=True)], float)
    values = pc.fill_null(metrics["value"], math.inf).to_numpy()
    wrong = np.flatnonzero(np.abs(values - expected) > TOLERANCE)
    return [
        row | {"expected": value}
        for row, value in zip(
            metrics.take(wrong).to_pylist(), expected[wrong].tolist(), strict=True
        )
    ]


_SPAN_METRICS = ["span_coverage", "span_recall", "complete_grounding"]


def wrong_label_cross(
    label_cross: pa.Table,
    failure_labels: pa.Table,
    forensic_labels: pa.Table,
    context: int = CONTEXT,
) -> Rows:
    """Return labels of a configuration whose pairs do not sum to the queries with them at
    ``context``.
    """
    top = forensic_labels.filter(pc.equal(forensic_labels["k"], context))
    at_top = top.select(["config", "label"]).to_pylist()
    asked = Counter(row["config"] for row in at_top)
    labels = failure_labels.select(["config", "label"]).to_pylist()
    failing = Counter((row["config"], row["label"]) for row in labels)
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
    """Return labels that do not exist, with another lever than theirs, or without readable
    evidence.
    """
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
    """Count that are not the chunk table's, and shares outside [0, 1]."""
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


def wrong_pairs(config_pairs: pa.Table, query_metrics: pa.Table, context: int = CONTEXT) -> Rows:
    """Comparisons that do not follow from the two configurations' grounded queries."""
    grounded: dict[str, dict[str, float]] = defaultdict(dict)
    at_top = query_metrics.filter(
        pc.and_(
            pc.equal(query_metrics["metric"], "complete_grounding"),
            pc.equal(query_metrics["k"], context),
        )
    )
    for row in at_top.to_pylist():
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
    """Return configurations of a table that the experiment does not have, and the reverse."""
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
    """Return rows of clause_type_metrics that are not the mean of their queries' defined values."""
    cell = ["config", "clause_type", "metric", "k"]
    typed = queries.select(["query_id", "clause_type"]).filter(queries["clause_type"].is_valid())
    values = query_metrics.select(["query_id", "config", "metric", "k", "value"])
    values = values.filter(values["value"].is_valid()).join(typed, "query_id", join_type="inner")
    counted = values.group_by(cell).aggregate([("value", "mean"), ("value", "count")])
    means = {tuple(row[c] for c in cell): row for row in counted.to_pylist()}
    wrong: Rows = []
    for row in clause_type_metrics.to_pylist():
        of_row = means.get(tuple(row[c] for c in cell), {"value_mean": None, "value_count": 0})
        expected, n = of_row["value_mean"], of_row["value_count"]
        same = (row["value"] is None) == (expected is None) and row["n_queries"] == n
        if not same or (expected is not None and abs(row["value"] - expected) > TOLERANCE):
            wrong.append(row | {"expected": expected})
    return wrong
