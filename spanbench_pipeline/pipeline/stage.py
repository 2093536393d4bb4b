"""One asset as data: what it is made of, the code that decides it, and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import code_version
from spanbench_pipeline.pipeline.code_version import Parts
from spanbench_pipeline.pipeline.staleness import Key, Node, name
from spanbench_pipeline.pipeline.table_cache import TableCache
from spanbench_pipeline.storage import parquet

Rows = list[dict[str, Any]]
ALL_CORPORA = "all_corpora"
"""The group of what all corpora share."""


@dataclass(frozen=True)
class Outcome:
    """What computing a stage gave.

    ``facts`` are shown with the materialization and on the command line. ``data_version`` replaces
    the hash of the stored bytes, where the last bits of the bytes may differ between machines.
    ``pages`` are Markdown that the web UI shows with the table, by title.
    """

    table: pa.Table
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    data_version: str | None = None
    pages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """An invariant: ``find`` returns the offending rows, [] where it holds.

    A blocking one holds back what follows. One that is not is a warning, or, where ``severe``, an
    error that nothing else waits for.
    """

    name: str
    description: str
    find: Callable[[Reader], Rows]
    blocking: bool = True
    severe: bool = False


@dataclass(frozen=True)
class Option:
    """A choice that a person has when launching: its default, what may be chosen, what it does."""

    default: str
    choices: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Stage:
    """One asset.

    ``modules`` are the roots of the code that decides the output, beside ``compute`` itself;
    ``params`` is everything else that does. ``partial`` stages take inputs that are not measured;
    all others take over their state. ``options`` are run-time choices by name. ``owners``,
    ``baseline`` and ``context`` are the corpus's: the web UI shows them.
    """

    key: Key
    table: str
    description: str
    compute: Callable[[Reader], Outcome]
    deps: tuple[Key, ...] = ()
    modules: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    kinds: tuple[str, ...] = ("python", "parquet")
    tags: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)
    owners: tuple[str, ...] = experiments.OWNERS
    baseline: str = ""
    context: int = experiments.CONTEXT
    part: str = "summary"
    """The group within the corpus of a stage whose key does not name one."""
    owns: Mapping[str, str] = field(default_factory=dict)
    """Columns that hold one value in all its rows: the corpus, the configuration, the chunker."""
    damage: Callable[[Project, pa.Table], str] | None = None
    """Says what is wrong with further files that the stage wrote; empty where nothing is."""
    shown: Callable[[Project], list[Path]] | None = None
    """The files that the warehouse's view reads in the place of the stage's own."""

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """Return the stage's own checks, behind those that every table must pass."""
        return (KEYS_UNIQUE, OWN_ROWS, *self.checks)

    @property
    def corpus(self) -> str:
        """Return the corpus it belongs to; empty where that is all of them."""
        return "" if self.shared else self.key[0]

    @property
    def shared(self) -> bool:
        """Return whether it belongs to all corpora."""
        return len(self.key) == 1

    @property
    def group(self) -> str:
        """Return ``<corpus>_<step>``: the graph shows only a key's last segment, the group the
        rest.
        """
        return f"{self.corpus}_{self.step}" if self.corpus else ALL_CORPORA

    @property
    def step(self) -> str:
        """Return the part of the pipeline that it belongs to."""
        return self.key[1] if len(self.key) > 2 else self.part

    def made_by(self) -> Parts:
        """Return what its code version is a hash of.

        Inputs count as parameters: one more is a change.
        """
        params = {"deps": [list(d) for d in self.deps], "table": self.table, **self.params}
        computes = code_version.function_root(self.compute)
        roots = (*self.modules, *([computes] if computes else []))
        return code_version.parts(roots, params, self.libraries)

    def node(self, made_by: Parts | None = None) -> Node:
        """Return the stage as the resolver sees it; ``made_by`` where it is known already."""
        return Node(self.key, code_version.digest(made_by or self.made_by()), self.deps)

    def path(self, project: Project) -> Path:
        """Return where its table is stored."""
        return project.parquet / parquet.relative_path(self.key)

    def view_files(self, project: Project) -> list[Path]:
        """Return the files that exist of what the warehouse shows of it."""
        paths = [self.path(project)] if self.shown is None else self.shown(project)
        return [path for path in paths if path.is_file()]


