"""A file of rankings in any of the known formats."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from spanbench_pipeline.corpora import strict_json
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.evalset import EvalSet
from spanbench_pipeline.exchange import GivenList, legalbenchrag, lines, tables_file, trec
from spanbench_pipeline.exchange.ids import decoder
from spanbench_pipeline.scoring.chunk_file import read_bytes

FORMATS = ("jsonl", "trec", "legalbenchrag", "parquet")


def read(
    path: Path, evalset: EvalSet, chunks: pa.Table | None, kind: str | None, config: str | None
) -> tuple[list[GivenList], str]:
    """The lists of a file and its format, which is told by the content where ``kind`` is None."""
    if kind == "parquet" or (kind is None and path.suffix == ".parquet"):
        return tables_file.read(path, config), "parquet"
    where = str(path)
    text = strict_json.decode(read_bytes(path), where)
    found = kind or told(text)
    if found == "jsonl":
        return lines.read(text, where), found
    if found == "legalbenchrag":
        return legalbenchrag.read(text, where, evalset), found
    return _trec(text, where, evalset, chunks), found


def told(text: str) -> str:
    """The format of a text: JSON lines, LegalBench-RAG's one JSON object, else a TREC run."""
    head = text.removeprefix(strict_json.BOM).lstrip()
    if not head.startswith(("{", "[")):
        return "trec"
    opening = re.match(r'\{\s*("[^"]*")?', head)
    whole = head.partition("\n")[0].strip() == "{"
    named = opening is not None and opening[1] in (f'"{legalbenchrag.LISTS}"', '"weights"')
    return "legalbenchrag" if whole or named else "jsonl"


def _trec(text: str, where: str, evalset: EvalSet, chunks: pa.Table | None) -> list[GivenList]:
    if not text.strip():
        return []
    if chunks is None:
        raise InputError(
            f"{where}: a TREC run names chunks and not their places; give the chunk table with "
            "--chunks FILE or --chunker NAME"
        )
    known = {
        "query": dict.fromkeys(evalset.queries["query_id"].to_pylist()),
        "chunk": dict.fromkeys(chunks["chunk_id"].to_pylist()),
    }
    return trec.read_run(text, where, lambda ids, what: decoder(ids, known[what], what, where))
