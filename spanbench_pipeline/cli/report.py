"""``spanbench report``: where a corpus's reports are, or new ones for another baseline."""

from __future__ import annotations

import argparse

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.cli.places import command, near
from spanbench_pipeline.cli.run import find, raise_failures
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import Code, InputError
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.dagster.instance import look_at, open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.staleness import Key, name
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.results import ResultsStore


def report(project: Project, corpus: str, baseline: str | None) -> str:
    """Return the reports' files and baseline; writes them again where ``baseline`` is given.

    Raises InputError where the corpus has not been run, or the baseline is unknown or not
    measured, or new reports would show figures that are out of date or failed a check.
    """
    graph = graphs.build(project)
    experiment = find(graph, corpus)
    graph.warn_of_broken()
    key = (corpus, "reports")
    if baseline is not None:
        baseline = experiment.configuration(baseline).name  # as the tables write it
    with (look_at if baseline is None else open_instance)(project) as instance:
        runner = Runner(project, instance, graph.of([corpus]))
        made = runner.records().get(key)
        if made is None:
            raise InputError(f"corpus {corpus} has no reports yet: {command(project)} run {corpus}")
        if baseline is not None:
            _require_measured(project, corpus, baseline)
            _require_settled(project, runner, key)
            raise_failures(runner.materialize([key], {"baseline": baseline}), project)
        elif made.damage:
            raise InputError(
                f"{made.damage}: the stored reports cannot be relied on",
                code=Code.STALE,
                place=f"report {corpus}",
                hint=f"{command(project)} run {corpus} writes them again",
            )
        old = set(runner.stages) - staleness.settled(runner.nodes, runner.stale())
    return _listed(project, corpus, old=key in old)


def _require_measured(project: Project, corpus: str, baseline: str) -> None:
    state = ResultsStore(project, corpus).states.get(baseline, parquet.MEASURED)
    if state != parquet.MEASURED:
        raise InputError(f"the baseline {baseline!r} is {state}; choose another")


def _require_settled(project: Project, runner: Runner, key: Key) -> None:
    above = staleness.ancestors(runner.nodes, [key]) - {key}
    stale = {above_it: why for above_it, why in runner.stale().items() if above_it in above}
    if stale:
        first, why = next(iter(stale.items()))
        more = f" (and {len(stale) - 1} more)" if len(stale) > 1 else ""
        raise InputError(
            f"report {key[0]}: what it would show is out of date or in doubt: "
            f"{name(first)}: {'; '.join(why)}{more}; {command(project)} run {key[0]} first"
        )


def _listed(project: Project, corpus: str, old: bool) -> str:
    rows = ResultsStore(project, corpus).table("reports").to_pylist()
    folder = project.reports / corpus
    head = f"reports of {corpus}; the client report's baseline is {rows[0]['baseline']}:"
    shown = [near(folder / row["file"]) for row in rows]
    note = [f"out of date: {command(project)} status {corpus} says why"] if old else []
    return "\n".join([head, *shown, *note])


EXAMPLES = """\
  spanbench report cuad --baseline "clause + hybrid"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench report``."""
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument(
        "--baseline", metavar="CONFIG", help="configuration with which the client report compares"
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench report``; return the exit code."""
    terminal.say(report(project, parsed.corpus, parsed.baseline))
    return DONE
