"""What must hold of the metrics that count characters, looked at again on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
Each takes ``query_metrics`` of any number of configurations, and looks at no other metric in it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows
from spanbench_pipeline.checks.row_keys import in_groups, key_codes, n_codes, values_before

Row = Mapping[str, Any]
Query = tuple[str, str]
"""(configuration, query)"""
AT = ["config", "query_id", "k"]
At = tuple[str, str, int]
"""(configuration, query, k)"""
Place = tuple[str, int, int]
"""(document, start, end)"""

GROWING = ("chars_retrieved", "char_recall_union", "char_recall_paper")
"""What a deeper look can only add to."""


def hits_beside_drm(query_metrics: pa.Table, forensic_labels: pa.Table) -> Rows:
    """Precisions and recalls that are not 0 although no gold document was reached."""
    metrics = metrics_named(query_metrics, "char_")
    missed = forensic_labels.filter(_is_drm(forensic_labels))
    of_metric, of_missed = key_codes(AT, metrics, missed)
    wrong = np.isin(of_metric, of_missed) & (metrics["value"].to_numpy() != 0)
    rows: Rows = metrics.filter(pa.array(wrong)).to_pylist()
    return rows


def _is_drm(forensic_labels: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(forensic_labels["label"], "DRM"), False)


def recall_above_reach(query_metrics: pa.Table, forensic_labels: pa.Table) -> Rows:
    """Return depths at which the mean char_recall_union is above 1 - the share of queries labelled
    DRM.
    """
    cell = ["config", "k"]
    labels = forensic_labels.select(cell).append_column("missed", _is_drm(forensic_labels))
    counted = labels.group_by(cell).aggregate([("missed", "sum"), ([], "count_all")])
    n_missed = {(row["config"], row["k"]): row for row in counted.to_pylist()}
    recalls = metrics_named(query_metrics, "char_recall_union").group_by(cell)
    means = recalls.aggregate([("value", "mean"), ([], "count_all")])
    wrong: Rows = []
    for row in means.sort_by([(column, "ascending") for column in cell]).to_pylist():
        of_cell = n_missed.get((row["config"], row["k"]), {"missed_sum": 0, "count_all": 0})
        n_labels, recall = of_cell["count_all"], row["value_mean"]
        reach = 1 - of_cell["missed_sum"] / max(1, n_labels)
        if n_labels != row["count_all"] or recall > reach + TOLERANCE:
            where = {"config": row["config"], "k": row["k"], "mean_recall": recall}
            counts = {"queries": row["count_all"], "labels": n_labels}
            wrong.append(where | {"at_most": reach} | counts)
    return wrong


def falling_with_depth(query_metrics: pa.Table) -> Rows:
    """Recalls and characters retrieved that are lower at a k than at the k before it."""
    metrics = query_metrics.filter(pc.is_in(query_metrics["metric"], pa.array(GROWING)))
    (series,) = key_codes(["config", "query_id", "metric"], metrics)
    order = in_groups(series, metrics["k"].to_numpy())
    values = metrics["value"].to_numpy()[order]
    before = values_before(values, series[order], 0.0)
    falls = np.flatnonzero(values < before)
    wrong = metrics.take(order[falls]).append_column("before", pa.array(before[falls]))
    rows: Rows = wrong.sort_by([(column, "ascending") for column in AT]).to_pylist()
    return rows


def recall_unlike_states(
    query_metrics: pa.Table, span_states: pa.Table, gold_spans: pa.Table
) -> Rows:
    """Return char_recall_union that is not the covered share of the query's gold characters.

    A query's gold spans are disjoint, so that their covered characters may be summed.
    """
    metrics = metrics_named(query_metrics, "char_recall_union")
    of_metric, of_state = key_codes(AT, metrics, span_states)
    of_query, of_gold = key_codes(["query_id"], metrics, gold_spans)
    lengths = pc.subtract(gold_spans["end_char"], gold_spans["start_char"]).to_numpy()
    covered = np.bincount(of_state, span_states["covered_chars"].to_numpy(), n_codes(of_metric))
    length = np.bincount(of_gold, lengths, n_codes(of_query))
    expected = covered[of_metric] / np.maximum(1, length[of_query])
    wrong = np.flatnonzero(~(np.abs(metrics["value"].to_numpy() - expected) <= TOLERANCE))
    return [
        row | {"expected": value}
        for row, value in zip(
            metrics.take(wrong).to_pylist(), expected[wrong].tolist(), strict=True
        )
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
    """Yield the lengths of each list's chunks before the first that meets an earlier one, and: is
    it all.

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
    """Return the rows of metrics whose name starts so."""
    return metrics_named(query_metrics, prefix).to_pylist()  # type: ignore[no-any-return]


def metrics_named(query_metrics: pa.Table, prefix: str) -> pa.Table:
    """Return the part of ``query_metrics`` whose metrics have a name that starts so."""
    return query_metrics.filter(pc.starts_with(query_metrics["metric"], prefix))


def at(row: Row) -> At:
    """Return where a row of labels, states or metrics stands."""
    return row["config"], row["query_id"], row["k"]
