from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.formats import GivenList, legalbenchrag, rankings_file
from spanbench_pipeline.formats.given_file import Given

TICK = "privacy_qa/TickTick_ To Do List with Reminder, Day Planner"


def evalset() -> EvalSet:
    documents = [
        Document(TICK, "t", "0123456789" * 3, "t.txt", "t"),
        Document("maud/m", "m", "abcdefghij", "m.txt", "t"),
    ]
    queries = [
        Query("one", "the same?", [GoldSpan(TICK, 0, 5)]),
        Query("three", "another?", [GoldSpan("maud/m", 0, 5)]),
        # [7, 9) and [9, 12) touch, and are one span in the corpus.
        Query("two", "the same?", [GoldSpan(TICK, 7, 9), GoldSpan(TICK, 9, 12)]),
    ]
    return assemble("c", documents, queries)


def snippet(path: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"file_path": path, "span": [start, end], **more}


def result(query: str, gold: list[dict[str, Any]], *found: dict[str, Any]) -> dict[str, Any]:
    return {"qa_gt": {"query": query, "snippets": gold}, "retrieved_snippets": list(found)}


def read_text(text: str, known: EvalSet) -> list[GivenList]:
    found = rankings_file.read(Given(Path("results.json"), text.encode()), None, None, "c")
    assert found.kind == ("legalbenchrag" if "qa_result_list" in text else "jsonl")
    return found.lists(known, None)


def read(*results: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    text = json.dumps({"qa_result_list": results, "weights": [1.0] * len(results)}, indent=4)
    lists = read_text(text, evalset())
    return {
        g.query_id: [(e.doc_id, e.start, e.end, e.score, e.text) for e in g.entries] for g in lists
    }


PUBLISHED = "privacy_qa/TickTick: To Do List with Reminder, Day Planner.txt"


def test_a_result_file_as_the_benchmark_writes_it() -> None:
    """Queries are found by their words and, where those are not enough, by their gold."""
    found = read(
        result("the same?", [snippet(PUBLISHED, 7, 9), snippet(PUBLISHED, 9, 12)]),
        result(
            "the same?",
            [snippet(PUBLISHED, 0, 5)],
            snippet(PUBLISHED, 3, 9, answer="345678", score=0.5),
            snippet("maud/m.txt", 0, 10),
        ),
        result("another?", []),
    )
    assert found == {
        "two": [],
        "one": [(TICK, 3, 9, 0.5, "345678"), ("maud/m", 0, 10, None, None)],
        "three": [],
    }


def test_published_names_are_written() -> None:
    assert legalbenchrag.file_path(TICK) == PUBLISHED
    assert legalbenchrag.file_path("maud/m") == "maud/m.txt"
    assert legalbenchrag.file_path("my contract%20: 1") == "my contract%20: 1.txt"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (result("nobody asks?", []), r"results.json result 1: no query of the corpus asks"),
        (
            result("the same?", [snippet(PUBLISHED, 0, 4)]),
            r"2 queries of the corpus ask 'the same\?', none with this gold: one, two",
        ),
        (
            result("another?", [], snippet("maud/n.txt", 0, 1)),
            r"result 1, query three, entry 1: unknown document 'maud/n.txt'; did you mean 'maud/m'",
        ),
        (result("another?", [], {"span": [0, 1]}), r"entry 1: key 'file_path' is missing"),
        (result("another?", [], snippet("maud/m.txt", 0, "1")), r"offset of span must be a whole"),  # type: ignore[arg-type]
        (result("another?", [], {"file_path": "maud/m.txt", "span": [1]}), r"span must be \[start"),
        (result("another?", [], [0, 1]), r"entry 1: must be an object with file_path and span"),  # type: ignore[arg-type]
        ({"retrieved_snippets": []}, r"result 1: qa_gt must be an object, not null"),
        ({"qa_gt": {"query": "another?"}}, r"key 'retrieved_snippets' is missing"),
        (
            {"query_id": "one", **result("another?", [])},
            r"result 1: query_id 'one' asks 'the same\?', but qa_gt asks 'another\?'",
        ),
        ({"query_id": "four", "retrieved_snippets": []}, r"result 1: unknown query 'four'"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(given)


def test_two_queries_with_one_gold_need_an_id() -> None:
    twins = assemble(
        "c",
        [Document("d", "d", "0123456789", "d.txt", "t")],
        [Query(q, "the same?", [GoldSpan("d", 0, 5)]) for q in ("one", "two")],
    )
    given = result("the same?", [snippet("d.txt", 0, 5)])
    text = json.dumps({"qa_result_list": [given]})
    with pytest.raises(InputError, match=r"queries one, two ask .* with the same gold; say"):
        read_text(text, twins)
    named = json.dumps({"qa_result_list": [given | {"query_id": "two"}]})
    assert [g.query_id for g in read_text(named, twins)] == ["two"]


def test_another_json_is_none() -> None:
    with pytest.raises(InputError, match="key 'query_id' is missing"):
        read_text('{\n "tests": []\n}', evalset())
    with pytest.raises(InputError, match="key 'qa_result_list' is missing: no result file"):
        legalbenchrag.lists({"tests": []}, "results.json", evalset())
