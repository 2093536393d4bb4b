"""The small interface that every source of an eval set has, and which module serves which kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, TypeVar, cast

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.config.settings import TableReader
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, Query
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline.core.suggestions import nearest

T = TypeVar("T")
KINDS = Registry(
    "spanbench.sources",
    {
        "cuad": "spanbench_pipeline.corpora.cuad",
        "directory": "spanbench_pipeline.corpora.directory",
        "legalbenchrag": "spanbench_pipeline.corpora.legalbench",
    },
)
"""Each ``kind`` of an experiment's [source] and the module whose ``open_source`` serves it.

The modules are named, not imported: a change in one of them must not touch the other's corpora.
"""


@dataclass(frozen=True)
class SourceFile:
    """One file that a corpus is read from: a row of the table ``source_files``.

    ``file`` is its name without folders, ``role`` one of archive, member, document, queries and
    metadata, ``n_bytes`` None where the size is not known, ``note`` what a reader must know.
    """

    file: str
    role: str
    n_bytes: int | None
    sha256: str
    note: str | None = None


class Source(Protocol):
    """Where one corpus comes from."""

    def files(self) -> list[SourceFile]:
        """Return the files there are now, hashed.

        Raises InputError where one is absent (naming the command that brings it) or differs from
        what was recorded of it.
        """
        ...

    def drawn(self) -> Mapping[str, str]:
        """Return how documents and queries were drawn at random, for reports: name -> value."""
        ...

    def read(self) -> tuple[list[Document], list[Query]]:
        """Return documents and queries, not yet held to the invariants of ``evalset.assemble``.

        Raises InputError naming file and line, document or question at the first thing wrong.
        """
        ...


def open_source(experiment: Experiment, project: Project) -> Source:
    """Return the source that the experiment's [source] table describes; reads no corpus file.

    Raises InputError naming the experiment file, the key, and the nearest valid name.
    """
    module = _module(experiment)
    try:
        return cast("Source", module.open_source(experiment, project))
    except InputError:
        raise
    except (Exception, SystemExit) as problem:
        if module.__name__ in KINDS.ours.values():
            raise
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise error(experiment, f"{module.__name__}.open_source failed: {reason}") from problem


def _module(experiment: Experiment) -> ModuleType:
    kind = experiment.source.get("kind")
    if kind is None:
        raise error(experiment, f"key 'kind' is missing{nearest('', KINDS)}")
    module: ModuleType = KINDS.choose(f"{experiment.path}: source", "kind", kind)
    return module


def load(experiment: Experiment, project: Project) -> EvalSet:
    """Return the experiment's eval set, read and held to every invariant."""
    return evalset.assemble(experiment.corpus, *open_source(experiment, project).read())


def settings(experiment: Experiment, kind: type[T]) -> T:
    """Return the [source] table without ``kind`` as the dataclass that declares its keys.

    Raise one InputError about every key that is unknown, missing or of another type.
    """
    table = {key: value for key, value in experiment.source.items() if key != "kind"}
    reader = TableReader(experiment.path)
    return reader.done(reader.read("source", table, kind))


def error(experiment: Experiment, problem: str) -> InputError:
    """Return an InputError about the experiment's [source] table."""
    return InputError(f"{experiment.path}: source: {problem}")
