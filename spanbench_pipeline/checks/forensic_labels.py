"""What must hold of forensic labels and span states, looked at again on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from spanbench_pipeline.checks.character_metrics import At, Query, at, rows_of
from spanbench_pipeline.checks.invariants import TOLERANCE, Rows
from spanbench_pipeline.metrics import TOP

SETTINGS: dict[str, tuple[str, int]] = {
    "": ("0.5", 3),
    "covered 0.3": ("0.3", 3),
    "covered 0.7": ("0.7", 3),
    "covered 1.0": ("1.0", 3),
    "factor 2": ("0.5", 2),
    "factor 5": ("0.5", 5),
}
"""The label's own setting and those of ``stability``: the share that covers a span, the factor."""


def missing_labels(forensic_labels: pa.Table, queries: pa.Table, *, ks: Iterable[int]) -> Rows:
    """Queries of one configuration without exactly one row at each of ``ks``, and rows beside."""
    counted = Counter((row["query_id"], row["k"]) for row in forensic_labels.to_pylist())
    depths = list(ks)
    wanted = {(query, k) for query in queries["query_id"].to_pylist() for k in depths}
    return [
        {"query_id": query, "k": k, "labels": counted[query, k]}
        for query, k in sorted(wanted | counted.keys())
        if counted[query, k] != ((query, k) in wanted)
    ]


def wrong_states(span_states: pa.Table, gold_spans: pa.Table, *, ks: Iterable[int]) -> Rows:
    """States of one configuration that do not follow from the characters covered.

    Also gold spans without exactly one row at each of ``ks``, rows of no gold span, more characters
    covered than there are, fewer than at the k before, and a span severed at one k alone.
    """
    lengths = _lengths(gold_spans)
    rows = sorted(span_states.to_pylist(), key=lambda row: row["k"])
    counted = Counter((row["query_id"], row["span_no"], row["k"]) for row in rows)
    depths = list(ks)
    wanted = {(*span, k) for span in lengths for k in depths}
    wrong: Rows = [
        {"query_id": query, "span_no": number, "k": k, "states": counted[query, number, k]}
        for query, number, k in sorted(wanted | counted.keys())
        if counted[query, number, k] != ((query, number, k) in wanted)
    ]
    before: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        span = (row["query_id"], row["span_no"])
        covered, length = row["covered_chars"], lengths.get(span, 0)
        last = before.setdefault(span, row)
        sound = last["covered_chars"] <= covered <= length and row["severed"] == last["severed"]
        half = "covered" if 2 * covered >= length else "partial"
        if not sound or row["state"] != (half if covered else "missed"):
            wrong.append(row | {"length": length})
        before[span] = row
    return wrong


def states_unlike_outcomes(span_states: pa.Table, span_outcomes: pa.Table) -> Rows:
    """Gold spans of which the top 5 hold more or fewer characters here than in span_outcomes."""
    key = ("config", "query_id", "span_no", "k")
    stated = {tuple(r[c] for c in key): r["covered_chars"] for r in span_outcomes.to_pylist()}
    return [
        row | {"span_outcomes": expected}
        for row in span_states.to_pylist()
        if row["k"] == TOP
        for expected in [stated.get(tuple(row[c] for c in key))]
        if row["covered_chars"] != expected
    ]


def labels_unlike_grounding(forensic_labels: pa.Table, query_metrics: pa.Table) -> Rows:
    """Queries that are OK or OVR at k = 5 and not completely grounded, or the other way round."""
    grounded = {at(r): r["value"] == 1 for r in rows_of(query_metrics, "complete_grounding")}
    return [
        row | {"complete_grounding": grounded.get(at(row))}
        for row in forensic_labels.to_pylist()
        if row["k"] == TOP and (row["label"] in ("OK", "OVR")) != grounded.get(at(row))
    ]


def single_span_gaps(forensic_labels: pa.Table, gold_spans: pa.Table) -> Rows:
    """Queries labelled SGP with fewer than two gold spans."""
    counted = Counter(gold_spans["query_id"].to_pylist())
    return [
        row
        for row in forensic_labels.to_pylist()
        if row["label"] == "SGP" and counted[row["query_id"]] < 2
    ]


