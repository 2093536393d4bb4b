from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.analysis.aggregate import config_metrics
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.checks import invariants
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline_tests.metrics.cases import CHUNKER, CONFIG, CORPUS, Case, cases, tiles
from spanbench_pipeline_tests.metrics.measure import (
    character_metrics,
    failure_labels,
    query_metrics,
)

Rows = list[dict[str, Any]]

CASE = Case(
    texts={"A": "x" * 30, "B": "x" * 25},
    chunks={
        f"{place[0]}:{CHUNKER}:{chunk_id[1:]}": place
        for chunk_id, place in {**tiles("A", 30, 10), **tiles("B", 25, 10)}.items()
    },
    gold={"q1": [("A", 0, 5)], "q2": [("B", 0, 20)], "q3": [("B", 22, 23)]},
    rankings={
        "q1": [f"A:{CHUNKER}:0", f"A:{CHUNKER}:1", f"B:{CHUNKER}:0"],
        "q2": [f"B:{CHUNKER}:2"],
        "q3": [],
    },
    subsets={"q1": "east", "q2": "west", "q3": None},
)
DOCUMENTS = CASE.eval_set().documents
QUERIES = CASE.eval_set().queries
CHUNKS = CASE.chunk_table()
RANKED = CASE.ranking_table()
SCORED = query_metrics(*CASE.tables(), corpus=CORPUS, config=CONFIG)
MEANS = config_metrics(SCORED, QUERIES)
LABELLED = failure_labels(*CASE.tables(), corpus=CORPUS, config=CONFIG)


def changed(table: pa.Table, change: Callable[[Rows], Any]) -> pa.Table:
    """The table with its rows changed, unchecked: what a fault would leave in storage."""
    rows = table.to_pylist()
    change(rows)
    return pa.Table.from_pylist(rows, table.schema)


def setting(number: int, **values: Any) -> Callable[[Rows], Any]:
    return lambda rows: rows[number].update(values)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_what_the_measures_make_holds(case: Case) -> None:
    case = dataclasses.replace(
        case, rankings={q: case.ids(case.asked(q).ranked) for q in case.gold}
    )
    known = case.eval_set()
    scored = query_metrics(*case.tables(), corpus=CORPUS, config=CONFIG)
    labelled = failure_labels(*case.tables(), corpus=CORPUS, config=CONFIG)
    assert invariants.chunks_outside_text(case.chunk_table(), known.documents) == []
    assert invariants.repeated_chunks(case.ranking_table()) == []
    assert invariants.wrong_ranks(case.ranking_table(), 16) == []
    assert invariants.wrong_ranking_offsets(case.ranking_table(), case.chunk_table()) == []
    assert invariants.metrics_out_of_range(scored) == []
    assert invariants.missing_metrics(scored, known.queries) == []
    assert invariants.unlabelled_failures(labelled, scored) == []
    means = config_metrics(scored, known.queries)
    assert invariants.wrong_means(means, scored, known.queries) == []


@settings(max_examples=50, deadline=None)
@given(cases())
def test_untiled_documents_equal_the_oracle(case: Case) -> None:
    inside = set().union(*map(oracle.characters, case.chunks.values()))
    expected = []
    for doc_id in sorted(case.texts):
        outside = oracle.characters((doc_id, 0, len(case.texts[doc_id]))) - inside
        if outside:
            expected.append({"doc_id": doc_id, "uncovered_chars": len(outside)})
    found = invariants.untiled_documents(case.chunk_table(), case.eval_set().documents)
    assert found == expected


@pytest.mark.parametrize(
    "values",
    [
        {"start_char": -1},
        {"start_char": 25},
        {"start_char": 26},
        {"end_char": 26},
        {"doc_id": "C"},
        {"doc_id": "C", "start_char": 0, "end_char": 1},
    ],
    ids=str,
)
def test_chunks_outside_their_text(values: dict[str, Any]) -> None:
    assert invariants.chunks_outside_text(CHUNKS, DOCUMENTS) == []
    wrong = changed(CHUNKS, setting(5, **values))
    (found,) = invariants.chunks_outside_text(wrong, DOCUMENTS)
    assert found["chunk_id"] == f"B:{CHUNKER}:2"


