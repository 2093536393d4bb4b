from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.reports.audit import audit, missed_spans
from spanbench_pipeline_tests.reports import tiny


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def chunk(
    chunk_id: str, by: list[str] | None, rank: int | None, dense: int | None, bm25: int | None
) -> dict[str, Any]:
    ranks = {"rank": rank, "dense_rank": dense, "bm25_rank": bm25, "fused_rank": None}
    return {"chunk_id": chunk_id, "surfaced_by": by, **ranks}


def test_a_line_a_query_with_all_that_decides_its_figures() -> None:
    first, second, third = lines(audit(tiny.inputs(), "halves + hybrid").queries)
    # Half of the span's 20 characters: in the first chunk of 50, and in both, of 100.
    characters = {
        f"{metric}@{k}": value
        for k in (1, 2, 4, 8, 16)
        for metric, value in {
            "chars_retrieved": 50 if k == 1 else 100,
            **dict.fromkeys(("char_recall_union", "char_recall_paper"), 0.5),
            **dict.fromkeys(
                ("char_precision_union", "char_precision_paper"), 0.2 if k == 1 else 0.1
            ),
        }.items()
    }
    assert first == {
        "corpus": "tiny",
        "config": "halves + hybrid",
        "query_id": "q1",
        "query": tiny.ASKED,
        "clause_type": "X",
        "doc_id": "a",
        "filters": {},
        "metrics": {
            "complete_grounding@5": 1.0,
            "ndcg@10": pytest.approx(1 / (1 + 1 / math.log2(3))),
            "mrr": 1.0,
            "precision@5": 0.2,
            "recall@10": 0.5,
            "span_coverage@5": 0.5,
            "span_recall@5": 1.0,
            **characters,
        },
        "ranking": ["a:halves:0", "a:halves:2"],
        "relevant_chunks": [
            chunk("a:halves:0", ["bm25"], 1, None, 1),
            chunk("a:halves:1", [], None, None, None),
        ],
        "missed_spans": [],
    }
    assert second["relevant_chunks"] == [
        chunk(f"{tiny.B}:halves:0", ["bm25", "dense"], 1, 1, 1),
        chunk(f"{tiny.B}:halves:1", ["bm25", "dense"], 2, 2, 2),
    ]
    assert third["missed_spans"] == [
        {"span_no": 0, "doc_id": "a", "start_char": 150, "end_char": 170, "covered_chars": 0}
        | {"text": "x" * 20}
    ]


def test_labels_carry_their_evidence() -> None:
    (only,) = lines(audit(tiny.inputs(), "halves, unfiltered").labels)
    evidence = only.pop("evidence")
    assert only == {
        "corpus": "tiny",
        "config": "halves, unfiltered",
        "query_id": "q1",
        "label": "chunk-severance",
        "lever": "chunking",
    }
    assert [span["span_no"] for span in evidence["failed_spans"]] == [0]


def test_a_span_with_exactly_half_of_its_characters_is_not_missed() -> None:
    given = tiny.inputs()
    assert "q1" not in missed_spans(given, "halves + hybrid", 5)  # 10 of 20 characters
    rows = given.span_outcomes.to_pylist()
    for row in rows:
        if (row["config"], row["query_id"]) == ("halves + hybrid", "q1"):
            row["covered_chars"] = 9
    fewer = replace(given, span_outcomes=tables.from_rows("span_outcomes", rows))
    assert [s["text"] for s in missed_spans(fewer, "halves + hybrid", 5)["q1"]] == [tiny.NASTY]


def test_an_empty_list_is_a_line_all_the_same() -> None:
    given = tiny.inputs()
    kept = [row for row in given.rankings.to_pylist() if row["query_id"] != "q2"]
    without = replace(
        given,
        rankings=tables.from_rows("rankings", kept),
        candidates={"halves": tables.empty("candidates")},
    )
    found = lines(audit(without, "halves").queries)
    assert [line["query_id"] for line in found] == ["q1", "q2", "q3"]
    assert found[1]["ranking"] == []
    assert [c["surfaced_by"] for c in found[1]["relevant_chunks"]] == [[], []]


def test_what_a_fused_list_lost_is_told_by_the_channels_lists() -> None:
    given = tiny.inputs()
    kept = [row for row in given.rankings.to_pylist() if row["query_id"] != "q2"]
    shorter = replace(given, rankings=tables.from_rows("rankings", kept))
    lost = lines(audit(shorter, "halves + hybrid").queries)[1]["relevant_chunks"]
    assert lost == [
        chunk(f"{tiny.B}:halves:0", ["bm25", "dense"], None, 1, 1),
        chunk(f"{tiny.B}:halves:1", ["bm25", "dense"], None, 2, 2),
    ]


def test_a_line_stays_one_line_whatever_the_text_holds() -> None:
    given = tiny.inputs()
    breaks = "a\u2028b\u2029c\x85d\ne\rf\x0cg"
    rows = [row | {"query": breaks} for row in given.queries.to_pylist()]
    written = audit(replace(given, queries=tables.from_rows("queries", rows)), "halves").queries
    assert len(written.splitlines()) == 3
    assert [line["query"] for line in lines(written)] == [breaks] * 3


def test_what_did_not_run_has_no_audit() -> None:
    with pytest.raises(NotMeasured, match=r"^no weights of <r\|r>$"):
        audit(tiny.inputs(), "halves + rerank")
