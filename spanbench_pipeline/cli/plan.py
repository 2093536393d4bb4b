"""``spanbench run --dry-run``: what would run now, and what might run then. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from spanbench_pipeline.cli.run import find
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.corpora.source import open_source
from spanbench_pipeline.pipeline import code_version, staleness
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import look_at, made_by
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.staleness import Key, name

SHOWN = 2
"""Inputs that are named of those that an asset waits for."""


def plan(project: Project, names: Sequence[str], dense_engine: str | None = None) -> str:
    """Return the waves of a run of the named corpora, each asset with its reasons.

    Raises InputError where the run would, before anything runs.
    """
    graph = graphs.build(project, dense_engine)
    for corpus in names:
        open_source(find(graph, corpus), project).files()
    with look_at(project) as instance:
        return _plan(Runner(project, instance, graph.of(names)), ", ".join(names))


def _plan(runner: Runner, listed: str) -> str:
    waves = staleness.forecast(runner.nodes, runner.records())
    total = len(runner.nodes)
    if not waves:
        return f"nothing to do: all {total} assets of {listed} are up to date"
    later = sum(len(wave) for wave in waves[1:])
    lines = [
        f"dry run of {listed}: {len(waves[0])} of {total} assets would run now, {later} wait to "
        "see whether their inputs change; nothing was done"
    ]
    may_change: set[Key] = set()
    for number, wave in enumerate(waves, 1):
        when = "now" if number == 1 else "if their inputs change"
        lines.append(f"wave {number}, {when}: {len(wave)}")
        width = max(len(name(key)) for key in wave)
        may_change.update(wave)
        for key in wave:
            lines.append(f"  {name(key):<{width}}  {_reason(runner, key, number, may_change)}")
            lines += [f"      {change}" for change in _changes(runner, key)]
    return "\n".join(lines)


def _reason(runner: Runner, key: Key, number: int, may_change: set[Key]) -> str:
    node, known = runner.nodes[key], runner.records()
    if number == 1:
        return "; ".join(staleness.reasons(node, known)) or "made of what runs before it"
    own = staleness.own_reasons(node, known)
    awaited = [name(dep) for dep in node.deps if dep in may_change]
    more = f" and {len(awaited) - SHOWN} more" if len(awaited) > SHOWN else ""
    return "; ".join([*own, f"waits for {', '.join(awaited[:SHOWN])}{more}"])


def _changes(runner: Runner, key: Key) -> list[str]:
    """Return what of its code changed, where that is known."""
    record = runner.records().get(key)
    if record is None or record.code_version == runner.nodes[key].code_version:
        return []
    before = made_by(runner.instance, key)
    return code_version.differences(before, runner.stages[key].made_by()) if before else []
