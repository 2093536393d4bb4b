"""``spanbench run``: materialize what is missing or changed, then show the results."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spanbench_pipeline.cli import baseline, places, terminal
from spanbench_pipeline.cli import results_table as results
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.pipeline import state_index
from spanbench_pipeline.pipeline.dagster.home_state import HomeState, write_index
from spanbench_pipeline.pipeline.staleness import Key, name
from spanbench_pipeline.storage import disk, locks

if TYPE_CHECKING:
    from spanbench_pipeline.pipeline.dagster.runner import Result
    from spanbench_pipeline.pipeline.graph import Graph

_EXPLAINED = {
    InputError.__name__,
    "UnsoundInput",
    OSError.__name__,
    *(kind.__name__ for kind in OSError.__subclasses__()),
}
"""Errors whose message says what to do: wrong input, or a disk that does not do as it is told."""


class CheckFailed(Exception):
    """A check that is an error failed (exit code 1).

    ``results`` is what to print first: a check that blocks nothing leaves results to show.
    """

    results = ""


class StageFailed(Exception):
    """A stage raised what should not happen (exit code 3); ``traceback`` is where."""

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(message)
        self.traceback = traceback


def run(project: Project, names: Sequence[str], dense_engine: str | None = None) -> str:
    """Bring the named corpora up to date and return what to print.

    Raises InputError before anything runs where a corpus is unknown, its experiment broken or its
    source absent; CheckFailed or StageFailed after what could run has run.
    """
    names = list(dict.fromkeys(names))
    home = HomeState(project)
    did = None if dense_engine else _nothing_to_do(home, names)
    errors: Mapping[Key, Sequence[str]]
    if did is None:
        did, errors, experiments = _run(project, names, dense_engine)
    else:
        errors = home.state(names).failed_errors
        experiments = {corpus: home.experiment(corpus) for corpus in names}
    parts = [did, *(results.show(project, experiments[corpus]) for corpus in names)]
    notes = [note for corpus in names if (note := baseline.note(project, corpus))]
    shown = "\n\n".join([*parts, *notes, places.places(project, names)])
    if errors:
        failed = CheckFailed(_failed(errors, f"{places.command(project)} gate CORPUS says more"))
        failed.results = shown
        raise failed
    return shown


def _nothing_to_do(home: HomeState, names: Sequence[str]) -> str | None:
    """Return what to print where the index says that all is up to date; None where it does not.

    None as well where another run is at work on a corpus, or was killed.
    """
    known = home.index.of(names)
    if known is None or known.state.stale or known.state.absent or not home.index.idle:
        return None
    if any(locks.holder(home.project.locks, corpus) for corpus in names):
        return None
    return _up_to_date(names, len(known.state.nodes))


def _run(
    project: Project, names: Sequence[str], dense_engine: str | None
) -> tuple[str, Mapping[Key, Sequence[str]], Mapping[str, Experiment]]:
    """Run what is stale; return what to print, the failing checks that hold nothing back, and
    all experiments.
    """
    from spanbench_pipeline.corpora.source import open_source
    from spanbench_pipeline.pipeline import graph as graphs
    from spanbench_pipeline.pipeline.dagster.instance import open_instance
    from spanbench_pipeline.pipeline.dagster.runner import Runner

    began = state_index.begin()
    graph = graphs.build(project, dense_engine)
    for corpus in names:
        find(graph, corpus)
    graph.warn_of_broken()
    for corpus in names:
        open_source(find(graph, corpus), project).files()
    with open_instance(project) as instance:
        runner = Runner(project, instance, graph.of(names))
        result = runner.run()
        if dense_engine is None:
            write_index(graph, runner, began)
        errors = runner.failed_errors()
    raise_failures(result, project)
    return _did(result, names, len(runner.stages)), errors, graph.experiments


def find(graph: Graph, corpus: str) -> Experiment:
    """Return the experiment of a corpus; InputError where its file is broken or there is none."""
    if corpus in graph.broken:
        raise graph.broken[corpus]
    if corpus not in graph.experiments:
        raise InputError(
            f"no experiment for corpus {corpus!r}{nearest(corpus, graph.experiments)}; "
            "spanbench adapt registers an own corpus"
        )
    return graph.experiments[corpus]


def raise_failures(result: Result, project: Project) -> None:
    """Raise what a run's failures amount to; the worst kind decides the exit code."""
    if any(disk.is_full([f.error], f.message, project.home) for f in result.failures):
        raise InputError(disk.full(project.home))
    unexpected = [f for f in result.failures if f.error not in _EXPLAINED]
    held = [key for key in result.held if key not in result.failed_checks]
    held = [key for key in held if key not in {f.key for f in result.failures}]
    tail = f"\nheld back because of it: {len(held)} assets" if held else ""
    if unexpected:
        text = "\n".join(f"{name(f.key)}: {f.error}: {f.message}" for f in unexpected)
        raise StageFailed(text + tail, "\n".join(f.traceback for f in unexpected))
    if result.failures:
        # Several assets read one source: what is wrong with it is said once.
        first = {f.message: name(f.key) for f in reversed(result.failures)}
        lines = [f"{where}: {message}" for message, where in reversed(first.items())]
        raise InputError("\n".join(lines) + tail)
    if result.failed_checks:
        raise CheckFailed(
            _failed(result.failed_checks, "spanbench ui shows the offending rows", tail)
        )


