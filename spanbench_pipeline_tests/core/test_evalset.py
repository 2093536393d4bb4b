from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.core import evalset, tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query
from spanbench_pipeline_tests.metrics.cases import CORPUS, Case, cases

A = Document("A", "First", "Governing Law: Delaware", "a.txt", "text 1", {"version": "7"})
B = Document("B", "Second", "naïve “😀” text", "b.txt", "text 1")
ASKED = Query("q1", "Which law?", [GoldSpan("A", 15, 23)], "A", "Governing Law", None, {})


def assemble(*documents: Document, queries: list[Query] | None = None) -> EvalSet:
    return evalset.assemble("lab", documents or (A, B), [ASKED] if queries is None else queries)


def asking(**changes: Any) -> Query:
    return dataclasses.replace(ASKED, **changes)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_gold_is_merged_into_maximal_runs(case: Case) -> None:
    known = case.eval_set()
    assert known.gold_spans.to_pylist() == [
        {
            "corpus": CORPUS,
            "query_id": query,
            "span_no": number,
            "doc_id": doc_id,
            "start_char": start,
            "end_char": end,
            "text": case.texts[doc_id][start:end],
        }
        for query in sorted(case.gold)
        for number, (doc_id, start, end) in enumerate(case.asked(query).gold)
    ]
    assert evalset.gold_violations(known) == []
    assert evalset.text_violations(known.documents) == []


def test_spans_that_overlap_or_touch_become_one() -> None:
    gold = [GoldSpan("A", 10, 13), GoldSpan("A", 0, 9), GoldSpan("A", 13, 15), GoldSpan("A", 5, 8)]
    found = assemble(queries=[asking(gold=gold)]).gold_spans
    places = list(zip(found["start_char"].to_pylist(), found["end_char"].to_pylist(), strict=True))
    assert places == [(0, 9), (10, 15)]


def test_equal_spans_of_two_queries_or_documents_stay_apart() -> None:
    gold = [GoldSpan("A", 0, 5), GoldSpan("B", 0, 5)]
    found = assemble(queries=[asking(gold=gold), asking(query_id="q0", gold=gold)]).gold_spans
    keys = [(r["query_id"], r["span_no"], r["doc_id"]) for r in found.to_pylist()]
    assert keys == [("q0", 0, "A"), ("q0", 1, "B"), ("q1", 0, "A"), ("q1", 1, "B")]


def test_the_tables_hold_what_was_given() -> None:
    query = asking(filters={"version": "7"}, subset="east", doc_id=None)
    known = assemble(B, A, queries=[query])
    text = "naïve “😀” text"
    assert known.documents.to_pylist()[1] == {
        "corpus": "lab",
        "doc_id": "B",
        "title": "Second",
        "n_chars": 14,  # code points: the emoji is one
        "text": text,
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "source_file": "b.txt",
        "extractor": "text 1",
        "metadata": [],
    }
    assert known.documents["metadata"].to_pylist()[0] == [("version", "7")]
    assert known.queries.to_pylist() == [
        {
            "corpus": "lab",
            "query_id": "q1",
            "query": "Which law?",
            "clause_type": "Governing Law",
            "subset": "east",
            "doc_id": None,
            "filters": [("version", "7")],
        }
    ]
    assert evalset.texts(known.documents) == {"A": A.text, "B": text}


def test_metadata_and_filters_are_sorted_by_name() -> None:
    fields = {"b": "2", "a": "1"}
    known = assemble(
        dataclasses.replace(A, metadata=fields), queries=[asking(filters=dict(fields))]
    )
    for column in (known.documents["metadata"], known.queries["filters"]):
        assert column.to_pylist() == [[("a", "1"), ("b", "2")]]


def test_line_endings_are_part_of_the_text() -> None:
    law = Document("A", "A", "A\r\nGoverning Law: Delaware\r\n", "a.txt", "text")
    gold = GoldSpan("A", 3, 26, "Governing Law: Delaware")
    found = assemble(law, queries=[asking(gold=[gold])]).gold_spans.to_pylist()
    assert [(r["start_char"], r["end_char"], r["text"]) for r in found] == [(3, 26, gold.text)]
    # Offsets of a version with other line endings come to light, with both texts in the message.
    shifted = dataclasses.replace(gold, start=2, end=25)
    with pytest.raises(InputError, match="Governing Law: Delaware") as error:
        assemble(law, queries=[asking(gold=[shifted])])
    assert r"'\nGoverning Law: Delawar'" in str(error.value)
    assert "query q1, document A, gold span [2, 25)" in str(error.value)


