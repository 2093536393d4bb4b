"""What Dagster recorded of finished runs, as alerts.

Dagster's own run failure sensor moves on where it could not report, sees no runs of the command
line unless it is told to, and knows nothing of checks that fail no run. So these read the recorded
changes of run status, in their order, and what each finished run left behind.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dagster as dg

from spanbench_pipeline.monitoring.alert import Alert, about, fault
from spanbench_pipeline.pipeline.dagster import broken_experiments, failed_attempts
from spanbench_pipeline.pipeline.dagster.assets import SECONDS
from spanbench_pipeline.pipeline.dagster.run_lock import CORPORA_TAG
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.staleness import Key, name

FIRST_LOOK_SECONDS = 3600.0
"""How far back a sensor looks that has never run."""
START_SECONDS = 600.0
"""How long a run may take to start before it counts as dead."""
AT_ONCE = 50
NIGHTLY_TAG = "spanbench/nightly"
"""A run's tag with the id of the nightly run that it is a wave of."""
_FINISHED: Final = (
    dg.DagsterEventType.RUN_SUCCESS,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
)
_UNFINISHED = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


class ReportedElsewhere(Exception):
    """Other runs failed, and are alerts of their own."""


_NO_FAULTS = {
    "DagsterAssetCheckFailedError",  # the check is an alert
    "DagsterExecutionInterruptedError",  # somebody stopped it; what was not done is still stale
    ReportedElsewhere.__name__,
}
"""Classes of errors that fail a run and are not faults of their own."""


@dataclass(frozen=True)
class Finished:
    """A run that ended: how, and the position of that event in the storage."""

    run: dg.DagsterRun
    position: int
    status: dg.DagsterEventType
    message: str

    @property
    def failed(self) -> bool:
        """Return whether it failed; a run that a person cancelled did not."""
        return self.status == dg.DagsterEventType.RUN_FAILURE

    @property
    def succeeded(self) -> bool:
        """Return whether all of it was done."""
        return self.status == dg.DagsterEventType.RUN_SUCCESS


def finished(instance: dg.DagsterInstance, after: int | None) -> list[Finished]:
    """Return the runs that ended after a position, oldest first, at most ``AT_ONCE``.

    Without a position, those of the last hour: what failed before a sensor's first look is told.
    """
    since = time.time() - FIRST_LOOK_SECONDS if after is None else None
    events = [
        event
        for status in _FINISHED
        for event in instance.fetch_run_status_changes(
            dg.RunStatusChangeRecordsFilter(status, after_timestamp=since, after_storage_id=after),
            limit=AT_ONCE,
            ascending=True,
        ).records
    ]
    # The oldest AT_ONCE of all kinds are among the oldest AT_ONCE of each.
    events = sorted(events, key=lambda event: event.storage_id)[:AT_ONCE]
    found = []
    for event in events:
        run = instance.get_run_by_id(event.run_id)
        if run is not None:  # None: deleted since
            told = event.event_log_entry
            kind = told.get_dagster_event().event_type
            found.append(Finished(run, event.storage_id, kind, told.message))
    return found


def corpora_of(run: dg.DagsterRun) -> set[str]:
    """Return the corpora that a run is about, from its tag or its assets."""
    if tag := run.tags.get(CORPORA_TAG):
        return set(tag.split(","))
    return {key.path[0] for key in run.asset_selection or ()}


def unfinished(instance: dg.DagsterInstance) -> list[dg.RunRecord]:
    """Return the runs that are queued or in progress."""
    return list(instance.get_run_records(dg.RunsFilter(statuses=list(_UNFINISHED))))


def bury_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Report runs whose process is gone (killed, or the machine stopped) as failed.

    Dagster on one machine leaves them in progress for ever, and nobody is told. Returns their ids.
    """
    dead = [record.dagster_run for record in unfinished(instance) if _is_dead(instance, record)]
    for run in dead:
        instance.report_run_failed(run, "the run's process is gone: killed, or the machine stopped")
    return [run.run_id for run in dead]


def _is_dead(instance: dg.DagsterInstance, record: dg.RunRecord) -> bool:
    run = record.dagster_run
    if run.status == dg.DagsterRunStatus.QUEUED:
        return False
    events = instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT, ascending=False
    ).records
    for event in events:
        pid = event.event_log_entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            return not _alive(int(str(pid.value)), event.timestamp)
    return time.time() - record.create_timestamp.timestamp() > START_SECONDS


def _alive(pid: int, seen: float) -> bool:
    """Return whether the process that had this id at a time (seconds since 1970) still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    began = _began(pid)
    # One that began later was given a dead one's id.
    return began is None or began <= seen + 2


