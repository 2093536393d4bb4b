"""The results of a corpus as a terminal shows them, read from the stored tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from spanbench_pipeline import project as projects
from spanbench_pipeline import terminal, warehouse
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.experiment import Experiment
from spanbench_pipeline.measures import PRINTED
from spanbench_pipeline.project import Project


def show(project: Project, experiment: Experiment) -> str:
    """Every configuration with the metrics of ``PRINTED``, in the experiment's order."""

    def stored(name: str) -> list[dict[str, object]]:
        path = project.parquet / experiment.corpus / f"{name}.parquet"
        rows: list[dict[str, object]] = warehouse.read(path, name).table.to_pylist()
        return rows

    states = {row["config"]: str(row["state"]) for row in stored("configs")}
    values = {
        (row["config"], row["metric"], row["k"]): row["value"]
        for row in stored("config_metrics")
        if row["subset"] is None
    }
    counts = {
        row["chunker"]: f"{row['value']:,.0f}"
        for row in stored("chunk_stats")
        if row["stat"] == "n_chunks"
    }
    rows = []
    for config in experiment.configurations:
        if states[config.name] != warehouse.MEASURED:
            rows.append([config.name, counts[config.chunker], states[config.name]])
            continue
        found = [values[(config.name, metric, k)] for metric, k in PRINTED]
        cells = ["undefined" if v is None else f"{v:.3f}" for v in found]
        rows.append([config.name, counts[config.chunker], *cells])
    head = ["configuration", "chunks", *(m if k is None else f"{m}@{k}" for m, k in PRINTED)]
    title = f"corpus {experiment.corpus}: {experiment.description}"
    return f"{title}\n{terminal.table(head, rows, right=range(1, len(head)))}"


def places(project: Project, corpora: Sequence[str]) -> str:
    """Where the reports, the warehouse and the web UI are."""
    files = [
        project.reports / corpus / f"{report}.html"
        for corpus in corpora
        for report in ("developer", "client")
    ]
    rows = [["" if i else "reports", near(path)] for i, path in enumerate(files)]
    ask = f'{command(project)} sql "SELECT * FROM configs"'
    rows.append(["warehouse", f"{near(project.database)}  ({ask})"])
    rows.append(["web UI", f"{command(project)} ui"])
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {place}".rstrip() for label, place in rows)


def command(project: Project) -> str:
    """``spanbench``, with the home where a plain call would take another one."""
    try:
        same = projects.find().home == project.home
    except InputError:
        same = False
    return "spanbench" if same else f"spanbench --home {shlex.quote(near(project.home))}"


def near(path: Path) -> str:
    """A path as a person in this folder would type it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
