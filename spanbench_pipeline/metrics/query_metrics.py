"""All metrics of one configuration, query by query."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import reached
from spanbench_pipeline.metrics.joins import Reals
from spanbench_pipeline.metrics.metric import MetricAt
from spanbench_pipeline.metrics.scored_run import ScoredRun


def query_metrics(
    run: ScoredRun,
    *,
    corpus: str,
    config: str,
    depth: int | None = None,
    metrics: Iterable[MetricAt] | None = None,
) -> pa.Table:
    """Return the table ``query_metrics`` of one configuration: a row a query and metric.

    ``metrics`` are those to measure (None: the standard ones), ``depth`` is where the lists were
    cut (None: nowhere): a metric at a k past it has no row. A list shorter than k is used whole, an
    empty one has its rows as well. What takes all chunks to know has no row without them. Raises
    InputError where a plug-in's metric fails, or gives other than a value a query.
    """
    wanted = reached(depth, registry.measured() if metrics is None else metrics)
    known = registry.metrics()
    kept = [(name, k) for name, k in wanted if run.has_chunks or not known[name].needs_chunks]
    n = len(run.query_ids)
    values = [_values(run, name, k) for name, k in kept]
    value = np.concatenate([np.empty(0), *values])
    names = pa.array([name for name, _ in kept], pa.string())
    ks = pa.array([k for _, k in kept], pa.int64())
    of_metric = np.repeat(np.arange(len(kept)), n)
    return tables.from_columns(
        "query_metrics",
        {
            "corpus": pa.repeat(corpus, len(value)),
            "config": pa.repeat(config, len(value)),
            "query_id": run.query_ids.take(np.tile(np.arange(n), len(kept))),
            "metric": names.take(of_metric),
            "k": ks.take(of_metric),
            "value": pa.array(value, mask=np.isnan(value)),
        },
    )


def _values(run: ScoredRun, name: str, k: int | None) -> Reals:
    compute = registry.metrics()[name].values
    if compute is None:
        raise ValueError(f"{name} is measured by routing")
    plugins = registry.plugins()
    with plugins.blamed(name):
        value = np.asarray(compute(run, k), dtype=np.float64)
    if value.shape != (len(run.query_ids),):
        raise InputError(
            f"metric {name!r} ({plugins[name]}): {value.shape} values for {len(run.query_ids)} "
            "queries; it must give one a query"
        )
    return value
