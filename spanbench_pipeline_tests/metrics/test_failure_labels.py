from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.config.experiment import LEVERS
from spanbench_pipeline.metrics.failure_labels import LABELS
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, cases, tiles
from spanbench_pipeline_tests.metrics.measure import failure_labels


def labels_of(case: Case) -> dict[str, dict[str, Any]]:
    table = failure_labels(*case.tables(), corpus=CORPUS, config=CONFIG)
    return {row["query_id"]: row for row in table.to_pylist()}


@settings(max_examples=150, deadline=None)
@given(cases())
def test_labels_equal_the_oracle(case: Case) -> None:
    expected = {q: oracle.failure_label(case.asked(q), context=5) for q in case.gold}
    found = {q: row["label"] for q, row in labels_of(case).items()}
    assert found == {q: label for q, label in expected.items() if label}


@settings(max_examples=80, deadline=None)
@given(cases())
def test_evidence_equals_the_oracle(case: Case) -> None:
    for query, row in labels_of(case).items():
        evidence = json.loads(row["evidence"])
        asked = case.asked(query)
        ranked, lost = case.ids(asked.ranked), asked.failed(5)
        assert [(s["doc_id"], s["start"], s["end"]) for s in evidence["failed_spans"]] == lost
        for span, place in zip(evidence["failed_spans"], lost, strict=True):
            covered = asked.covered(place, 5)
            assert span["covered_chars"] == covered
            assert span["covered_share"] == covered / (place[2] - place[1])
            assert span["opening"] == case.texts[place[0]][place[1] : place[2]]
        pieces = {place: case.ids(asked.touching(place)) for place in lost}
        assert [
            [piece["chunk_id"] for piece in span["pieces"]] for span in evidence["severed_spans"]
        ] == [chunks for chunks in pieces.values() if len(chunks) > 1]
        touching = {chunk for chunks in pieces.values() for chunk in chunks}
        assert ids(evidence["missing_chunks"]) == touching - set(ranked)
        assert ids(evidence["ranks_below_5"]) == touching & set(ranked[5:])
        assert ids(evidence["relevant_chunks"]) == set(case.ids(asked.relevant))
        for piece in every_piece(evidence):
            place = case.chunks[piece["chunk_id"]]
            assert (piece["start"], piece["end"]) == place[1:]
            position = piece["chunk_id"] in ranked and ranked.index(piece["chunk_id"]) + 1
            assert piece["rank"] == (position or None)


@settings(max_examples=80, deadline=None)
@given(cases())
def test_a_label_follows_from_its_evidence_alone(case: Case) -> None:
    for row in labels_of(case).values():
        assert row["label"] == label_by_hand(json.loads(row["evidence"]))


def label_by_hand(evidence: dict[str, Any]) -> str:
    """What a reader does with the evidence: the five rules, nothing looked up elsewhere."""
    ranks = [piece["rank"] for piece in evidence["relevant_chunks"]]
    if 0 < len(ranks) < 5 and all(rank and rank <= 5 for rank in ranks):
        return "ceiling-bound"
    for part, label in (
        ("severed_spans", "chunk-severance"),
        ("missing_chunks", "retrieval-miss"),
        ("ranks_below_5", "rank-miss"),
    ):
        if evidence[part]:
            return label
    return "partial-grounding"


def every_piece(evidence: dict[str, Any]) -> list[dict[str, Any]]:
    severed = [piece for span in evidence["severed_spans"] for piece in span["pieces"]]
    rest = ("missing_chunks", "ranks_below_5", "relevant_chunks")
    return severed + [piece for part in rest for piece in evidence[part]]


def ids(pieces: list[dict[str, Any]]) -> set[str]:
    found = [piece["chunk_id"] for piece in pieces]
    assert len(found) == len(set(found))
    return set(found)


