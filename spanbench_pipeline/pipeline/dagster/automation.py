"""What runs by itself: a job a corpus, the nightly schedule, and the sensors.

All of it goes by the same records and the same resolver as the command line. In the nightly
deployment (SPANBENCH_NIGHTLY=1, which ``spanbench serve`` sets) schedule and sensors run from the
start; elsewhere they are there to be switched on.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from spanbench_pipeline.config import operations
from spanbench_pipeline.config.operations import Operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.monitoring import alerts
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import run_events
from spanbench_pipeline.pipeline.dagster.run_events import (
    NIGHTLY_TAG,
    Finished,
    Reading,
    ReportedElsewhere,
)
from spanbench_pipeline.pipeline.dagster.run_lock import CORPORA_TAG
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.dagster.waves import look
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.staleness import Key, name

log = logging.getLogger("spanbench")
NIGHTLY_VARIABLE = "SPANBENCH_NIGHTLY"
TICK_VARIABLE = "SPANBENCH_TICK_SECONDS"
EVERYTHING_JOB, NIGHTLY_JOB = "run_everything", "nightly_run"
ALERT_SECONDS, FRESH_SECONDS = 10, 30
"""How often the sensors look, unless the variable says otherwise."""
TICK_SECONDS = 25.0
"""A tick that has taken this long leaves the rest to the next: Dagster gives it a minute."""


@dataclass(frozen=True)
class Automation:
    """What definitions take over."""

    jobs: list[Any]
    schedules: list[dg.ScheduleDefinition]
    sensors: list[dg.SensorDefinition]


def build(where: Project, found: Graph) -> Automation:
    """Jobs, schedule and sensors of a project; a broken operations file leaves out the schedule."""
    corpus_jobs = [_corpus_job(found, corpus) for corpus in found.experiments]
    jobs: list[Any] = [*corpus_jobs, _everything(found)]
    schedules: list[dg.ScheduleDefinition] = []
    try:
        settings = operations.load(where)
        if settings.nightly.corpora:
            job = nightly_job(where, found, settings)
            schedules.append(nightly_schedule(settings, job))
            jobs.append(job)
    except InputError as error:
        log.error("left out: the nightly schedule: %s", error)
    sensors = [
        _check_alerts(where),
        _run_failure_alerts(where),
        _keep_fresh(where, found, corpus_jobs),
    ]
    return Automation(jobs, schedules, sensors)


def is_nightly() -> bool:
    """Return whether this is the deployment whose schedule and sensors run from the start."""
    return os.environ.get(NIGHTLY_VARIABLE) == "1"


def tick_seconds(default: int) -> int:
    """Return how often a sensor looks; InputError where the variable holds no number of seconds."""
    text = os.environ.get(TICK_VARIABLE, str(default))
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text):
        raise InputError(
            f"{TICK_VARIABLE} = {text!r} must be a whole number of seconds, from 1 to 99999"
        )
    return int(text)


def require_ticks() -> None:
    """Refuse a wrong interval before what would stumble over it starts."""
    tick_seconds(ALERT_SECONDS)


def dense_engine() -> str | None:
    """Return the dense engine that replaces what every experiment says, where one does."""
    return os.environ.get("SPANBENCH_DENSE_ENGINE")


def corpus_job_name(corpus: str) -> str:
    """Return ``run_<corpus>``; ``run__<corpus>`` where all corpora's job is called that."""
    plain = f"run_{corpus}"
    return plain if plain != EVERYTHING_JOB else f"run__{corpus}"


def _corpus_job(found: Graph, corpus: str) -> Any:
    return dg.define_asset_job(
        corpus_job_name(corpus),
        selection=dg.AssetSelection.assets(*(list(s.key) for s in found.of([corpus]))),
        description=f"Every asset of corpus {corpus}, stale or not, and the warehouse.",
        tags={CORPORA_TAG: corpus},
    )


def _everything(found: Graph) -> Any:
    return dg.define_asset_job(
        EVERYTHING_JOB,
        selection=dg.AssetSelection.all(),
        description="Every asset of every corpus, stale or not.",
        tags={CORPORA_TAG: ",".join(found.experiments)},
    )


