"""metric_history: one file a run that made a corpus's metrics anew, and a view over all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from spanbench_pipeline import tables, warehouse
from spanbench_pipeline.assets.stage import Check, Outcome, Reader, Stage
from spanbench_pipeline.experiment import Experiment
from spanbench_pipeline.measures import baseline_checks, fingerprints
from spanbench_pipeline.project import Project

TABLE = "metric_history"


def stages(experiment: Experiment) -> list[Stage]:
    """The one stage of an experiment; nothing but the warehouse reads it."""
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
    """The files of a corpus's history, oldest first."""
    return sorted((project.home / "history" / corpus).glob("*.parquet"))


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
    name = f"{now:%Y%m%dT%H%M%SZ}-{run_id[:8]}"
    warehouse.write(reader.project.home / "history" / corpus / f"{name}.parquet", TABLE, table)
    # Each file is news to the view over all of them, whatever it holds.
    return Outcome(table, {"file": f"history/{corpus}/{name}.parquet"}, data_version=name)


_SAME = Check(
    "history_equals_the_metrics",
    "What the history records of this run is what was measured.",
    lambda reader: baseline_checks.not_the_metrics(reader.own(), reader.table("config_metrics")),
)
