"""Formats told by content alone, and files of another kind refused by what they seem to be."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import threading
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.cli.adapt import adapt
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.config.settings import parse
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.open_files import is_read_once
from spanbench_pipeline.formats import json_file, rankings_file
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.given_file import given as given_file
from spanbench_pipeline.scoring.validated_run import take
from spanbench_pipeline_tests.scoring.test_statements import CHUNKS, EVALSET, TRUE

ENTRY = {"doc_id": "A", "start": 0, "end": 10, "score": 1.5}
LISTS = [{"query_id": "q1", "ranking": [ENTRY]}, {"ranking": [], "query_id": "q2"}]
SNIPPET = {"file_path": "A.txt", "span": [0, 10], "answer": TRUE["text"]}
RESULT = [
    {"retrieved_snippets": [SNIPPET], "qa_gt": {"query": "who  pays?"}},
    {"retrieved_snippets": [], "qa_gt": {"query": "when?"}},
]
RUN = "q1 Q0 one 1 1.5 t\nq2 Q0 two 1 1 t\n"


def read(data: bytes, kind: str | None = None) -> rankings_file.RankingsFile:
    return rankings_file.read(Given(Path("mine"), data), kind, None, "c")


def parquet() -> bytes:
    sink = io.BytesIO()
    row = {"query_id": "q1", "rank": 1, "doc_id": "A", "start_char": 0, "end_char": 10}
    pq.write_table(pa.Table.from_pylist([row]), sink)
    return sink.getvalue()


def shown(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent)


WHOLE = "\n".join(map(shown, LISTS))
ALIKE: dict[str, tuple[str, str]] = {
    "lines": (WHOLE, "jsonl"),
    "with blank lines": ("\n\n" + WHOLE.replace("\n", "\n \t\n") + "\n\n", "jsonl"),
    "with CRLF": (WHOLE.replace("\n", "\r\n"), "jsonl"),
    "with CR": (WHOLE.replace("\n", "\r"), "jsonl"),
    "with a BOM": ("\ufeff" + WHOLE, "jsonl"),
    "printed over many lines": ("\n".join(shown(one, 2) for one in LISTS), "jsonl"),
    "one behind the other": ("".join(map(shown, LISTS)), "jsonl"),
    "an array": (shown(LISTS), "jsonl"),
    "an array over many lines": (shown(LISTS, 4), "jsonl"),
    "a result file": (shown({"qa_result_list": RESULT, "weights": [1.0, 1.0]}), "legalbenchrag"),
    "its keys in another order": (
        shown({"weights": [1, 1], "note": {"a": [1]}, "qa_result_list": RESULT}),
        "legalbenchrag",
    ),
    "over many lines": (shown({"note": 1, "qa_result_list": RESULT}, 1), "legalbenchrag"),
    "with a BOM and CRLF": (
        "\ufeff" + shown({"a": 1, "qa_result_list": RESULT}, 2).replace("\n", "\r\n"),
        "legalbenchrag",
    ),
    "a run": (RUN, "trec"),
    "a run with tabs": (RUN.replace(" ", "\t"), "trec"),
    "a run with CRLF and a BOM": ("\ufeff" + RUN.replace("\n", "\r\n"), "trec"),
    "a run with CR": (RUN.replace("\n", "\r"), "trec"),
}


@pytest.mark.parametrize(("text", "kind"), ALIKE.values(), ids=ALIKE)
def test_one_content_in_many_layouts(text: str, kind: str) -> None:
    found = read(text.encode())
    assert found.kind == kind
    lists = found.lists(EVALSET, CHUNKS)
    rows = take(
        lists, EVALSET, None if kind != "trec" else CHUNKS, corpus="c", config="m", where=""
    )
    first = rows.rankings.to_pylist()[0]
    assert [first[c] for c in ("query_id", "doc_id", "start_char", "end_char")] == [
        "q1",
        "A",
        0,
        10,
    ]
    assert len(lists) == 2


def test_parquet_is_told_by_its_first_bytes() -> None:
    assert read(parquet()).kind == "parquet"
    assert read(WHOLE.encode()).kind == "jsonl"
    with pytest.raises(InputError, match="no Parquet file"):
        read(parquet()[:-20])
    with pytest.raises(InputError, match="no Parquet file"):
        read(WHOLE.encode(), "parquet")
    with pytest.raises(InputError, match="seems to be Parquet"):
        read(parquet(), "jsonl")


def zipped() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as opened:
        opened.writestr("a.jsonl", WHOLE)
    return sink.getvalue()


DIGITS = "7" * 5000
REFUSED: dict[str, tuple[bytes, str]] = {
    "gzip": (gzip.compress(WHOLE.encode()), r"seems to be a gzip archive\. Unpack it"),
    "zip": (zipped(), "seems to be a zip archive"),
    "UTF-16": (WHOLE.encode("utf-16"), "seems to be UTF-16. Save its text as UTF-8"),
    "UTF-16 unmarked": (WHOLE.encode("utf-16-le"), r"is NUL.*UTF-16 \(little"),
    "UTF-32": (WHOLE.encode("utf-32"), "seems to be UTF-32"),
    "NUL": (WHOLE.encode() + b"\n\0", r"\(line 3\) is NUL"),
    "Latin-1": ('{"query_id": "é"}'.encode("latin-1"), "not UTF-8: byte 14"),
    "CSV": (b"query_id,rank,doc_id\nq1,1,A\n", "line 1: this seems to be CSV"),
    "CSV without a header": (b"q1,1,A,0,10,1.5\n", "line 1: this seems to be CSV"),
    "CSV in quotes": (b'"query_id";"rank"\n', "seems to be CSV with semicolons"),
    "TSV of six": (b"qid\tQ0\tdocid\trank\tscore\ttag\n", "seems to be TSV"),
    "TSV": (b"query_id\tdoc_id\tscore\n", "seems to be TSV"),
    "five columns": (b"q1 Q0 a,b 1 2.0\n", "line 1: 5 columns"),
    "a comma after a line": (WHOLE.replace("\n", ",\n").encode(), "line 1: a comma after the obj"),
    "a comma after the second": (
        f"{shown(LISTS[0])}\n{shown(LISTS[1])},\n".encode(),
        "line 2: a comma after the object",
    ),
    "a trailing comma": (b'[{"query_id": "q1", "r": []},\n]', "not valid JSON, line 2, column 1"),
    "cut off": (WHOLE.encode()[:-3], "line 2: not valid JSON"),
    "cut off in many lines": (shown(LISTS, 1).encode()[:-3], "not valid JSON, line"),
    "nested": (b"[" * 100_000, "nested too deep"),
    "nested in a line": (b'{"query_id": "q1", "r": ' + b"[" * 100_000, "nested too deep"),
    "huge rank": (f"q1 Q0 one {DIGITS} 1 t".encode(), "line 1: rank 777777777777777… is beyond"),
    "huge score": (f"q1 Q0 one 1 {DIGITS} t".encode(), "line 1: score '7{60}'"),
    "huge offset": (
        WHOLE.replace("10", DIGITS).encode(),
        "line 1, query q1, entry 1: end 777777777777777… is beyond",
    ),
    "huge JSON score": (WHOLE.replace("1.5", DIGITS).encode(), "entry 1: score 7{60}… is beyond"),
    "huge, over many lines": (
        shown(LISTS, 1).replace("10", DIGITS).encode(),
        "item 1, query q1, entry 1: end 777777777777777… is",
    ),
    "huge JSON rank": (WHOLE.replace('"score": 1.5', f'"rank": {DIGITS}').encode(), "rank 7+… is"),
    "half a pair": (
        WHOLE.replace('"A"', '"\\ud800"').encode(),
        "^mine line 1, query q1: .*surrogate pair",
    ),
    "another object": (b'{"tests": []}', "line 1: key 'query_id' is missing"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_file_of_rankings_says_why(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read(data).lists(EVALSET, CHUNKS)
    assert str(refused.value).startswith("mine")
    assert len(str(refused.value)) < 500


def test_text_that_is_not_utf8_in_parquet() -> None:
    wrong = pa.array([b"\xff"]).cast(pa.binary()).view(pa.string())
    columns = {"query_id": wrong, "rank": [1], "doc_id": ["A"], "start_char": [0], "end_char": [5]}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    with pytest.raises(InputError, match=r"^mine: .*UTF8"):
        read(sink.getvalue())


def test_values_of_a_file_have_their_lines() -> None:
    found = json_file.values('{\n"a": 1}\n\n[{}, 2] {}', "f")
    assert [where for where, _ in found] == [
        "f line 1",
        "f line 4 item 1",
        "f line 4 item 2",
        "f line 4",
    ]


def test_a_pipe_is_read_once_and_hashed_as_it_was_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(WHOLE.encode(),), daemon=True)
    writer.start()
    found = given_file(pipe)
    writer.join(5)
    assert found.data == WHOLE.encode()
    assert found.sha256 == hashlib.sha256(WHOLE.encode()).hexdigest()
    for wrong in (tmp_path, tmp_path / "none", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            given_file(wrong)


WHOLES = [text.encode() for text, _ in ALIKE.values()] + [parquet()]
SPLICED = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\\ud83d", b"NaN"]
SPLICED += [
    b"7" * 5000,
    b"-",
    b"e999",
    b",",
    b"[",
    b"}",
    b'"',
    b"\r",
    b"\n",
    b"\xc2\xa0",
    b" ",
    b"",
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WHOLES), st.sampled_from(SPLICED), st.floats(0, 1), st.integers(0, 40))
def test_no_hostile_file_is_anything_but_wrong_input(
    whole: bytes, splice: bytes, place: float, cut: int
) -> None:
    at, said = int(place * len(whole)), "mine"
    try:
        lists = read(whole[:at] + splice + whole[at + cut :]).lists(EVALSET, CHUNKS)
        take(lists, EVALSET, CHUNKS, corpus="c", config="m", where="mine")
    except InputError as error:
        said = str(error)
    assert said.startswith("mine")
    assert len(said) < 1000


def test_what_can_be_read_once_only(tmp_path: Path) -> None:
    """Nobody writes into the pipe: whoever opened it would wait for ever."""
    pipe, file = tmp_path / "pipe.toml", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("")
    passing = (pipe, Path("/dev/stdin"), Path("/dev/fd/0"), Path("/proc/self/fd/0"))
    assert all(is_read_once(path) for path in passing)
    assert not is_read_once(file)
    assert not is_read_once(tmp_path / "none")
    for path in passing:
        for queries, metadata in ((path, None), (file, path)):
            with pytest.raises(InputError, match="not a regular file, and every run reads it"):
                adapt(Project(tmp_path, tmp_path), tmp_path, queries, metadata, "mine")
    with pytest.raises(InputError, match="a pipe, and every command reads it again"):
        parse(pipe)


@pytest.mark.parametrize("opening", [b"<!doctype html>", b"\xef\xbb\xbf \n<HTML lang='en'>"])
def test_a_web_page_is_told_as_one(opening: bytes) -> None:
    with pytest.raises(InputError, match="web page"):
        rankings_file.read(Given(Path("mine"), opening + b"<p>x y</p>"), None, None, "c")