@pytest.mark.parametrize(
    "values",
    [{"chunk_id": "A:other:1"}, {"chunk_id": f"A:{CHUNKER}:01"}, {"chunk_id": f"A:{CHUNKER}:0"}],
    ids=str,
)
def test_chunk_ids_of_another_form(values: dict[str, Any]) -> None:
    assert invariants.wrong_chunk_ids(CHUNKS) == []
    (found,) = invariants.wrong_chunk_ids(changed(CHUNKS, setting(1, **values)))
    assert found["expected"] == f"A:{CHUNKER}:1"


def test_chunk_numbers_with_a_hole_or_given_twice() -> None:
    holed = changed(CHUNKS, lambda rows: rows.pop(1))
    (found,) = invariants.wrong_chunk_ids(holed)
    assert (found["chunk_id"], found["expected"]) == (f"A:{CHUNKER}:2", f"A:{CHUNKER}:1")
    twice = changed(CHUNKS, lambda rows: rows.append(rows[2]))
    (found,) = invariants.wrong_chunk_ids(twice)
    assert (found["chunk_id"], found["expected"]) == (f"A:{CHUNKER}:2", f"A:{CHUNKER}:3")
    two = changed(changed(CHUNKS, setting(3, chunk_id="y")), setting(2, chunk_id="x"))
    assert [row["chunk_id"] for row in invariants.wrong_chunk_ids(two)] == ["x", "y"]


def test_untiled_documents_do_not_trust_unsound_chunks() -> None:
    assert invariants.untiled_documents(CHUNKS, DOCUMENTS) == []
    for end in (9, 10):
        wrong = changed(CHUNKS, setting(1, end_char=end))
        assert invariants.untiled_documents(wrong, DOCUMENTS) == [
            {"doc_id": "A", "uncovered_chars": 10}
        ]
    # A document without characters lacks none.
    assert invariants.untiled_documents(CHUNKS, changed(DOCUMENTS, setting(0, n_chars=0))) == []


def test_repeated_chunks() -> None:
    assert invariants.repeated_chunks(RANKED) == []
    wrong = changed(RANKED, setting(2, chunk_id=f"A:{CHUNKER}:0"))
    (found,) = invariants.repeated_chunks(wrong)
    assert (found["query_id"], found["chunk_id"], found["times"]) == ("q1", f"A:{CHUNKER}:0", 2)


@pytest.mark.parametrize(
    "change",
    [setting(0, rank=0), setting(1, rank=3), setting(2, rank=4), lambda rows: rows.pop(1)],
    ids=["from 0", "twice 3", "hole", "gone"],
)
def test_ranks_with_holes(change: Callable[[Rows], Any]) -> None:
    assert invariants.wrong_ranks(RANKED, 3) == []
    (found,) = invariants.wrong_ranks(changed(RANKED, change), 3)
    assert (found["config"], found["query_id"]) == (CONFIG, "q1")


def test_lists_that_are_too_long() -> None:
    (found,) = invariants.wrong_ranks(RANKED, 2)
    assert (found["query_id"], found["count_all"]) == ("q1", 3)


@pytest.mark.parametrize(
    "values",
    [{"chunk_id": "A9"}, {"doc_id": "B"}, {"start_char": 9}, {"end_char": 21}],
    ids=str,
)
def test_ranked_chunks_that_lie_elsewhere(values: dict[str, Any]) -> None:
    assert invariants.wrong_ranking_offsets(RANKED, CHUNKS) == []
    wrong = changed(RANKED, setting(1, **values))
    (found,) = invariants.wrong_ranking_offsets(wrong, CHUNKS)
    assert (found["query_id"], found["rank"]) == ("q1", 2)


@pytest.mark.parametrize("value", [-0.1, 1.0001, float("nan"), float("inf")])
def test_metrics_out_of_range(value: float) -> None:
    assert invariants.metrics_out_of_range(changed(SCORED, setting(0, value=None))) == []
    (found,) = invariants.metrics_out_of_range(changed(SCORED, setting(0, value=value)))
    assert (found["query_id"], found["metric"]) == ("q1", "complete_grounding")