def test_each_label_names_its_lever() -> None:
    assert LABELS == {
        "ceiling-bound": None,
        "chunk-severance": "chunking",
        "retrieval-miss": "hybrid retrieval",
        "rank-miss": "reranking",
        "partial-grounding": "metadata filtering",
    }
    assert {lever for lever in LABELS.values() if lever} <= LEVERS.keys()


def test_evidence_as_it_is_written() -> None:
    # Chunks of ten characters; the gold [8,12) lies in A0, at rank 6, and A1, which is missing.
    case = Case(
        texts={"A": "0123456“é9".ljust(80, "z")},
        chunks=tiles("A", 80, 10),
        gold={"q": [("A", 8, 12)]},
        rankings={"q": ["A2", "A3", "A4", "A5", "A6", "A0"]},
    )
    row = labels_of(case)["q"]
    assert (row["label"], row["lever"]) == ("chunk-severance", "chunking")
    a0 = '{"chunk_id": "A0", "end": 10, "rank": 6, "start": 0}'
    a1 = '{"chunk_id": "A1", "end": 20, "rank": null, "start": 10}'
    span = '"covered_chars": 0, "covered_share": 0.0, "doc_id": "A", "end": 12, "opening": "é9zz", '
    assert row["evidence"] == (
        f'{{"failed_spans": [{{{span}"span_no": 0, "start": 8}}], '
        f'"missing_chunks": [{a1}], '
        f'"ranks_below_5": [{a0}], '
        f'"relevant_chunks": [{a0}, {a1}], '
        f'"severed_spans": [{{{span}"pieces": [{a0}, {a1}], "span_no": 0, "start": 8}}]}}'
    )


def test_evidence_quotes_the_first_120_characters() -> None:
    text = "é" * 120 + "x" * 80
    case = Case({"A": text}, {"c": ("A", 0, 200)}, {"q": [("A", 0, 200)]}, {"q": []})
    evidence = json.loads(labels_of(case)["q"]["evidence"])
    assert evidence["failed_spans"][0]["opening"] == "é" * 120


def test_where_no_query_fails_there_is_no_label() -> None:
    case = Case({"A": "xx"}, tiles("A", 2, 1), {"q": [("A", 0, 1)]}, {"q": ["A0"]})
    assert labels_of(case) == {}


def test_rank_5_is_in_the_top_5() -> None:
    # A4 holds one of the gold's ten characters and is ranked fifth.
    case = Case(
        {"A": "x" * 60},
        tiles("A", 41, 10),
        {"q": [("A", 40, 50)]},
        {"q": ["A0", "A1", "A2", "A3", "A4"]},
    )
    row = labels_of(case)["q"]
    evidence = json.loads(row["evidence"])
    assert row["label"] == "ceiling-bound"
    assert (evidence["missing_chunks"], evidence["ranks_below_5"]) == ([], [])
    assert [piece["rank"] for piece in evidence["relevant_chunks"]] == [5]


def test_a_chunk_at_rank_5_is_no_rank_miss() -> None:
    # Of [80,200) only A0 is there, with 20 of 120 characters, ranked fifth; of [300,800) four
    # tiles are. With six relevant chunks nothing is bound by a ceiling.
    case = Case(
        {"A": "x" * 1000},
        {f"A{n}": ("A", 100 * n, 100 * n + 100) for n in (0, 3, 4, 5, 6, 7)},
        {"q": [("A", 80, 200), ("A", 300, 800)]},
        {"q": ["A3", "A4", "A5", "A6", "A0"]},
    )
    assert labels_of(case)["q"]["label"] == "partial-grounding"


def test_ranks_below_5_come_best_first() -> None:
    case = Case(
        {"A": "x" * 100},
        tiles("A", 100, 10),
        {"q": [("A", 0, 20)]},
        {"q": ["A2", "A3", "A4", "A5", "A6", "A1", "A0"]},
    )
    evidence = json.loads(labels_of(case)["q"]["evidence"])
    assert [(p["chunk_id"], p["rank"]) for p in evidence["ranks_below_5"]] == [
        ("A1", 6),
        ("A0", 7),
    ]
