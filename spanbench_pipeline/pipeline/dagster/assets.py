"""Stages as Dagster assets and checks. Nothing here knows what a stage computes.

No postponed annotations here: Dagster looks at the type of ``context`` itself.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import dagster as dg
import pyarrow as pa

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import keys, tables
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.pipeline.code_version import Parts
from spanbench_pipeline.pipeline.dagster import failed_attempts, run_lock
from spanbench_pipeline.pipeline.dagster.instance import MADE_BY, recorded
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.staleness import Key, Node, name
from spanbench_pipeline.pipeline.ui import descriptions, pictures, previews
from spanbench_pipeline.reports.render.markdown import escape
from spanbench_pipeline.storage import parquet

log = logging.getLogger("spanbench")
SHOWN_ROWS = 5
SECONDS = "seconds"
"""The metadata of a materialization and of a check that says how long it took."""
OFFENDING_CHARS = 400
"""More of an offending row's cell is shown: it names what to look at."""


@dataclass(frozen=True)
class Produced:
    """A stage computed and stored."""

    outcome: Outcome
    written: parquet.Written
    seconds: float

    @property
    def data_version(self) -> str:
        """Return what users of the table compare."""
        chosen = self.outcome.data_version if self.written.state == parquet.MEASURED else None
        return chosen or self.written.sha256


def produce(reader: Reader) -> Produced:
    """Compute the reader's stage and store its table.

    Raises UnsoundInput, and stores nothing, where an input that it reads is not as recorded.
    """
    began = time.perf_counter()
    stage = reader.stage
    state = None if stage.partial else reader.not_measured()
    outcome = Outcome(tables.empty(stage.table))
    if state is None:
        try:
            outcome, state = stage.compute(reader), parquet.MEASURED
        except NotMeasured as why:
            state = f"not measured: {why}"
    path = stage.path(reader.project)
    try:
        written = parquet.write(path, stage.table, outcome.table, state)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    seconds = time.perf_counter() - began
    for warning in outcome.warnings:
        log.warning("%s: %s", name(stage.key), warning)
    facts = ", ".join(f"{v} {k}" for k, v in outcome.facts.items())
    result = f"{outcome.table.num_rows:,} rows" if state == parquet.MEASURED else state
    log.info("%s  %s  %.1f s%s", name(stage.key), result, seconds, f"  ({facts})" if facts else "")
    return Produced(outcome, written, seconds)


def definitions(
    stages: Sequence[Stage],
    project: Project,
    made_by: Mapping[Key, Parts] | None = None,
    groups: Mapping[tuple[str, str], str] | None = None,
) -> list[dg.AssetsDefinition]:
    """Return every stage as an asset whose step evaluates its checks too.

    ``made_by`` is what each code version is a hash of, where it is known already; ``groups`` is
    ``group_names`` of all assets of the web UI, where these are not all.
    """
    table_names = {stage.key: stage.table for stage in stages}
    absent = descriptions.absences(stages)
    blocking = {s.key: tuple(c.name for c in s.all_checks if c.blocking) for s in stages}
    groups = groups or group_names(stages)
    return [
        _Step(
            stage,
            project,
            table_names,
            {dep: blocking[dep] for dep in stage.deps if dep in blocking},
            # Of the code as loaded now: a web UI that runs on would else record code that it does
            # not run.
            made_by[stage.key] if made_by else stage.made_by(),
        ).definition(groups[stage.corpus, stage.step], absent.get(stage.key))
        for stage in stages
    ]


def group_names(stages: Sequence[Stage]) -> dict[tuple[str, str], keys.Key]:
    """Return the group of each corpus's steps, no two corpora sharing one."""
    return keys.told_apart({(s.corpus, s.step): s.group for s in stages})


def resources(stages: Sequence[Stage], project: Project) -> dict[str, dg.ResourceDefinition]:
    """Return what the assets and checks of ``stages`` require."""
    return {
        run_lock.RESOURCE: run_lock.resource(project, {s.corpus for s in stages if not s.shared})
    }


