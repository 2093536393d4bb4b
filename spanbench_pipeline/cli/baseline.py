"""How what is stored compares with the accepted run, in the lines that a run prints."""

from __future__ import annotations

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.reports import regression_text
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.results import ResultsStore


def note(project: Project, corpus: str) -> str:
    """Return what a run says of the comparison; empty where no run was accepted."""
    stored = ResultsStore(project, corpus).stored("regression")
    if stored.state != parquet.MEASURED:
        return ""
    fell = regression_text.regressions(stored.table)
    changed, unheld = (
        regression_text.changes(stored.table),
        regression_text.not_compared(stored.table),
    )
    lines = [
        *(f"  regression: {row['config']}, {row['metric']}: {row['difference']:+}" for row in fell),
        *(f"  changed: {row['config']}, queries {row['queries']}" for row in changed),
        *(f"  {row['verdict']}: {row['config']}, {row['metrics']}: {row['why']}" for row in unheld),
    ]
    head = f"{corpus} against its accepted run: "
    return "\n".join([f"{head}{len(lines)} to look at", *lines]) if lines else f"{head}unchanged"
