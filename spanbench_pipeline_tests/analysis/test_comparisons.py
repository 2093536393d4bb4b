from __future__ import annotations

import dataclasses
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.analysis.comparisons import config_pairs, filter_pairs
from spanbench_pipeline.analysis.config_stats import config_stats
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.config.experiment import Configuration
from spanbench_pipeline_tests.metrics.cases import (
    CHUNKER,
    CORPUS,
    Case,
    beside_another,
    cases,
    tiles,
)
from spanbench_pipeline_tests.metrics.measure import chunk_stats, query_metrics

DENSE = Configuration("dense", CHUNKER, encoder="e")
CONFIGURATIONS = [
    DENSE,
    dataclasses.replace(DENSE, name="hybrid", retriever="hybrid"),
    dataclasses.replace(DENSE, name="open", doc_scope=False),
    dataclasses.replace(DENSE, name="filtered", doc_scope=False, metadata_filters=True),
    dataclasses.replace(DENSE, name="hybrid + rerank", retriever="hybrid", reranker="r"),
    dataclasses.replace(DENSE, name="other chunks", chunker="other"),
    dataclasses.replace(DENSE, name="other encoder", encoder="f"),
]

ONE_LEVER = {
    ("dense", "hybrid"): "hybrid retrieval",
    ("dense", "open"): "metadata filtering",
    ("dense", "filtered"): "metadata filtering",
    ("dense", "other chunks"): "chunking",
    ("dense", "other encoder"): "encoder",
    ("hybrid", "hybrid + rerank"): "reranking",
    ("open", "filtered"): "metadata filtering",
}
"""Worked out from the settings above; the other pairs differ in two levers or more."""

Rankings = dict[str, Case]
"""Configuration -> the case with its rankings."""


@st.composite
def rankings(draw: st.DrawFn) -> Rankings:
    case = draw(cases())
    one = st.lists(st.sampled_from(sorted(case.chunks)), max_size=9) if case.chunks else st.just([])
    return {
        c.name: dataclasses.replace(case, rankings={q: draw(one) for q in case.gold})
        for c in CONFIGURATIONS
    }


