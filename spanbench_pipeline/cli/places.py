"""Paths and commands as a person in this folder would type them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from spanbench_pipeline.config import project as projects
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError


def places(project: Project, corpora: Sequence[str]) -> str:
    """Return where the reports, the warehouse and the web UI are."""
    files = [
        project.reports / corpus / f"{report}.html"
        for corpus in corpora
        for report in ("developer", "client")
    ]
    rows = [["" if i else "reports", near(path)] for i, path in enumerate(files)]
    ask = f'{command(project)} sql "SELECT * FROM configs"'
    rows.append(["warehouse", f"{near(project.database)}  ({ask})"])
    rows.append(["web UI", f"{command(project)} ui"])
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {place}".rstrip() for label, place in rows)


def command(project: Project) -> str:
    """Return ``spanbench``, with the home where a plain call would take another one."""
    try:
        same = projects.find().home == project.home
    except InputError:
        same = False
    return "spanbench" if same else f"spanbench --home {shlex.quote(near(project.home))}"


def near(path: Path) -> str:
    """Return a path as a person in this folder would type it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
