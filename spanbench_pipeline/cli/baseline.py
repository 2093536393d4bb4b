"""How what is stored stands to the accepted run, and whether it can be relied on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanbench_pipeline.cli.places import command
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.reports import regression_text
from spanbench_pipeline.storage import parquet

SHOWN = 5
"""Stale assets named in one message."""


def note(project: Project, corpus: str) -> str:
    """What a run says of the comparison; empty where no run was accepted."""
    path = project.parquet / corpus / "regression.parquet"
    stored = parquet.read(path, "regression")
    if stored.state != parquet.MEASURED:
        return ""
    fell = regression_text.regressions(stored.table)
    changed, unheld = (
        regression_text.changes(stored.table),
        regression_text.not_compared(stored.table),
    )
    lines = [
        *(f"  regression: {row['config']}, {row['metric']}: {row['difference']:+}" for row in fell),
        *(f"  changed: {row['config']}, queries {row['queries']}" for row in changed),
        *(f"  {row['verdict']}: {row['config']}, {row['metrics']}: {row['why']}" for row in unheld),
    ]
    head = f"{corpus} against its accepted run: "
    return "\n".join([f"{head}{len(lines)} to look at", *lines]) if lines else f"{head}unchanged"


def require_fresh(
    project: Project, corpus: str, keys: Sequence[Key], action: str
) -> Callable[[], None]:
    """InputError where one of the assets, or one that it is made from, is stale or is in doubt.

    In doubt is what failed a check that is an error, blocking or not. The regression's own check
    is no reason: what fell is often accepted knowingly. Returns what to call when all tables have
    been read: it raises InputError where a run has replaced one meanwhile.
    """
    before = _signs(project, keys)
    judged = [key for key in keys if key == (corpus, "regression")]
    lines = [f"  {line}" for line in HomeState(project).state([corpus]).doubts(keys, judged)]
    if lines:
        more = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        listed = "\n".join([*lines[:SHOWN], *more])
        raise InputError(
            f"{action} {corpus}: what is stored is not up to date or is in doubt; "
            f"{command(project)} run {corpus} first\n{listed}"
        )

    def require_unchanged() -> None:
        if _signs(project, keys) != before:
            raise InputError(
                f"{action} {corpus}: a run replaced tables while they were read; {action} again"
            )

    return require_unchanged


def _signs(project: Project, keys: Sequence[Key]) -> list[tuple[int, int] | None]:
    """What tells each stored table from one that takes its place: a rename makes another file."""
    paths = [project.parquet / parquet.relative_path(key) for key in keys]
    found = [path.stat() if path.is_file() else None for path in paths]
    return [stat and (stat.st_ino, stat.st_mtime_ns) for stat in found]
