"""Chunk files, read and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import chunk_file
from spanbench_pipeline.formats.given_file import given as given_file
from spanbench_pipeline_tests.scoring.test_validated_run import EVALSET


def piece(chunk_id: str = "c", **place: Any) -> str:
    return json.dumps({"chunk_id": chunk_id, "doc_id": "A", "start": 0, "end": 5} | place)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "it holds no chunks"),
        ([piece(), piece("d")], r"line 2, chunk d: chunk c is the same place"),
        ([piece(), piece(start=1)], r"line 2, chunk c: the id is given twice, first in .* line 1"),
        ([piece(doc_id="Z")], r"line 1, chunk c: unknown document 'Z'"),
        ([piece(end=21)], r"\[0, 21\) must satisfy 0 <= start < end <= 20"),
        ([piece(end=None)], r"key 'end' is missing"),
        ([piece(start_char=1)], r"line 1: give one of start and start_char, not both"),
        (["[7]"], r"line 1 item 1: a chunk must be an object, not a number"),
        (["chunk_id,doc_id,start,end"], r"line 1: 'chunk_id,doc_id,start,end' is no JSON; chunks"),
    ],
)
def test_chunks_that_are_none_are_refused(tmp_path: Path, given: list[str], message: str) -> None:
    path = tmp_path / "chunks.jsonl"
    path.write_text("\n".join(given))
    with pytest.raises(InputError, match=message):
        chunk_file.read(given_file(path), EVALSET.documents, corpus="c")


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_chunks_of_a_file_are_numbered_by_place(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"chunks.{kind}"
    given = [("x", "B", 0, 5), ("y", "A", 5, 20), ("z", "A", 0, 9)]
    rows = [
        {"chunk_id": c, "doc_id": d, "start_char": s, "end_char": e, "n": 1} for c, d, s, e in given
    ]
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    found = chunk_file.read(given_file(path), EVALSET.documents, corpus="c").to_pylist()
    kept = ("chunk_id", "doc_id", "chunk_no", "start_char", "end_char", "chunker")
    assert [tuple(row[c] for c in kept) for row in found] == [
        ("z", "A", 0, 0, 9, "given"),
        ("y", "A", 1, 5, 20, "given"),
        ("x", "B", 0, 0, 5, "given"),
    ]