@dataclass(frozen=True)
class _Span:
    """One gold span at one depth."""

    covered: int
    length: int
    severed: bool | None


def labels_unlike_states(
    forensic_labels: pa.Table, span_states: pa.Table, rankings: pa.Table, gold_spans: pa.Table
) -> Rows:
    """Labels and stabilities that do not follow from the states of the query's gold spans.

    From the states, the excess and the rank of the first chunk in a gold document each label is
    worked out anew, under each setting.
    """
    lengths, first = _lengths(gold_spans), _first_ranks(rankings, gold_spans)
    spans: dict[At, list[_Span]] = defaultdict(list)
    for row in span_states.to_pylist():
        length = lengths.get((row["query_id"], row["span_no"]), 0)
        spans[at(row)].append(_Span(row["covered_chars"], length, row["severed"]))
    wrong: Rows = []
    for row in forensic_labels.to_pylist():
        config, query, k = at(row)
        reached = first.get((config, query), k + 1) <= k
        expected = {
            name: _label(spans[at(row)], reached, row["excess"], Fraction(share), factor)
            for name, (share, factor) in SETTINGS.items()
        }
        if {"": row["label"], **json.loads(row["stability"])} != expected:
            wrong.append(row | {"expected": expected})
    return wrong


def excess_out_of_bounds(
    forensic_labels: pa.Table, query_metrics: pa.Table, gold_spans: pa.Table
) -> Rows:
    """Excess that is null beside retrieved gold or the reverse, or that cannot be.

    The relevant chunks hold all the gold that was retrieved, and no more than was retrieved.
    """
    gold: dict[str, int] = defaultdict(int)
    for (query, _), length in _lengths(gold_spans).items():
        gold[query] += length
    recalls = {at(row): row["value"] for row in rows_of(query_metrics, "char_recall_union")}
    chars = {at(row): row["value"] for row in rows_of(query_metrics, "chars_retrieved")}
    wrong: Rows = []
    for row in forensic_labels.to_pylist():
        if at(row) in recalls:
            low, high = recalls[at(row)], chars[at(row)] / max(1, gold[row["query_id"]])
            excess = row["excess"] or 0.0
            null = row["excess"] is None
            if null != (low == 0) or not low - TOLERANCE <= excess <= high + TOLERANCE:
                wrong.append(row | {"at_least": low, "at_most": high})
    return wrong


def _label(
    spans: Sequence[_Span], reached: bool, excess: float | None, share: Fraction, factor: int
) -> str | None:
    """The first label that holds; None where it takes a chunk table to tell."""
    lost = [span for span in spans if span.covered < share * span.length]
    pieces = [span for span in lost if span.covered]
    if not reached:
        return "DRM"
    if not any(span.covered for span in spans):
        return "ICR"
    if any(span.severed for span in pieces):
        return "CBF"
    if any(span.severed is None for span in pieces):
        return None
    if lost:
        return "SGP" if len(lost) < len(spans) else "ICR"
    return "OVR" if (excess or 0) >= factor else "OK"


def _lengths(gold_spans: pa.Table) -> dict[tuple[str, int], int]:
    return {
        (row["query_id"], row["span_no"]): row["end_char"] - row["start_char"]
        for row in gold_spans.to_pylist()
    }


def _first_ranks(rankings: pa.Table, gold_spans: pa.Table) -> Mapping[Query, int]:
    """The rank of each list's first chunk in a gold document; a place ranked twice counts once."""
    pairs = zip(gold_spans["query_id"].to_pylist(), gold_spans["doc_id"].to_pylist(), strict=True)
    gold = set(pairs)
    first: dict[Query, int] = {}
    above: dict[Query, set[tuple[str, int, int]]] = defaultdict(set)
    columns = ("rank", "config", "query_id", "doc_id", "start_char", "end_char")
    ranked = zip(*(rankings[column].to_pylist() for column in columns), strict=True)
    for _, config, query, *place in sorted(ranked):
        above[config, query].add((place[0], place[1], place[2]))
        if (query, place[0]) in gold:
            first.setdefault((config, query), len(above[config, query]))
    return first
