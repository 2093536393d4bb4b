"""What a sensor would run now: the same answer as ``spanbench run``, for what runs by itself.

Level-triggered: it follows from what is recorded and what is defined now, so a tick that is lost
costs nothing. A person's run tries again what failed; here that waits until something has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.dagster import failed_attempts, run_lock
from spanbench_pipeline.pipeline.dagster.instance import records
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.staleness import Key, name
from spanbench_pipeline.storage import locks

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass
class _Coming:
    """What runs will do, or do already: corpus -> run, and asset -> run."""

    corpora: dict[str, str] = field(default_factory=dict)
    assets: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Next:
    """The assets of a corpus to run now, inputs before users; where there are none, why.

    ``unusable``: that is because the corpus has no experiment that could be used.
    """

    wave: list[Key] = field(default_factory=list)
    why_not: str = ""
    unusable: bool = False


def next_waves(
    project: Project, instance: dg.DagsterInstance, corpora: Sequence[str]
) -> dict[str, list[Key]]:
    """Return the next wave of each corpus; empty where nothing is to run, or cannot now."""
    return {corpus: found.wave for corpus, found in look(project, instance, corpora).items()}


def look(
    project: Project,
    instance: dg.DagsterInstance,
    corpora: Sequence[str],
    dense_engine: str | None = None,
) -> dict[str, Next]:
    """Return the next wave of each corpus, or the reason to skip it.

    ``dense_engine`` is what the runs go by: with another one, the sensor would find stale for ever
    what they have just made.
    """
    graph = graphs.build(project, dense_engine)
    coming = _coming(instance, graph)
    return {corpus: _next(project, instance, graph, corpus, coming) for corpus in corpora}


def _next(
    project: Project,
    instance: dg.DagsterInstance,
    graph: Graph,
    corpus: str,
    coming: _Coming,
) -> Next:
    if problem := graph.problem(corpus):
        return Next(why_not=problem, unusable=True)
    at_work = locks.holder(project.locks, corpus) or coming.corpora.get(corpus)
    if at_work:
        return Next(why_not=f"{corpus}: at work in {at_work}")
    stages = graph.of([corpus])
    nodes = {stage.key: stage.node() for stage in stages}
    known = records(instance, stages, project)
    stale = staleness.stale(nodes.values(), known)
    held = [
        key
        for key in stale
        if staleness.fails_as_it_is(nodes[key], known)
        or failed_attempts.failed(instance, nodes[key], known)
    ]
    # What all corpora share is under no corpus's lock. While a run plans it, its checks read as not
    # evaluated: two corpora would request it in turn for ever.
    shared = [s.key for s in stages if s.shared and s.key in coming.assets and s.key in stale]
    wave = staleness.next_wave(nodes, known, [*held, *shared])
    if wave:
        return Next(wave)
    if held:
        listed = ", ".join(name(key) for key in held)
        return Next(why_not=f"{corpus}: failed, and nothing has changed since: {listed}")
    for key in shared:
        return Next(why_not=f"{corpus}: {name(key)} is at work in {coming.assets[key]}")
    return Next(why_not=f"{corpus}: all {len(nodes)} assets are up to date")


def _coming(instance: dg.DagsterInstance, graph: Graph) -> _Coming:
    """Return what the runs that have not ended will do.

    Runs of the command line hold their corpora's locks before they exist, so those are left out:
    one that was killed on its way would be coming for ever.
    """
    found = _Coming()
    known = list(graph.experiments)
    shared = [stage.key for stage in graph.stages if stage.shared]
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        chosen = run.asset_selection
        keys = shared if chosen is None else [tuple(key.path) for key in chosen]
        found.assets |= dict.fromkeys(keys, f"run {run.run_id[:8]}")
        if run_lock.LOCK_TAG not in run.tags:
            # A run of what all corpora share alone is some corpus's next wave, too.
            tagged = run.tags.get(run_lock.CORPORA_TAG, "").split(",")
            corpora = {*run_lock.corpora_of(run, known), *tagged}
            found.corpora |= dict.fromkeys(corpora, f"run {run.run_id[:8]}")
    return found