def _began(pid: int) -> float | None:
    """Return when a process began; None where the system does not say."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    boot = next(line.split()[1] for line in lines if line.startswith("btime "))
    return int(boot) + int(ticks) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """What is needed to make alerts of a run's events."""

    instance: dg.DagsterInstance
    graph: Graph
    link: str

    def failed_checks(self, run: dg.DagsterRun) -> list[Alert]:
        """Return every check, blocking or not, that failed in a run."""
        found = [e for e in evaluations(self.instance, run.run_id) if not e.passed]
        return [self._check(run, evaluation) for evaluation in found]

    def errors(self, ended: Finished) -> list[Alert]:
        """Return what a failed run raised, one alert an asset.

        Nothing of a run that failed by its checks alone or through other runs: they are alerts of
        their own.
        """
        run = ended.run
        steps = self.instance.get_records_for_run(
            run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE
        ).records
        if not steps:
            if NIGHTLY_TAG in run.tags:
                return []  # what ended it ended the nightly run, in whose process it was
            return [self._error(run, None, "run failed", ended.message)]
        found = []
        for record in steps:
            event = record.event_log_entry.get_dagster_event()
            error = event.step_failure_data.error
            # Dagster wraps what a step raised.
            error = (error.cause or error) if error else None
            kind = (error.cls_name if error else None) or "error"
            if kind not in _NO_FAULTS:
                text = error.message.split(": ", 1)[-1].strip() if error else ended.message
                found.append(self._error(run, event.step_key, kind, text))
        return found

    def _check(self, run: dg.DagsterRun, evaluation: dg.AssetCheckEvaluation) -> Alert:
        key = tuple(evaluation.asset_key.path)
        what = about(name(key), evaluation.check_name)
        return Alert(
            corpus=_corpus(key),
            asset=name(key),
            check=evaluation.check_name,
            severity=evaluation.severity.value,
            details=self._details(evaluation),
            fault=fault("check", what, *self._made_of(run, evaluation)),
            run_id=run.run_id,
            link=self._run_link(run),
        )

    def _details(self, evaluation: dg.AssetCheckEvaluation) -> str:
        """Return what the check demands, and the first offending rows as it recorded them."""
        # Behind its first paragraph a description repeats the rows, which the metadata has whole.
        said, _, _ = (evaluation.description or "").partition("\n\n")
        shown = {label: v for label, v in evaluation.metadata.items() if label != SECONDS}
        return "\n".join([*([said] if said else []), *_as_text(shown)])

    def _made_of(self, run: dg.DagsterRun, evaluation: dg.AssetCheckEvaluation) -> list[str]:
        """Code and inputs of the materialization that was checked."""
        target = evaluation.target_materialization_data
        found: Sequence[Any] = []
        if target is not None:
            found = self.instance.fetch_materializations(
                dg.AssetRecordsFilter(evaluation.asset_key, storage_ids=[target.storage_id]),
                limit=1,
            ).records
        if not found:
            return [_root(run)]
        tags = found[0].asset_materialization.tags or {}
        wanted = ("dagster/code_version", "dagster/input_data_version/")
        return [f"{tag}={value}" for tag, value in sorted(tags.items()) if tag.startswith(wanted)]

    def _error(self, run: dg.DagsterRun, step: str | None, kind: str, message: str) -> Alert:
        stages = {"__".join(stage.key): stage for stage in self.graph.stages}
        stage = stages.get(step or "")
        asset = name(stage.key) if stage else ""
        corpus = _corpus(stage.key) if stage else _whole(run)
        same = (failed_attempts.told(run, stage.key) if stage else "") or _root(run)
        return Alert(
            corpus=corpus,
            asset=asset,
            error=kind if stage or not step else f"{kind} in {step}",
            severity="ERROR",
            details=message,
            fault=fault("error", asset or step or run.job_name, kind, same),
            run_id=run.run_id,
            link=self._run_link(run),
        )

    def _run_link(self, run: dg.DagsterRun) -> str:
        return f"{self.link.rstrip('/')}/runs/{run.run_id}"


def unusable(corpus: str, problem: str) -> Alert:
    """Return a corpus that should run by itself and whose experiment cannot be used."""
    return Alert(
        corpus=corpus,
        asset=_shown_as(corpus),
        severity="ERROR",
        details=problem,
        fault=fault("experiment", corpus, problem),
        error="nothing of this corpus runs",
    )


def usable(corpus: str) -> str:
    """Return what works again once the experiment of a corpus can be used, for
    ``alerts.resolve``.
    """
    return about(_shown_as(corpus))


def _shown_as(corpus: str) -> str:
    """Return the asset by which the web UI shows a broken experiment."""
    return f"{broken_experiments.GROUP}/{corpus}"


def evaluations(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield the checks that a run evaluated."""
    found = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ).records
    for record in found:
        yield record.event_log_entry.get_dagster_event().asset_check_evaluation_data


def passed(instance: dg.DagsterInstance, run_id: str) -> set[str]:
    """Return what a run showed to be well again: the checks that passed."""
    return {
        about(name(tuple(e.asset_key.path)), e.check_name)
        for e in evaluations(instance, run_id)
        if e.passed
    }


def made(instance: dg.DagsterInstance, ended: Finished) -> set[str]:
    """Return what a run showed to work again: the assets that it made, and itself where it
    succeeded.
    """
    events = instance.get_records_for_run(
        ended.run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ).records
    found = {name(tuple(event.asset_key.path)) for event in events if event.asset_key}
    if ended.succeeded:
        found.add(_whole(ended.run))
    return {about(asset) for asset in found}


def _as_text(metadata: Mapping[str, dg.MetadataValue[Any]]) -> Iterable[str]:
    for label, value in metadata.items():
        if isinstance(value, dg.MarkdownMetadataValue):
            yield f"{label}:\n{value.value}"
        elif isinstance(value, dg.JsonMetadataValue):
            yield f"{label}: {json.dumps(value.value, ensure_ascii=False, default=str)}"
        else:
            yield f"{label}: {value.value}"


def _corpus(key: Key) -> str:
    """Return the corpus of an asset; none for what all corpora share."""
    return key[0] if len(key) > 1 else ""


def _whole(run: dg.DagsterRun) -> str:
    """Return what a run as a whole is about."""
    return ", ".join(sorted(corpora_of(run))) or run.job_name


def _root(run: dg.DagsterRun) -> str:
    """Return the run that this one is a retry of, or itself."""
    return run.root_run_id or run.run_id
