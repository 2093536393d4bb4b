"""A file of rankings in any of the known formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats import (
    GivenList,
    json_file,
    json_lines,
    legalbenchrag,
    parquet_file,
    trec,
)
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.ids import decoder
from spanbench_pipeline.formats.stamp import Stamp, of_tag

FORMATS = ("jsonl", "trec", "legalbenchrag", "parquet")


@dataclass(frozen=True)
class RankingsFile:
    """A file that was read and parsed: its format, what it says that it ranks, and its content."""

    where: str
    kind: str
    content: Any
    stamp: Stamp | None = None
    """What was ranked; None where the file does not say."""

    def lists(self, evalset: EvalSet, chunks: pa.Table | None) -> list[GivenList]:
        """The lists, queries and documents by the ids of the corpus."""
        if self.kind == "parquet":
            return parquet_file.lists(self.content, self.where)
        if self.kind == "legalbenchrag":
            return legalbenchrag.read(self.content, self.where, evalset)
        if self.kind == "jsonl":
            return json_lines.read(self.content)
        return _of_run(self.content, evalset, chunks)


def read(given: Given, kind: str | None, config: str | None, corpus: str) -> RankingsFile:
    """The file, whose format is told by its content where ``kind`` is None."""
    where = given.where
    if kind == "parquet" or (kind is None and given.is_parquet):
        table = parquet_file.read(given, config, corpus)
        return RankingsFile(where, "parquet", table, parquet_file.stamp_of(table, where))
    text = given.text()
    if kind == "trec" or (kind is None and not text.lstrip().startswith(("{", "["))):
        _require_no_cells(text, where)
        run = trec.read_run(text, where)
        return RankingsFile(where, "trec", run, None if run.tag is None else of_tag(run.tag))
    values = json_file.values(text, where)
    if kind == "legalbenchrag" or (kind is None and legalbenchrag.is_result(values)):
        result = _only(values, where)
        return RankingsFile(where, "legalbenchrag", result, legalbenchrag.stamp_of(result, where))
    return RankingsFile(where, "jsonl", values, json_lines.stamp_of(values))


_CELLS = {",": "CSV", ";": "CSV with semicolons", "\t": "TSV"}


def _require_no_cells(text: str, where: str) -> None:
    """InputError where the first line is that of a table in cells, which is nobody's ranking."""
    first = text.lstrip().partition("\n")[0].strip()
    words = first.split()
    is_run = len(words) == len(trec.COLUMNS)
    for mark, what in _CELLS.items():
        cells = [cell.strip(" \"'").lower() for cell in first.split(mark)]
        headed = len(cells) > 1 and any(cell in trec.HEADINGS for cell in cells)
        torn = len(cells) > max(1, len(words))
        if (headed and mark == "\t") or (not is_run and (headed or torn)):
            raise InputError(
                f"{where} line 1: this seems to be {what}, which is no format of rankings: write "
                f"JSON lines, Parquet, or a TREC run ({' '.join(trec.COLUMNS)}, no header)"
            )


def _only(values: list[json_file.Value], where: str) -> Any:
    if len(values) != 1:
        raise InputError(f"{where}: {len(values)} JSON values, not the one of a result file")
    return values[0][1]


def _of_run(run: trec.Run, evalset: EvalSet, chunks: pa.Table | None) -> list[GivenList]:
    if not run.of_query:
        return []
    if chunks is None:
        raise InputError(
            f"{run.where}: a TREC run names chunks and not their places; give the chunk table with "
            "--chunks FILE or --chunker NAME"
        )
    known = {
        "query": dict.fromkeys(evalset.queries["query_id"].to_pylist()),
        "chunk": dict.fromkeys(chunks["chunk_id"].to_pylist()),
    }
    return trec.lists(run, lambda ids, what: decoder(ids, known[what], what, run.where))
