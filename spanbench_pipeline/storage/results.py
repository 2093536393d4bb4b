"""The stored results of a corpus: whatever reads them reads them through a ``ResultsStore``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from spanbench_pipeline.core.evalset import EvalSet
    from spanbench_pipeline.storage.parquet import Stored

Key = tuple[str, ...]
EVAL_SET = ("documents", "queries", "gold_spans")
_TABLES = {
    "reports": "report_files",
    "routing": "routed_documents",
    "source_archive": "source_files",
}
"""The declared table of each stage that has not its name."""
_NAMED = 5
"""Stale assets named in one message."""


@dataclass(frozen=True)
class Snapshot:
    """Stored tables as they were when they were found fresh."""

    states: Sequence[tuple[int, int] | None]
    look: Callable[[], Sequence[tuple[int, int] | None]]
    problem: str

    def require_unchanged(self) -> None:
        """Raise InputError where one has been replaced since; call it when all have been read."""
        if self.look() != self.states:
            raise InputError(self.problem)


class ResultsStore:
    """Reads the tables of one corpus, each once.

    Tables are named as assets are, without the corpus: ``table("query_metrics", "clause_bm25")``.
    ``doubts`` returns a line for each reason not to rely on some assets, and ``command`` is how a
    person calls spanbench: what ``snapshot`` goes by and what it says.
    """

    def __init__(
        self,
        project: Project,
        corpus: str,
        doubts: Callable[[Sequence[Key]], Sequence[str]] = lambda keys: [],
        command: str = "spanbench",
    ) -> None:
        self.project = project
        self.corpus = corpus
        self._doubts = doubts
        self._command = command
        self._read: dict[Key, Stored] = {}

    def path(self, *parts: str) -> Path:
        """Return where a table is stored, or would be."""
        return self.project.parquet / ("/".join((self.corpus, *parts)) + ".parquet")

    def has(self, *parts: str) -> bool:
        """Return whether a table is stored."""
        return self.path(*parts).is_file()

    def stored(self, *parts: str) -> Stored:
        """Return a table with its state; InputError where it is absent or damaged."""
        from spanbench_pipeline.storage import parquet

        if parts not in self._read:
            name = _TABLES.get(parts[0], parts[0])
            self._read[parts] = parquet.read(self.path(*parts), name)
        return self._read[parts]

    def table(self, *parts: str) -> pa.Table:
        """Return a table, which is empty where it was not measured."""
        return self.stored(*parts).table

    def measured(self, *parts: str, action: str) -> pa.Table:
        """Return a table; InputError that begins with ``action`` where it was not measured."""
        from spanbench_pipeline.storage.parquet import MEASURED

        stored = self.stored(*parts)
        if stored.state != MEASURED:
            raise InputError(f"{action}{stored.state}")
        return stored.table

    def all(self, stage: str, names: Iterable[str]) -> pa.Table:
        """Return the tables of a stage, one below the other."""
        import pyarrow as pa

        return pa.concat_tables([self.table(stage, name) for name in names])

    @cached_property
    def evalset(self) -> EvalSet:
        """Return documents, queries and gold spans as the corpus's last run stored them."""
        from spanbench_pipeline.core.evalset import EvalSet

        return EvalSet(**{name: self.table(name) for name in EVAL_SET})

    @cached_property
    def states(self) -> dict[str, str]:
        """Return each configuration's state: ``measured``, or why it is not."""
        return {row["config"]: row["state"] for row in self.table("configs").to_pylist()}

    def snapshot(self, keys: Sequence[Key], action: str) -> Snapshot:
        """Return the present state of some assets.

        Raises InputError where one of them, or one that it is made from, is stale or in doubt.
        """
        before = self._file_states(keys)
        if doubts := self._doubts(keys):
            more = [f"  and {len(doubts) - _NAMED} more"] if len(doubts) > _NAMED else []
            listed = "\n".join([*(f"  {line}" for line in doubts[:_NAMED]), *more])
            raise InputError(
                f"{action} {self.corpus}: what is stored is not up to date or is in doubt; "
                f"{self._command} run {self.corpus} first\n{listed}"
            )
        problem = f"a run replaced tables while they were read; {action} again"
        return Snapshot(
            before, lambda: self._file_states(keys), f"{action} {self.corpus}: {problem}"
        )

    def _file_states(self, keys: Sequence[Key]) -> list[tuple[int, int] | None]:
        """Return what tells each file from one that takes its place: a rename makes another."""
        paths = [self.path(*key[1:]) for key in keys]
        found = [path.stat() if path.is_file() else None for path in paths]
        return [state and (state.st_ino, state.st_mtime_ns) for state in found]