@dataclass(frozen=True)
class _Step:
    """The step that makes an asset and evaluates its checks, or only the checks chosen.

    ``blocking`` names the blocking checks of each input.
    """

    stage: Stage
    project: Project
    table_names: Mapping[Key, str]
    blocking: Mapping[Key, Sequence[str]]
    made_by: Parts

    def definition(self, group: str, absent: str | None) -> dg.AssetsDefinition:
        """Return the asset with its checks; ``absent``: why it cannot be measured."""
        stage, key = self.stage, dg.AssetKey(list(self.stage.key))
        description = descriptions.describe(stage, absent)
        asset = dg.AssetSpec(
            key,
            deps=[dg.AssetKey(list(dep)) for dep in stage.deps],
            code_version=self._node.code_version,
            group_name=group,
            tags={name: keys.tag(v) for name, v in {**stage.tags, "table": stage.table}.items()},
            kinds=set(stage.kinds),
            owners=list(stage.owners),
            description=description,
            metadata={"dagster/column_schema": _column_schema(stage.table)},
        )

        @dg.multi_asset(
            name="__".join(stage.key),
            description=description,
            specs=[asset],
            check_specs=[
                dg.AssetCheckSpec(c.name, asset=key, description=c.description, blocking=c.blocking)
                for c in stage.all_checks
            ],
            config_schema={name: _field(stage, name) for name in stage.options} or None,
            required_resource_keys={run_lock.RESOURCE},
            can_subset=True,  # so that a check can be evaluated without its asset
        )
        def step(context: dg.AssetExecutionContext) -> Iterator[Any]:
            # Dagster records what is yielded before it asks for more: only then is the lock
            # released.
            with self._lock(context), failed_attempts.noted(context, self._node):
                if context.selected_asset_keys:
                    yield self._materialize(context)
                yield from self._evaluate(context)

        return step

    @cached_property
    def _node(self) -> Node:
        return self.stage.node(self.made_by)

    def _lock(self, context: dg.AssetExecutionContext) -> AbstractContextManager[None]:
        """Return the lock of an asset that all corpora share; any other has its run's."""
        if not self.stage.shared:
            return nullcontext()
        return run_lock.alone(self.project, name(self.stage.key), context.log)

    def _materialize(self, context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        options = context.op_execution_context.op_config if self.stage.options else None
        known = {} if self.stage.shared else recorded(context.instance, self.blocking)
        run_id, cache = context.run.run_id, context.resources.run_lock
        produced = produce(
            Reader(self.project, self.stage, self.table_names, options, run_id, known, cache)
        )
        return dg.MaterializeResult(
            metadata={
                **_shown(self.stage, self.project, produced),
                MADE_BY: dg.MetadataValue.json(self.made_by),
            },
            data_version=dg.DataVersion(produced.data_version),
        )

    def _evaluate(self, context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
        """Yield the results of the checks that were chosen, on the tables as they are stored."""
        chosen = {key.name for key in context.selected_asset_check_keys}
        cache = context.resources.run_lock
        reader = Reader(self.project, self.stage, self.table_names, cache=cache)
        for check in self.stage.all_checks:
            if check.name in chosen:
                yield _evaluated(check, reader)


def _field(stage: Stage, name: str) -> dg.Field:
    """Return a choice as the launchpad offers and checks it."""
    option = stage.options[name]
    # Dagster knows a set of choices by its name, which must be one in the whole deployment.
    choices = dg.Enum("__".join((*stage.key, name)), [dg.EnumValue(c) for c in option.choices])
    return dg.Field(choices, default_value=option.default, description=option.description)


def _found(check: Check, reader: Reader) -> tuple[Rows, bool]:
    """Return the rows that break an invariant, and whether there was anything to look at.

    A table that cannot be read breaks every invariant: what was not looked at has not passed.
    """
    try:
        if reader.stored(reader.stage.key).state != parquet.MEASURED:
            return [], False
        return check.find(reader), True
    except (InputError, ValueError) as error:
        return [{"cannot be checked": str(error)}], True


def _evaluated(check: Check, reader: Reader) -> dg.AssetCheckResult:
    began = time.perf_counter()
    rows, measured = _found(check, reader)
    seconds = round(time.perf_counter() - began, 3)
    said = "Holds." if measured else "Nothing to check: not measured."
    metadata: dict[str, Any] = {"offending_rows": len(rows)}
    if rows:
        # The page of a check renders its description in place, and metadata behind a link.
        shown = [_told_apart(row, reader.stage) for row in rows[:SHOWN_ROWS]]
        said = f"{descriptions.failed(check, len(rows))}\n\n{previews.rows(shown)}"
        metadata["first"] = dg.MetadataValue.md(previews.rows(shown, OFFENDING_CHARS))
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(list(reader.stage.key)),
        check_name=check.name,
        passed=not rows,
        severity=dg.AssetCheckSeverity.ERROR
        if check.blocking or check.severe
        else dg.AssetCheckSeverity.WARN,
        description=said,
        metadata={
            **(metadata if measured else {"state": "not measured, no rows"}),
            SECONDS: seconds,
        },
    )


def _told_apart(row: Mapping[str, Any], stage: Stage) -> dict[str, Any]:
    """Return a row without what is the same for the whole asset: its corpus, chunker,
    configuration.
    """
    same = {column for column, value in stage.owns.items() if row.get(column) == value}
    return {column: value for column, value in row.items() if column not in same}


@cache
def _column_schema(table: str) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                c.name,
                str(c.type),
                description=c.description,
                constraints=dg.TableColumnConstraints(nullable=c.nullable),
            )
            for c in tables.TABLES[table].columns
        ]
    )


def _shown(stage: Stage, project: Project, produced: Produced) -> dict[str, Any]:
    """Return what a materialization says of itself in the web UI, what a person asks first on
    top.
    """
    outcome, written = produced.outcome, produced.written
    measured = written.state == parquet.MEASURED
    looks = dict(_looks(stage, project, outcome.table)) if measured else {}
    shown = {title: dg.MetadataValue.md(text) for title, text in {**outcome.pages, **looks}.items()}
    noted: dict[str, Any] = {}
    if outcome.warnings:
        noted["warnings"] = list(outcome.warnings)
    if outcome.facts:
        noted["facts"] = dg.MetadataValue.json(dict(outcome.facts))
    return {
        "state": written.state if measured else dg.MetadataValue.md(f"**{escape(written.state)}**"),
        **shown,
        **noted,
        "dagster/row_count": outcome.table.num_rows,
        SECONDS: round(produced.seconds, 3),
        "file": "parquet/" + parquet.relative_path(stage.key),
        "sha256": written.sha256,
    }


def _looks(stage: Stage, project: Project, table: pa.Table) -> Iterator[tuple[str, str]]:
    """Pictures of what the warehouse shows of it, and its own first rows, as Markdown."""
    try:
        whole = pictures.read_all(stage.view_files(project)) if stage.shown else table
        yield from pictures.drawn(
            stage.table, pictures.Seen(whole, stage.baseline, stage.context)
        ).items()
    except InputError as error:
        yield "pictures", escape(str(error))
    yield "preview", previews.preview(stage.table, table)
    if rows := previews.first_rows(stage.table, table):
        yield "first rows", rows
