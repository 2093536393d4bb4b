"""reports: the developer and client report of a corpus, and the audit files behind them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline import __version__
from spanbench_pipeline.analysis.backlog import backlog
from spanbench_pipeline.analysis.fingerprints import parameters
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import Encoder, Experiment, Reranker
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora.source import open_source
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.pipeline.stage import Check, Option, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.stages import embeddings
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.reports import audit, client, developer
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.storage import parquet

SINGLE = (
    "documents",
    "queries",
    "gold_spans",
    "config_metrics",
    "clause_type_metrics",
    "config_stats",
    "config_pairs",
    "chunk_stats",
    "configs",
    "label_cross",
    "fingerprints",
)
PER_CONFIG = (
    "rankings",
    "query_metrics",
    "span_outcomes",
    "failure_labels",
    "forensic_labels",
    "span_states",
    "headroom",
)
PAGE_CHARS = 200_000
"""Characters of a report that are stored with the event for the web UI."""
LIBRARIES = ("dagster", "duckdb", "numpy", "pyarrow", "qdrant-client", "rank-bm25")


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return the one stage that writes a corpus's reports."""
    corpus = experiment.corpus
    deps: list[Key] = [(corpus, "source_archive"), *((corpus, name) for name in SINGLE)]
    deps += [(corpus, "chunks", chunker) for chunker in experiment.chunkers]
    deps += [(corpus, t, c.slug) for c in experiment.configurations for t in PER_CONFIG]
    lists = [key for c in experiment.configurations for key in asset_keys.list_keys(experiment, c)]
    deps += dict.fromkeys(lists)  # some share a list
    models = {s.name: embeddings.model_params(s, project) for s in _models(experiment)}
    provenance = {**open_source(experiment, project).drawn(), **_provenance(experiment, models)}
    return [
        Stage(
            key=(corpus, "reports"),
            table="report_files",
            description=f"Developer report, client report and audit files of {corpus}.",
            compute=partial(_compute, experiment, provenance),
            deps=tuple(deps),
            modules=(
                "spanbench_pipeline.reports.client",
                "spanbench_pipeline.reports.developer",
                "spanbench_pipeline.reports.render.html",
                "spanbench_pipeline.reports.render.markdown",
                "spanbench_pipeline.reports.audit",
                "spanbench_pipeline.analysis.backlog",
            ),
            params={
                "configurations": repr(experiment.configurations),
                "chunkers": {n: parameters(c) for n, c in experiment.chunkers.items()},
                "baseline": experiment.baseline,
                "description": experiment.description,
                "provenance": provenance,
                "page": html.fingerprint(),
                **experiment.measured_at,
            },
            kinds=("markdown", "html"),
            tags={"corpus": corpus},
            partial=True,
            options={"baseline": _baselines(experiment)},
            owns={"corpus": corpus},
            checks=(_FILES,),
            damage=partial(_damage, corpus),
        )
    ]


def _baselines(experiment: Experiment) -> Option:
    names = tuple(c.name for c in experiment.configurations)
    return Option(
        experiment.baseline,
        names,
        "The configuration that the client report starts from: one that was measured. "
        f"Allowed: {', '.join(names)}.",
    )


def _models(experiment: Experiment) -> list[Encoder | Reranker]:
    return [*experiment.encoders.values(), *experiment.rerankers.values()]


