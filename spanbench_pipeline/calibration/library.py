"""Chunk-level metrics against ir_measures (trec_eval's arithmetic) on an exported run and qrels."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from random import Random
from typing import Any

from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.calibration.world import World, large
from spanbench_pipeline.formats import trec
from spanbench_pipeline.formats.ids import encode
from spanbench_pipeline.metrics.metric import metric_label

TOLERANCE = 1e-9
MEASURES = {"precision@5": "P@5", "recall@10": "R@10", "mrr": "RR", "ndcg@10": "nDCG@10"}
"""Each metric and what ir_measures calls it."""
ABSENT = "not measured: ir_measures is not installed"


def compare(n_cases: int, seed: int) -> list[Tally]:
    """Four metrics of ``n_cases`` random lists, query by query.

    Where ir_measures is not installed nothing is compared, and each comparison says so. A query
    without a relevant chunk has no judgement, and so no value there: it is left out.
    """
    if importlib.util.find_spec("ir_measures") is None:
        return [Tally(metric, "ir_measures", TOLERANCE, state=ABSENT) for metric in MEASURES]
    version = importlib.metadata.version("ir_measures")
    tallies = Tallies(f"ir_measures {version}, on our TREC run and qrels", TOLERANCE)
    world = large(Random(seed), n_cases)
    theirs = _theirs(world)
    for row in world.measured().tables["query_metrics"].to_pylist():
        name = metric_label(row["metric"], row["k"])
        key = encode(row["query_id"]), MEASURES.get(name)
        if key in theirs:
            tallies.add(name, row["query_id"], row["value"], theirs[key])
    return tallies.all()


def _theirs(world: World) -> dict[tuple[str, str | None], float]:
    """(encoded query, measure) -> value, of every query that has a judgement."""
    ir_measures: Any = importlib.import_module("ir_measures")
    evalset, chunks = world.evalset(), world.chunk_table()
    run = b"".join(trec.run(world.rankings(), "calibration")).decode()
    qrels = b"".join(trec.qrels(evalset.queries, evalset.gold_spans, chunks)).decode()
    measures: list[Any] = [ir_measures.parse_measure(name) for name in MEASURES.values()]
    found = ir_measures.iter_calc(
        measures,
        list(ir_measures.read_trec_qrels(qrels)),
        list(ir_measures.read_trec_run(run)),
    )
    return {(metric.query_id, str(metric.measure)): metric.value for metric in found}
