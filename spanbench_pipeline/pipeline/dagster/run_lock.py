"""One run of a corpus at a time, whoever starts it: the command line, the web UI or a sensor.

A Dagster run takes its corpora's locks before its first step looks at an input, and keeps them
until its last event is recorded: so what an asset was made of is what is recorded of it. The
processes of the multiprocess executor share their run's locks. ``spanbench run`` takes them once
for all its waves, and its Dagster runs share them by a tag.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dagster as dg

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.table_cache import TableCache
from spanbench_pipeline.storage import locks
from spanbench_pipeline.storage.locks import Holder

CORPORA_TAG = "spanbench/corpora"
TURN_TAG = "spanbench/turn"
RESOURCE = "turn"

# A run in one of these states was started by a process; the others wait or have ended.
_UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def resource(project: Project, corpora: Iterable[str]) -> dg.ResourceDefinition:
    """Return what every asset and check requires: its run's lock, and the tables the run has read.

    ``corpora`` are all that have an experiment.
    """
    known = sorted(corpora)

    @dg.resource(description="The run's turn: no other run touches its corpora meanwhile.")
    def turn(context: dg.InitResourceContext) -> Iterator[TableCache]:
        run, log = context.run, context.log
        if run is None:
            yield TableCache()
            return
        group = run.tags.get(TURN_TAG, run.run_id)

        def waiting(corpus: str, holder: Holder | None) -> None:
            if log:
                log.info(waits(corpus, holder))

        what = f"run {run.run_id[:8]}"
        held = corpora_of(run, known)
        with locks.hold(project.locks, held, group=group, what=what, waiting=waiting):
            yield TableCache()

    return turn


def corpora_of(run: Any, known: Iterable[str]) -> list[str]:
    """Return the corpora that a Dagster run touches; all ``known`` ones where it does not say."""
    keys = [*(run.asset_selection or ())]
    keys += [check.asset_key for check in run.asset_check_selection or ()]
    tagged = run.tags.get(CORPORA_TAG, "")
    named = set(tagged.split(",") if tagged else known)
    if keys:  # one of a single segment belongs to all corpora, even where one has its name
        named = {key.path[0] for key in keys if len(key.path) > 1}
    return sorted(named & set(known))


def waits(corpus: str, holder: Holder | None) -> str:
    """Return what to tell who waits for a corpus."""
    return f"corpus {corpus} is at work in {holder or 'another run'}; waiting until it has finished"


class Turn:
    """The command line's turn at some corpora, with the tags that its Dagster runs share it by."""

    def __init__(self, project: Project, corpora: Iterable[str]) -> None:
        self.project = project
        self.corpora = sorted(set(corpora))
        self.tags: Mapping[str, str] = {TURN_TAG: uuid.uuid4().hex}

    def hold(self, tell: Callable[[str], None]) -> AbstractContextManager[None]:
        """Wait for the turn, say so once a corpus, and keep it."""
        return locks.hold(
            self.project.locks,
            self.corpora,
            group=self.tags[TURN_TAG],
            what="spanbench",
            waiting=lambda corpus, holder: tell(waits(corpus, holder)),
        )

    def bury(self, instance: dg.DagsterInstance) -> None:
        """End the runs that an earlier process of the command line left under way.

        Whoever holds the turn knows that they are dead: alive, they would hold it.
        """
        for run in instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
            ours = run.tags.get(TURN_TAG) not in (None, self.tags[TURN_TAG])
            if ours and set(corpora_of(run, self.corpora)) & set(self.corpora):
                instance.report_run_failed(run, "its process ended without a word: killed?")


@contextmanager
def alone(project: Project, name: str, log: Any) -> Iterator[None]:
    """Yield a turn at what all corpora share, for as long as it takes to make it and record it."""
    with locks.hold(
        project.locks,
        [f"_{name}"],  # no corpus has such a name
        group=uuid.uuid4().hex,
        what="a run",
        waiting=lambda _, holder: log.info(f"{name} is being made in {holder}; waiting"),
    ):
        yield
