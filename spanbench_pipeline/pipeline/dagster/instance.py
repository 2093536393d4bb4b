"""Dagster's state in the project's home, and what it has recorded of each asset."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster import sqlite_storage
from spanbench_pipeline.pipeline.stage import Recorded, Stage
from spanbench_pipeline.pipeline.staleness import NOT_EVALUATED, Key, Record
from spanbench_pipeline.pipeline.state_index import SETTINGS
from spanbench_pipeline.storage import disk, files, locks, parquet

_STATE = (
    "dagster.yaml",
    "history/runs.db",
    "history/runs/index.db",
    "schedules/schedules.db",
)
"""The files that say what was recorded; each database with its journal."""
_ADVICE = {
    "permission denied": "Let this user read it",
    "disk i/o error": "Look at the disk or network drive that it lies on: it does not answer",
    "locked": "Another process is at work on it: wait for it, or stop it",
    "migrate": "Another version made it: DAGSTER_HOME=<that folder> dagster instance migrate, "
    "after a backup",
}
"""What a reason holds -> what to do, where nothing is damaged."""
MADE_BY = "made by"
"""The metadata that holds what an asset's code version is a hash of."""
_INPUT = "dagster/input_data_version/"
_PLANNED = "PLANNED"
"""The status of a check's execution that did not come to an evaluation, or not yet."""


def open_instance(project: Project) -> dg.DagsterInstance:
    """Return the project's Dagster instance; its folder is made where it is missing."""
    settings = project.dagster / "dagster.yaml"
    try:
        if not settings.exists():
            files.write_whole(settings, SETTINGS.encode())
        return _opened(project.dagster)
    except Exception as error:  # Whatever its databases or its settings file make of damage.
        if told := disk.explain(error, project.home):
            raise InputError(told) from error
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{project.dagster}: Dagster's state cannot be opened ({reason}). {_advice(reason)}"
        ) from error


def _opened(folder: Path) -> dg.DagsterInstance:
    with (folder / ".opening").open("wb") as stream:
        # Two that open a new home at once would each make its tables, and break them for good.
        locks.lock(stream)
        instance = dg.DagsterInstance.from_ref(
            InstanceRef.from_dir(str(folder), overrides={"storage": _storage(folder)})
        )
        instance.all_asset_keys()
        return instance


def _storage(folder: Path) -> dict[str, Any]:
    """Return where the databases are, as in ``dagster.yaml``, which says nothing of it."""
    return {
        "custom": {
            "module": sqlite_storage.__name__,
            "class": sqlite_storage.PooledStorage.__name__,
            "config": {"base_dir": str(folder)},
        }
    }


def _advice(reason: str) -> str:
    """Return what to do about a state that exists and cannot be opened, by its database's
    error message.
    """
    for word, advice in _ADVICE.items():
        if word in reason.lower():
            return advice
    return (
        "Restore it from a copy, or move it away: then every asset is computed again, but no "
        "text is encoded again"
    )


@contextmanager
def look_at(project: Project) -> Iterator[dg.DagsterInstance]:
    """Yield the project's Dagster instance to read from; an empty one where there is none yet.

    Nothing is made in the home. Dagster's databases want to be written even where they are only
    read: of a home that cannot be (read-only, another's, on a full disk), a copy is opened.
    """
    if not (project.dagster / "dagster.yaml").exists():
        with dg.DagsterInstance.ephemeral() as instance:
            yield instance
    elif disk.takes_writes(project.dagster, [project.dagster / name for name in _STATE]):
        with open_instance(project) as instance:
            yield instance
    else:
        with tempfile.TemporaryDirectory(prefix="spanbench-") as folder:
            copied = replace(project, home=Path(folder))
            _copy_state(project.dagster, copied.dagster)
            with open_instance(copied) as instance:
                yield instance


def _copy_state(dagster: Path, target: Path) -> None:
    """Copy what says of each asset what was recorded; not the events of each run.

    A database that no process has open has no journal beside it, and opening it would make one.
    """
    for name in _STATE:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        in_use = name.endswith(".db") and (dagster / f"{name}-wal").exists()
        if in_use and _backed_up(dagster / name, target / name):
            continue
        for path in dagster.glob(f"{name}*"):
            shutil.copyfile(path, target / path.relative_to(dagster))


def _backed_up(database: Path, copy: Path) -> bool:
    """Return whether SQLite copied a database as of one moment, though another process may write
    it.

    It cannot where the journal needs a file beside it that cannot be made; then nothing is left.
    """
    uri = f"file:{quote(str(database))}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(uri, uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error:
        copy.unlink(missing_ok=True)
        return False
    return True


def made_by(instance: dg.DagsterInstance, key: Key) -> dict[str, Any] | None:
    """Return what the recorded code version is a hash of; None where nothing is recorded."""
    latest = _latest(instance, key)
    materialization = latest.asset_materialization if latest else None
    noted = materialization.metadata.get(MADE_BY) if materialization else None
    return dict(noted.value) if isinstance(noted, dg.JsonMetadataValue) else None  # type: ignore[arg-type]


def judged(instance: dg.DagsterInstance, stage: Stage) -> list[dict[str, Any]]:
    """Return each check of a stage with its latest result: passed, failed, not evaluated, or
    outdated.

    ``outdated`` is a result on an earlier materialization. ``rows`` counts the offending rows,
    ``first`` shows some.
    """
    latest = _latest(instance, stage.key)
    evaluations = _evaluations(instance, {stage.key: [c.name for c in stage.all_checks]})
    found = []
    for check in stage.all_checks:
        evaluation = evaluations.get((stage.key, check.name))
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


