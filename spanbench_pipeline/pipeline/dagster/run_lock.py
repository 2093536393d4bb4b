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
LOCK_TAG = "spanbench/turn"  # the name that the runs of earlier homes are recorded with
RESOURCE = "run_lock"

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

    @dg.resource(description="Lock of the run's corpora: no other run changes them meanwhile.")
    def run_lock(context: dg.InitResourceContext) -> Iterator[TableCache]:
        run, log = context.run, context.log
        if run is None:
            yield TableCache()
            return
        group = run.tags.get(LOCK_TAG, run.run_id)

        def waiting(corpus: str, holder: Holder | None) -> None:
            if log:
                log.info(waits(corpus, holder))

        what = f"run {run.run_id[:8]}"
        held = corpora_of(run, known)
        with locks.hold(project.locks, held, group=group, what=what, waiting=waiting):
            yield TableCache()

    return run_lock


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


class CommandLock:
    """The command line's lock of some corpora, and the tag by which its Dagster runs share it."""

    def __init__(self, project: Project, corpora: Iterable[str]) -> None:
        self.project = project
        self.corpora = sorted(set(corpora))
        self.tags: Mapping[str, str] = {LOCK_TAG: uuid.uuid4().hex}

    def hold(self, tell: Callable[[str], None]) -> AbstractContextManager[None]:
        """Wait for the locks, telling once per corpus which run holds it, and hold them."""
        return locks.hold(
            self.project.locks,
            self.corpora,
            group=self.tags[LOCK_TAG],
            what="spanbench",
            waiting=lambda corpus, holder: tell(waits(corpus, holder)),
        )

    def end_dead_runs(self, instance: dg.DagsterInstance) -> None:
        """Mark as failed the runs that a killed process of the command line left in progress.

        The caller holds the locks. A run that was still alive would hold them.
        """
        for run in instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
            ours = run.tags.get(LOCK_TAG) not in (None, self.tags[LOCK_TAG])
            if ours and set(corpora_of(run, self.corpora)) & set(self.corpora):
                instance.report_run_failed(
                    run, "its process ended without recording why; it may have been killed"
                )


@contextmanager
def alone(project: Project, name: str, log: Any) -> Iterator[None]:
    """Hold the lock of something that all corpora share while it is made and recorded."""
    with locks.hold(
        project.locks,
        [f"_{name}"],  # no corpus has such a name
        group=uuid.uuid4().hex,
        what="a run",
        waiting=lambda _, holder: log.info(f"{name} is being made in {holder}; waiting"),
    ):
        yield