def test_a_long_text_is_cut_in_messages() -> None:
    long = Document("A", "A", "x" * 300, "a.txt", "text")
    with pytest.raises(InputError, match=r"the text there is 'x{120}…', but the gold text is 'y'"):
        assemble(long, queries=[asking(gold=[GoldSpan("A", 0, 200, "y")])])


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], "corpus lab: no queries"),
        ([ASKED, ASKED], "corpus lab: query id 'q1' is given 2 times"),
        ([asking(query_id="")], "corpus lab: a query has an empty id"),
        ([asking(text=" \n")], "query q1: the query is empty"),
        ([asking(text="\u200b\u00ad\u2800")], "query q1: the query is empty"),
        ([asking(gold=[])], "query q1: no gold span"),
        ([asking(doc_id="C")], "query q1: unknown document 'C'"),
        (
            [asking(filters={"edition": "7"})],
            "query q1: filter field 'edition' is declared by no document; declared: version",
        ),
        ([asking(gold=[GoldSpan("C", 0, 1)])], "query q1: gold span in unknown document 'C'"),
        (
            [asking(gold=[GoldSpan("A", 15, 24)], origin="queries.jsonl line 7")],
            r"query q1 \(queries.jsonl line 7\), document A, gold span \[15, 24\): outside the "
            "text, which has 23 characters",
        ),
        ([asking(gold=[GoldSpan("A", -1, 3)])], r"gold span \[-1, 3\): outside the text"),
        ([asking(gold=[GoldSpan("A", 3, 3)])], r"gold span \[3, 3\): outside the text"),
        (
            [asking(gold=[GoldSpan("A", 0, 3), GoldSpan("A", 14, 15)], origin="q.jsonl line 7")],
            r"query q1 \(q.jsonl line 7\), document A, gold span \[14, 15\): .*white space",
        ),
        (
            [asking(), asking(query_id="q2", gold=[]), asking(query_id="q3", text="\t")],
            r"(?s)corpus lab: 2 problems.*query q2: no gold span.*query q3: the query is empty",
        ),
        ([asking(doc_id="\u0410")], r"unknown document .*did you mean 'A'.*script.*\\u0410"),
        ([asking(gold=[GoldSpan("A", 5, 3)])], r"gold span \[5, 3\): outside the text"),
    ],
)
def test_queries_that_are_refused(queries: list[Query], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assemble(queries=queries)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([A, A], "corpus lab: document id 'A' is given 2 times"),
        ([dataclasses.replace(A, doc_id="")], "corpus lab: a document has an empty id"),
        ([A, dataclasses.replace(B, text="\n \x0c\n")], r"document B \(b.txt\): no text but white"),
        ([A, dataclasses.replace(B, text="\u200b\ufeff")], r"\(b.txt\): no text but white space"),
        ([A, dataclasses.replace(B, text="")], r"document B \(b.txt\): no text but white space"),
        (
            [dataclasses.replace(A, text="ab\ud83d")],
            r"document 'A' \('a.txt'\): character 2 is U\+D83D, half of a UTF-16 surrogate pair",
        ),
        (
            [dataclasses.replace(A, metadata={"doc_id": "x"})],
            "document A: metadata field 'doc_id' is a name that chunks have",
        ),
    ],
)
def test_documents_that_are_refused(documents: list[Document], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assemble(*documents)


def test_a_corpus_without_documents_is_refused() -> None:
    with pytest.raises(InputError, match="corpus lab: no documents"):
        evalset.assemble("lab", [], [ASKED])


@pytest.mark.parametrize(
    "blank", [" ", "\n\r\t\x0c", "\u00a0\u2003", "\u200b\ufeff", "\u00ad", "\u2028\u2060", "\u0000"]
)
def test_gold_that_shows_nothing_is_refused(blank: str) -> None:
    shown = dataclasses.replace(B, text=f"a{blank}b")
    for text in (blank, None):
        span = GoldSpan("B", 1, 1 + len(blank), text)
        with pytest.raises(InputError, match="white space"):
            assemble(A, shown, queries=[asking(gold=[GoldSpan("A", 0, 4), span])])
    for around in (GoldSpan("B", 0, 1 + len(blank)), GoldSpan("B", 1, 2 + len(blank))):
        found = assemble(A, shown, queries=[ASKED, asking(query_id="q2", gold=[around])])
        place = f"[{around.start}, {around.end})"
        assert evalset.loose_edges(found.gold_spans) == [f"query q2, document B, {place}"]
    inside = assemble(A, shown, queries=[asking(gold=[GoldSpan("B", 0, len(shown.text))])])
    assert evalset.loose_edges(inside.gold_spans) == []


def test_without_declared_fields_the_message_says_none() -> None:
    with pytest.raises(InputError, match="declared: none"):
        assemble(B, queries=[asking(gold=[GoldSpan("B", 0, 1)], doc_id="B", filters={"x": "1"})])


def changed(table: pa.Table, change: Callable[[list[dict[str, Any]]], Any]) -> pa.Table:
    rows = table.to_pylist()
    change(rows)
    return pa.Table.from_pylist(rows, table.schema)


TWO = assemble(
    queries=[asking(gold=[GoldSpan("A", 0, 9), GoldSpan("A", 15, 23), GoldSpan("B", 0, 5)])]
)


@pytest.mark.parametrize(
    ("number", "values", "expected"),
    [
        (0, {"doc_id": "C"}, "query q1, document C, [0, 9): no such document"),
        (1, {"end_char": 24}, "query q1, document A, [15, 24): outside the text"),
        (2, {"end_char": 0}, "query q1, document B, [0, 0): outside the text"),
        (1, {"text": "delaware"}, "[15, 23): the recorded text is not what stands there"),
        (
            1,
            {"start_char": 9, "text": A.text[9:23]},
            "query q1, document A, [9, 23): not after the query's previous span",
        ),
    ],
    ids=str,
)
def test_stored_gold_that_breaks_an_invariant(
    number: int, values: dict[str, Any], expected: str
) -> None:
    assert evalset.gold_violations(TWO) == []
    gold = changed(TWO.gold_spans, lambda rows: rows[number].update(values))
    (found,) = evalset.gold_violations(dataclasses.replace(TWO, gold_spans=gold))
    assert found.endswith(expected)


def test_stored_queries_and_gold_must_match() -> None:
    without = dataclasses.replace(TWO, gold_spans=tables.empty("gold_spans"))
    sentence = "query q1: gold spans and queries do not match"
    assert evalset.gold_violations(without) == [sentence]
    unknown = dataclasses.replace(TWO, queries=tables.empty("queries"))
    assert evalset.gold_violations(unknown) == [sentence]


@pytest.mark.parametrize(
    "values", [{"text": "other"}, {"n_chars": 4}, {"text_sha256": "0"}], ids=str
)
def test_stored_text_that_is_not_the_recorded_one(values: dict[str, Any]) -> None:
    documents = changed(TWO.documents, lambda rows: rows[1].update(values))
    assert evalset.text_violations(documents) == [
        "document B: text differs from its recorded length or hash"
    ]


@pytest.mark.parametrize(
    ("documents", "queries"),
    [
        ([dataclasses.replace(A, title="\ud83d")], [ASKED]),
        ([dataclasses.replace(A, metadata={"version": "\ud83d"})], [ASKED]),
        ([A], [asking(text="Which \ud83d?")]),
        ([A], [asking(clause_type="\ud83d")]),
        ([A], [asking(subset="\ud83d")]),
        ([A], [asking(query_id="q\ud83d")]),
    ],
    ids=["title", "metadata", "query", "clause type", "subset", "query id"],
)
def test_half_a_character_anywhere_is_refused(
    documents: list[Document], queries: list[Query]
) -> None:
    with pytest.raises(InputError, match="half of a UTF-16 surrogate pair"):
        assemble(*documents, queries=queries)


@pytest.mark.parametrize(
    ("documents", "queries"),
    [
        ([dataclasses.replace(A, metadata={"\ud83d": "7"})], [ASKED]),
        ([A], [asking(filters={"version": "\ud83d"})]),
    ],
    ids=["field", "filter"],
)
def test_half_a_character_in_a_field_or_filter_is_refused(
    documents: list[Document], queries: list[Query]
) -> None:
    with pytest.raises(InputError, match="half of a UTF-16 surrogate pair"):
        assemble(*documents, queries=queries)


def test_hints_are_looked_for_where_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = []
    monkeypatch.setattr(evalset, "suggested", lambda name, _: looked_up.append(name) or "")
    wrong = [asking(query_id=f"q{n}", gold=[GoldSpan("C", 0, 1)]) for n in range(50)]
    with pytest.raises(InputError, match="50 problems"):
        assemble(Document("A", "A", "some text", "A.txt", "txt"), queries=wrong)
    assert len(looked_up) == 20