def _provenance(experiment: Experiment, models: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return what a figure depends on beside the corpus: versions, engine, models and their
    weights.
    """
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    if models:
        versions |= {n: importlib.metadata.version(n) for n in embeddings.MODEL_LIBRARIES}
    return {
        "spanbench": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "dense engine": experiment.dense_engine,
        "depth": str(experiment.depth),
        **{key: str(value) for key, value in experiment.measured_at.items()},
        **{f"fingerprint of {name}": str(params["weights"]) for name, params in models.items()},
        **{
            f"declared sha256 of {name}'s weights": str(params["sha256"])
            for name, params in models.items()
            if params["sha256"]
        },
        **{f"version of {name}": version for name, version in sorted(versions.items())},
    }


def _compute(experiment: Experiment, provenance: dict[str, str], reader: Reader) -> Outcome:
    baseline = reader.options["baseline"] or experiment.baseline
    inputs = _inputs(experiment, reader, baseline, provenance)
    files = _files(experiment, inputs, baseline)
    folder = reader.project.reports / experiment.corpus
    for name, content in files.items():
        writing.write_whole(folder / name, content)
    _remove_others(reader.project, experiment.corpus, set(files))
    rows = [
        {
            "corpus": experiment.corpus,
            "file": name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "baseline": baseline,
        }
        for name, content in files.items()
    ]
    pages = {
        f"{name} report": _page(files[f"{name}.md"].decode(), folder / f"{name}.html")
        for name in ("client", "developer")
    }
    listed = tables.from_rows("report_files", rows)
    return Outcome(listed, {"baseline": baseline}, pages=pages)


def _page(report: str, path: Path) -> str:
    """Return a report as the web UI shows it: whole lines, as many as an event may hold."""
    shown = report[:PAGE_CHARS].rpartition("\n")[0] if len(report) > PAGE_CHARS else report
    cut = "The report goes on there. " if len(shown) < len(report) else ""
    return f"{cut}The whole report, with pictures: `{path}`\n\n{shown}"


def _inputs(
    experiment: Experiment, reader: Reader, baseline: str, provenance: dict[str, str]
) -> ReportInputs:
    baseline = experiment.configuration(baseline).name
    single = {name: reader.table(name) for name in SINGLE}
    many = {name: reader.all(name) for name in PER_CONFIG}
    measured = {
        row["config"] for row in single["configs"].to_pylist() if row["state"] == parquet.MEASURED
    }
    if baseline not in measured and baseline != experiment.baseline:
        raise InputError(f"the baseline {baseline!r} was not measured; choose another")
    found = None
    if baseline in measured and not unreached(experiment.context, experiment.depth):
        found = backlog(
            experiment,
            many["failure_labels"],
            single["config_pairs"],
            single["config_metrics"],
            baseline,
        )
    return ReportInputs(
        **single,
        **many,
        source_files=reader.table("source_archive"),
        chunks=reader.all("chunks"),
        backlog=found,
        provenance=provenance,
        candidates={
            config.name: pa.concat_tables(
                reader.table(*key[1:]) for key in asset_keys.list_keys(experiment, config)
            )
            for config in experiment.configurations
        },
    )


def _files(experiment: Experiment, inputs: ReportInputs, baseline: str) -> dict[str, bytes]:
    """Name below the corpus's folder -> content."""
    files: dict[str, str] = {}
    reports = {
        "developer": developer.developer(experiment, inputs),
        "client": client.client(experiment, inputs, baseline),
    }
    for name, report in reports.items():
        files[f"{name}.md"] = markdown.render(report)
        files[f"{name}.html"] = html.render(report)
    measured = set(inputs.measured(experiment))
    for config in experiment.configurations:
        if config.name in measured:
            written = audit.audit(inputs, config.name, experiment.context)
            files[f"audit/{config.slug}.queries.jsonl"] = written.queries
            files[f"audit/{config.slug}.labels.jsonl"] = written.labels
    return {name: content.encode() for name, content in files.items()}


def _remove_others(project: Project, corpus: str, kept: set[str]) -> None:
    """Remove files of earlier reports that the new ones do not have: an old figure misleads."""
    folder = project.reports / corpus
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in kept:
            path.unlink()


def _changed(folder: Path, listed: pa.Table) -> Rows:
    """Return the listed report files that are missing, or not the ones that were written."""
    return [
        row
        for row in listed.to_pylist()
        if not (folder / row["file"]).is_file()
        or parquet.file_sha256(folder / row["file"]) != row["sha256"]
    ]


_FILES = Check(
    "files_as_written",
    "Every report file is there and is the one that was written.",
    lambda reader: _changed(reader.project.reports / reader.stage.corpus, reader.own()),
)


def _damage(corpus: str, project: Project, listed: pa.Table) -> str:
    """Return which report file is not the one that was written; empty where all are."""
    changed = _changed(project.reports / corpus, listed)
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    return f"report file {changed[0]['file']} is missing or changed{more}" if changed else ""
