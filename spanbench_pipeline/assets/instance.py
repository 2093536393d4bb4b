"""Dagster's state in the project's home, and what it has recorded of each asset."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from spanbench_pipeline import warehouse
from spanbench_pipeline.assets.stage import Recorded, Stage
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.freshness import NOT_EVALUATED, Key, Record
from spanbench_pipeline.project import Project

SETTINGS = """\
# Written by spanbench. Dagster's state for this project lies in this folder.
telemetry:
  enabled: false
nux:
  enabled: false
"""
MADE_BY = "made by"
"""The metadata that holds what an asset's code version is a hash of."""
_INPUT = "dagster/input_data_version/"


def open_instance(project: Project) -> dg.DagsterInstance:
    """The project's Dagster instance; its folder is made where it is missing."""
    settings = project.dagster / "dagster.yaml"
    try:
        if not settings.exists():
            warehouse.write_bytes(settings, SETTINGS.encode())
    except OSError as error:
        raise InputError(f"{project.home}: cannot be written ({error.strerror})") from error
    try:
        with (project.dagster / ".opening").open("wb") as stream:
            # Two that open a new home at once would each make its tables, and break them for good.
            fcntl.flock(stream, fcntl.LOCK_EX)
            instance = dg.DagsterInstance.from_config(str(project.dagster))
            instance.all_asset_keys()
            return instance
    except Exception as error:  # Whatever its databases or its settings file make of damage.
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{project.dagster}: Dagster's state cannot be opened ({reason}). Make it readable, or "
            "move it away: then every asset is materialized anew, and no text is encoded again"
        ) from error


def look_at(project: Project) -> dg.DagsterInstance:
    """The project's Dagster instance to read from; an empty one where there is none yet.

    Nothing is made in the home.
    """
    if (project.dagster / "dagster.yaml").exists():
        return open_instance(project)
    return dg.DagsterInstance.ephemeral()


def made_by(instance: dg.DagsterInstance, key: Key) -> dict[str, Any] | None:
    """What the recorded code version is a hash of; None where nothing is recorded."""
    latest = _latest(instance, key)
    materialization = latest.asset_materialization if latest else None
    noted = materialization.metadata.get(MADE_BY) if materialization else None
    return dict(noted.value) if isinstance(noted, dg.JsonMetadataValue) else None  # type: ignore[arg-type]


def judged(instance: dg.DagsterInstance, stage: Stage) -> list[dict[str, Any]]:
    """Each check of a stage with its latest result: passed, failed, not evaluated, or outdated.

    ``outdated`` is a result on an earlier materialization. ``rows`` counts the offending rows,
    ``first`` shows some.
    """
    latest = _latest(instance, stage.key)
    found = []
    for check in stage.all_checks:
        evaluation = _evaluation(instance, stage.key, check.name)
        metadata = {k: v.value for k, v in evaluation.metadata.items()} if evaluation else {}
        result = "not evaluated"
        if evaluation is not None:
            target = evaluation.target_materialization_data
            current = latest and target and target.storage_id == latest.storage_id
            result = "outdated" if not current else "passed" if evaluation.passed else "failed"
        found.append(
            {
                "check": check.name,
                "blocking": check.blocking,
                "result": result,
                "rows": metadata.get("offending_rows"),
                "first": metadata.get("first"),
            }
        )
    return found


def _latest(instance: dg.DagsterInstance, key: Key) -> dg.EventLogRecord | None:
    found = instance.get_asset_records([dg.AssetKey(list(key))])
    return found[0].asset_entry.last_materialization_record if found else None


def _evaluation(
    instance: dg.DagsterInstance, asset: Key, check: str
) -> dg.AssetCheckEvaluation | None:
    """The latest evaluation of a check; None where it was never evaluated.

    A run that was to evaluate it and did not, since it failed or is still on its way, says nothing.
    """
    key = dg.AssetCheckKey(dg.AssetKey(list(asset)), check)
    summary = instance.event_log_storage.get_asset_check_summary_records([key])[key]
    latest = summary.last_completed_check_execution_record
    return latest.event.asset_check_evaluation if latest and latest.event else None


