"""What is defined and recorded in a home: from the index, or where it says nothing, by a full look.

Dagster and the stages are imported only for the full look.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.state import Experiments, State
from spanbench_pipeline.pipeline.state_index import IndexReader, IndexWriter, Views

if TYPE_CHECKING:
    from spanbench_pipeline.pipeline.dagster.runner import Runner
    from spanbench_pipeline.pipeline.graph import Graph
    from spanbench_pipeline.pipeline.stage import Stage


class HomeState:
    """Answers for one home; each question is looked into once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.index = IndexReader(project)

    @cached_property
    def graph(self) -> Graph:
        """Return all stages of all experiments."""
        from spanbench_pipeline.pipeline import graph

        return graph.build(self.project)

    @cached_property
    def experiments(self) -> Experiments:
        """Return the experiments, and those that are broken."""
        return self.index.experiments or experiments(self.graph)

    def experiment(self, corpus: str) -> Experiment:
        """Return a corpus's experiment; InputError where it is broken or there is none."""
        return self.experiments.load(corpus)

    def state(self, corpora: Sequence[str], *, shared: bool = True) -> State:
        """Return the state of the assets of ``corpora``, and of all corpora if ``shared``."""
        known = self.index.of(corpora, shared=shared)
        if known is not None:
            return known.state
        from spanbench_pipeline.pipeline.dagster.instance import look_at
        from spanbench_pipeline.pipeline.dagster.runner import Runner

        stages = [s for s in self.graph.of(corpora) if shared or not s.shared]
        with look_at(self.project) as instance:
            return state_of(Runner(self.project, instance, stages))


def experiments(graph: Graph) -> Experiments:
    """Return the experiments of a graph."""
    return Experiments({name: e.path for name, e in graph.experiments.items()}, graph.broken)


def state_of(runner: Runner) -> State:
    """Return the state of a runner's stages."""
    stages = runner.stages
    return State(
        nodes=runner.nodes,
        tables={key: stage.table for key, stage in stages.items()},
        absent={key: why for key, stage in stages.items() if (why := _absent(stage))},
        records=runner.records(),
        failed_errors=runner.failed_errors(),
    )


def stored_corpora(project: Project, corpora: Iterable[str]) -> list[str]:
    """Return those of ``corpora`` of which a table or a history is stored, in the order given."""
    folders = (project.parquet, project.home / "history")
    return [c for c in corpora if any((folder / c).exists() for folder in folders)]


def write_index(graph: Graph, runner: Runner, began: int) -> None:
    """Write the index of the runner's corpora, and of stored ones whose index is out of date.

    Without the others, every ``sql`` would look at the whole home as long as one of them has not
    run since the definitions or the downloads changed. ``began`` is what ``state_index.begin``
    returned before the graph was built.
    """
    writer = IndexWriter(runner.project, graph.experiments, bool(graph.broken), began)
    corpora = {stage.corpus for stage in runner.stages.values() if not stage.shared}
    others = _unindexed(graph, runner.project) - corpora
    before = writer.before(sorted(corpora | others))
    if not before:
        return
    runner.forget_records()
    if others:
        from spanbench_pipeline.pipeline.dagster.runner import Runner

        runner = Runner(runner.project, runner.instance, graph.of(corpora | others))
    writer.write(before, state_of(runner), _views(runner.project, runner.stages.values()))


def _unindexed(graph: Graph, project: Project) -> set[str]:
    """Return the corpora of which something is stored and the index says nothing."""
    index = IndexReader(project)
    stored = stored_corpora(project, graph.experiments)
    return {corpus for corpus in stored if index.of([corpus], shared=False) is None}


def _absent(stage: Stage) -> str:
    """Return why the corpus's files that a stage reads cannot be read; empty where they can."""
    content = str(stage.params.get("content", ""))
    return content.removeprefix("absent: ") if content.startswith("absent: ") else ""


def _views(project: Project, stages: Iterable[Stage]) -> dict[tuple[str, ...], Views]:
    from spanbench_pipeline.pipeline.stages import views

    return {
        stage.key: Views(views.files(project, [stage]), bool(views.left_out(project, [stage])))
        for stage in stages
    }
