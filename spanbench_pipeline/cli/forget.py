"""``spanbench forget``: removes a corpus from the home, with all that was made of its texts.

The steps may be interrupted anywhere and done again: each removes what is still there, and the
lock's file, by which an unfinished one is known, goes last.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spanbench_pipeline.cli import score, terminal
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.cli.run import raise_failures
from spanbench_pipeline.cli.serve import only_one
from spanbench_pipeline.config import operations
from spanbench_pipeline.config import settings as toml
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.monitoring.channels.file import file_path
from spanbench_pipeline.monitoring.ledger import LEDGER
from spanbench_pipeline.pipeline import encoded_texts, removal, state_index
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.stages import views
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.storage import locks
from spanbench_pipeline.storage.locks import Holder
from spanbench_pipeline.storage.vector_cache import VectorCache

FOLDERS = {
    "parquet": "tables",
    "reports": "reports and audit files",
    "scored": "scored rankings",
    "tuned": "tuning",
    "accepted": "accepted run",
    "history": "figures over time",
}
"""Folders of the home with one folder a corpus, and what each holds."""
_OTHERS = (*FOLDERS, "cache", "calibration", "downloads", "experiments")
BEYOND = (
    "what was exported, copied or sent from here: files outside the home, e-mails, messages to a "
    "webhook, backups; a terminal's or a CI's record of what was printed",
    "what the file system keeps of a removed file: snapshots, blocks of the disk until they are "
    "written again",
)


@dataclass(frozen=True)
class Remains:
    """What the home has of one corpus. ``experiment`` is the file that ``adapt`` registered."""

    corpus: str
    folders: tuple[Path, ...]
    files: tuple[Path, ...]
    experiment: Path | None
    lines: int
    runs: int
    broken: tuple[str, ...]
    """Other corpora whose experiment or weights cannot be read: nobody knows what they need."""

    def rows(self) -> list[str]:
        """Return a line each, for a person who has to agree."""
        told = [f"{FOLDERS[f.parent.name]}: {near(f)}, {_count(f)}" for f in self.folders]
        told += [f"file: {near(path)}" for path in self.files]
        if self.experiment is not None:
            told.append(f"experiment: {near(self.experiment)}")
        if self.lines:
            told.append(f"alerts: {self.lines:,} lines that name it")
        if self.runs:
            told.append(
                f"Dagster's state: {self.runs:,} runs that name it, with logs and checks (of other "
                "corpora's assets, what was recorded stays)"
            )
        names = ", ".join(self.broken)
        without = f" (and of {names}, whose experiment or weights cannot be read)" if names else ""
        return [*told, f"vector cache: every vector that no other corpus's texts have{without}"]


def forget(
    project: Project, corpus: str, *, dry_run: bool, agreed: bool, ask: Callable[[str], str] = input
) -> str:
    """Remove a corpus; return what to print.

    ``agreed`` leaves out the question, which ``ask`` puts to a person. Raises InputError for a
    corpus of which nothing is there, while a run or ``serve`` is at work, and where nobody can be
    asked.
    """
    known = _known(project)
    if corpus not in known:
        raise InputError(
            f"nothing of a corpus {corpus!r} is in {near(project.home)}{nearest(corpus, known)}"
        )
    found = _find(project, corpus)
    listed = "\n".join(f"  {row}" for row in found.rows())
    kept = "\n".join(f"  {row}" for row in _out_of_reach(project, corpus))
    shown = f"of corpus {corpus}:\n{listed}\nout of reach:\n{kept}"
    if dry_run:
        return f"to be removed {shown}"
    if not agreed and not _agrees(corpus, shown, ask):
        return "nothing was removed"
    with only_one(project, forgetting=True):
        removed = _alone(project, corpus)
    return f"removed {shown}\nvectors removed: {removed:,}" + _still_named(project, corpus)


def _agrees(corpus: str, shown: str, ask: Callable[[str], str]) -> bool:
    if not sys.stdin.isatty():
        raise InputError(f"forget {corpus}: nobody to ask here; --yes removes without a question")
    sys.stderr.write(f"to be removed {shown}\nThis cannot be undone. ")
    return ask(f"To remove it, type {corpus}: ").strip() == corpus


# What there is.


def _known(project: Project) -> list[str]:
    """Return the corpora that have an experiment, or of which something is in the home."""
    found = {path.stem for path in project.experiment_files()}
    found |= {path.name for part in FOLDERS for path in _folders(project.home / part)}
    found |= {path.stem for path in project.locks.glob("*.lock")}
    found |= removal.corpora(project.dagster)
    return sorted(name for name in found if not name.startswith(("_", ".")))


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _find(project: Project, corpus: str) -> Remains:
    experiment = project.registered / f"{corpus}.toml"
    folders = (project.home / part / corpus for part in FOLDERS)
    return Remains(
        corpus,
        tuple(path for path in folders if path.is_dir()),
        tuple(_files(project, corpus)),
        experiment if experiment.exists() else None,
        sum(len(_lines_about(path, corpus)[1]) for path in _alert_files(project)),
        len(removal.runs(project.dagster, corpus)),
        _unknown_needs(project, corpus),
    )


def _unknown_needs(project: Project, corpus: str) -> tuple[str, ...]:
    graph = graphs.build(project)
    others = [e for name, e in graph.experiments.items() if name != corpus]
    return tuple(
        sorted((set(graph.broken) | set(encoded_texts.unknown(project, others))) - {corpus})
    )


def _files(project: Project, corpus: str) -> Iterator[Path]:
    """Yield files that may quote the corpus: its manifest, what was not finished, and what
    broke.
    """
    for name in (f"{corpus}.manifest.json", f".{corpus}.manifest.json.*", f".{corpus}.toml.*"):
        yield from project.registered.glob(name)
    yield from project.vectors.parent.glob(f"{project.vectors.name}.damaged*")
    traceback = project.home / "traceback.txt"
    if traceback.exists():
        yield traceback


def _alert_files(project: Project) -> list[Path]:
    settings = operations.load(project).alerts
    both = (file_path(settings.file, project.home), project.home / LEDGER)
    return [path for path in both if path.is_file()]


def _lines_about(path: Path, corpus: str) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of a file of alerts that are not about a corpus, and those that are."""
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    for line in path.read_bytes().splitlines(keepends=True):
        parts[_is_about(line.decode("utf-8", "replace"), corpus)].append(line)
    return parts


