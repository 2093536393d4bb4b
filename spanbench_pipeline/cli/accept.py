"""``spanbench accept``: makes the run that is stored the one that later runs are held against."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import pyarrow as pa

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.cli.places import command, near
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.storage import accepted_run


def accept(project: Project, corpus: str) -> str:
    """Accept the stored run of a corpus; return what to print.

    Raises InputError where anything that the run rests on is stale or failed a check, or no
    configuration was measured.
    """
    home = HomeState(project)
    experiment = home.experiment(corpus)
    store = open_results(home, corpus)
    configs = [config.slug for config in experiment.configurations]
    keys = [(corpus, "query_metrics", config) for config in configs]
    snapshot = store.snapshot([*keys, (corpus, "fingerprints")], "accept")
    metrics = store.all("query_metrics", configs)
    if not metrics.num_rows:
        raise InputError(f"accept {corpus}: no configuration was measured")
    prints = store.table("fingerprints")
    snapshot.require_unchanged()
    before = accepted_run.current_or_damaged(project, corpus)
    now = accepted_run.write(project, corpus, metrics, prints)
    if now.digest == before:
        return f"{corpus}: this run is the accepted one already ({now.digest[:12]})"
    call = command(project)
    instead = _instead_of(before)
    return (
        f"{corpus}: accepted {_measured(now.query_metrics)} of "
        f"{len(experiment.configurations)} configurations ({now.digest[:12]}{instead})\n"
        f"{call} run {corpus} compares with it from now on; {call} gate {corpus} judges"
    )


def _instead_of(before: str) -> str:
    """Return what was accepted until now, as ``accepted.current_or_damaged`` tells it."""
    if before == "none":
        return ""
    damaged = before.startswith("damaged: ")
    return f", in the place of {'a damaged one' if damaged else before[:12]}"


def show(project: Project, corpus: str) -> str:
    """Return what is accepted: fingerprints and counts of the corpus, each configuration's
    means.
    """
    HomeState(project).experiments.require(corpus)
    found = accepted_run.read(project, corpus)
    if found is None:
        return f"{corpus}: no accepted run; {command(project)} accept {corpus}"
    place = accepted_run.folder(project, corpus)
    since = datetime.fromtimestamp((place / "current").stat().st_mtime, UTC)
    rows = [
        [row["config"] or "(corpus)", row["name"], row["value"]]
        for row in found.fingerprints.to_pylist()
    ]
    return "\n".join(
        [
            f"{corpus}: accepted run {found.digest[:12]}, since {since:%Y-%m-%d %H:%M} UTC, "
            f"{_measured(found.query_metrics)} configurations",
            near(place / found.digest),
            terminal.table(["configuration", "fingerprint", "value"], sorted(rows)),
        ]
    )


def _measured(query_metrics: pa.Table) -> int:
    return len(query_metrics["config"].unique())


EXAMPLES = """\
  spanbench accept cuad; spanbench run cuad; spanbench gate cuad
  spanbench accept cuad --show"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench accept``."""
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument(
        "--show", action="store_true", help="print what is accepted, and change nothing"
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench accept``; return the exit code."""
    terminal.say((show if parsed.show else accept)(project, parsed.corpus))
    return DONE
