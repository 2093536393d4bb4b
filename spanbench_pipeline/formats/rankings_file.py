"""A file of rankings in any of the known formats."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats import FORMATS, GivenList, Rankings
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.stamp import Stamp

log = logging.getLogger("spanbench")


@dataclass(frozen=True)
class RankingsFile:
    """A file that was read and parsed, and its format."""

    where: str
    kind: str
    parsed: Rankings

    @property
    def stamp(self) -> Stamp | None:
        """Return what was ranked; None where the file does not say."""
        return self.parsed.stamp

    def lists(self, evalset: EvalSet, chunks: pa.Table | None) -> list[GivenList]:
        """Return the lists, queries and documents by the ids of the corpus."""
        with FORMATS.blamed(self.kind):
            return self.parsed.lists(evalset, chunks)


def read(given: Given, kind: str | None, config: str | None, corpus: str) -> RankingsFile:
    """Return the file parsed; its format is told by its content where ``kind`` is None."""
    kind = kind or next(name for name in _tried() if _recognizes(name, given))
    module = FORMATS.choose(given.where, "format", kind)
    if not hasattr(module, "parse"):
        raise InputError(f"{given.where}: the format {kind} is written alone, not read")
    with FORMATS.blamed(kind):
        return RankingsFile(given.where, kind, module.parse(given, config, corpus))


def _tried() -> Iterator[str]:
    """Yield the formats in the order in which a file is tried: the last takes any JSON."""
    yield "parquet"
    yield from (name for name in FORMATS if name not in FORMATS.ours)
    yield from ("trec", "legalbenchrag", "jsonl")


def _recognizes(name: str, given: Given) -> bool:
    """Return whether a file is of a format; a plug-in that fails is passed over, with a warning."""
    try:
        module = FORMATS.load(name)
        with FORMATS.blamed(name):
            return hasattr(module, "recognizes") and bool(module.recognizes(given))
    except InputError as error:
        if name in FORMATS.ours:
            raise
        log.warning("%s is not tried as %s: %s", given.where, name, error)
        return False
