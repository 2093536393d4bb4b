"""What a report is made from: the tables of one corpus, and what was said about the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.analysis.backlog import Backlog
from spanbench_pipeline.config import experiment as experiments

MEASURED = "measured"


@dataclass(frozen=True)
class ReportInputs:
    """The tables of ``tables.TABLES`` for one corpus, all its configurations together.

    ``backlog`` is made for the baseline that the client report is asked for; None where that was
    not measured, or the rankings do not reach the context. ``provenance`` is shown as given,
    name by name: versions, seed, fingerprints.
    """

    documents: pa.Table
    queries: pa.Table
    gold_spans: pa.Table
    source_files: pa.Table
    chunks: pa.Table
    rankings: pa.Table
    query_metrics: pa.Table
    span_outcomes: pa.Table
    failure_labels: pa.Table
    forensic_labels: pa.Table
    span_states: pa.Table
    headroom: pa.Table
    label_cross: pa.Table
    config_metrics: pa.Table
    clause_type_metrics: pa.Table
    config_stats: pa.Table
    config_pairs: pa.Table
    chunk_stats: pa.Table
    fingerprints: pa.Table
    configs: pa.Table
    backlog: Backlog | None
    provenance: Mapping[str, str]
    candidates: Mapping[str, pa.Table]
    """Configuration -> the ``candidates`` of all its channels."""

    def states(self) -> dict[str, str]:
        """Return configuration -> ``measured`` or ``not measured: why``."""
        return {row["config"]: row["state"] for row in self.configs.to_pylist()}

    def measured(self, experiment: experiments.Experiment) -> list[str]:
        """Return the configurations that ran, in the experiment's order."""
        states = self.states()
        return [c.name for c in experiment.configurations if states[c.name] == MEASURED]


def rows_of(table: pa.Table, **equal: Any) -> list[dict[str, Any]]:
    """Return the rows of ``table`` whose columns hold these values (None: null), in its order."""
    for column, value in equal.items():
        held = table.column(column)
        table = table.filter(pc.is_null(held) if value is None else pc.equal(held, value))
    return table.to_pylist()  # type: ignore[no-any-return]


def indexed(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], Any]:
    """Key columns -> ``value`` of each row."""
    return {tuple(row[k] for k in keys): row["value"] for row in rows}
