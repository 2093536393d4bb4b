"""Measuring again what was changed in a way whose effect is known: the two traps of span scoring.

Unlike other checks these use the code that they check, since they ask about its behaviour. Given
are one configuration's tables; returned are offending rows, [] where it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.invariants import Rows
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import forensic_labels, span_states
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run


def blind_to_documents(
    rankings: pa.Table, gold_spans: pa.Table, chunks: pa.Table, queries: pa.Table, *, depth: int
) -> Rows:
    """Return what is still found after every ranked document was renamed to one that nobody knows.

    Every label must be DRM and every precision and recall 0: equal offsets are no hit.
    """
    known = {*gold_spans["doc_id"].to_pylist(), *chunks["doc_id"].to_pylist()}
    fresh = "renamed:"
    while any(doc_id.startswith(fresh) for doc_id in known):
        fresh += ":"
    names = pc.binary_join_element_wise(fresh, rankings["doc_id"], "")
    column = rankings.schema.get_field_index("doc_id")
    renamed = rankings.set_column(column, rankings.schema.field(column), names)
    found = _measured([renamed, gold_spans, None, queries], depth)
    labels, metrics = found["forensic_labels"], found["query_metrics"]
    hits = pc.and_(pc.starts_with(metrics["metric"], "char_"), pc.not_equal(metrics["value"], 0.0))
    reached = pc.fill_null(pc.not_equal(labels["label"], "DRM"), True)
    rows: Rows = [*labels.filter(reached).to_pylist(), *metrics.filter(hits).to_pylist()]
    return rows


def moved_by_row_order(
    rankings: pa.Table, gold_spans: pa.Table, chunks: pa.Table, queries: pa.Table, *, depth: int
) -> Rows:
    """Return the tables that come out otherwise when every input's rows stand in reverse."""
    given = [rankings, gold_spans, chunks, queries]
    reverse = [t.take(pa.array(range(t.num_rows - 1, -1, -1), pa.int64())) for t in given]
    once, again = _measured(given, depth), _measured(reverse, depth)
    return [{"table": name} for name, table in once.items() if not table.equals(again[name])]


def _measured(given: Sequence[pa.Table | None], depth: int) -> Mapping[str, pa.Table]:
    """Return what is measured of rankings, gold spans, chunks and queries."""
    rankings, gold_spans, chunks, queries = given
    run = scored_run(rankings, gold_spans, chunks, queries)
    counted = registry.characters()
    metrics = [metric for metric in registry.measured() if metric[0] in counted]
    named: dict[str, Any] = {"corpus": "", "config": "", "depth": depth}
    return {
        "query_metrics": query_metrics(run, metrics=metrics, **named),
        "forensic_labels": forensic_labels(run, **named),
        "span_states": span_states(run, **named),
    }
