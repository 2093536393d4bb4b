"""What turning one lever did: configurations that differ in nothing else, against each other.

A configuration is measured when it has query metrics; one that is not takes no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.aggregate import values_by_query
from spanbench_pipeline.config.experiment import CONTEXT, Configuration, lever_differences
from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics.joins import deduplicate, require_one, spans_by_query


def config_pairs(
    configurations: Sequence[Configuration],
    query_metrics: pa.Table,
    rankings: pa.Table,
    gold_spans: pa.Table,
    *,
    corpus: str,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``config_pairs``: both directions of every two that differ in one lever
    alone.

    ``query_metrics`` and ``rankings`` hold those of all measured configurations. ``delta`` is the
    mean of complete_grounding at ``context`` after the change minus before it, which over the same
    queries is (fixed - broken) / n. ``promoted`` counts (query, chunk). Raises ValueError where two
    configurations were not measured on the same queries.
    """
    require_one(query_metrics, "corpus")
    grounded = values_by_query(query_metrics, "complete_grounding", context)
    relevant = _relevant_in_top(rankings, gold_spans, context)
    rows = []
    for before, after in permutations([c for c in configurations if c.name in grounded], 2):
        levers = lever_differences(before, after)
        if len(levers) != 1:
            continue
        same_chunks = before.chunker == after.chunker
        promoted = relevant.get(after.name, set()) - relevant.get(before.name, set())
        rows.append(
            {
                "corpus": corpus,
                "lever": levers[0],
                "from_config": before.name,
                "to_config": after.name,
                "promoted": len(promoted) if same_chunks else None,
                **_change(grounded[before.name], grounded[after.name]),
            }
        )
    return tables.from_rows("config_pairs", rows)


def filter_pairs(
    configurations: Sequence[Configuration], config_pairs: pa.Table
) -> list[dict[str, Any]]:
    """Return the rows of ``config_pairs`` that add a filter and take none away.

    Their ``fixed_queries`` are grounded only through the filter. In configuration order.
    """
    order = {c.name: i for i, c in enumerate(configurations)}
    filters = {c.name: (c.doc_scope, c.metadata_filters) for c in configurations}
    rows = [
        row
        for row in config_pairs.to_pylist()
        if row["lever"] == "metadata filtering"
        and all(
            before <= after
            for before, after in zip(
                filters[row["from_config"]], filters[row["to_config"]], strict=True
            )
        )
    ]
    return sorted(rows, key=lambda row: (order[row["from_config"]], order[row["to_config"]]))


def _change(
    before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> dict[str, Any]:
    if before.keys() != after.keys():
        raise ValueError(f"queries do not match, the first is {min(before.keys() ^ after.keys())}")
    fixed = sorted(q for q in after if after[q] == 1 and before[q] == 0)
    broken = sorted(q for q in after if after[q] == 0 and before[q] == 1)
    return {
        "delta": (len(fixed) - len(broken)) / len(after),
        "fixed": len(fixed),
        "broken": len(broken),
        "fixed_queries": fixed,
        "broken_queries": broken,
    }


def _relevant_in_top(
    rankings: pa.Table, gold_spans: pa.Table, context: int
) -> dict[str, set[tuple[str, str]]]:
    """Return configuration -> (query, chunk) of the relevant chunks among its first ``context``."""
    ranked = deduplicate(rankings)
    top = ranked.filter(pc.less_equal(ranked["rank"], context))
    retrieved, gold = spans_by_query(top, gold_spans)
    hits = top.take(np.unique(spans.overlapping_pairs(retrieved, gold)[0]))
    found: dict[str, set[tuple[str, str]]] = {}
    for row in hits.select(["config", "query_id", "chunk_id"]).to_pylist():
        found.setdefault(row["config"], set()).add((row["query_id"], row["chunk_id"]))
    return found
