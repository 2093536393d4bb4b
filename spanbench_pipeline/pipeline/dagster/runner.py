"""Materializes what is stale, in waves, in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dagster as dg

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.code_version import Parts
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.assets import SECONDS
from spanbench_pipeline.pipeline.dagster.instance import failed_errors, records
from spanbench_pipeline.pipeline.dagster.run_lock import CORPORA_TAG, CommandLock
from spanbench_pipeline.pipeline.stage import Stage
from spanbench_pipeline.pipeline.staleness import Key, Node, Record, name

log = logging.getLogger("spanbench")


@dataclass(frozen=True)
class Failure:
    """A stage that could not be computed: the error's class and message, and its traceback."""

    key: Key
    error: str
    message: str
    traceback: str


@dataclass
class Result:
    """What a run did."""

    materialized: list[Key] = field(default_factory=list)
    seconds: dict[Key, float] = field(default_factory=dict)
    check_seconds: dict[Key, float] = field(default_factory=dict)
    """How long an asset's checks took together, reading their tables included."""
    rows: dict[Key, int] = field(default_factory=dict)
    facts: dict[Key, dict[str, Any]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    failed_checks: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    held: list[Key] = field(default_factory=list)


class Runner:
    """Runs stages of one project against one instance; its Dagster runs get ``tags`` as well."""

    def __init__(
        self,
        project: Project,
        instance: dg.DagsterInstance,
        stages: Sequence[Stage],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.project = project
        self.instance = instance
        self.tags = dict(tags or {})
        self.stages = {stage.key: stage for stage in stages}
        self._records: dict[Key, Record] | None = None
        self._defined: set[str] = set()
        self._lock = CommandLock(project, {stage.corpus for stage in stages if not stage.shared})

    @cached_property
    def _made_by(self) -> dict[Key, Parts]:
        return {key: stage.made_by() for key, stage in self.stages.items()}

    @cached_property
    def nodes(self) -> dict[Key, Node]:
        """Return the stages as the resolver sees them, of the code as it is when they are asked
        for.
        """
        return {key: stage.node(self._made_by[key]) for key, stage in self.stages.items()}

    @cached_property
    def _definitions(self) -> list[dg.AssetsDefinition]:
        """Return what Dagster runs; whoever only asks what is stale does without."""
        return assets.definitions(list(self.stages.values()), self.project, self._made_by)

    def records(self) -> Mapping[Key, Record]:
        """Return what is recorded of every stage; read once, then kept up with each wave."""
        if self._records is None:
            self._records = records(self.instance, self.stages.values(), self.project)
        return self._records

    def forget_records(self) -> None:
        """Forget the records read so far, so that the next look reads them again."""
        self._records = None

    def stale(self) -> dict[Key, list[str]]:
        """Return the stages that are stale themselves, with the reasons."""
        return staleness.stale(self.nodes.values(), self.records())

    def failed_errors(self) -> Mapping[Key, tuple[str, ...]]:
        """Return the failing checks that are errors, though nothing waits for them; this run's or
        not.
        """
        return failed_errors(self.instance, self.stages.values())

    def run(self) -> Result:
        """Materialize everything that is stale, wave after wave, while no other run is at work."""
        result = Result()
        self._as_loaded()
        with self._lock.hold(log.warning):
            self._begin()
            failed = staleness.waves(
                self.nodes, self.records, lambda wave: self._wave(self._told(wave), result)
            )
            settled = staleness.settled(self.nodes, set(self.stale()) | failed)
        result.held = [key for key in self.nodes if key not in settled]
        return result

    def materialize(self, keys: Sequence[Key], options: Mapping[str, str]) -> Result:
        """Materialize just ``keys``, stale or not, with run-time ``options``."""
        result = Result()
        ops = {"__".join(key): {"config": dict(options)} for key in keys}
        self._as_loaded()
        with self._lock.hold(log.warning):
            self._begin()
            self._wave(list(keys), result, ops)
        return result

    def _as_loaded(self) -> None:
        """Note what the code is now: while a run waits for its lock, its files may change."""
        _ = self.nodes
        self._defined = self._corpora_defined()

    def _corpora_defined(self) -> set[str]:
        return set(self._lock.corpora) & {path.stem for path in self.project.experiment_files()}

    def _begin(self) -> None:
        """Look again: while this run waited for its lock, another may have done its work.

        Raises InputError where a corpus was removed meanwhile.
        """
        if gone := self._defined - self._corpora_defined():
            raise InputError(f"corpus {min(gone)} was removed while this run waited for another")
        self._lock.end_dead_runs(self.instance)
        self._records = None

    def _told(self, wave: list[Key]) -> list[Key]:
        """Say which assets a wave has, and why they run where it is not the first time."""
        log.info("a wave of %d:", len(wave))
        for key in wave:
            why = staleness.reasons(self.nodes[key], self.records())
            if key in self.records():
                log.info("%s: %s", name(key), "; ".join(why))
        return wave

    def _wave(
        self, wave: list[Key], result: Result, ops: Mapping[str, Any] | None = None
    ) -> set[Key]:
        """Return one Dagster run over ``wave``; return the keys that failed or failed a check."""
        done = dg.materialize(
            self._definitions,
            selection=dg.AssetSelection.assets(*(list(key) for key in wave)),
            instance=self.instance,
            resources=assets.resources(list(self.stages.values()), self.project),
            raise_on_error=False,
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "ops": dict(ops or {}),
            },
            tags={
                **self.tags,
                **self._lock.tags,
                CORPORA_TAG: ",".join(self._lock.corpora),
            },
        )
        produced = _note_materializations(done, result)
        failures = _failures(done, self.stages)
        if any(failure.error == "DagsterExecutionInterruptedError" for failure in failures):
            raise KeyboardInterrupt
        failed = {failure.key for failure in failures}
        result.failures += failures
        self._refresh(wave)
        for key in produced:
            checks = self.records()[key].failed_checks
            if self.stages[key].shared:
                # Another corpus's run may have made it again since; its own check comes there.
                checks = tuple(c for c in checks if not c.endswith(staleness.NOT_EVALUATED))
            if checks:
                result.failed_checks[key] = checks
                failed.add(key)
        return failed | (set(wave) - produced)

    def _refresh(self, wave: Iterable[Key]) -> None:
        known = dict(self.records())
        known |= records(self.instance, [self.stages[key] for key in wave], self.project)
        self._records = known


def _note_materializations(done: Any, result: Result) -> set[Key]:
    produced = set()
    for event in done.get_asset_materialization_events():
        key = tuple(event.asset_key.path)
        metadata = event.materialization.metadata
        produced.add(key)
        result.materialized.append(key)
        result.seconds[key] = float(metadata[SECONDS].value)
        result.rows[key] = int(metadata["dagster/row_count"].value)
        result.facts[key] = dict(metadata["facts"].value) if "facts" in metadata else {}
    for check in done.get_asset_check_evaluations():
        key = tuple(check.asset_key.path)
        seconds = float(check.metadata[SECONDS].value)
        result.check_seconds[key] = result.check_seconds.get(key, 0.0) + seconds
    return produced


def _failures(done: Any, stages: Mapping[Key, Stage]) -> list[Failure]:
    """Return the steps that raised, with the error that the stage itself raised."""
    by_step = {"__".join(key): key for key in stages}
    found = []
    for event in done.filter_events(lambda e: e.is_step_failure):
        error = event.step_failure_data.error
        # Dagster wraps what a stage raised; what that in turn was raised from is for the traceback.
        error = error.cause or error
        if error.cls_name == "DagsterAssetCheckFailedError":
            continue
        message = error.message.split(": ", 1)[-1].strip()
        found.append(
            Failure(by_step[event.step_key], error.cls_name or "", message, error.to_string())
        )
    return found
