"""``spanbench export``: the stored results of a corpus in the formats of other tools."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spanbench_pipeline import __version__
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE, path_argument
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import FORMATS
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.pipeline.state import WAREHOUSE
from spanbench_pipeline.storage import folders
from spanbench_pipeline.storage.folders import Files
from spanbench_pipeline.storage.results import Snapshot

DEFAULT = ("trec", "beir", "legalbenchrag", "parquet", "jsonl")
"""The formats that are written where none is named."""
NOT_TABLES = ("embeddings", "metric_history", "report_files", "regression")
"""Tables that are no result of the run: vectors, and what was said of other runs."""


def export(project: Project, corpus: str, folder: Path, formats: Sequence[str] = ()) -> str:
    """Write the formats into a folder that is new or empty, each below its name.

    Returns what to print.

    It only reads the home. Raises InputError, with nothing written, where the corpus has not been
    run or is not up to date, a stored table is damaged, or the folder holds something.
    """
    home = HomeState(project)
    experiment = home.experiment(corpus)
    tables = home.state([corpus]).tables
    tables = {k: t for k, t in tables.items() if k != WAREHOUSE and t not in NOT_TABLES}
    store = open_results(home, corpus)
    snapshot = store.snapshot(list(tables), "export")
    stored = Results(store, experiment, tables)
    chosen = [name for name in FORMATS if name in (formats or DEFAULT)]
    written: list[str] = []
    folders.write_new(folder, _files(stored, chosen, written, snapshot))
    absent = [f"{name}: {state}" for name, state in stored.states.items() if state != "measured"]
    shown = [f"{near(folder)}: {len(written)} files of {corpus}", *written]
    return "\n".join([*shown, *(f"left out: {line}" for line in absent)])


def _files(
    stored: Results,
    formats: Sequence[str],
    written: list[str],
    snapshot: Snapshot,
) -> Files:
    """Yield every file of the formats, and the manifest that says what each of them is.

    The snapshot is compared when all has been read, before what was written takes its name.
    """
    for name in formats:
        module = FORMATS.choose("export", "format", name)
        if not hasattr(module, "write"):
            raise InputError(f"export: the format {name} is read alone, not written")
        with FORMATS.blamed(name):
            for path, content in module.write(stored):
                written.append(f"{name}/{path}")
                yield f"{name}/{path}", content
    written.append("manifest.json")
    yield "manifest.json", [_manifest(stored, formats)]
    snapshot.require_unchanged()


def _manifest(stored: Results, formats: Sequence[str]) -> bytes:
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
        choices=list(FORMATS),
        help="default: all except directory, which is the evaluation set as adapt reads it",
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench export``; return the exit code."""
    terminal.say(export(project, parsed.corpus, parsed.to, parsed.format or ()))
    return DONE
