"""``spanbench status``: what is stale, and why."""

from __future__ import annotations

from collections.abc import Sequence

from spanbench_pipeline import freshness
from spanbench_pipeline.assets import graph as graphs
from spanbench_pipeline.assets.instance import open_instance
from spanbench_pipeline.assets.run import Runner
from spanbench_pipeline.commands.run import find
from spanbench_pipeline.freshness import name
from spanbench_pipeline.project import Project


def status(project: Project, names: Sequence[str]) -> str:
    """Each corpus's stale assets with their reasons, and how many wait for them."""
    graph = graphs.build(project)
    for corpus in names:
        find(graph, corpus)
    parts = []
    with open_instance(project) as instance:
        for corpus in names or list(graph.experiments):
            parts.append(_corpus(corpus, Runner(project, instance, graph.of([corpus]))))
    broken = [f"{stem}: broken experiment: {error}" for stem, error in graph.broken.items()]
    return "\n".join([*parts, *broken])


def _corpus(corpus: str, runner: Runner) -> str:
    stale = runner.stale()
    total = len(runner.nodes)
    if not stale:
        return f"{corpus}: all {total} assets are up to date"
    own = [key for key in runner.nodes if key[0] == corpus]
    if all(stale.get(key) == ["never materialized"] for key in own):
        return f"{corpus}: never run ({total} assets); spanbench run {corpus}"
    waiting = total - len(stale) - len(freshness.settled(runner.nodes, stale))
    width = max(len(name(key)) for key in stale)
    lines = [f"  {name(key):<{width}}  {_short(why)}" for key, why in stale.items()]
    return "\n".join(
        [f"{corpus}: {len(stale)} of {total} assets stale, {waiting} more wait for them", *lines]
    )


def _short(why: Sequence[str], most: int = 3) -> str:
    """The first reasons, and how many more there are."""
    more = [f"and {len(why) - most} more"] if len(why) > most else []
    return "; ".join([*why[:most], *more])