def _evaluations(
    instance: dg.DagsterInstance, wanted: Mapping[Key, Iterable[str]]
) -> dict[tuple[Key, str], dg.AssetCheckEvaluation]:
    """Return the latest evaluation of each wanted check, by asset and check, of those evaluated
    ever.

    A run that was to evaluate one and did not (it failed, or is still on its way) says nothing.
    """
    keys = [
        dg.AssetCheckKey(dg.AssetKey(list(asset)), check)
        for asset, checks in wanted.items()
        for check in checks
    ]
    storage = instance.event_log_storage
    # One query for all of them; only what was planned since is asked for by itself.
    latest = dict(storage.get_latest_asset_check_execution_by_key(keys))
    for key in [key for key, record in latest.items() if record.status.value == _PLANNED]:
        summary = storage.get_asset_check_summary_records([key])[key]
        completed = summary.last_completed_check_execution_record
        latest.pop(key)
        if completed is not None:
            latest[key] = completed
    found = {}
    for key, record in latest.items():
        evaluation = record.event.asset_check_evaluation if record.event else None
        if evaluation is not None:
            found[(tuple(key.asset_key.path), key.name)] = evaluation
    return found


def recorded(
    instance: dg.DagsterInstance, blocking: Mapping[Key, Iterable[str]]
) -> dict[Key, Recorded]:
    """Return what is recorded of each asset that was ever materialized.

    ``blocking`` names the checks of each that hold back what follows.
    """
    found = {}
    evaluations = _evaluations(instance, blocking)
    for entry in instance.get_asset_records([dg.AssetKey(list(key)) for key in blocking]):
        event = entry.asset_entry.last_materialization_record
        materialization = event.asset_materialization if event else None
        noted = materialization.metadata.get("sha256") if materialization else None
        if event is not None and noted is not None:
            key = tuple(entry.asset_entry.asset_key.path)
            failed = tuple(
                check
                for check in blocking[key]
                if _held(evaluations.get((key, check)), event.storage_id) is False
            )
            found[key] = Recorded(str(noted.value), failed)
    return found


def _held(evaluation: dg.AssetCheckEvaluation | None, storage_id: int) -> bool | None:
    """Return whether a check held of this very materialization; None where it was not evaluated on
    it.
    """
    target = evaluation.target_materialization_data if evaluation else None
    if evaluation is None or target is None or target.storage_id != storage_id:
        return None
    return evaluation.passed


def records(
    instance: dg.DagsterInstance, stages: Iterable[Stage], project: Project
) -> dict[Key, Record]:
    """Return the latest materialization of each stage that has one, from public event tags."""
    by_key = {dg.AssetKey(list(stage.key)): stage for stage in stages}
    evaluations = _evaluations(
        instance, {stage.key: [c.name for c in stage.all_checks] for stage in by_key.values()}
    )
    found = {}
    for entry in instance.get_asset_records(list(by_key)):
        event = entry.asset_entry.last_materialization_record
        if event is not None:
            stage = by_key[entry.asset_entry.asset_key]
            held = {
                c.name: _held(evaluations.get((stage.key, c.name)), event.storage_id)
                for c in stage.all_checks
            }
            found[stage.key] = _record(stage, project, event, held)
    return found


def _record(stage: Stage, project: Project, event: Any, held: Mapping[str, bool | None]) -> Record:
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
        failed_checks=_failed_checks(stage, held),
        damage=_damage(stage, project, str(recorded.value) if recorded else ""),
    )


def failed_errors(
    instance: dg.DagsterInstance, stages: Iterable[Stage]
) -> dict[Key, tuple[str, ...]]:
    """Return the failing checks that are errors without holding anything back, by asset."""
    severe = {
        stage.key: [c.name for c in stage.all_checks if c.severe and not c.blocking]
        for stage in stages
    }
    evaluations = _evaluations(instance, severe)
    found: dict[Key, tuple[str, ...]] = {}
    for key, checks in severe.items():
        latest = {check: evaluations.get((key, check)) for check in checks}
        failed = tuple(check for check, one in latest.items() if one and not one.passed)
        if failed:
            found[key] = failed
    return found


def _failed_checks(stage: Stage, held: Mapping[str, bool | None]) -> tuple[str, ...]:
    """Blocking checks that failed on a materialization, and any that were not evaluated on it."""
    failed = []
    for check in stage.all_checks:
        if held[check.name] is None:
            failed.append(check.name + NOT_EVALUATED)
        elif check.blocking and not held[check.name]:
            failed.append(check.name)
    return tuple(failed)


def _damage(stage: Stage, project: Project, recorded: str) -> str:
    """Return what is wrong with the stored file; empty where it is the one that was recorded."""
    path = stage.path(project)
    if not path.is_file():
        return "its file is missing"
    if _sha256(path, path.stat().st_size, path.stat().st_mtime_ns) != recorded:
        return "its file is not the one that was recorded"
    if stage.damage is not None:
        try:
            return stage.damage(project, parquet.read(path, stage.table).table)
        except InputError as error:
            return str(error)
    return ""


@lru_cache(maxsize=4096)
def _sha256(path: Path, size: int, modified: int) -> str:
    """Return a file's hash, taken once for each state of the file."""
    return parquet.file_sha256(path)