class UnsoundInput(InputError):
    """An input is not the file that was recorded of it, or has failed a blocking check."""


@dataclass(frozen=True)
class Recorded:
    """What is recorded of an input's latest materialization.

    ``failed`` are the blocking checks that failed on it.
    """

    sha256: str
    failed: tuple[str, ...] = ()


class Reader:
    """Reads a stage's own table and its inputs, and nothing that it did not declare.

    Inputs that ``recorded`` knows are read only where they are what it says.
    """

    def __init__(
        self,
        project: Project,
        stage: Stage,
        table_names: Mapping[Key, str],
        options: Mapping[str, str] | None = None,
        run_id: str = "",
        recorded: Mapping[Key, Recorded] | None = None,
        cache: TableCache | None = None,
    ) -> None:
        self.project = project
        self.run_id = run_id
        self.stage = stage
        self.options = {n: o.default for n, o in stage.options.items()} | dict(options or {})
        self._table_names = table_names
        self._recorded = recorded or {}
        self._cache = cache or TableCache()
        self._read: dict[Key, parquet.Stored] = {}

    def stored(self, key: Key) -> parquet.Stored:
        """Return the table of an asset with its state; read once.

        Raises UnsoundInput where it is an input that cannot be relied on.
        """
        if key != self.stage.key and key not in self.stage.deps:
            raise KeyError(f"{self.stage.key} does not declare the input {key}")
        if key not in self._read:
            path = self.project.parquet / parquet.relative_path(key)
            self._require_sound(key, path)
            self._read[key] = self._cache.read(path, self._table_names[key])
        return self._read[key]

    def _require_sound(self, key: Key, path: Path) -> None:
        """UnsoundInput where a file that is there is not the recorded one, or failed a check."""
        recorded = self._recorded.get(key)
        if recorded is None or not path.is_file():
            return
        wrong = ""
        if self._cache.sha256(path) != recorded.sha256:
            wrong = "was changed since it was made"
        elif recorded.failed:
            wrong = f"failed a blocking check ({', '.join(recorded.failed)})"
        if wrong:
            raise UnsoundInput(
                f"{path}: the table of {name(key)} {wrong}; it is not used; "
                f"spanbench run {key[0]} computes it again"
            )

    def own(self) -> pa.Table:
        """Return the stage's own stored table, for checks."""
        return self.stored(self.stage.key).table

    def table(self, *names: str) -> pa.Table:
        """Return an input of the same corpus: ``table("chunks", "clause")``."""
        return self.stored((self.stage.corpus, *names)).table

    def all(self, stage: str) -> pa.Table:
        """Return all inputs of one kind, one below the other: ``all("query_metrics")``."""
        keys = [d for d in self.stage.deps if d[:2] == (self.stage.corpus, stage)]
        return pa.concat_tables([self.stored(k).table for k in keys])

    def not_measured(self) -> str | None:
        """Return the first input's state that is not ``measured``; None where all are."""
        states = [self.stored(dep).state for dep in self.stage.deps]
        return next((s for s in states if s != parquet.MEASURED), None)


def _foreign_rows(reader: Reader) -> Rows:
    """Return values of the owned columns that are not the stage's, with their number of rows."""
    table = reader.own()
    wrong: Rows = []
    for column, value in reader.stage.owns.items():
        counts = Counter(table[column].to_pylist())
        wrong += [
            {"column": column, "value": found, "expected": value, "rows": n}
            for found, n in sorted(counts.items(), key=str)
            if found != value
        ]
    return wrong


KEYS_UNIQUE = Check(
    "keys_unique",
    "No two rows have one key: every id names one thing.",
    lambda reader: tables.repeated_keys(reader.stage.table, reader.own()).to_pylist(),
)
OWN_ROWS = Check(
    "own_rows_only",
    "Every row is of this asset's corpus, configuration and chunker, and of no other.",
    _foreign_rows,
)