def test_rows_come_by_list_query_and_rank() -> None:
    rows = [row | {"config": config} for config in ("b", "a") for row in RANKED.to_pylist()[::-1]]
    moved = pa.Table.from_pylist([row | {"end_char": 99} for row in rows], RANKED.schema)
    found = invariants.wrong_ranking_offsets(moved, CHUNKS)
    assert [(row["config"], row["query_id"], row["rank"]) for row in found] == [
        (config, query, rank)
        for config in ("a", "b")
        for query, rank in (("q1", 1), ("q1", 2), ("q1", 3), ("q2", 1))
    ]
    candidates = moved.rename_columns({"config": "source"})
    found = invariants.wrong_ranking_offsets(candidates, CHUNKS)
    assert [row["source"] for row in found] == ["a"] * 4 + ["b"] * 4


def test_metrics_come_by_configuration_metric_and_depth() -> None:
    cells = [("b", "mrr", 1), ("a", "recall", 10), ("a", "recall", 5), ("a", "mrr", 10)]
    rows = [{"config": c, "metric": m, "k": k, "value": 2.0} for c, m, k in cells]
    found = invariants.metrics_out_of_range(pa.Table.from_pylist(rows))
    assert [(row["config"], row["metric"], row["k"]) for row in found] == sorted(cells)


def test_missing_metrics() -> None:
    assert invariants.missing_metrics(SCORED, QUERIES) == []
    wrong = changed(SCORED, lambda rows: rows.pop(0))
    lost = {"metric": "complete_grounding", "k": 5, "query_id": "q1"}
    assert invariants.missing_metrics(wrong, QUERIES) == [lost]
    nothing = invariants.missing_metrics(SCORED.slice(0, 0), QUERIES)
    assert len(nothing) == 7 * QUERIES.num_rows
    undefined = invariants.missing_metrics(changed(SCORED, setting(0, value=None)), QUERIES)
    assert [row["metric"] for row in undefined] == ["complete_grounding"]


def character_rows(depth: int) -> pa.Table:
    known = CASE.eval_set()
    return character_metrics(
        RANKED, known.gold_spans, QUERIES, corpus=CORPUS, config=CONFIG, depth=depth
    )


BOTH = pa.concat_tables([SCORED, character_rows(4)])
DEEP = pa.concat_tables([SCORED, character_rows(10)])


@pytest.mark.parametrize(
    ("metric", "value", "sound"),
    [
        ("chars_retrieved", 400.0, True),
        ("chars_retrieved", -1.0, False),
        ("chars_retrieved", float("inf"), False),
        ("chars_retrieved", float("nan"), False),
        ("char_recall_paper", 1.5, True),
        ("char_recall_paper", -0.1, False),
        ("char_recall_paper", float("inf"), False),
        ("char_precision_paper", 1.5, False),
        ("char_recall_union", 1.5, False),
        ("char_precision_union", 1.5, False),
    ],
)
def test_what_may_exceed_1(metric: str, value: float, sound: bool) -> None:
    assert invariants.metrics_out_of_range(BOTH) == []
    number = BOTH["metric"].to_pylist().index(metric)
    found = invariants.metrics_out_of_range(changed(BOTH, setting(number, value=value)))
    assert [row["metric"] for row in found] == [metric] * (not sound)


def test_which_character_metrics_there_are_follows_from_the_depth() -> None:
    assert invariants.missing_metrics(DEEP, QUERIES, 10) == []
    # Deeper lists have a k of 16: five metrics of three queries; less deep ones no k of 8.
    missing = invariants.missing_metrics(DEEP, QUERIES, 16)
    assert [row["k"] for row in missing] == [16] * 15
    assert {row["metric"] for row in missing} == set(registry.characters())
    # At 7 neither the characters at 8 belong there nor recall and ndcg at 10.
    beside = invariants.missing_metrics(DEEP, QUERIES, 7)
    assert sorted(row["k"] for row in beside) == [8] * 15 + [10] * 6
    without = invariants.missing_metrics(SCORED, QUERIES, 1)
    absent = [row for row in without if row["k"] == 1]
    assert sorted((row["metric"], row["query_id"]) for row in absent) == [
        (metric, f"q{n}") for metric in sorted(registry.characters()) for n in (1, 2, 3)
    ]
    past = [row for row in without if row["k"] != 1]
    assert {row["metric"] for row in past} == {m for m, k in registry.of_results() if k is not None}
    lost = invariants.missing_metrics(changed(DEEP, lambda rows: rows.pop()), QUERIES, 10)
    assert [(row["query_id"], row["k"]) for row in lost] == [("q3", 8)]
    null = changed(DEEP, setting(DEEP.num_rows - 1, value=None))
    assert len(invariants.missing_metrics(null, QUERIES, 10)) == 1


