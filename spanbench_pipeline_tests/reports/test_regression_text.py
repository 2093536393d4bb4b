"""What a person is told of a regression."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis.regression import regression
from spanbench_pipeline.reports import regression_text
from spanbench_pipeline_tests.analysis.test_regression import ALL, RULE, Metrics, run


def test_what_is_compared_across_other_chunks_is_named_once_a_configuration():
    held, now = run({"a": ALL, "b": ALL}), run({"a": ALL, "b": ALL}, chunks="c2", n_chunks="7")
    both = regression(held, now, RULE, corpus="c")
    why = (
        "comparable, with other chunks (12 by clause before, 7 by clause now): the first k hold "
        "another amount of text"
    )
    metrics = "3: complete_grounding@5, span_coverage@5, span_recall@5"
    assert regression_text.across(both) == [
        {"config": config, "metrics": metrics, "why": why} for config in ("a", "b")
    ]
    assert regression_text.across(regression(held, held, RULE, corpus="c")) == []
    # Without a k there is no first k.
    whole = run({"a": {"mrr": [1.0]}}), run({"a": {"mrr": [1.0]}}, chunks="c2")
    assert regression_text.across(regression(*whole, RULE, corpus="c")) == []


def test_what_a_person_is_told():
    before = {"a": {"mrr": [1.0] * 30, "recall": [1.0] * 30}, "b": {"mrr": [1.0] * 30}}
    after = {
        "a": {"mrr": [0.5] * 25 + [1.0] * 5, "recall": [0.0] * 6 + [1.0] * 24},
        "b": {"mrr": [1.0] * 29 + [0.5]},
    }
    table = regression(run(before), run(after), RULE, corpus="c")
    deeper, other = regression_text.regressions(table)
    assert (deeper["metric"], deeper["difference"]) == ("mrr", pytest.approx(-0.4167))
    assert deeper["broken"].startswith("25: q01, q02")
    assert deeper["broken"].endswith("q20 and 5 more")
    assert deeper["fixed"] == "0"
    assert (other["metric"], other["broken"]) == ("recall@10", "6: q01, q02, q03, q04, q05, q06")
    assert [row["config"] for row in regression_text.changes(table)] == ["a", "b"]
    assert regression_text.changes(table)[1] == {
        "config": "b",
        "queries": "1: q30",
        "metrics": "mrr",
    }
    assert regression_text.not_compared(table) == []
    apart = regression(run({"a": ALL}), run({"a": ALL}, chunks="c2"), RULE, corpus="c")
    told = regression_text.not_compared(apart)
    assert [row["metrics"] for row in told] == ["mrr", "precision@5", "recall@10"]
    assert regression_text.regressions(apart) == regression_text.changes(apart) == []


def test_a_regression_in_words():
    queries = [f"q{n:02}" for n in range(1, 22)]
    row = {
        "config": "a",
        "metric": "recall",
        "k": 10,
        "verdict": "regression",
        "n": 30,
        "accepted": 0.123456,
        "current": 0.023456,
        "difference": -0.100049,
        "low": -0.23456,
        "high": -0.01234,
        "p": 0.012345,
        "broken_queries": queries,
        "fixed_queries": queries[:20],
    }
    assert regression_text.regressions(pa.Table.from_pylist([row])) == [
        {
            "config": "a",
            "metric": "recall@10",
            "n": 30,
            "accepted": 0.1235,
            "current": 0.0235,
            "difference": -0.1,
            "interval": "[-0.2346, -0.0123]",
            "p": 0.012,
            "broken": f"21: {', '.join(queries[:20])} and 1 more",
            "fixed": f"20: {', '.join(queries[:20])}",
        }
    ]


def test_changes_and_what_was_not_compared_in_words():
    before: Metrics = {"mrr": [0.5, 1.0], "recall": [0.5, 1.0]}
    after: Metrics = {"mrr": [0.5, 0.5], "recall": [1.0, 1.0]}
    table = regression(run({"a": before}), run({"a": after}), RULE, corpus="c")
    assert regression_text.changes(table) == [
        {"config": "a", "queries": "2: q01, q02", "metrics": "mrr, recall@10"}
    ]
    gone = regression(run({"a": before, "b": before}), run({"b": before}), RULE, corpus="c")
    assert regression_text.not_compared(gone) == [
        {
            "config": "a",
            "verdict": "missing configuration",
            "metrics": "mrr, recall@10",
            "why": "the experiment no longer has this configuration",
        }
    ]