# The nightly run.


def nightly_job(where: Project, found: Graph, settings: Operations) -> dg.JobDefinition:
    """Return one step a nightly corpus; each brings its corpus up to date, whatever becomes of the
    rest.

    Raises InputError where a corpus has no experiment.
    """
    corpora = settings.nightly.corpora
    for corpus in corpora:
        if corpus not in found.experiments and corpus not in found.broken:
            known = nearest(corpus, found.experiments)
            raise InputError(f"{settings.path}: nightly: no experiment for {corpus!r}{known}")

    @dg.job(
        name=NIGHTLY_JOB,
        description="Materializes what is stale in the nightly corpora, wave after wave.",
        tags={CORPORA_TAG: ",".join(corpora)},
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        for corpus in corpora:
            _nightly_op(where, corpus)()

    return job


def nightly_schedule(settings: Operations, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Return the nightly run at its hour; InputError where Dagster does not understand it."""
    nightly = settings.nightly
    running = dg.DefaultScheduleStatus.RUNNING
    try:
        return dg.ScheduleDefinition(
            name="nightly",
            job=job,
            cron_schedule=nightly.cron,
            execution_timezone=nightly.timezone,
            description=f"Brings up to date: {', '.join(nightly.corpora)}.",
            default_status=running if is_nightly() else dg.DefaultScheduleStatus.STOPPED,
        )
    except dg.DagsterInvalidDefinitionError as error:
        raise InputError(f"{settings.path}: nightly: {error}") from error


def _nightly_op(where: Project, corpus: str) -> dg.OpDefinition:
    @dg.op(
        name=f"nightly__{corpus}" if f"nightly_{corpus}" == NIGHTLY_JOB else f"nightly_{corpus}",
        description=f"Materializes what is stale of {corpus}; each wave is a run of its own.",
        out=dg.Out(dg.Nothing),
    )
    def bring_up_to_date(context) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        graph = graphs.build(where, dense_engine())
        if problem := graph.problem(corpus):
            _tell_unusable(where, {corpus: problem})
            raise ReportedElsewhere(problem)
        tags = {NIGHTLY_TAG: context.run_id}
        result = Runner(where, context.instance, graph.of([corpus]), tags).run()
        context.add_output_metadata(_told(where, context, result))
        failed = [name(f.key) for f in result.failures] + [name(k) for k in result.failed_checks]
        if failed:
            raise ReportedElsewhere(f"{corpus}: failed: {', '.join(failed)}")

    return bring_up_to_date


def _told(where: Project, context: Any, result: Result) -> dict[str, Any]:
    """Return what a nightly step says of its corpus, and the runs that it consists of."""
    waves = context.instance.get_runs(dg.RunsFilter(tags={NIGHTLY_TAG: context.run_id}))
    link = operations.load(where).alerts.link.rstrip("/")
    for wave in reversed(waves):
        context.log.info("wave %s: %s/runs/%s", wave.status.value, link, wave.run_id)
    lines = [f"- [{run.run_id[:8]}]({link}/runs/{run.run_id})" for run in reversed(waves)]
    return {
        "materialized": len(result.materialized),
        "assets": ", ".join(name(key) for key in result.materialized) or "nothing was stale",
        "held back": len(result.held),
        "runs": dg.MetadataValue.md("\n".join(lines) or "none"),
    }


# The alert sensors.


def _sensor_status(running: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED


def _check_alerts(where: Project) -> dg.SensorDefinition:
    @dg.sensor(
        name="check_alerts",
        minimum_interval_seconds=tick_seconds(ALERT_SECONDS),
        default_status=_sensor_status(is_nightly()),
        description="Sends an alert for each check that failed, blocking or not, once a fault.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        def tell(reading: Reading, ended: Finished, settings: operations.Alerts) -> int:
            found = reading.failed_checks(ended.run)
            alerts.resolve(run_events.passed(reading.instance, ended.run.run_id), where.home)
            alerts.report(found, settings, where.home)
            return len(found)

        return _each_finished(where, context, tell)

    return sensor


def _run_failure_alerts(where: Project) -> dg.SensorDefinition:
    @dg.sensor(
        name="run_failure_alerts",
        minimum_interval_seconds=tick_seconds(ALERT_SECONDS),
        default_status=_sensor_status(is_nightly()),
        description="Sends an alert for each asset whose run failed, once a fault; reports runs "
        "whose process is gone as failed.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        for run_id in run_events.bury_dead_runs(context.instance):
            context.log.warning("run %s: its process is gone", run_id)

        def tell(reading: Reading, ended: Finished, settings: operations.Alerts) -> int:
            found = reading.errors(ended) if ended.failed else []
            works = run_events.made(reading.instance, ended) - {a.about for a in found}
            alerts.resolve(works, where.home)
            alerts.report(found, settings, where.home)
            return len(found)

        return _each_finished(where, context, tell)

    return sensor


def _each_finished(
    where: Project,
    context: dg.SensorEvaluationContext,
    tell: Callable[[Reading, Finished, operations.Alerts], int],
) -> dg.SkipReason:
    """Tell of each run that ended since the last tick, in order.

    The cursor moves past a run when it was told: what a crash cuts off is told again, and the
    ledger keeps it from being sent twice.
    """
    began = time.monotonic()
    settings = operations.load(where).alerts
    after = int(context.cursor) if context.cursor else None
    ended = run_events.finished(context.instance, after)
    if not ended:
        return dg.SkipReason("no run has ended")
    reading = Reading(context.instance, graphs.build(where, dense_engine()), settings.link)
    n_runs = n_faults = 0
    for run in ended:
        n_faults += tell(reading, run, settings)
        n_runs += 1
        context.update_cursor(str(run.position))
        if time.monotonic() - began > TICK_SECONDS:
            break
    return dg.SkipReason(f"{n_runs} runs ended, {n_faults} faults in them")


# The freshness sensor.


def _keep_fresh(where: Project, loaded: Graph, jobs: list[Any]) -> dg.SensorDefinition:
    keys = {stage.key for stage in loaded.stages}

    @dg.sensor(
        name="keep_fresh",
        jobs=jobs or None,  # none where every experiment is broken
        minimum_interval_seconds=tick_seconds(FRESH_SECONDS),
        default_status=_sensor_status(is_nightly()),
        description="Runs the next wave of each nightly corpus that is stale and not at work; "
        "sends an alert for one whose experiment cannot be used.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        run_events.bury_dead_runs(context.instance)  # they would be at work for ever
        corpora = operations.load(where).nightly.corpora
        requests, why_not = [], []
        coming = look(where, context.instance, corpora, dense_engine())
        _tell_unusable(where, {c: n.why_not if n.unusable else "" for c, n in coming.items()})
        for corpus, found in coming.items():
            if not found.wave:
                why_not.append(found.why_not)
            elif not keys.issuperset(found.wave):
                # The daemon loads what an experiment adds within a minute.
                why_not.append(f"{corpus}: its new assets are not loaded yet")
            else:
                requests.append(_request(corpus, found.wave))
        nobody = "no corpora under [nightly] in operations.toml"
        return requests or dg.SkipReason("; ".join(why_not) or nobody)

    return sensor


def _tell_unusable(where: Project, problems: Mapping[str, str]) -> None:
    """Send an alert for each corpus whose experiment cannot be used, until it can.

    No run fails by it, since there is none: the other alerts would say nothing.
    """
    wrong = {corpus: problem for corpus, problem in problems.items() if problem}
    alerts.resolve([run_events.usable(c) for c in problems if c not in wrong], where.home)
    told = [run_events.unusable(corpus, problem) for corpus, problem in wrong.items()]
    alerts.report(told, operations.load(where).alerts, where.home)


def _request(corpus: str, wave: Iterable[Key]) -> dg.RunRequest:
    """Return a run of a wave; the checks of its assets come with them."""
    return dg.RunRequest(
        job_name=corpus_job_name(corpus),
        asset_selection=[dg.AssetKey(list(key)) for key in wave],
        tags={CORPORA_TAG: corpus},
        run_config={"loggers": {"console": {"config": {"log_level": "WARNING"}}}},
    )
