"""A distribution ``acme`` that a test installs in a folder, and a corpus to use it on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline_tests.end_to_end.conftest import make_project, write_corpus
from spanbench_pipeline_tests.pipeline.test_code_version import CACHES
from spanbench_pipeline_tests.support.plugin import install

__all__ = ["make_project"]

Install = Callable[[Mapping[str, str], Mapping[str, Mapping[str, str]]], Path]


def forget() -> None:
    """Forget what a new process would not know: the plug-in's modules, and hashes of their code."""
    for name in [name for name in sys.modules if name.partition("_")[0] == "acme"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for cached in CACHES:
        cached.cache_clear()


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs modules (named ``acme_...``) and entry points; returns their folder."""

    def do(modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> Path:
        folder = install(tmp_path / "site-packages", modules, entry_points)
        monkeypatch.syspath_prepend(str(folder))
        forget()
        return folder

    yield do
    monkeypatch.undo()
    forget()


@pytest.fixture
def corpus(tmp_path: Path, make_project: Callable[..., Project]) -> Callable[[str], Project]:
    """Makes a project with the corpus ``small``: two contracts, and an experiment's other keys."""

    def make(settings: str) -> Project:
        write_corpus(tmp_path / "given")
        source = f'''
corpus = "small"
[source]
kind = "directory"
documents = "{tmp_path / "given" / "docs"}"
queries = "{tmp_path / "given" / "queries.jsonl"}"
'''
        return make_project(small=source + settings)

    return make
