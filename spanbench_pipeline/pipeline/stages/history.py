"""metric_history: one file per run that computed a corpus's metrics, and a view over all.

Nothing can compute an old file again, so each carries in its name a hash of its corpus and bytes.
One that is no longer what its name says is left out of the view, with a warning.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from spanbench_pipeline.analysis import fingerprints
from spanbench_pipeline.checks import accepted_run
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Stage
from spanbench_pipeline.storage import parquet

TABLE = "metric_history"
_DIGITS = 32
"""Of a hash in a file's name."""


def stages(experiment: Experiment) -> list[Stage]:
    """Return the one stage of an experiment; nothing but the warehouse reads it."""
    corpus = experiment.corpus
    return [
        Stage(
            key=(corpus, TABLE),
            table=TABLE,
            description=f"{tables.TABLES[TABLE].description}.".capitalize(),
            compute=partial(_compute, corpus),
            deps=((corpus, "config_metrics"), (corpus, "fingerprints")),
            params={"columns": tables.TABLES[TABLE].schema.names},
            tags={"corpus": corpus},
            owns={"corpus": corpus},
            checks=(_SAME,),
            partial=True,
            shown=partial(files, corpus),
        )
    ]


def files(corpus: str, project: Project) -> list[Path]:
    """Return the files of a corpus's history that are as they were written, oldest first."""
    return [path for path in _all_files(corpus, project) if _sound(corpus, path)]


def left_out(corpus: str, project: Project) -> list[str]:
    """Return what is said of each file that is not used: it was changed, or is another corpus's."""
    return [
        f"{path}: not a file of {corpus}'s history as it was written (changed, damaged, or another "
        "corpus's), left out of metric_history; restore it from a copy or move it away"
        for path in _all_files(corpus, project)
        if not _sound(corpus, path)
    ]


def _all_files(corpus: str, project: Project) -> list[Path]:
    return sorted((project.home / "history" / corpus).glob("*.parquet"))


def _sound(corpus: str, path: Path) -> bool:
    """Return whether a file's name ends with the hash of its corpus and its bytes."""
    try:
        return path.stem.rpartition("-")[2] == _digest(corpus, path)
    except OSError:
        return False


def _digest(corpus: str, path: Path) -> str:
    text = f"{corpus}\n{parquet.file_sha256(path)}"
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _compute(corpus: str, reader: Reader) -> Outcome:
    now, run_id = datetime.now(UTC), reader.run_id
    prints = fingerprints.by_config(reader.table("fingerprints"))
    rows = [
        {
            **row,
            "run_at": now,
            "run_id": run_id,
            "fingerprint": fingerprints.digest(prints, row["config"]),
        }
        for row in reader.table("config_metrics").to_pylist()
    ]
    table = tables.from_rows(TABLE, rows)
    name = _store(reader.project, corpus, f"{now:%Y%m%dT%H%M%SZ}-{run_id[:8]}", table)
    # Each file is news to the view over all of them, whatever it holds.
    return Outcome(table, {"file": f"history/{corpus}/{name}.parquet"}, data_version=name)


def _store(project: Project, corpus: str, begun: str, table: pa.Table) -> str:
    """Write a file of the history; return its name, which its bytes decide in part."""
    folder = project.home / "history" / corpus
    staged = folder / ".new"  # One name: what a killed run left is written over.
    try:
        parquet.write(staged, TABLE, table)
        name = f"{begun}-{_digest(corpus, staged)}"
        staged.replace(folder / f"{name}.parquet")
    finally:
        staged.unlink(missing_ok=True)
    return name


_SAME = Check(
    "history_equals_the_metrics",
    "What the history records of this run is what was measured.",
    lambda reader: accepted_run.not_the_metrics(reader.own(), reader.table("config_metrics")),
)