def measured(of: Rankings) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Query metrics and rankings of all configurations, and the gold spans."""
    metrics, ranked = [], []
    for name, case in of.items():
        known = case.eval_set()
        table = case.ranking_table(name)
        ranked.append(table)
        metrics.append(
            query_metrics(
                table,
                known.gold_spans,
                case.chunk_table(),
                known.queries,
                corpus=CORPUS,
                config=name,
            )
        )
    return pa.concat_tables(metrics), pa.concat_tables(ranked), known.gold_spans


def pairs_of(of: Rankings) -> dict[tuple[str, str], dict[str, Any]]:
    metrics, ranked, gold = measured(of)
    table = config_pairs(CONFIGURATIONS, metrics, ranked, gold, corpus=CORPUS)
    return {(row["from_config"], row["to_config"]): row for row in table.to_pylist()}


def grounded(case: Case) -> set[str]:
    return {q for q in case.gold if not case.asked(q).failed(5)}


def top_relevant(case: Case) -> set[tuple[str, str]]:
    return {
        (q, chunk)
        for q in case.gold
        for chunk in case.ids(case.asked(q).ranked[:5])
        if case.chunks[chunk] in case.asked(q).relevant
    }


@settings(max_examples=40, deadline=None)
@given(rankings())
def test_pairs_equal_the_oracle(of: Rankings) -> None:
    found = pairs_of(of)
    both_ways = ONE_LEVER | {(b, a): lever for (a, b), lever in ONE_LEVER.items()}
    assert {pair: row["lever"] for pair, row in found.items()} == both_ways
    for (before, after), row in found.items():
        fixed = sorted(grounded(of[after]) - grounded(of[before]))
        broken = sorted(grounded(of[before]) - grounded(of[after]))
        assert (row["fixed_queries"], row["broken_queries"]) == (fixed, broken)
        assert (row["fixed"], row["broken"]) == (len(fixed), len(broken))
        assert row["delta"] == (len(fixed) - len(broken)) / len(of[after].gold)
        promoted = len(top_relevant(of[after]) - top_relevant(of[before]))
        assert row["promoted"] == (None if row["lever"] == "chunking" else promoted)


@settings(max_examples=40, deadline=None)
@given(rankings())
def test_config_stats_equal_the_oracle(of: Rankings) -> None:
    metrics, ranked, gold = measured(of)
    case = next(iter(of.values()))
    stats = pa.concat_tables(
        chunk_stats(
            case.chunk_table(chunker), gold, case.eval_set().queries, corpus=CORPUS, chunker=chunker
        )
        for chunker in (CHUNKER, "other")
    )
    table = config_stats(CONFIGURATIONS, metrics, stats, ranked, gold, corpus=CORPUS)
    found = {(row["config"], row["stat"]): row["value"] for row in table.to_pylist()}
    for name, case in of.items():
        asked = [case.asked(q) for q in case.gold]
        top = [(q, c) for q in case.gold for c in case.asked(q).ranked[:5]]
        wrong = [c[0] not in {d for d, _, _ in case.gold[q]} for q, c in top]
        ceiling = oracle.chunk_stats(asked, context=5)["precision_ceiling"]
        precision = oracle.mean([oracle.metrics(a, context=5)["precision@5"] for a in asked])
        attained = pytest.approx(precision / ceiling) if ceiling else None
        assert found.pop((name, "precision_attained")) == attained
        assert found.pop((name, "wrong_document_share")) == (oracle.mean(wrong) if wrong else None)
        assert found.pop((name, "failing_queries")) == len(case.gold) - len(grounded(case))
    assert found == {}


CASE = Case(
    texts={"A": "x" * 30, "B": "x" * 30},
    chunks={**tiles("A", 30, 10), **tiles("B", 30, 10)},
    gold={"q1": [("A", 0, 10)], "q2": [("B", 0, 10)], "q3": [("A", 20, 30)]},
    rankings={},
)


def hand() -> Rankings:
    """Dense finds q1 and q3; hybrid q1, q2; without filters none; with metadata filters q2."""
    lists = {
        "dense": {"q1": ["A0"], "q2": ["B1"], "q3": ["A2", "A1"]},
        "hybrid": {"q1": ["A0"], "q2": ["B1", "B0"], "q3": ["A1"]},
        "open": {"q1": ["B0"], "q2": ["A0"], "q3": ["B2", "A1"]},
        "filtered": {"q1": ["A1"], "q2": ["B0"], "q3": []},
    }
    return {name: dataclasses.replace(CASE, rankings=found) for name, found in lists.items()}


def test_a_comparison_by_hand() -> None:
    row = pairs_of(hand())["dense", "hybrid"]
    assert row == {
        "corpus": CORPUS,
        "lever": "hybrid retrieval",
        "from_config": "dense",
        "to_config": "hybrid",
        "delta": 0.0,
        "fixed": 1,
        "broken": 1,
        "promoted": 1,  # B0 for q2
        "fixed_queries": ["q2"],
        "broken_queries": ["q3"],
    }
    assert pairs_of(hand())["dense", "open"]["delta"] == -2 / 3


def test_configurations_without_metrics_take_no_part() -> None:
    names = {name for pair in pairs_of(hand()) for name in pair}
    assert names == {"dense", "hybrid", "open", "filtered"}


def test_an_empty_ranking_still_compares() -> None:
    of = hand() | {"hybrid": dataclasses.replace(CASE, rankings={})}
    row = pairs_of(of)["dense", "hybrid"]
    assert (row["delta"], row["promoted"], row["broken_queries"]) == (-2 / 3, 0, ["q1", "q3"])


def test_filter_pairs_start_where_nothing_is_filtered() -> None:
    metrics, ranked, gold = measured(hand())
    table = config_pairs(CONFIGURATIONS, metrics, ranked, gold, corpus=CORPUS)
    found = [
        (row["from_config"], row["to_config"], row["fixed_queries"])
        for row in filter_pairs(CONFIGURATIONS, table)
    ]
    assert found == [("open", "dense", ["q1", "q3"]), ("open", "filtered", ["q2"])]


def test_filter_pairs_add_one_filter_to_another_and_take_none_away() -> None:
    scope = dataclasses.replace(DENSE, name="scope")
    both = dataclasses.replace(DENSE, name="both", metadata_filters=True)
    fields = dataclasses.replace(DENSE, name="fields", doc_scope=False, metadata_filters=True)
    configurations = [scope, both, fields]
    of = {c.name: CASE for c in configurations}
    metrics, ranked, gold = measured(of)
    table = config_pairs(configurations, metrics, ranked, gold, corpus=CORPUS)
    found = {(r["from_config"], r["to_config"]) for r in filter_pairs(configurations, table)}
    assert found == {("scope", "both"), ("fields", "both")}


def test_different_queries_cannot_be_compared() -> None:
    metrics, ranked, gold = measured(hand())
    fewer = metrics.filter(
        (pa.compute.field("config") != "open") | (pa.compute.field("query_id") != "q2")
    )
    with pytest.raises(ValueError, match="queries do not match, the first is q2"):
        config_pairs(CONFIGURATIONS, fewer, ranked, gold, corpus=CORPUS)


def test_two_corpora_at_once_are_refused() -> None:
    metrics, ranked, gold = measured(hand())
    stats = chunk_stats(
        CASE.chunk_table(), gold, CASE.eval_set().queries, corpus=CORPUS, chunker=CHUNKER
    )
    two_metrics, two_stats = (beside_another(table, "corpus") for table in (metrics, stats))
    message = "one corpus at a time, not other, tiny"
    with pytest.raises(ValueError, match=message):
        config_pairs(CONFIGURATIONS, two_metrics, ranked, gold, corpus=CORPUS)
    for scored, of_chunker in ((two_metrics, stats), (metrics, two_stats)):
        with pytest.raises(ValueError, match=message):
            config_stats(CONFIGURATIONS, scored, of_chunker, ranked, gold, corpus=CORPUS)


def test_pairs_come_in_both_directions() -> None:
    found = pairs_of(hand())
    for before, after in permutations(["dense", "open"], 2):
        assert found[before, after]["delta"] == -found[after, before]["delta"]
