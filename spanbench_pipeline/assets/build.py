"""Stages as Dagster assets and checks. Nothing here knows what a stage computes.

No postponed annotations here: Dagster looks at the type of ``context`` itself.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pyarrow as pa

from spanbench_pipeline import tables, warehouse
from spanbench_pipeline.assets import attempts, turn
from spanbench_pipeline.assets.instance import MADE_BY
from spanbench_pipeline.assets.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.errors import InputError, NotMeasured
from spanbench_pipeline.experiment import slug
from spanbench_pipeline.freshness import Key, name
from spanbench_pipeline.project import Project

log = logging.getLogger("spanbench")
SHOWN_ROWS = 5
SHOWN_CHARS = 80
OFFENDING_CHARS = 400
"""More of an offending row's cell is shown: it names what to look at."""


@dataclass(frozen=True)
class Produced:
    """A stage computed and stored."""

    outcome: Outcome
    written: warehouse.Written
    seconds: float

    @property
    def data_version(self) -> str:
        """What users of the table compare."""
        chosen = self.outcome.data_version if self.written.state == warehouse.MEASURED else None
        return chosen or self.written.sha256


def produce(
    stage: Stage,
    project: Project,
    kinds: Mapping[Key, str],
    options: Mapping[str, str] | None = None,
    run_id: str = "",
) -> Produced:
    """Computes a stage and stores its table. ``kinds`` gives each asset's declared table."""
    began = time.perf_counter()
    reader = Reader(project, stage, kinds, options, run_id)
    state = None if stage.partial else reader.not_measured()
    outcome = Outcome(tables.empty(stage.table))
    if state is None:
        try:
            outcome, state = stage.compute(reader), warehouse.MEASURED
        except NotMeasured as why:
            state = f"not measured: {why}"
    try:
        written = warehouse.write(stage.path(project), stage.table, outcome.table, state)
    except OSError as error:
        raise InputError(f"{stage.path(project)}: cannot be written: {error.strerror}") from error
    seconds = time.perf_counter() - began
    for warning in outcome.warnings:
        log.warning("%s: %s", name(stage.key), warning)
    facts = ", ".join(f"{v} {k}" for k, v in outcome.facts.items())
    result = f"{outcome.table.num_rows:,} rows" if state == warehouse.MEASURED else state
    log.info("%s  %s  %.1f s%s", name(stage.key), result, seconds, f"  ({facts})" if facts else "")
    return Produced(outcome, written, seconds)


def definitions(
    stages: Sequence[Stage], project: Project
) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """Every stage as an asset, and its checks as one step behind it."""
    kinds = {stage.key: stage.table for stage in stages}
    assets: list[dg.AssetsDefinition | dg.AssetChecksDefinition] = []
    for stage in stages:
        assets.append(_asset(stage, project, kinds))
        assets.append(_checks(stage, project, kinds))
    return assets


def resources(stages: Sequence[Stage], project: Project) -> dict[str, dg.ResourceDefinition]:
    """What the assets and checks of ``stages`` require."""
    return {turn.RESOURCE: turn.resource(project, {s.corpus for s in stages if not s.shared})}


