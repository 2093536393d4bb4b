"""Every statement of a file of rankings against every other that it is given beside."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, GoldSpan, Query, assemble
from spanbench_pipeline.formats import chunk_file, parquet_file, rankings_file
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.scoring.validated_run import Taken, take

TEXTS = {"A": "abcdefghijklmnopqrst", "B": "0123456789"}
EVALSET = assemble(
    "c",
    [Document(d, d, text, f"{d}.txt", "t") for d, text in TEXTS.items()],
    [Query("q1", "who  pays?", [GoldSpan("A", 0, 5)]), Query("q2", "when?", [GoldSpan("B", 0, 5)])],
)
FACTS = ("chunk_id", "doc_id", "start", "end", "text")
TRUE: dict[str, Any] = dict(zip(FACTS, ("one", "A", 0, 10, "abcdefghij"), strict=True))
OTHER: dict[str, Any] = dict(zip(FACTS, ("two", "B", 3, 8, "34567"), strict=True))
CHUNKS = tables.from_rows(
    "chunks",
    [
        {"corpus": "c", "chunker": "t", "chunk_id": c["chunk_id"], "doc_id": c["doc_id"]}
        | {"chunk_no": 0, "start_char": c["start"], "end_char": c["end"]}
        for c in (TRUE, OTHER)
    ],
)


def taken(data: bytes, known: pa.Table | None = None, **more: Any) -> Taken:
    found = rankings_file.read(Given(Path("mine"), data), None, None, "c")
    lists = found.lists(EVALSET, known)
    return take(lists, EVALSET, known, corpus="c", config="m", where="mine", **more)


def lines(*entries: dict[str, Any], **more: Any) -> bytes:
    """q1 with the entries; q2 with both chunks, all said of them."""
    lists = [{"query_id": "q1", "ranking": entries, **more}]
    lists.append({"query_id": "q2", "ranking": [TRUE, OTHER]})
    return "\n".join(map(json.dumps, lists)).encode()


def expected(said: dict[str, Any], *, table: bool) -> tuple[str, int, int] | None:
    """By the meaning of the words alone: the one place that all of them are true of, if any."""
    for chunk in (TRUE, OTHER):
        named = "chunk_id" in said and table
        placed = {"doc_id", "start", "end"} <= said.keys()
        if (named or placed) and all(chunk[key] == value for key, value in said.items()):
            return chunk["doc_id"], chunk["start"], chunk["end"]
    if table or "chunk_id" in said or not {"doc_id", "start", "end"} <= said.keys():
        return None
    doc_id, start, end = said["doc_id"], said["start"], said["end"]
    there = TEXTS[doc_id][start:end]
    return (doc_id, start, end) if said.get("text", there) == there else None


CHOICES = list(itertools.product((None, TRUE, OTHER), repeat=len(FACTS)))


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("keys", [("start", "end"), ("start_char", "end_char")])
def test_an_entry_is_one_place_or_refused(table: bool, keys: tuple[str, str]) -> None:
    """Each fact absent, of one chunk or of the other: 243 entries, with and without a table."""
    accepted = 0
    for choice in CHOICES:
        said = {f: c[f] for f, c in zip(FACTS, choice, strict=True) if c is not None}
        wanted = expected(said, table=table)
        renamed = {
            dict(zip(("start", "end"), keys, strict=True)).get(k, k): v for k, v in said.items()
        }
        data = lines(renamed)
        if wanted is None:
            with pytest.raises(InputError, match=r"^mine line \d, query q\d, entry \d: "):
                taken(data, CHUNKS if table else None)
            continue
        rows = taken(data, CHUNKS if table else None).rankings.to_pylist()
        assert [(r["doc_id"], r["start_char"], r["end_char"]) for r in rows[:1]] == [wanted], said
        accepted += 1
    # With a table: each chunk by its id with any of 2^4 facts, or by its place, with text or not.
    # Without: 4 facts of one chunk beside its id; and 8 mixed places, of which 2 are chunks, alone
    # or with the text that is there.
    assert accepted == (2 * (16 + 2) if table else 2 * 2 + 8 + 2)


@pytest.mark.parametrize(
    "beside",
    [{"queryId": "q2"}, {"Query": "when?"}, {"Corpus": "d"}, {"query": "when?"}, {"corpus": "d"}],
)
def test_what_stands_beside_a_list_is_held_to_it(beside: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"^mine line 1, query q1"):
        taken(lines(TRUE, **beside))


@pytest.mark.parametrize(
    ("key", "same", "other"),
    [("query_id", "q1", "q2"), ("query", "who pays?", "when?"), ("corpus", "c", "d")],
)
def test_an_entry_says_what_its_line_says(key: str, same: str, other: str) -> None:
    assert taken(lines(TRUE | {key: same}, **{key: same})).rankings.num_rows == 3
    with pytest.raises(InputError, match=rf"entry 1: its {key} is '"):
        taken(lines(TRUE | {key: other}, **{key: same}))


def test_a_file_of_json_lines_is_of_one_configuration() -> None:
    one = json.dumps({"query_id": "q1", "ranking": [TRUE], "config": "a"})
    for config, accepted in (("a", True), ("b", False)):
        data = "\n".join((one, json.dumps({"query_id": "q2", "ranking": [], "config": config})))
        if accepted:
            assert taken(data.encode()).rankings.num_rows == 1
        else:
            with pytest.raises(InputError, match=r"2 configurations.*'a'.*'b'"):
                taken(data.encode())


def test_other_keys_of_a_line_are_named() -> None:
    assert taken(lines(TRUE, chunker="clause", depth=3)).left_alone == ("chunker", "depth")


@pytest.mark.parametrize("table", [True, False])
def test_parquet_says_the_same_of_its_places(table: bool) -> None:
    """Its places are whole; chunk and text stand beside them or not."""
    for chunk_id, text, corpus in itertools.product((None, "one", "two"), (None, "ok", "no"), "cd"):
        row = {"query_id": "q1", "rank": 1, "doc_id": "A", "start_char": 0, "end_char": 10}
        row |= {} if chunk_id is None else {"chunk_id": chunk_id}
        row |= {} if text is None else {"text": TRUE["text"] if text == "ok" else "abcdefghi"}
        data = parquet(row | {"corpus": corpus})
        wrong = corpus == "d" or text == "no" or (table and chunk_id == "two")
        if wrong:
            with pytest.raises(InputError, match=r"^mine"):
                taken(data, CHUNKS if table else None)
        else:
            assert taken(data, CHUNKS if table else None).rankings.num_rows == 1


def parquet(*rows: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


ROW = {"query_id": "q1", "rank": 1, "doc_id": "A", "start_char": 0, "end_char": 10}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "who does not pay?"}, r"query q1: it asks .*who does not pay"),
        ({"start": 1}, "rank 1: columns 'start' and 'start_char' differ"),
        ({"docId": "B"}, "unknown key 'docId'; did you mean 'doc_id'"),
        ({"config": "n"}, None),
        ({"query": "who pays?", "start": 0}, None),
    ],
)
def test_further_columns(row: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert taken(parquet(ROW | row)).rankings.num_rows == 1
    else:
        with pytest.raises(InputError, match=message):
            taken(parquet(ROW | row))


def test_a_configuration_is_the_named_one() -> None:
    def read(data: bytes, config: str | None, corpus: str = "c") -> int:
        return int(parquet_file.read(Given(Path("mine"), data), config, corpus).num_rows)

    one = parquet(ROW | {"config": "a", "corpus": "c"})
    two = parquet(ROW | {"config": "a", "corpus": "c"}, ROW | {"config": "b", "corpus": "d"})
    assert read(one, "a") == read(one, None) == read(two, "a") == 1
    for data, config, corpus, message in (
        (one, "b", "c", "'config' says 'a', which is not --name 'b'"),
        (one, "a", "d", "'corpus' says 'c', which is not --corpus 'd'"),
        (two, "b", "c", "'config' says 'a', which is not --name 'b'"),
        (two, "a", "e", "2 corpora; say with --corpus which: c, d"),
    ):
        with pytest.raises(InputError, match=message):
            read(data, config, corpus)


TWO = [{"doc_id": "A", "start": 0, "end": 5}, {"doc_id": "A", "start": 5, "end": 9}]


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ((1, 2), None),
        ((0, 1), None),
        ((3, 9), None),
        ((2, 1), "entry 2: rank 1 follows rank 2"),
        ((1, 1), "entry 2: rank 1 follows rank 1"),
        ((1, None), "entry 2: no rank, but others"),
        ((1, "2"), "rank must be a whole number, not '2'"),
    ],
)
def test_ranks_beside_the_order(ranks: tuple[Any, Any], message: str | None) -> None:
    data = lines(*(e | {"rank": r} for e, r in zip(TWO, ranks, strict=True)))
    if message is None:
        assert taken(data).rankings["start_char"].to_pylist()[:2] == [0, 5]
        return
    with pytest.raises(InputError, match=message):
        taken(data)
    if all(isinstance(rank, int) for rank in ranks):
        assert taken(data, order="given").rankings["start_char"].to_pylist()[:2] == [0, 5]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"query": "who pays?"}, None),  # white space apart
        ({"corpus": "c"}, None),
        ({"query": "who  paid?"}, "line 1, query q1: it asks 'who  pays.', but the file says"),
        ({"query": 7}, "query must be text"),
        ({"corpus": "d"}, "a ranking of corpus 'd', but 'c' is scored"),
    ],
)
def test_what_a_line_says_of_its_query(more: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert taken(lines(TRUE, **more)).rankings.num_rows == 3
        return
    with pytest.raises(InputError, match=message):
        taken(lines(TRUE, **more))


def test_keys_that_say_nothing_are_named_and_near_misses_refused() -> None:
    assert taken(lines({**TRUE, "page": 3, "title": "x"})).left_alone == ("page", "title")
    for key in ("docId", "Start", "end-char", "chunkid", "TEXT"):
        with pytest.raises(InputError, match=f"entry 1: unknown key '{key}'; did you mean"):
            taken(lines({**TRUE, key: 1}))


SNIPPET = {"file_path": "A.txt", "span": [0, 10], "answer": TRUE["text"], "chunk_id": "one"}
GOLD = {"file_path": "A.txt", "span": [0, 5]}


@pytest.mark.parametrize(
    ("snippet", "result", "message"),
    [
        ({}, {}, None),
        ({"doc_id": "A", "start": 0, "end_char": 10, "text": TRUE["text"]}, {}, None),
        ({"doc_id": "B"}, {}, "doc_id 'B' is not what file_path, span, answer say: 'A'"),
        ({"start": 1}, {}, "start 1 is not what"),
        ({"text": "abc"}, {}, "text 'abc' is not what"),
        ({"answer": "abc"}, {}, "the text at A .* but the file says 'abc'"),
        ({"chunk_id": "two"}, {}, r"chunk two is placed at A \[0, 10\), but is B \[3, 8\)"),
        ({"rank": 1}, {}, None),
        ({}, {"qa_gt": {"query": "when?", "snippets": [GOLD]}}, "'q1' asks"),
        ({}, {"qa_gt": {"snippets": [GOLD | {"span": [0, 4]}]}}, "not the gold spans of query q1"),
        ({}, {"qa_gt": {"snippets": [GOLD]}}, None),
        ({}, {"qa_gt": 7}, "qa_gt must be an object"),
    ],
)
def test_a_result_of_legalbenchrag(
    snippet: dict[str, Any], result: dict[str, Any], message: str | None
) -> None:
    found = {"query_id": "q1", "retrieved_snippets": [SNIPPET | snippet], **result}
    data = json.dumps({"weights": [1.0], "qa_result_list": [found]}).encode()
    if message is None:
        assert taken(data, CHUNKS).rankings.num_rows == 1
        return
    with pytest.raises(InputError, match=message):
        taken(data, CHUNKS)


def test_a_query_found_by_its_words_has_the_gold_that_is_said() -> None:
    truth = {"query": "who  pays?", "snippets": [GOLD | {"span": [1, 5]}]}
    found = {"qa_gt": truth, "retrieved_snippets": [SNIPPET]}
    with pytest.raises(InputError, match="result 1: the snippets of qa_gt are not the gold spans"):
        taken(json.dumps({"qa_result_list": [found]}).encode())


def test_one_chunk_is_one_place_in_the_whole_file_without_a_table_too() -> None:
    with pytest.raises(InputError, match=r"line 2, .*chunk two .* at B .*in mine line 1, .* at A"):
        taken(lines({**TRUE, "chunk_id": "two"}))


PIECE = {"chunk_id": "one", "doc_id": "A", "start": 0, "end": 5}


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([PIECE | {"text": "abcde", "corpus": "c", "chunker": "t"}], None),
        ([PIECE | {"text": "abcd"}], "line 1, chunk one: the text at A"),
        ([PIECE | {"corpus": "d"}], "line 1: a chunk of corpus 'd', but 'c' is scored"),
        (
            [PIECE | {"chunker": "t"}, PIECE | {"chunk_id": "x", "end": 6, "chunker": "u"}],
            r"chunks of 2 chunkers \(t, u\)",
        ),
        (
            [
                PIECE | {"chunker": "t"},
                PIECE | {"chunk_id": "x", "end": 6, "chunker": "u"},
                PIECE | {"chunk_id": "y", "end": 7},
            ],
            "line 3, chunk y: no chunker",
        ),
        ([PIECE | {"chunker": "u"}], "chunks of 'u', but those of 't' were ranked"),
        ([PIECE | {"chunk-id": "x"}], "unknown key 'chunk-id'"),
        ([{"_id": "one", "text": "abcde", "metadata": PIECE}], None),
        ([{"_id": "one", "text": "abcd", "metadata": PIECE}], "the text at A"),
    ],
)
def test_what_a_file_of_chunks_says(pieces: list[dict[str, Any]], message: str | None) -> None:
    data = "\n".join(map(json.dumps, pieces)).encode()
    if message is None:
        found = chunk_file.read(Given(Path("mine"), data), EVALSET.documents, corpus="c")
        assert found["chunk_id"].to_pylist() == ["one"]
        return
    ranked = None if "2 chunkers" in message else "t"
    with pytest.raises(InputError, match=message):
        chunk_file.read(Given(Path("mine"), data), EVALSET.documents, corpus="c", chunker=ranked)