def _failed(checks: Mapping[Key, Sequence[str]], hint: str, tail: str = "") -> str:
    lines = [f"check failed: {name(key)}: {', '.join(failed)}" for key, failed in checks.items()]
    return "\n".join(lines) + f"{tail}\n{hint}"


def _did(result: Result, corpora_run: Sequence[str], n_stages: int) -> str:
    listed = ", ".join(corpora_run)
    if not result.materialized:
        return _up_to_date(corpora_run, n_stages)
    head = f"materialized {len(result.materialized)} of {n_stages} assets of {listed}"
    encoded = sum(facts.get("texts encoded now", 0) for facts in result.facts.values())
    return f"{head}; {encoded:,} texts encoded that were not in the cache\n{_times(result)}"


def _up_to_date(corpora: Sequence[str], n_assets: int) -> str:
    return f"nothing to do: all {n_assets} assets of {', '.join(corpora)} are up to date"


def _times(result: Result) -> str:
    """Return one line a stage: assets, rows, and the seconds of computing and of checking."""
    groups: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
    for key in result.materialized:
        groups[(key[0], key[1] if len(key) > 1 else "")].append(key)
    rows = [
        [
            "/".join(part for part in group if part),
            str(len(keys)),
            f"{sum(result.rows[k] for k in keys):,}",
            f"{sum(result.seconds[k] for k in keys):.1f}",
            f"{sum(result.check_seconds.get(k, 0.0) for k in keys):.1f}",
        ]
        for group, keys in groups.items()
    ]
    return terminal.table(
        ["stage", "assets", "rows", "seconds", "checks"], rows, right=(1, 2, 3, 4)
    )


EXAMPLES = """\
  spanbench run                     the bundled sample
  spanbench run cuad -v             with a line for every asset
  spanbench run cuad --dry-run      what would run, and what might then
  spanbench run cuad --dense-engine qdrant"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench run``."""
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="default: sample")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print a line for every table computed"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be recomputed, without doing it"
    )
    parser.add_argument(
        "--dense-engine",
        choices=("exact", "qdrant"),
        help="overrides the experiment's; qdrant runs in memory unless QDRANT_URL names "
        "a server (http://...) or a folder; the rankings are the same",
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench run``; return the exit code."""
    corpora = parsed.corpus or ["sample"]
    if parsed.dry_run:
        from spanbench_pipeline.cli.plan import plan

        terminal.say(plan(project, corpora, parsed.dense_engine))
    else:
        terminal.say(run(project, corpora, parsed.dense_engine))
    return DONE
