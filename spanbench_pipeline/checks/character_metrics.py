"""What must hold of the metrics that count characters, looked at again on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
Each takes ``query_metrics`` of any number of configurations, and looks at no other metric in it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

import pyarrow as pa

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows

Row = Mapping[str, Any]
Query = tuple[str, str]
"""(configuration, query)"""
At = tuple[str, str, int]
"""(configuration, query, k)"""
Place = tuple[str, int, int]
"""(document, start, end)"""

GROWING = ("chars_retrieved", "char_recall_union", "char_recall_paper")
"""What a deeper look can only add to."""


def hits_beside_drm(query_metrics: pa.Table, forensic_labels: pa.Table) -> Rows:
    """Precisions and recalls that are not 0 although no gold document was reached."""
    missed = {at(row) for row in forensic_labels.to_pylist() if row["label"] == "DRM"}
    return [
        row for row in rows_of(query_metrics, "char_") if at(row) in missed and row["value"] != 0
    ]


def recall_above_reach(query_metrics: pa.Table, forensic_labels: pa.Table) -> Rows:
    """Depths at which the mean char_recall_union is above 1 - the share of queries labelled DRM."""
    missed: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for row in forensic_labels.to_pylist():
        missed[row["config"], row["k"]].append(row["label"] == "DRM")
    recalls: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows_of(query_metrics, "char_recall_union"):
        recalls[row["config"], row["k"]].append(row["value"])
    wrong: Rows = []
    for (config, k), values in sorted(recalls.items()):
        labels = missed[config, k]
        recall, reach = fmean(values), 1 - sum(labels) / max(1, len(labels))
        if len(labels) != len(values) or recall > reach + TOLERANCE:
            found = {"config": config, "k": k, "mean_recall": recall, "at_most": reach}
            wrong.append(found | {"queries": len(values), "labels": len(labels)})
    return wrong


def falling_with_depth(query_metrics: pa.Table) -> Rows:
    """Recalls and characters retrieved that are lower at a k than at the k before it."""
    wrong: Rows = []
    last: dict[tuple[str, str, str], float] = {}
    rows = [row for metric in GROWING for row in rows_of(query_metrics, metric)]
    for row in sorted(rows, key=at):
        key = (row["config"], row["query_id"], row["metric"])
        if row["value"] < last.get(key, 0):
            wrong.append(row | {"before": last[key]})
        last[key] = row["value"]
    return wrong


def recall_unlike_states(
    query_metrics: pa.Table, span_states: pa.Table, gold_spans: pa.Table
) -> Rows:
    """char_recall_union that is not the covered share of the query's gold characters.

    A query's gold spans are disjoint, so that their covered characters may be summed.
    """
    gold: dict[str, int] = defaultdict(int)
    for row in gold_spans.to_pylist():
        gold[row["query_id"]] += row["end_char"] - row["start_char"]
    covered: dict[At, int] = defaultdict(int)
    for row in span_states.to_pylist():
        covered[at(row)] += row["covered_chars"]
    return [
        row | {"expected": expected}
        for row in rows_of(query_metrics, "char_recall_union")
        for expected in [covered[at(row)] / max(1, gold[row["query_id"]])]
        if abs(row["value"] - expected) > TOLERANCE
    ]


def paper_unlike_union(query_metrics: pa.Table, rankings: pa.Table) -> Rows:
    """Paper values other than union's, and characters other than the chunks', of disjoint chunks.

    Where no two of the first k chunks share a character, both scorings are equal, and as many
    characters are retrieved as the chunks have. ``rankings`` are the ones that were measured.
    """
    lists = dict(_disjoint(rankings))
    values: dict[At, dict[str, float]] = defaultdict(dict)
    for row in [*rows_of(query_metrics, "char_"), *rows_of(query_metrics, "chars_retrieved")]:
        values[at(row)][row["metric"]] = row["value"]
    wrong: Rows = []
    for (config, query, k), found in sorted(values.items()):
        lengths, whole = lists.get((config, query), ([], True))
        if k > len(lengths) and not whole:
            continue
        same = all(
            abs(found[f"char_{part}_paper"] - found[f"char_{part}_union"]) <= TOLERANCE
            for part in ("precision", "recall")
        )
        if not same or found["chars_retrieved"] != sum(lengths[:k]):
            wrong.append({"config": config, "query_id": query, "k": k} | found)
    return wrong


def _disjoint(rankings: pa.Table) -> Iterator[tuple[Query, tuple[list[int], bool]]]:
    """The lengths of each list's chunks before the first that meets an earlier one, and: is it all.

    One by one, each chunk is put between its neighbours among those of its document.
    """
    lists: dict[Query, list[tuple[int, Place]]] = defaultdict(list)
    columns = ("config", "query_id", "rank", "doc_id", "start_char", "end_char")
    for config, query, rank, *place in zip(
        *(rankings[c].to_pylist() for c in columns), strict=True
    ):
        lists[config, query].append((rank, tuple(place)))
    for key, ranked in lists.items():
        placed: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths: list[int] = []
        for _, (doc_id, start, end) in sorted(ranked):
            here = placed[doc_id]
            number = bisect(here, (start, end))
            if (number and here[number - 1][1] > start) or (
                number < len(here) and here[number][0] < end
            ):
                break
            here.insert(number, (start, end))
            lengths.append(end - start)
        yield key, (lengths, len(lengths) == len(ranked))


def rows_of(query_metrics: pa.Table, prefix: str) -> Rows:
    """The rows of metrics whose name starts so."""
    names = query_metrics["metric"].to_pylist()
    wanted = pa.array([name.startswith(prefix) for name in names], pa.bool_())
    found: Rows = query_metrics.filter(wanted).to_pylist()
    return found


def at(row: Row) -> At:
    """Where a row of labels, states or metrics stands."""
    return row["config"], row["query_id"], row["k"]