def test_a_row_past_the_depth_is_found() -> None:
    assert invariants.past_depth(DEEP, 10) == []
    found = invariants.past_depth(DEEP, 9)
    assert {(row["metric"], row["k"]) for row in found} == {("recall", 10), ("ndcg", 10)}
    assert len(found) == 6
    # A metric without a k has no depth, and routing's k counts documents.
    rows = [SCORED.to_pylist()[0] | {"metric": "routing_recall", "k": 10}]
    assert invariants.past_depth(tables.from_rows("query_metrics", rows), 1) == []
    bounds = [
        {"corpus": "c", "config": "x", "subset": None, "k": k, "bound": "actual", "value": 0.0}
        for k in (1, 2)
    ]
    late = invariants.past_depth(tables.from_rows("headroom", bounds), 1)
    assert [(row["bound"], row["k"]) for row in late] == [("actual", 2)]


def test_undeclared_sizes() -> None:
    # Set to 10: the second of a is longer, the first of b shorter; the last ones may be short.
    cut = (("a", 0, 0, 10), ("a", 1, 10, 21), ("a", 2, 21, 22), ("b", 0, 0, 9), ("b", 1, 9, 12))
    rows = [
        {"corpus": "c", "chunker": "k", "chunk_id": f"{d}:k:{n}", "doc_id": d, "chunk_no": n}
        | {"start_char": s, "end_char": e}
        for d, n, s, e in cut
    ]
    table = tables.from_rows("chunks", rows)
    found = invariants.undeclared_sizes(table, 10, 10)
    assert [row["chunk_id"] for row in found] == ["a:k:1", "b:k:0"]
    assert [row["chunk_id"] for row in invariants.undeclared_sizes(table, 1, 10)] == ["a:k:1"]
    assert invariants.undeclared_sizes(table, 9, 11) == []
    turned = table.take(list(range(len(rows)))[::-1])
    assert invariants.undeclared_sizes(turned, 10, 10) == found
    short = invariants.undeclared_sizes(turned, 30, 30)
    assert [row["chunk_id"] for row in short] == ["a:k:0", "a:k:1", "b:k:0"]
    assert invariants.undeclared_sizes(tables.empty("chunks"), 10, 10) == []


def test_undeclared_overlaps() -> None:
    rows = [
        {"doc_id": d, "chunk_no": n, "start_char": s, "end_char": e}
        for d, n, s, e in (("a", 0, 0, 10), ("a", 1, 10, 20), ("b", 0, 5, 15), ("a", 2, 19, 30))
    ]
    common = {"corpus": "c", "chunker": "k"}
    table = tables.from_rows(
        "chunks", [r | common | {"chunk_id": f"{r['doc_id']}:k:{r['chunk_no']}"} for r in rows]
    )
    (found,) = invariants.undeclared_overlaps(table)
    assert (found["chunk_id"], found["previous"]) == ("a:k:2", "a:k:1")
    assert invariants.undeclared_overlaps(table.slice(0, 2)) == []


def test_labels_partition_the_failing_queries() -> None:
    # q1 is grounded; q2 and q3 fail and have a label each.
    assert LABELLED["query_id"].to_pylist() == ["q2", "q3"]
    assert invariants.unlabelled_failures(LABELLED, SCORED) == []
    for change, expected in (
        (lambda rows: rows.pop(0), ("q2", True, 0)),
        (lambda rows: rows.append(rows[0]), ("q2", True, 2)),
        (lambda rows: rows.append(rows[0] | {"query_id": "q1"}), ("q1", False, 1)),
    ):
        (found,) = invariants.unlabelled_failures(changed(LABELLED, change), SCORED)
        assert (found["query_id"], found["failed"], found["labels"]) == expected
        assert found["config"] == CONFIG


