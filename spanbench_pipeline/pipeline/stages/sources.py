"""source_archive -> documents, queries, gold_spans: a corpus as it was given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import evalset, tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.corpora import source
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return the stages that bring a corpus in."""
    source.open_source(experiment, project)  # refuses wrong settings before anything is built
    module = source.KINDS[experiment.source["kind"]].partition(":")[0]
    settings = json.loads(json.dumps(experiment.source, default=str))
    content = content_hash(experiment, project)
    archive = Stage(
        key=(experiment.corpus, "source_archive"),
        table="source_files",
        description=f"The files that corpus {experiment.corpus} is read from, with their hashes.",
        compute=lambda reader: _source_files(experiment, reader.project),
        modules=(module,),
        params={"source": settings, "content": content},
        kinds=("file", "parquet"),
        part="source",
        owns={"corpus": experiment.corpus},
        checks=(_sources_unchanged(experiment),),
    )

    def table_stage(name: str, *deps: str, checks: tuple[Check, ...] = ()) -> Stage:
        return Stage(
            key=(experiment.corpus, name),
            table=name,
            description=f"{tables.TABLES[name].description}.".capitalize(),
            compute=_reads(name, experiment.path, content),
            deps=(archive.key, *((experiment.corpus, dep) for dep in deps)),
            modules=(module, "spanbench_pipeline.core.evalset"),
            params={"source": settings},
            libraries=("pypdf",),
            checks=checks,
            part="source",
            owns={"corpus": experiment.corpus},
        )

    return [
        archive,
        table_stage("documents", checks=(_TEXTS,)),
        table_stage("queries"),
        table_stage("gold_spans", "documents", "queries", checks=(_GOLD,)),
    ]


def content_hash(experiment: Experiment, project: Project) -> str:
    """Return a hash of the source files as they lie there now; ``absent`` and why, where they do
    not.
    """
    try:
        files = source.open_source(experiment, project).files()
    except InputError as error:
        return f"absent: {error}"
    text = json.dumps([asdict(f) for f in files], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _source_files(experiment: Experiment, project: Project) -> Outcome:
    files = source.open_source(experiment, project).files()
    rows = [{"corpus": experiment.corpus, **asdict(f)} for f in files]
    return Outcome(tables.from_rows("source_files", rows))


def _reads(name: str, path: Path, content: str) -> Callable[[Reader], Outcome]:
    def compute(reader: Reader) -> Outcome:
        loaded = _loaded(path, content, reader.project)
        lost = evalset.shut_out(loaded) if name == "queries" else []
        loose = evalset.loose_edges(loaded.gold_spans) if name == "gold_spans" else []
        return Outcome(
            getattr(loaded, name),
            {"gold spans with white space at an edge": len(loose)} if loose else {},
            warnings=tuple(
                f"query {query_id}: its filters shut out every document that answers it"
                for query_id in lost
            ),
        )

    return compute


@lru_cache(maxsize=2)
def _loaded(path: Path, _: str, project: Project) -> EvalSet:
    """Return the eval set, read once for its three tables; the content's hash keeps it from going
    old.
    """
    return source.load(experiments.load(path), project)


def _sources_unchanged(experiment: Experiment) -> Check:
    def find(reader: Reader) -> Rows:
        now = [asdict(f) for f in source.open_source(experiment, reader.project).files()]
        rows = reader.own().drop_columns(["corpus"]).to_pylist()
        return [row for row in rows if row not in now] + [row for row in now if row not in rows]

    return Check(
        "hashes_equal_the_files",
        "The recorded files are the ones that lie there now, byte for byte.",
        find,
    )


def _text_violations(reader: Reader) -> Rows:
    return [{"violation": text} for text in evalset.text_violations(reader.own())]


def _gold_violations(reader: Reader) -> Rows:
    held = EvalSet(reader.table("documents"), reader.table("queries"), reader.own())
    return [{"violation": text} for text in evalset.gold_violations(held)]


_TEXTS = Check(
    "texts_equal_their_hashes",
    "Every document's text has its recorded length and sha256; otherwise every offset is void.",
    _text_violations,
)
_GOLD = Check(
    "gold_spans_inside_text",
    "Every gold span lies inside its document, holds the recorded text, and a query's spans are "
    "sorted and disjoint; every query has one.",
    _gold_violations,
)
