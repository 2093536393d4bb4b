"""``spanbench fetch``: bring an archive or weights here, verified; nothing else ever downloads."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE, path_argument
from spanbench_pipeline.cli.places import command
from spanbench_pipeline.cli.run import raise_failures
from spanbench_pipeline.config.experiment import Encoder, Reranker
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import fetch as fetching
from spanbench_pipeline.corpora import legalbench_fetch
from spanbench_pipeline.models import kinds
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.graph import Graph


def fetch(project: Project, what: str, archive: Path | None, sha256: str | None) -> str:
    """Bring ``what`` (cuad, legalbenchrag, models) and return what to print."""
    if what == "models":
        if archive is not None or sha256 is not None:
            raise InputError("fetch models takes no --archive and no --sha256")
        return _models(project)
    if what == "legalbenchrag":
        return _legalbench(project, archive, sha256)
    return _cuad(project, archive, sha256)


def _cuad(project: Project, archive: Path | None, sha256: str | None) -> str:
    """Fetch CUAD and materialize the source archives of the corpora that read it."""
    url = os.environ.get("SPANBENCH_CUAD_URL") or fetching.OFFICIAL
    found = fetching.fetch_cuad(
        project, archive=archive, sha256=sha256, url=url, progress=os.isatty(2)
    )
    corpora = _record_sources(project, "cuad")
    lines = [
        f"archive  {found.archive}  sha256 {found.archive_sha256}",
        f"member   {found.member}  sha256 {found.member_sha256}",
    ]
    if found.member_sha256 != found.official_member_sha256:
        lines.append(f"official member's sha256 is {found.official_member_sha256}: not this one")
    return "\n".join([*lines, f"next: {command(project)} run {' or '.join(corpora)}"])


def _legalbench(project: Project, archive: Path | None, sha256: str | None) -> str:
    """Fetch LegalBench-RAG and materialize the source archives of the corpora that read it."""
    found = legalbench_fetch.fetch_legalbench(project, archive=archive, sha256=sha256)
    corpora = _record_sources(project, "legalbenchrag")
    lines = [f"content  {len(found.files)} files  sha256 {found.content_sha256}"]
    if found.archive_sha256 != found.content_sha256:
        lines.insert(0, f"archive  {found.archive}  sha256 {found.archive_sha256}")
    return "\n".join([*lines, f"next: {command(project)} run {' or '.join(corpora)}"])


def _record_sources(project: Project, kind: str) -> list[str]:
    """Materialize the source archives of the corpora of one kind; return their names, sorted."""
    graph = graphs.build(project)
    corpora = [name for name, e in graph.experiments.items() if e.source.get("kind") == kind]
    stages = [s for s in graph.stages if s.corpus in corpora and s.key[1:] == ("source_archive",)]
    with open_instance(project) as instance:
        raise_failures(Runner(project, instance, stages).run(), project)
    return sorted(corpora)


def _models(project: Project) -> str:
    """Fetch the weights that any experiment names and that are not here yet."""
    graph = graphs.build(project)
    lines = []
    for settings in _all_models(graph):
        folder = kinds.fetched(settings, project.models)
        lines.append(f"{settings.name}: {folder or f'{settings.kind} brings its own weights'}")
    return "\n".join(lines or ["no experiment names a model"])


def _all_models(graph: Graph) -> list[Encoder | Reranker]:
    """Return each encoder and reranker of all experiments, once."""
    named: list[Encoder | Reranker] = []
    for experiment in graph.experiments.values():
        named += [*experiment.encoders.values(), *experiment.rerankers.values()]
    return list({repr(settings): settings for settings in named}.values())


EXAMPLES = """\
  spanbench fetch cuad
  spanbench fetch cuad --archive data.zip --sha256 HEX   a local bundle
  spanbench fetch legalbenchrag --archive PATH           a zip or folder, given: its
      download is a link in the README of github.com/zeroentropy-ai/legalbenchrag
  spanbench fetch models                                 weights from the model hub"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench fetch``."""
    parser.add_argument("what", choices=("cuad", "legalbenchrag", "models"))
    parser.add_argument(
        "--archive",
        type=path_argument,
        metavar="PATH",
        help="local zip or folder to import instead of a download",
    )
    parser.add_argument(
        "--sha256",
        metavar="HEX",
        help="expected SHA-256: for cuad, of the JSON file in the archive; for legalbenchrag, of "
        "the zip",
    )


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench fetch``; return the exit code."""
    terminal.say(fetch(project, parsed.what, parsed.archive, parsed.sha256))
    return DONE
