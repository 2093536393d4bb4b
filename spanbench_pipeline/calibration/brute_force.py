"""Every measure against the oracle on random small cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.calibration.world import World, small
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.scoring.measured import Measured

AGAINST = "brute force: sets of characters"
TOLERANCE = 1e-12
QUERIES = 30
"""Queries of a small corpus; as many corpora as the cases need."""


def compare(n_cases: int, seed: int, context: int = 5) -> list[Tally]:
    """Return all measures of ``n_cases`` queries, each with its list, chunks and gold.

    ``context`` is how many chunks a reader is given.
    """
    tallies = Tallies(AGAINST, TOLERANCE)
    for n, world in enumerate(worlds(n_cases, seed)):
        asked = replace(world, context=context)
        _hold(f"corpus {n}", asked, asked.measured(), tallies)
    return tallies.all()


def worlds(n_cases: int, seed: int) -> Iterator[World]:
    """Small corpora with ``n_cases`` queries between them."""
    random = Random(seed)
    for done in range(0, n_cases, QUERIES):
        yield small(random, min(QUERIES, n_cases - done))


def _hold(where: str, world: World, measured: Measured, tallies: Tallies) -> None:
    asked = {
        q: oracle.Asked(gold, world.ranked[q], world.chunks, world.depth)
        for q, gold in world.gold.items()
    }
    _metrics(where, asked, world.context, measured, tallies)
    _labels(where, asked, world.context, measured, tallies)
    _spans(where, asked, measured, tallies)
    _bounds(where, asked, measured, tallies)
    _chunks(where, asked, world.context, measured, tallies)


Queries = dict[str, oracle.Asked]


def _metrics(
    where: str, asked: Queries, context: int, measured: Measured, tallies: Tallies
) -> None:
    expected = {q: oracle.metrics(a, context=context) for q, a in asked.items()}
    for row in measured.tables["query_metrics"].to_pylist():
        query, metric, k, value = (row[c] for c in ("query_id", "metric", "k", "value"))
        at = f"{where}, {query}"
        if metric in registry.characters():
            by_k = oracle.character_metrics(asked[query], k)
            tallies.add(f"{metric}@k", f"{at}, k {k}", value, by_k[metric])
        else:
            name = metric_label(metric, k)
            tallies.add(name, at, value, expected[query][name])


def _labels(where: str, asked: Queries, context: int, measured: Measured, tallies: Tallies) -> None:
    for row in measured.tables["forensic_labels"].to_pylist():
        query, k = asked[row["query_id"]], row["k"]
        at = f"{where}, {row['query_id']}, k {k}"
        tallies.add("forensic label", at, row["label"], oracle.forensic_label(query, k))
        tallies.add("excess", at, row["excess"], oracle.excess(query, k))
        stability = json.loads(row["stability"])
        tallies.add("stability", at, stability, oracle.stability(query, k))
    rows = measured.tables["failure_labels"].to_pylist()
    labels = {row["query_id"]: row["label"] for row in rows}
    for query_id, query in asked.items():
        at = f"{where}, {query_id}"
        tallies.add(
            "failure label", at, labels.get(query_id), oracle.failure_label(query, context=context)
        )


def _spans(where: str, asked: Queries, measured: Measured, tallies: Tallies) -> None:
    for row in measured.tables["span_states"].to_pylist():
        query, k = asked[row["query_id"]], row["k"]
        span = query.gold[row["span_no"]]
        at = f"{where}, {row['query_id']}, span {row['span_no']}, k {k}"
        tallies.add("state", at, row["state"], oracle.state(query, span, k))
        covered = query.covered(span, k)
        tallies.add("covered characters", at, row["covered_chars"], covered)
        tallies.add("severed", at, row["severed"], oracle.severed(query, span))
        tallies.add("lost stage", at, row["lost_stage"], oracle.lost_stage(query, span, k))


def _bounds(where: str, asked: Queries, measured: Measured, tallies: Tallies) -> None:
    for row in measured.tables["headroom"].to_pylist():
        if row["subset"] is None:
            values = [oracle.bounds(query, row["k"])[row["bound"]] for query in asked.values()]
            mean = sum(values) / len(values)
            at = f"{where}, {row['bound']}, k {row['k']}"
            tallies.add("headroom", at, row["value"], mean)


def _chunks(where: str, asked: Queries, context: int, measured: Measured, tallies: Tallies) -> None:
    expected = oracle.chunk_stats(list(asked.values()), context=context)
    for row in measured.tables["chunk_stats"].to_pylist():
        at = f"{where}, {row['stat']}"
        tallies.add("chunk statistics", at, row["value"], expected[row["stat"]])
