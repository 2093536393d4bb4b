"""How the failure labels and the six forensic labels of the same queries relate."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.joins import require_one


def label_cross(
    failure_labels: pa.Table, forensic_labels: pa.Table, *, corpus: str, context: int = CONTEXT
) -> pa.Table:
    """Return the table ``label_cross``: how many queries have each two labels, of every
    configuration.

    Failure labels look at ``context`` chunks, so of ``forensic_labels`` only that k counts; a depth
    below it has none, and gives no rows. Pairs that no query has are absent; the counts of a
    configuration sum to its queries. Raises ValueError where a query has a
    failure label and no forensic one.
    """
    require_one(forensic_labels, "corpus")
    key = ["config", "query_id"]
    deep = forensic_labels.filter(pc.equal(forensic_labels["k"], context))
    forensic = deep.select([*key, "label"]).rename_columns([*key, "forensic_label"])
    failure = failure_labels.select([*key, "label"]).rename_columns([*key, "failure_label"])
    if forensic.num_rows and (odd := failure.join(forensic, key, join_type="left anti")).num_rows:
        row = odd.sort_by([(column, "ascending") for column in key]).to_pylist()[0]
        at = f"{row['config']}, query {row['query_id']}"
        raise ValueError(f"{at}: no forensic label at k = {context}")
    pair = ["config", "failure_label", "forensic_label"]
    counted = forensic.join(failure, key).group_by(pair).aggregate([([], "count_all")])
    counted = counted.rename_columns({"count_all": "n_queries"})
    return tables.conform(
        "label_cross", counted.append_column("corpus", pa.repeat(corpus, counted.num_rows))
    )
