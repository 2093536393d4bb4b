"""What the developer report says of a configuration beside its metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.aggregate import mean, values_by_query
from spanbench_pipeline.config.experiment import CONTEXT, Configuration
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.joins import deduplicate, require_one, spans_by_query


def config_stats(
    configurations: Sequence[Configuration],
    query_metrics: pa.Table,
    chunk_stats: pa.Table,
    rankings: pa.Table,
    gold_spans: pa.Table,
    *,
    corpus: str,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``config_stats``; every table given holds all measured configurations.

    - ``precision_attained``: mean precision at ``context`` / the chunker's precision_ceiling.
      Ceiling 0: null.
    - ``wrong_document_share``: of the first ``context`` chunks of all lists, the share whose
      document holds no gold span of the query. No chunk in any: null.
    - ``failing_queries``: queries whose complete_grounding at ``context`` is 0.
    """
    require_one(query_metrics, "corpus")
    ceiling = _ceilings(chunk_stats)
    precision = values_by_query(query_metrics, "precision", context)
    grounded = values_by_query(query_metrics, "complete_grounding", context)
    wrong = _wrong_document_shares(rankings, gold_spans, context)
    rows = []
    for config in (c for c in configurations if c.name in grounded):
        attained = [v for v in precision[config.name].values() if v is not None]
        stats = {
            "precision_attained": _ratio(mean(attained), ceiling[config.chunker]),
            "wrong_document_share": wrong.get(config.name),
            "failing_queries": float(list(grounded[config.name].values()).count(0)),
        }
        rows += [
            {"corpus": corpus, "config": config.name, "stat": stat, "value": value}
            for stat, value in stats.items()
        ]
    return tables.from_rows("config_stats", rows)


def _ratio(value: float | None, of: float) -> float | None:
    return value / of if value is not None and of else None


def _ceilings(chunk_stats: pa.Table) -> dict[str, float]:
    require_one(chunk_stats, "corpus")
    rows = chunk_stats.filter(pc.equal(chunk_stats["stat"], "precision_ceiling")).to_pylist()
    return {row["chunker"]: row["value"] for row in rows}


def _wrong_document_shares(
    rankings: pa.Table, gold_spans: pa.Table, context: int
) -> dict[str, float]:
    """Return configuration -> share; a configuration without any ranked chunk is not in it."""
    ranked = deduplicate(rankings)
    top = ranked.filter(pc.less_equal(ranked["rank"], context))
    retrieved, gold = spans_by_query(top, gold_spans)
    right = np.isin(retrieved.group, gold.group)
    configs = np.array(top["config"].to_pylist(), dtype=object)
    return {
        config: int((~right[configs == config]).sum()) / int((configs == config).sum())
        for config in pc.unique(top["config"]).to_pylist()
    }
