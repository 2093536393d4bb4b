"""``spanbench export``: the stored results of a corpus in the formats of other tools."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline import __version__
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE, path_argument
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.corpora import corpus_folder as directory
from spanbench_pipeline.formats import beir, json_lines, legalbenchrag, stamp, trec
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.pipeline.state import WAREHOUSE
from spanbench_pipeline.scoring import files as scoring_files
from spanbench_pipeline.storage import folders, parquet
from spanbench_pipeline.storage.folders import Files
from spanbench_pipeline.storage.results import ResultsStore, Snapshot

DEFAULT = ("trec", "beir", "legalbenchrag", "parquet", "jsonl")
"""The formats that are written where none is named."""
NOT_TABLES = ("embeddings", "metric_history", "report_files", "regression")
"""Tables that are no result of the run: vectors, and what was said of other runs."""


class _Corpus:
    """The results of a corpus with its experiment; ``tables`` names the table of each asset."""

    def __init__(
        self, store: ResultsStore, experiment: Experiment, tables: Mapping[Key, str]
    ) -> None:
        self.store = store
        self.experiment = experiment
        self.tables = tables

    @property
    def evalset(self) -> EvalSet:
        return self.store.evalset

    @property
    def states(self) -> dict[str, str]:
        return self.store.states

    def chunks(self, chunker: str) -> pa.Table:
        return self.store.table("chunks", chunker)

    @cached_property
    def stamps(self) -> dict[str, Stamp]:
        """Chunker -> what its configurations rank."""
        made, depth = self.experiment.chunkers, self.experiment.depth
        return {name: stamp.made(self.evalset, self.chunks(name), name, depth) for name in made}

    def rankings(self, config: Configuration) -> pa.Table:
        return self.store.table("rankings", config.slug)

    @property
    def measured(self) -> list[Configuration]:
        """The configurations that ran, in the experiment's order."""
        return [
            c for c in self.experiment.configurations if self.states[c.name] == parquet.MEASURED
        ]


def export(project: Project, corpus: str, folder: Path, formats: Sequence[str] = ()) -> str:
    """Writes the formats into a folder that is new or empty, each below its name; what to print.

    It only reads the home. Raises InputError, with nothing written, where the corpus has not been
    run or is not up to date, a stored table is damaged, or the folder holds something.
    """
    home = HomeState(project)
    experiment = home.experiment(corpus)
    tables = home.state([corpus]).tables
    tables = {k: t for k, t in tables.items() if k != WAREHOUSE and t not in NOT_TABLES}
    store = open_results(home, corpus)
    snapshot = store.snapshot(list(tables), "export")
    stored = _Corpus(store, experiment, tables)
    chosen = [name for name in FORMATS if name in (formats or DEFAULT)]
    written: list[str] = []
    folders.write_new(folder, _files(stored, chosen, written, snapshot))
    absent = [f"{name}: {state}" for name, state in stored.states.items() if state != "measured"]
    shown = [f"{near(folder)}: {len(written)} files of {corpus}", *written]
    return "\n".join([*shown, *(f"left out: {line}" for line in absent)])


def _files(
    stored: _Corpus,
    formats: Sequence[str],
    written: list[str],
    snapshot: Snapshot,
) -> Files:
    """Every file of the formats, and the manifest that says what each of them is.

    The snapshot is compared when all has been read, before what was written takes its name.
    """
    for name in formats:
        for path, content in FORMATS[name](stored):
            written.append(f"{name}/{path}")
            yield f"{name}/{path}", content
    written.append("manifest.json")
    yield "manifest.json", [_manifest(stored, formats)]
    snapshot.require_unchanged()


def _manifest(stored: _Corpus, formats: Sequence[str]) -> bytes:
    configurations = [
        {
            "config": config.name,
            "file_name": config.slug,
            "chunker": config.chunker,
            "state": stored.states[config.name],
            "ranked": stored.stamps[config.chunker].said(),
        }
        for config in stored.experiment.configurations
    ]
    found: dict[str, Any] = {
        "corpus": stored.experiment.corpus,
        "spanbench": __version__,
        "depth": stored.experiment.depth,
        "formats": list(formats),
        "configurations": configurations,
    }
    return (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode()


def _trec(stored: _Corpus) -> Files:
    """A run a configuration, judgements a chunker."""
    evalset = stored.evalset
    for config in stored.measured:
        tag = stored.stamps[config.chunker].tag(config.slug)
        yield f"{config.slug}.run", trec.run(stored.rankings(config), tag)
    for chunker in stored.experiment.chunkers:
        chunks = stored.chunks(chunker)
        yield f"{chunker}.qrels", trec.qrels(evalset.queries, evalset.gold_spans, chunks)


def _beir(stored: _Corpus) -> Files:
    """A folder a chunker."""
    for chunker in stored.experiment.chunkers:
        for path, content in beir.files(stored.evalset, stored.chunks(chunker)):
            yield f"{chunker}/{path}", content


def _legalbenchrag(stored: _Corpus) -> Files:
    """A result file a configuration."""
    for config in stored.measured:
        of = stored.stamps[config.chunker]
        content = legalbenchrag.write(stored.rankings(config), stored.evalset, of)
        yield f"{config.slug}.json", content


def _jsonl(stored: _Corpus) -> Files:
    """A file a configuration, a line a query."""
    for config in stored.measured:
        metrics = stored.store.table("query_metrics", config.slug)
        queries = stored.evalset.queries
        of = stored.stamps[config.chunker]
        yield (
            f"{config.slug}.jsonl",
            json_lines.write(stored.rankings(config), queries, metrics, of),
        )


def _parquet(stored: _Corpus) -> Files:
    """A file a declared table, all its configurations together; rankings say what they are of."""
    of = {c.name: stored.stamps[c.chunker].said() for c in stored.measured}
    said = {"rankings": {stamp.KEY: json.dumps(of, ensure_ascii=False)}}
    for name in sorted(set(stored.tables.values())):
        keys = sorted(key[1:] for key, table in stored.tables.items() if table == name)
        whole = pa.concat_tables([stored.store.table(*key) for key in keys])
        yield f"{name}.parquet", [scoring_files.parquet(name, whole, said.get(name))]


def _directory(stored: _Corpus) -> Files:
    """The eval set as a directory corpus, which ``adapt`` takes."""
    return directory.files(stored.evalset)


FORMATS: dict[str, Callable[[_Corpus], Files]] = {
    "trec": _trec,
    "beir": _beir,
    "legalbenchrag": _legalbenchrag,
    "parquet": _parquet,
    "jsonl": _jsonl,
    "directory": _directory,
}
"""Each format and what writes it: path below its folder -> content."""


EXAMPLES = """\
  spanbench export cuad --to exported
  spanbench export cuad --to runs --format trec jsonl"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench export``."""
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument(
        "--to", type=path_argument, required=True, metavar="DIR", help="new or empty folder"
    )
    parser.add_argument(
        "--format",
        nargs="+",
        choices=("trec", "beir", "legalbenchrag", "parquet", "jsonl", "directory"),
        help="default: all except directory, which is the evaluation set as adapt reads it",
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench export``; return the exit code."""
    terminal.say(export(project, parsed.corpus, parsed.to, parsed.format or ()))
    return DONE