def _asset(stage: Stage, project: Project, kinds: Mapping[Key, str]) -> dg.AssetsDefinition:
    fields = {key: dg.Field(str, default_value=value) for key, value in stage.options.items()}
    # Of the code as it is loaded now: a web UI that runs on would else note what it does not run.
    node, made_by = stage.node(), dg.MetadataValue.json(stage.made_by())

    @dg.asset(
        key=list(stage.key),
        deps=[dg.AssetKey(list(dep)) for dep in stage.deps],
        code_version=node.code_version,
        group_name=stage.group,
        tags={**stage.tags, "table": slug(stage.table)},
        kinds=set(stage.kinds),
        description=stage.description,
        metadata={"dagster/column_schema": _column_schema(stage.table)},
        config_schema=fields or None,
        required_resource_keys={turn.RESOURCE},
    )
    def computed(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        options = context.op_execution_context.op_config if stage.options else None
        # Dagster records what is yielded before it asks for more: only then does the turn end.
        with _alone(stage, project, context), attempts.noted(context, node):
            produced = produce(stage, project, kinds, options, context.run.run_id)
            yield dg.MaterializeResult(
                metadata={**_shown(stage, produced), MADE_BY: made_by},
                data_version=dg.DataVersion(produced.data_version),
            )

    return computed


def _checks(stage: Stage, project: Project, kinds: Mapping[Key, str]) -> dg.AssetChecksDefinition:
    key, node = dg.AssetKey(list(stage.key)), stage.node()

    @dg.multi_asset_check(
        name="__".join(stage.key) + "__checks",
        specs=[
            dg.AssetCheckSpec(c.name, asset=key, description=c.description, blocking=c.blocking)
            for c in stage.all_checks
        ],
        required_resource_keys={turn.RESOURCE},
    )
    def checked(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        with _alone(stage, project, context), attempts.noted(context, node):
            reader = Reader(project, stage, kinds)
            for check in stage.all_checks:
                yield _evaluated(check, reader)

    return checked


def _alone(stage: Stage, project: Project, context: Any) -> AbstractContextManager[None]:
    """The turn at an asset that all corpora share; any other has its run's."""
    return turn.alone(project, name(stage.key), context.log) if stage.shared else nullcontext()


def _found(check: Check, reader: Reader) -> tuple[Rows, bool]:
    """The rows that break an invariant, and whether there was anything to look at.

    A table that cannot be read breaks every invariant: what was not looked at has not passed.
    """
    try:
        if reader.stored(reader.stage.key).state != warehouse.MEASURED:
            return [], False
        return check.find(reader), True
    except (InputError, ValueError) as error:
        return [{"cannot be checked": str(error)}], True


def _evaluated(check: Check, reader: Reader) -> dg.AssetCheckResult:
    rows, measured = _found(check, reader)
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(list(reader.stage.key)),
        check_name=check.name,
        passed=not rows,
        severity=dg.AssetCheckSeverity.ERROR
        if check.blocking or check.severe
        else dg.AssetCheckSeverity.WARN,
        metadata=_offending(rows) if measured else {"state": "not measured, no rows"},
    )


def _offending(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not rows:
        return {"offending_rows": 0}
    shown = rows[:SHOWN_ROWS]
    return {
        "offending_rows": len(rows),
        "first": dg.MetadataValue.md(_markdown_rows(shown, OFFENDING_CHARS)),
    }


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


def _shown(stage: Stage, produced: Produced) -> dict[str, Any]:
    table = produced.outcome.table
    return {
        "dagster/row_count": table.num_rows,
        "state": produced.written.state,
        "sha256": produced.written.sha256,
        "file": "parquet/" + warehouse.relative_path(stage.key),
        "seconds": round(produced.seconds, 3),
        "preview": dg.MetadataValue.md(_preview(table)),
        "facts": dg.MetadataValue.json(dict(produced.outcome.facts)),
        **({"warnings": list(produced.outcome.warnings)} if produced.outcome.warnings else {}),
    }


def _preview(table: pa.Table) -> str:
    if not table.num_rows:
        return "no rows"
    vectors = [f.name for f in table.schema if pa.types.is_list(f.type) and f.name == "vector"]
    return _markdown_rows(table.drop_columns(vectors).slice(0, SHOWN_ROWS).to_pylist())


def _markdown_rows(rows: Sequence[Mapping[str, Any]], width: int = SHOWN_CHARS) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(c), width) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object, width: int) -> str:
    text = "" if value is None else str(value)
    text = text if len(text) <= width else text[:width] + "…"
    for mark, safe in (("\\", "\\\\"), ("|", "\\|"), ("\r", " "), ("\n", " "), ("<", "&lt;")):
        text = text.replace(mark, safe)
    return text
