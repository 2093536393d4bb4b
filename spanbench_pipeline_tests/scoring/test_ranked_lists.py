"""What a file ranked against what it is scored with, by name of what differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.formats import rankings_file, stamp
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.ids import encode
from spanbench_pipeline.scoring import ranked_lists


def evalset(text: str = "0123456789", query: str = "who?", end: int = 5, **more: Any) -> EvalSet:
    document = Document("A", more.get("title", "A"), text, "A.txt", "t", more.get("metadata", {}))
    return assemble("c", [document], [Query("q1", query, [GoldSpan("A", 0, end)])])


def cut(*ends: int, ids: str = "abc") -> pa.Table:
    starts = (0, *ends)
    rows = [
        {"corpus": "c", "chunker": "t", "chunk_id": i, "doc_id": "A", "chunk_no": n}
        | {"start_char": start, "end_char": end}
        for n, (i, start, end) in enumerate(zip(ids, starts, ends, strict=False))
    ]
    return tables.from_rows("chunks", rows)


SAID = stamp.made(evalset(), cut(5, 10), "t")


@pytest.mark.parametrize(
    ("known", "chunks", "named"),
    [
        (evalset(), cut(5, 10), []),
        (evalset(), None, []),
        (evalset(title="other", metadata={"x": "y"}), cut(5, 10), []),  # no part of the ranking
        (evalset(end=4), cut(5, 10), []),
        (evalset(text="0123456780"), cut(5, 10), ["documents"]),
        (evalset(query="whom?"), None, ["queries"]),
        (evalset(), cut(4, 10), ["chunks"]),
        (evalset(), cut(5, 10, ids="ba"), ["chunks"]),  # the same places by other names
        (evalset(), cut(5), ["chunks"]),
        (evalset(text="012345678", query="whom?"), None, ["documents", "queries"]),
    ],
)
def test_what_differs_is_named(known: EvalSet, chunks: pa.Table | None, named: list[str]) -> None:
    def held(given: stamp.Stamp | None) -> None:
        ranked_lists.require_corpus(given, known, where="mine")
        ranked_lists.require_chunks(given, chunks, where="mine", cut="x")

    held(None)
    if not named:
        held(SAID)
        return
    with pytest.raises(InputError, match=r"^mine: ") as refused:
        held(SAID)
    for name in ("documents", "queries", "chunks"):
        assert (f"the {name} are not those that were" in str(refused.value)) == (name in named)


def test_gold_that_changed_is_noted() -> None:
    assert ranked_lists.notes(SAID, evalset(), "trec", "t") == []
    assert "gold spans have changed" in ranked_lists.notes(SAID, evalset(end=4), "trec", "t")[0]
    assert "does not say which chunks" in ranked_lists.notes(None, evalset(), "trec", "t")[0]
    assert ranked_lists.notes(None, evalset(), "jsonl", "t") == []


def test_a_tag_keeps_its_stamp_whatever_the_names() -> None:
    hashes = ["0123456789abcdef"] * 4
    odd = stamp.Stamp("a;chunker=b; c%20é", *hashes)
    tag = encode(odd.tag("my; run"))
    assert len(tag.split()) == 1
    assert stamp.of_tag(tag) == odd
    assert stamp.of_tag("bm25") is None
    assert stamp.of_tag(tag[:-1]) is None
    deep = stamp.Stamp("a;depth=7", *hashes, depth=30)
    assert stamp.of_tag(encode(deep.tag("my;depth=8"))) == deep
    assert stamp.of_tag(encode(deep.tag("a")).replace("depth=30", "depth=0")) is None
    assert "depth" not in odd.said()


def test_a_depth_in_a_file_is_one_that_lists_may_have() -> None:
    line = {"query_id": "q1", "ranking": []}
    deep = replace(SAID, depth=30)
    assert read(line | {"spanbench": deep.said()}) == deep
    for wrong in (0, -1, 10_001, "30", True, 3.0):
        with pytest.raises(InputError, match="and depth as spanbench export writes"):
            read(line | {"spanbench": deep.said() | {"depth": wrong}})


def read(*lines: Any) -> stamp.Stamp | None:
    data = "\n".join(map(json.dumps, lines)).encode()
    return rankings_file.read(Given(Path("mine"), data), None, None, "c").stamp


def test_lines_of_two_exports_are_refused() -> None:
    one, two = ({"query_id": q, "ranking": []} for q in ("q1", "q2"))
    said = {"spanbench": SAID.said()}
    assert read(one, two) is None
    assert read(one | said, two | said) == SAID
    for other in ({}, {"spanbench": SAID.said() | {"chunks": "0" * 16}}):
        with pytest.raises(InputError, match="line 2: its 'spanbench' is not that of mine line 1"):
            read(one | said, two | other)
    for wrong in (7, {}, {"chunks": "x"}, SAID.said() | {"chunks": 7}):
        with pytest.raises(InputError, match="line 1: spanbench must hold chunker, documents"):
            read(one | {"spanbench": wrong})