def recorded(
    instance: dg.DagsterInstance, blocking: Mapping[Key, Iterable[str]]
) -> dict[Key, Recorded]:
    """What is recorded of each asset that was ever materialized.

    ``blocking`` names the checks of each that hold back what follows.
    """
    found = {}
    for entry in instance.get_asset_records([dg.AssetKey(list(key)) for key in blocking]):
        event = entry.asset_entry.last_materialization_record
        materialization = event.asset_materialization if event else None
        noted = materialization.metadata.get("sha256") if materialization else None
        if event is not None and noted is not None:
            key = tuple(entry.asset_entry.asset_key.path)
            failed = _failed_on(instance, key, blocking[key], event.storage_id)
            found[key] = Recorded(str(noted.value), failed)
    return found


def _failed_on(
    instance: dg.DagsterInstance, key: Key, checks: Iterable[str], storage_id: int
) -> tuple[str, ...]:
    """The checks whose latest evaluation failed on just this materialization."""
    return tuple(c for c in checks if _held(instance, key, c, storage_id) is False)


def _held(instance: dg.DagsterInstance, key: Key, check: str, storage_id: int) -> bool | None:
    """Whether a check held of this very materialization; None where it was not evaluated on it."""
    evaluation = _evaluation(instance, key, check)
    target = evaluation.target_materialization_data if evaluation else None
    if evaluation is None or target is None or target.storage_id != storage_id:
        return None
    return evaluation.passed


def records(
    instance: dg.DagsterInstance, stages: Iterable[Stage], project: Project
) -> dict[Key, Record]:
    """The latest materialization of each stage that has one, from public event tags."""
    by_key = {dg.AssetKey(list(stage.key)): stage for stage in stages}
    found = {}
    for entry in instance.get_asset_records(list(by_key)):
        event = entry.asset_entry.last_materialization_record
        if event is not None:
            stage = by_key[entry.asset_entry.asset_key]
            found[stage.key] = _record(instance, stage, project, event)
    return found


def _record(instance: dg.DagsterInstance, stage: Stage, project: Project, event: Any) -> Record:
    tags: Mapping[str, str] = event.asset_materialization.tags or {}
    recorded = event.asset_materialization.metadata.get("sha256")
    return Record(
        code_version=tags.get("dagster/code_version", ""),
        data_version=tags.get("dagster/data_version", ""),
        inputs={
            tuple(tag.removeprefix(_INPUT).split("/")): version
            for tag, version in tags.items()
            if tag.startswith(_INPUT)
        },
        failed_checks=_failed_checks(instance, stage, event.storage_id),
        damage=_damage(stage, project, str(recorded.value) if recorded else ""),
    )


def failed_errors(
    instance: dg.DagsterInstance, stages: Iterable[Stage]
) -> dict[Key, tuple[str, ...]]:
    """The failing checks that are errors without holding anything back, by asset."""
    found = {}
    for stage in stages:
        severe = (c for c in stage.all_checks if c.severe and not c.blocking)
        latest = {c.name: _evaluation(instance, stage.key, c.name) for c in severe}
        failed = [
            check for check, found_now in latest.items() if found_now and not found_now.passed
        ]
        if failed:
            found[stage.key] = tuple(failed)
    return found


def _failed_checks(instance: dg.DagsterInstance, stage: Stage, storage_id: int) -> tuple[str, ...]:
    """Blocking checks that failed on this very materialization, and any that were not evaluated."""
    failed = []
    for check in stage.all_checks:
        held = _held(instance, stage.key, check.name, storage_id)
        if held is None:
            failed.append(check.name + NOT_EVALUATED)
        elif check.blocking and not held:
            failed.append(check.name)
    return tuple(failed)


def _damage(stage: Stage, project: Project, recorded: str) -> str:
    """What is wrong with the stored file; empty where it is the one that was recorded."""
    path = stage.path(project)
    if not path.is_file():
        return "its file is missing"
    if _sha256(path, path.stat().st_size, path.stat().st_mtime_ns) != recorded:
        return "its file is not the one that was recorded"
    if stage.damage is not None:
        try:
            return stage.damage(project, warehouse.read(path, stage.table).table)
        except InputError as error:
            return str(error)
    return ""


@lru_cache(maxsize=4096)
def _sha256(path: Path, size: int, modified: int) -> str:
    """A file's hash, taken once for each state of the file."""
    return warehouse.file_sha256(path)
