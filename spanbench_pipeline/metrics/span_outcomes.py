"""How many characters of each gold span the reader is given."""

from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.depths import require_reached
from spanbench_pipeline.metrics.scored_run import ScoredRun


def span_outcomes(
    run: ScoredRun,
    *,
    corpus: str,
    config: str,
    depth: int | None = None,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``span_outcomes`` of one configuration: a row a gold span, at ``context``.

    Raises NotMeasured where ``depth``, where the lists were cut, is below ``context``.
    """
    require_reached(context, depth)
    n = run.gold_table.num_rows
    outcomes = (
        run.gold_table.select(["query_id", "span_no", "doc_id", "start_char", "end_char"])
        .append_column("corpus", pa.repeat(corpus, n))
        .append_column("config", pa.repeat(config, n))
        .append_column("k", pa.array([context] * n, pa.int64()))
        .append_column("covered_chars", pa.array(run.covered(context)))
    )
    return tables.conform("span_outcomes", outcomes)