def _is_about(line: str, corpus: str) -> bool:
    """Tell whether an alert is about a corpus: by its fields, or by a word of it where it has none.

    What is about all corpora (the warehouse), or cannot be read, may quote this one.
    """
    try:
        entry = json.loads(line)
        said = entry.get("corpus") or entry.get("asset") or entry.get("about") or entry["mended"]
        about = re.split(r"[/ ]", said)[0]
    except (ValueError, KeyError, AttributeError, TypeError):
        about = ""
    if about in ("", views.KEY[0]):
        return removal.named(corpus).search(line) is not None
    return bool(about == corpus)


def _count(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return f"{len(files):,} files, {size / 1e6:,.1f} MB"


def _out_of_reach(project: Project, corpus: str) -> list[str]:
    """Return what forgetting does not remove, or cannot know of."""
    bundled = project.root / "data" / "experiments" / f"{corpus}.toml"
    told = []
    if bundled.exists():
        told.append(f"the experiment {near(bundled)}: it is the checkout's; downloads stay as well")
    told += [f"the source: {path}" for path in _sources(project, corpus)]
    if corpus in operations.load(project).nightly.corpora:
        told.append(f"operations.toml still names {corpus} under [nightly]: take it out")
    settings = project.dagster / "dagster.yaml"
    if settings.is_file() and "storage" in settings.read_text(errors="replace"):
        told.append(f"what Dagster stores elsewhere, as {near(settings)} says")
    if os.environ.get("QDRANT_URL"):
        told.append("collections on the server or in the folder that QDRANT_URL names")
    return [*told, *BEYOND]


def _sources(project: Project, corpus: str) -> list[str]:
    """Return the files and folders that an own experiment names: they are not ours."""
    path = project.registered / f"{corpus}.toml"
    try:
        source = toml.parse(path).get("source", {}) if path.is_file() else {}
    except InputError:
        return [f"whatever {near(path)} names; it is no valid TOML, so look before it is removed"]
    names = ("documents", "queries", "metadata")
    return [str(source[name]) for name in names if isinstance(source, dict) and name in source]


# Removing it.


def _alone(project: Project, corpus: str) -> int:
    """Remove it while nothing else is at work on the home; count the vectors removed."""
    graph = graphs.build(project)
    every = {corpus, *graph.experiments, *(p.stem for p in project.locks.glob("*.lock"))}

    def waiting(name: str, holder: Holder | None) -> None:
        raise InputError(
            f"corpus {name.removeprefix(score.lock_name(''))} is at work in "
            f"{holder or 'another run'}; forget {corpus} once it has "
            "finished"
        )

    with locks.hold(
        project.locks,
        {name for name in every if not name.startswith("_")} | {score.lock_name(corpus)},
        group=uuid.uuid4().hex,
        what="spanbench forget",
        waiting=waiting,
    ):
        removed = _remove(project, corpus, graph)
        for name in (score.lock_name(corpus), corpus):
            (project.locks / f"{name}.lock").unlink()
    return removed


def _remove(project: Project, corpus: str, graph: Graph) -> int:
    for part in FOLDERS:
        _remove_folder(project.home / part / corpus)
    _remove_folder(state_index.folder(project))
    for path in _files(project, corpus):
        path.unlink()
    for path in _alert_files(project):
        _forget_lines(path, corpus)
    removal.forget(project.dagster, corpus)
    removed = _forget_vectors(project, corpus, graph)
    (project.registered / f"{corpus}.toml").unlink(missing_ok=True)
    _make_views(project)
    removal.settle(project.dagster)
    return removed


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _forget_lines(path: Path, corpus: str) -> None:
    kept, gone = _lines_about(path, corpus)
    if gone:
        writing.write_whole(path, b"".join(kept))


def _forget_vectors(project: Project, corpus: str, graph: Graph) -> int:
    if not project.vectors.is_file():
        return 0
    others = [e for name, e in graph.experiments.items() if name != corpus]
    with VectorCache(project.vectors) as cache:
        return cache.keep_only(encoded_texts.needed(project, others))


def _make_views(project: Project) -> None:
    """Make spanbench.duckdb anew over the files that are left, and record that."""
    if not (project.database.exists() or project.dagster.exists()):
        return
    writing.remove_leftovers(project.database)
    with open_instance(project) as instance:
        stages = graphs.build(project).of([])
        raise_failures(Runner(project, instance, stages).materialize([views.KEY], {}), project)


def _still_named(project: Project, corpus: str) -> str:
    """Return the files of the home that have the corpus's name all the same, if any.

    But for those that hold other corpora's texts, where it may be a word like any other.
    """
    if (project.root / "data" / "experiments" / f"{corpus}.toml").exists():
        return ""  # what the checkout defines is in every list of all that there is
    pattern = re.compile(removal.named(corpus).pattern.encode())
    found = []
    for path in sorted(project.home.rglob("*")):
        parts = path.relative_to(project.home).parts
        theirs = len(parts) > 1 and parts[0] in _OTHERS and path.stem != views.KEY[0]
        if path.is_file() and any(map(pattern.search, _said_by(path, whole=not theirs))):
            found.append(near(path))
    return f"\nthe name {corpus} still stands in: {', '.join(found)}" if found else ""


def _said_by(path: Path, *, whole: bool) -> Iterator[bytes]:
    yield path.name.encode()
    if whole:
        yield path.read_bytes()


EXAMPLES = """\
  spanbench forget my_contracts --dry-run    what would be removed, and what cannot be
  spanbench forget my_contracts"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench forget``."""
    parser.add_argument("corpus", metavar="CORPUS")
    parser.add_argument(
        "--dry-run", action="store_true", help="list what would be removed, and change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench forget``; return the exit code."""
    terminal.say(forget(project, parsed.corpus, dry_run=parsed.dry_run, agreed=parsed.yes))
    return DONE
