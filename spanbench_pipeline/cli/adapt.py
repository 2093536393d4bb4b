"""``spanbench adapt``: register own documents and queries as an experiment."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping
from pathlib import Path

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE, path_argument
from spanbench_pipeline.cli.places import command
from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.open_files import is_read_once
from spanbench_pipeline.corpora import adapt as adapting
from spanbench_pipeline.corpora import manifest, source

SHOWN = 5
"""Gold spans with white space at an edge that are named; the others are counted."""


def adapt(
    project: Project,
    docs: Path,
    queries: Path,
    metadata: Path | None,
    name: str,
    **caps: int,
) -> str:
    """Validate and register the corpus; return what to print. ``caps`` replace those there were.

    What of an experiment that was registered before changes is a part of it.
    """
    for given in (queries, metadata):
        if given is not None and is_read_once(given):
            raise InputError(f"{given}: not a regular file, and every run reads it again")
    for cap, value in caps.items():
        if value < 1:
            raise InputError(f"--{cap.replace('_', '-')} {value}: must be at least 1")
    before = _text(project.registered / f"{name}.toml")
    path = adapting.adapt(project, docs=docs, queries=queries, metadata=metadata, name=name, **caps)
    made = source.load(experiments.load(path), project)
    noted = manifest.notes(project.registered / f"{name}.manifest.json")
    counts = (made.documents.num_rows, made.queries.num_rows, made.gold_spans.num_rows)
    return (
        f"corpus {name}: {counts[0]} documents, {counts[1]} queries, {counts[2]} gold spans\n"
        f"{_lacking(noted)}"
        f"{_edges(evalset.loose_edges(made.gold_spans))}"
        f"experiment: {path}\n{_changes(before, _text(path))}next: {command(project)} run {name}"
    )


def _edges(loose: list[str]) -> str:
    """Return how many gold spans have white space at an edge, and where the first ones are."""
    if not loose:
        return ""
    which = "; ".join(loose[:SHOWN]) + ("; ..." if len(loose) > SHOWN else "")
    return (
        f"note: {len(loose)} gold spans begin or end with white space, which has to be retrieved "
        f"as the rest: {which}\n"
    )


def _text(path: Path) -> list[str] | None:
    """Return the file's lines; None where there is none. What is wrong with it, others say."""
    try:
        return path.read_text("utf-8", "replace").splitlines() if path.is_file() else None
    except (OSError, ValueError):
        return None


def _changes(before: list[str] | None, now: list[str] | None) -> str:
    """Return what of a file that was there changed, line by line."""
    if before is None or now is None:
        return ""
    if before == now:
        return "  it was registered before: nothing in its file changed\n"
    changed = [line for line in difflib.ndiff(before, now) if line[0] in "+-"]
    return "\n    ".join(["  kept as it was, but for these lines:", *changed]) + "\n"


def _lacking(noted: Mapping[str, list[str]]) -> str:
    """Return what documents lack, a line each."""
    return "".join(
        f"note: document {doc_id!r}: {note}\n" for doc_id, notes in noted.items() for note in notes
    )


EXAMPLES = """\
  spanbench adapt --docs contracts/ --queries queries.jsonl --name my_contracts
  spanbench run my_contracts"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench adapt``."""
    parser.add_argument(
        "--docs",
        type=path_argument,
        required=True,
        metavar="DIR",
        help="folder of documents: .txt, .md, .pdf",
    )
    parser.add_argument(
        "--queries",
        type=path_argument,
        required=True,
        metavar="FILE",
        help="queries with their gold passages, one JSON object per line",
    )
    parser.add_argument(
        "--metadata",
        type=path_argument,
        metavar="FILE",
        help="JSON object: document id -> metadata fields",
    )
    parser.add_argument(
        "--name", required=True, help="name of the corpus: lower-case words joined by _"
    )
    parser.add_argument("--max-documents", type=int, metavar="N", help="limit (default: 250)")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="limit (default: 2 GB)")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench adapt``; return the exit code."""
    caps = {
        cap: value
        for cap in ("max_documents", "max_bytes")
        if (value := getattr(parsed, cap)) is not None
    }
    terminal.say(adapt(project, parsed.docs, parsed.queries, parsed.metadata, parsed.name, **caps))
    return DONE