@pytest.mark.parametrize("subset", [None, "east", "west", "macro"])
@pytest.mark.parametrize("change", ["value", "undefined", "n_queries", "gone"])
def test_means_that_are_not(subset: str | None, change: str) -> None:
    assert invariants.wrong_means(MEANS, SCORED, QUERIES) == []
    keys = [(row["subset"], row["metric"]) for row in MEANS.to_pylist()]
    number = keys.index((subset, "precision"))
    row = MEANS.to_pylist()[number]
    changes: dict[str, Callable[[Rows], Any]] = {
        "value": setting(number, value=row["value"] + 1e-11),
        "undefined": setting(number, value=None),
        "n_queries": setting(number, n_queries=row["n_queries"] - 1),
        "gone": lambda rows: rows.pop(number),
    }
    (found,) = invariants.wrong_means(changed(MEANS, changes[change]), SCORED, QUERIES)
    assert (found["subset"], found["metric"], found["k"]) == (subset, "precision", 5)
    assert found["expected"] == (pytest.approx(row["value"]), row["n_queries"])
    stored = {
        "value": (row["value"] + 1e-11, row["n_queries"]),
        "undefined": (None, row["n_queries"]),
        "n_queries": (row["value"], row["n_queries"] - 1),
        "gone": None,
    }
    assert found["stored"] == stored[change]


def test_a_mean_of_nothing_known() -> None:
    extra = changed(MEANS, lambda rows: rows.append(rows[0] | {"config": "other"}))
    (found,) = invariants.wrong_means(extra, SCORED, QUERIES)
    assert (found["config"], found["expected"]) == ("other", None)


def test_a_mean_off_by_rounding_alone_holds() -> None:
    nudged = changed(MEANS, lambda rows: [row.update(value=row["value"] + 1e-14) for row in rows])
    assert invariants.wrong_means(nudged, SCORED, QUERIES) == []


def embeddings(*vectors: list[float] | None) -> pa.Table:
    return tables.from_rows(
        "embeddings",
        [
            {
                "corpus": CORPUS,
                "chunker": CHUNKER,
                "encoder": "e",
                "chunk_id": chunk_id,
                "vector": vector,
                "n_tokens": 3,
            }
            for chunk_id, vector in zip(CHUNKS["chunk_id"].to_pylist(), vectors, strict=False)
        ],
    )


GOOD = [[1.0, 0.0], [0.6, 0.8], [0.0, -1.0], None, [1.0, 0.0], [-0.8, 0.6]]


def test_embeddings_of_the_same_chunks() -> None:
    assert invariants.unmatched_embeddings(embeddings(*GOOD), CHUNKS) == []
    fewer = embeddings(*GOOD[:5])
    assert invariants.unmatched_embeddings(fewer, CHUNKS) == [
        {"chunk_id": f"B:{CHUNKER}:2", "in_chunks": True}
    ]
    assert invariants.unmatched_embeddings(embeddings(*GOOD), CHUNKS.slice(1)) == [
        {"chunk_id": f"A:{CHUNKER}:0", "in_chunks": False}
    ]


@pytest.mark.parametrize(
    "vector",
    [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 0.0], [0.6, 0.81], [1.0, 0.0, 0.0], []],
    ids=str,
)
def test_vectors_that_are_not_finite_unit_vectors(vector: list[float]) -> None:
    assert invariants.wrong_vectors(embeddings(*GOOD)) == []
    wrong = embeddings(*GOOD[:4], vector, GOOD[5])
    assert [row["chunk_id"] for row in invariants.wrong_vectors(wrong)] == [f"B:{CHUNKER}:1"]
    last = embeddings(*GOOD[:5], vector)
    assert [row["chunk_id"] for row in invariants.wrong_vectors(last)] == [f"B:{CHUNKER}:2"]


def test_a_vector_is_shown_by_its_length_and_size() -> None:
    assert invariants.wrong_vectors(embeddings([1.0, 0.0], [3.0, 4.0])) == [
        {"chunk_id": f"A:{CHUNKER}:1", "length": 5.0, "size": 2}
    ]


def test_vectors_of_an_encoder_that_does_not_normalise() -> None:
    long = embeddings([3.0, 4.0], None, [0.0, 0.0], [float("nan"), 1.0])
    found = [row["chunk_id"] for row in invariants.wrong_vectors(long, unit=False)]
    assert found == [f"A:{CHUNKER}:2", f"B:{CHUNKER}:0"]


def test_no_vectors_at_all() -> None:
    assert invariants.wrong_vectors(embeddings(None, None)) == []
    assert invariants.wrong_vectors(tables.empty("embeddings")) == []
