"""Aggregates against their parts, and what must follow from the rules whatever the input."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

import pyarrow as pa

from spanbench_pipeline.calibration.brute_force import worlds
from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.calibration.world import CONFIG, CORPUS, World
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import forensic_labels
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.scoring.measured import Measured, measure

AGAINST = "the sum or mean of its parts"
FOLLOWS = "what follows from the rules"
TOLERANCE = 1e-12
Rows = Sequence[Mapping[str, Any]]


def compare(n_cases: int, seed: int) -> list[Tally]:
    """Means, counts and consequences on random small corpora with ``n_cases`` queries."""
    sums, follows = Tallies(AGAINST, TOLERANCE), Tallies(FOLLOWS, TOLERANCE)
    for n, world in enumerate(worlds(n_cases, seed)):
        where, measured = f"corpus {n}", world.measured()
        _means(where, world, measured, sums)
        _counts(where, world, measured, sums)
        _consequences(where, measured, follows)
        _renamed(where, world, follows)
        _shuffled(where, world, measured, follows, Random(seed + n))
    return sums.all() + follows.all()


def _means(where: str, world: World, measured: Measured, tallies: Tallies) -> None:
    values: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in measured.tables["query_metrics"].to_pylist():
        for subset in {None, world.subsets[row["query_id"]]}:
            of_cell = values[subset, row["metric"], row["k"]]
            of_cell += [] if row["value"] is None else [row["value"]]
    parts: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for (subset, metric, k), of_part in values.items():
        if subset is not None and of_part:
            parts["macro", metric, k].append(fmean(of_part))
    for row in measured.tables["config_metrics"].to_pylist():
        cell = row["subset"], row["metric"], row["k"]
        of_cell = (parts if row["subset"] == "macro" else values)[cell]
        expected = fmean(of_cell) if of_cell else None
        kind = {None: "mean of the whole", "macro": "macro mean"}.get(
            row["subset"], "mean of a part"
        )
        tallies.add(kind, f"{where}, {cell}", row["value"], expected)


def _counts(where: str, world: World, measured: Measured, tallies: Tallies) -> None:
    tables = measured.tables
    labels = Counter(row["k"] for row in tables["forensic_labels"].to_pylist() if row["label"])
    for k in [k for k in registry.label_ks() if k <= world.depth]:
        tallies.add("forensic labels sum to the queries", where, labels[k], len(world.gold))
    crossed = sum(tables["label_cross"]["n_queries"].to_pylist())
    tallies.add("crossed labels sum to the queries", where, crossed, len(world.gold))
    states = tables["span_states"].to_pylist()
    staged = Counter(row["k"] for row in states if row["lost_stage"])
    for k, n in Counter(row["k"] for row in states if row["state"] != "covered").items():
        tallies.add("lost stages sum to the spans not covered", f"{where}, k {k}", staged[k], n)
    grounded = _cells(tables["config_metrics"], "complete_grounding", 5)
    for row in tables["headroom"].to_pylist():
        if row["bound"] == "actual" and row["k"] == 5:
            at = f"{where}, {row['subset']}"
            expected = grounded[row["subset"]]
            tallies.add("actual bound is complete grounding", at, row["value"], expected)


def _consequences(where: str, measured: Measured, tallies: Tallies) -> None:
    """DRM has nothing right; OK and OVR are complete; the share of DRM bounds the recall."""
    values = {
        (row["query_id"], row["metric"], row["k"]): row["value"]
        for row in measured.tables["query_metrics"].to_pylist()
    }
    labels: dict[int, dict[str, str]] = defaultdict(dict)
    for row in measured.tables["forensic_labels"].to_pylist():
        labels[row["k"]][row["query_id"]] = row["label"]
        for metric in ("char_precision_union", "char_recall_union"):
            key = row["query_id"], metric, row["k"]
            if row["label"] == "DRM" and key in values:
                tallies.add("DRM has precision and recall 0", f"{where}, {key}", values[key], 0.0)
    for query_id, label in labels[5].items():
        complete = values[query_id, "complete_grounding", 5] == 1
        at = f"{where}, {query_id}"
        tallies.add("OK and OVR are complete grounding", at, label in ("OK", "OVR"), complete)
    for k, by_query in labels.items():
        recalls = [v for (_, m, at), v in values.items() if m == "char_recall_union" and at == k]
        if recalls:
            most = 1 - list(by_query.values()).count("DRM") / len(by_query)
            held = math.fsum(recalls) / len(recalls) <= most + TOLERANCE
            tallies.add("mean recall is at most 1 - share of DRM", f"{where}, k {k}", held, True)


def _renamed(where: str, world: World, tallies: Tallies) -> None:
    """Every ranked document renamed to a fresh one: equal offsets elsewhere are worth nothing."""
    ranked = {q: [(f"not {d}", s, e) for d, s, e in places] for q, places in world.ranked.items()}
    renamed, evalset = dataclasses.replace(world, ranked=ranked).rankings(), world.evalset()
    gold, queries = evalset.gold_spans, evalset.queries
    run = scored_run(renamed, gold, None, queries, foreign=True)
    named: dict[str, Any] = {"corpus": CORPUS, "config": CONFIG}
    counted = registry.characters()
    metrics = [metric for metric in registry.measured() if metric[0] in counted]
    scored = query_metrics(run, depth=16, metrics=metrics, **named)
    for row in scored.to_pylist():
        if row["metric"] != "chars_retrieved":
            at = f"{where}, {row['query_id']}, {row['metric']}, k {row['k']}"
            tallies.add("documents renamed: every metric 0", at, row["value"], 0.0)
    labelled = forensic_labels(run, depth=16, **named)
    for row in labelled.to_pylist():
        at = f"{where}, {row['query_id']}, k {row['k']}"
        tallies.add("documents renamed: every label DRM", at, row["label"], "DRM")


def _shuffled(
    where: str, world: World, measured: Measured, tallies: Tallies, random: Random
) -> None:
    """The order of the input tables changes nothing."""
    evalset = world.evalset()
    shuffled = dataclasses.replace(
        evalset,
        queries=_rows_shuffled(evalset.queries, random),
        gold_spans=_rows_shuffled(evalset.gold_spans, random),
    )
    rankings, chunks = (_rows_shuffled(t, random) for t in (world.rankings(), world.chunk_table()))
    again = measure(rankings, shuffled, chunks, corpus=CORPUS, config=CONFIG, depth=world.depth)
    for name in measured.tables:
        if name != "rankings":
            same = again.tables[name].equals(measured.tables[name])
            tallies.add("the order of rows changes nothing", f"{where}, {name}", same, True)


def _rows_shuffled(table: pa.Table, random: Random) -> pa.Table:
    order = list(range(table.num_rows))
    random.shuffle(order)
    return table.take(pa.array(order, pa.int64()))


def _cells(config_metrics: pa.Table, metric: str, k: int) -> dict[str | None, float]:
    rows = config_metrics.to_pylist()
    return {r["subset"]: r["value"] for r in rows if r["metric"] == metric and r["k"] == k}
