"""The files of a scored ranking: tables, reports, and a line a query."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from spanbench_pipeline.formats import json_lines, parquet_file
from spanbench_pipeline.metrics.joins import deduplicate
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.scoring.report import Scored, report
from spanbench_pipeline.storage.folders import Files


def files(scored: Scored) -> Files:
    """Yield ``<table>.parquet`` for every table that was measured, ``report.md`` and ``.html``,
    ``queries.jsonl`` and, where they were measured, ``labels.jsonl``.
    """
    made = report(scored)
    measured = scored.measured.tables
    yield "report.md", [markdown.render(made).encode()]
    yield "report.html", [html.render(made).encode()]
    yield (
        "queries.jsonl",
        json_lines.lines(
            deduplicate(measured["rankings"]), scored.evalset.queries, measured["query_metrics"]
        ),
    )
    if "failure_labels" in measured:
        yield "labels.jsonl", _labels(measured["failure_labels"])
    for name, table in measured.items():
        yield f"{name}.parquet", [parquet_file.content(name, table)]


def _labels(failure_labels: pa.Table) -> Iterator[bytes]:
    for row in failure_labels.to_pylist():
        evidence = {"evidence": json.loads(row["evidence"])}
        yield json_lines.line(row | evidence)
