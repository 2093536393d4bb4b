"""Every way in which a file of rankings can be wrong, by its message; and what is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.formats import GivenList, rankings_file
from spanbench_pipeline.formats.given_file import given as given_file
from spanbench_pipeline.scoring.validated_run import Taken, of_part, take

DOCUMENTS = [
    Document("A", "A", "0123456789" * 2, "A.txt", "t"),
    Document("B", "B", "é" * 5, "B", "t"),
]
QUERIES = [
    Query("q1", "one?", [GoldSpan("A", 0, 5)], subset="east"),
    Query("q2", "two?", [GoldSpan("B", 0, 5)], subset="east"),
    Query("q3", "three?", [GoldSpan("A", 9, 12)], subset="west"),
]
EVALSET = assemble("c", DOCUMENTS, QUERIES)


def chunks() -> pa.Table:
    places = [("A", 0, 10), ("A", 10, 20), ("B", 0, 5)]
    return tables.from_rows(
        "chunks",
        [
            {"corpus": "c", "chunker": "t", "chunk_id": f"{d}:{start}", "doc_id": d}
            | {"chunk_no": start, "start_char": start, "end_char": end}
            for d, start, end in places
        ],
    )


def a(start: Any = 0, end: Any = 10, **more: Any) -> dict[str, Any]:
    return {"doc_id": "A", "start": start, "end": end, **more}


def line(query_id: str, *entries: Any, key: str = "ranking", **more: Any) -> str:
    return json.dumps({"query_id": query_id, key: list(entries), **more})


WHOLE = [line("q1", a()), line("q2", a()), line("q3", a())]


def read(path: Path, known: pa.Table | None = None, evalset: EvalSet = EVALSET) -> list[GivenList]:
    return rankings_file.read(given_file(path), None, None, "c").lists(evalset, known)


def taken(
    path: Path,
    *given: str,
    known: pa.Table | None = None,
    order: str | None = None,
    evalset: EvalSet = EVALSET,
) -> Taken:
    path.write_text("\n".join(given), encoding="utf-8")
    lists = read(path, known, evalset)
    return take(lists, evalset, known, corpus="c", config="m", where=str(path), order=order)


def places(found: Taken, query_id: str) -> list[tuple[Any, ...]]:
    rows = found.rankings.to_pylist()
    kept = ("rank", "doc_id", "start_char", "end_char", "score", "chunk_id")
    return [tuple(row[c] for c in kept) for row in rows if row["query_id"] == query_id]


def test_a_list_is_taken_in_its_order_ties_as_given(tmp_path: Path) -> None:
    ranked = [a(0, 10, score=2), a(5, 9, score=2.0), a(10, 20, score=-1e3), a(5, 9, score=-1e3)]
    found = taken(tmp_path / "mine", line("q1", *ranked, key="results", took=3), *WHOLE[1:])
    assert places(found, "q1") == [
        (1, "A", 0, 10, 2.0, "A:0:10"),
        (2, "A", 5, 9, 2.0, "A:5:9"),
        (3, "A", 10, 20, -1000.0, "A:10:20"),
        (4, "A", 5, 9, -1000.0, "A:5:9"),
    ]
    assert (found.repeats, found.missing, found.n_lists, found.longest) == (1, (), 3, 4)
    assert places(found, "q2") == [(1, "A", 0, 10, 1.0, "A:0:10")]  # no score: 1 / rank


def test_a_missing_query_is_named_and_empty(tmp_path: Path) -> None:
    found = taken(tmp_path / "mine", WHOLE[0], "", WHOLE[2])
    assert found.missing == ("q2",)
    assert places(found, "q2") == []


def test_lists_of_other_parts_are_left_out_and_unknown_ones_are_not(tmp_path: Path) -> None:
    part = assemble("c", DOCUMENTS, QUERIES[:2])
    (tmp_path / "mine").write_text("\n".join([*WHOLE, line("q9", a())]))
    lists = read(tmp_path / "mine")
    assert [g.query_id for g in of_part(lists, EVALSET, part)] == ["q1", "q2", "q9"]


def test_an_empty_list_is_a_list(tmp_path: Path) -> None:
    assert taken(tmp_path / "mine", WHOLE[0], line("q2"), WHOLE[2]).missing == ()
    assert taken(tmp_path / "mine", WHOLE[0], line("q2"), WHOLE[2]).empty == ("q2",)


def test_places_become_the_chunks_of_the_table(tmp_path: Path) -> None:
    found = taken(
        tmp_path / "mine",
        line("q1", {"chunk_id": "B:0"}, a(10, 20), a(0, 10, chunk_id="A:0")),
        *WHOLE[1:],
        known=chunks(),
    )
    assert [row[5] for row in places(found, "q1")] == ["B:0", "A:10", "A:0"]


def test_scores_that_rise_are_settled_by_choice(tmp_path: Path) -> None:
    given = line("q1", a(0, 10, score=0.1), a(10, 20, score=0.9), a(5, 9, score=0.1))
    by_score = taken(tmp_path / "mine", given, *WHOLE[1:], order="score")
    assert [row[2] for row in places(by_score, "q1")] == [10, 0, 5]
    as_given = taken(tmp_path / "mine", given, *WHOLE[1:], order="given")
    assert [row[2] for row in places(as_given, "q1")] == [0, 10, 5]


WRONG: list[tuple[str, list[str], str]] = [
    ("empty file", [""], r"not measured: the file holds no entry for any query"),
    ("only empty lists", [line(q) for q in ("q1", "q2", "q3")], r"not measured: the file holds no"),
    (
        "a part never ran",
        [line("q1", a())],
        r"not measured: no query of west has an entry.*--subset east",
    ),
    (
        "a part has empty lists alone",
        [*WHOLE[:2], line("q3")],
        r"not measured: no query of west has an entry.*--subset east",
    ),
    (
        "two lists",
        [*WHOLE, line("q1", a())],
        r"line 4: query q1 has two lists, the first in .*ne 1",
    ),
    ("unknown query", [line("q9", a())], r"line 1: unknown query 'q9' \(3 known\)"),
    ("query misspelt", [line("q 1", a())], r"line 1: unknown query 'q 1'; did you mean 'q1'\? \(3"),
    ("no query id", ['{"ranking": []}'], r"line 1: key 'query_id' is missing"),
    ("query id no text", ['{"query_id": 7, "ranking": []}'], r"query_id must be text, not a num"),
    ("no array", ['{"query_id": "q1"}'], r"query q1: 0 arrays, not the one that is the ranking"),
    ("two arrays", [line("q1", a(), more=[])], r"query q1: 2 arrays \(ranking, more\)"),
    (
        "a line that is no object",
        [WHOLE[0], "1"],
        r"line 2: must be an object with query_id .*a number",
    ),
    ("an item that is no object", ["[1]"], r"line 1 item 1: must be an object .*a number"),
    ("no JSON", [WHOLE[0], '{"query_id": '], r"line 2: not valid JSON, column"),
    (
        "a key twice",
        ['{"query_id": "q1", "query_id": "q2", "r": []}'],
        r"'query_id' is given twice",
    ),
    ("NaN", ['{"query_id": "q1", "r": [{"score": NaN}]}'], r"line 1: NaN is not valid JSON"),
    (
        "infinite score",
        [line("q1", a()).replace("10}", '10, "score": 1e999}')],
        r"score 1e999 is b",
    ),
    ("score no number", [line("q1", a(score="high"))], r"entry 1: score must be a number"),
    (
        "some scores",
        [line("q1", a(score=1), a(3, 4)), *WHOLE[1:]],
        r"line 1, query q1, entry 2: no score, but others",
    ),
    (
        "rising scores",
        [line("q1", a(score=1), a(3, 4, score=2)), *WHOLE[1:]],
        r"query q1, entry 2: score 2.0 is above the 1.0 before it.*--order given.*--order score",
    ),
    ("bare span", [line("q1", [0, 10])], r"entry 1: must be an object.*belongs to no document"),
    ("offsets alone", [line("q1", {"start": 0, "end": 5})], r"offsets without doc_id: a bare span"),
    ("nothing said", [line("q1", {"doc_id": "A"})], r"entry 1: give doc_id, start and end, or chu"),
    (
        "no end",
        [line("q1", {"doc_id": "A", "start": 0})],
        r"give doc_id, start and end, or chunk_id",
    ),
    ("end twice", [line("q1", a(end_char=3))], r"give one of end and end_char, not both"),
    ("unknown document", [line("q1", {**a(), "doc_id": "a"}), *WHOLE[1:]], r"unknown document 'a'"),
    ("negative", [line("q1", a(-1, 5)), *WHOLE[1:]], r"entry 1: \[-1, 5\) must satisfy 0 <= start"),
    ("empty", [line("q1", a(5, 5)), *WHOLE[1:]], r"\[5, 5\) must satisfy 0 <= start < end <= 20"),
    ("reversed", [line("q1", a(7, 5)), *WHOLE[1:]], r"\[7, 5\) must satisfy"),
    ("past the end", [line("q1", a(0, 21)), *WHOLE[1:]], r"end <= 20, the number of characters of"),
    ("fraction", [line("q1", a(0.0, 5))], r"start must be a whole number, not 0.0"),
    ("offset as text", [line("q1", a("0", 5))], r"start must be a whole number, not '0'"),
    ("bool", [line("q1", a(True, 5))], r"start must be a whole number, not a bool"),
    ("huge", [line("q1", a(0, 10**30))], r"end 1000000000.* is beyond any text"),
    (
        "another text",
        [line("q1", a(0, 4, text="1234")), *WHOLE[1:]],
        r"the text at A \[0, 4\) begins '0123', but the file says '1234'",
    ),
    ("a chunk unplaced", [line("q1", {"chunk_id": "A:0"}), *WHOLE[1:]], r"A:0 does not say where"),
    ("half a pair", ['{"query_id": "\\ud800", "r": []}'], r"half of a UTF-16 surrogate pair"),
]


@pytest.mark.parametrize(("given", "message"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_what_is_wrong_is_refused(tmp_path: Path, given: list[str], message: str) -> None:
    path = tmp_path / "mine.jsonl"
    with pytest.raises(InputError, match=message) as refused:
        taken(path, *given)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (a(0, 9), r"A \[0, 9\) is no chunk of the chunk table"),
        (a(0, 10, chunk_id="A:10"), r"chunk A:10 is placed at A \[0, 10\), but is A \[10, 20\)"),
        ({"chunk_id": "A:1"}, r"unknown chunk 'A:1'; did you mean 'A:10'"),
    ],
)
def test_what_contradicts_the_chunks_is_refused(
    tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        taken(tmp_path / "mine", line("q1", entry), *WHOLE[1:], known=chunks())


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b'{"query_id": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8: byte 14"):
        read(tmp_path / "mine")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "none")


def test_a_run_needs_a_chunk_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"names chunks and not their places.*--chunker NAME"):
        taken(tmp_path / "mine.run", "q1 Q0 A:0 1 1.0 t")
    with pytest.raises(InputError, match=r"unknown query 'q9'"):
        taken(tmp_path / "mine.run", "q9 Q0 A:0 1 1.0 t", known=chunks())
    run = "q1 Q0 A:0 1 1.0 t\nq1 Q0 B:0 2 2.0 t\nq2 Q0 A:0 1 1 t\nq3 Q0 A:0 1 1 t"
    with pytest.raises(InputError, match=r"query q1, line 2: score 2.0 is above the 1.0"):
        taken(tmp_path / "mine.run", run, known=chunks())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rank": [1, 1]}, "query q1, rank 1: given twice"),
        ({"score": [1.0, float("nan")]}, "rank 2: score nan is no number"),
        ({"doc_id": ["A", None]}, "a null in column 'doc_id'"),
        ({"rank": ["1", "2"]}, "column 'rank' is string, but must hold whole numbers"),
        ({"start_char": [False, True]}, "column 'start_char' is bool, but must hold whole"),
        ({"end_char": [3.0, 5.0]}, "column 'end_char' is double, but must hold whole numbers"),
        ({"score": [True, False]}, "column 'score' is bool, but must hold numbers"),
        ({"doc_id": [1, 2]}, "column 'doc_id' is int64, but must hold text"),
        (
            {"config": ["one", "two"]},
            "rankings of 2 configurations; say with --name which: one, two",
        ),
    ],
)
def test_parquet_that_is_no_ranking_is_refused(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    columns = {"query_id": ["q1", "q1"], "rank": [1, 2], "doc_id": ["A", "A"]}
    columns |= {"start_char": [0, 3], "end_char": [3, 5]}
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.table(columns | changed), path)
    with pytest.raises(InputError, match=message):
        read(path)


def test_parquet_without_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"query_id": ["q1"]}), path)
    with pytest.raises(InputError, match="no column 'rank'; a ranking has query_id, rank"):
        read(path)
    path.write_bytes(b"PAR1 cut off")
    with pytest.raises(InputError, match="no Parquet file"):
        read(path)
