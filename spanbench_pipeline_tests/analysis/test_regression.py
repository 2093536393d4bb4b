"""Two runs side by side: what is compared, every verdict, and who is named; worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.analysis.regression import Rule, Run, regression
from spanbench_pipeline.checks import accepted_run
from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.metrics.cases import beside_another

RULE = Rule(level=0.05, minimum_effect=0.02, rounds=10_000, seed=1)
CORPUS = {"documents": "d1", "queries": "q1", "gold_spans": "g1", "depth": "30"}
SETTINGS = {"chunker": "clause", "chunks": "c1", "n_chunks": "12", "retriever": "hybrid"} | {
    "fusion": "60",
    "encoder": "mini, at most 256 word pieces",
    "encoder_weights": "w1",
}
K = {"recall": 10, "mrr": None}
Metrics = dict[str, list[float | None]]


def metrics_table(configs: dict[str, Metrics]) -> pa.Table:
    return tables.from_rows(
        "query_metrics",
        [
            {"corpus": "c", "config": config, "query_id": f"q{i:02}", "value": value}
            | {"metric": metric, "k": K.get(metric, 5)}
            for config, metrics in configs.items()
            for metric, values in metrics.items()
            for i, value in enumerate(values, 1)
        ],
    )


def run(
    configs: dict[str, Metrics],
    corpus: dict[str, str] | None = None,
    states: dict[str, str] | None = None,
    known: tuple[str, ...] = (),
    **settings: str,
) -> Run:
    """A run; ``known`` are configurations of its experiment that it did not measure."""
    prints: dict[str | None, dict[str, str]] = {None: CORPUS | (corpus or {})}
    prints |= dict.fromkeys((*configs, *known), SETTINGS | settings)
    table = tables.from_rows(
        "fingerprints",
        [
            {"corpus": "c", "config": config, "name": name, "value": value}
            for config, named in prints.items()
            for name, value in named.items()
        ],
    )
    return Run(metrics_table(configs), table, states or {})


def compare(accepted: Run, current: Run, rule: Rule = RULE) -> dict[tuple[str, str], Any]:
    table = regression(accepted, current, rule, corpus="c")
    return {(row["config"], row["metric"]): row for row in table.to_pylist()}


def one(before: list[float | None], after: list[float | None], rule: Rule = RULE) -> Any:
    found = compare(
        run({"a": {"complete_grounding": before}}), run({"a": {"complete_grounding": after}}), rule
    )
    return found["a", "complete_grounding"]


def test_equal_runs_pass():
    row = one([1, 0, None, 1], [1, 0, None, 1])
    assert row == {
        "corpus": "c",
        "config": "a",
        "metric": "complete_grounding",
        "k": 5,
        "comparable": "comparable",
        "n": 3,
        "accepted": pytest.approx(2 / 3),
        "current": pytest.approx(2 / 3),
        "difference": 0,
        "low": 0,
        "high": 0,
        "p": 1,
        "verdict": "pass",
        "n_changed": 0,
        "broken_queries": [],
        "fixed_queries": [],
        "changed_queries": [],
    }


def test_five_broken_queries_are_a_regression_and_four_are_not():
    row = one([1] * 10, [0] * 5 + [1] * 5)
    assert (row["verdict"], row["difference"], row["p"]) == ("regression", -0.5, 1 / 32)
    assert row["low"] < -0.5 < row["high"] < 0
    assert row["broken_queries"] == ["q01", "q02", "q03", "q04", "q05"]
    row = one([1] * 10, [0] * 4 + [1] * 6)
    assert (row["verdict"], row["difference"], row["p"]) == ("changed", -0.4, 1 / 16)
    at_the_level = Rule(1 / 32, 0.02, 10_000, 1)
    assert one([1] * 10, [0] * 5 + [1] * 5, at_the_level)["verdict"] == "changed"


def test_a_rise_is_an_improvement_by_the_same_rule():
    row = one([0] * 6 + [1] * 4, [1] * 6 + [1] * 4)
    assert (row["verdict"], row["p"]) == ("improved", 1 / 64)
    assert row["fixed_queries"] == [f"q{i:02}" for i in range(1, 7)]


def test_a_fall_below_the_minimum_effect_is_a_change():
    before, after = [1.0] * 100, [0.9] * 10 + [1.0] * 90
    row = one(before, after)
    assert row["p"] == 1 / 1024
    assert (row["verdict"], row["difference"]) == ("changed", pytest.approx(-0.01))
    reached = Rule(0.05, 0.01, 10_000, 1)  # the fall is 0.01 but for rounding
    assert one(before, after, reached)["verdict"] == "regression"


CHARACTERS: Metrics = {
    "char_precision_union": [0.5, 1.0],
    "char_recall_union": [0.5, 1.0],
    "char_precision_paper": [0.5, 1.0],
    "char_recall_paper": [0.5, 1.5],
    "chars_retrieved": [400.0, 800.0],
}


def test_metrics_that_count_characters_compare_across_chunkers():
    found = compare(run({"a": CHARACTERS}), run({"a": CHARACTERS}, chunks="c2"))
    assert {row["verdict"] for row in found.values()} == {"pass"}


@pytest.mark.parametrize("after", [200.0, 600.0])
def test_more_or_fewer_characters_are_neither_better_nor_worse(after: float):
    before: Metrics = {"chars_retrieved": [400.0] * 9, "char_recall_union": [0.4] * 9}
    now: Metrics = {"chars_retrieved": [after] * 9, "char_recall_union": [after / 1000] * 9}
    found = compare(run({"a": before}), run({"a": now}))
    row = found["a", "chars_retrieved"]
    assert (row["verdict"], row["difference"], row["p"]) == ("changed", after - 400, 1 / 512)
    assert row["n_changed"] == 9
    quality = found["a", "char_recall_union"]["verdict"]
    assert quality == ("regression" if after < 400 else "improved")
    table = regression(run({"a": before}), run({"a": now}), RULE, corpus="c")
    scored = metrics_table({"a": before}), metrics_table({"a": now})
    assert accepted_run.wrong_comparisons(table, *scored, level=0.05, effect=0.02) == []
    rows = table.to_pylist()
    assert rows[1]["metric"] == "chars_retrieved"
    judged = pa.Table.from_pylist([rows[1] | {"verdict": quality}], table.schema)
    (wrong,) = accepted_run.wrong_comparisons(judged, *scored, level=0.05, effect=0.02)
    assert wrong["problem"] == "the verdict is changed"


def test_swapped_queries_leave_the_mean_and_are_named():
    row = one([1, 0, 1, 0], [0, 1, 1, 0])
    assert (row["verdict"], row["difference"], row["p"]) == ("changed", 0, 3 / 4)
    assert (row["broken_queries"], row["fixed_queries"]) == (["q01"], ["q02"])
    assert (row["n_changed"], row["changed_queries"]) == (2, ["q01", "q02"])
    assert one([1, 0, 1, 0], [0, 1, 1, 0], Rule(0.05, 0.0, 100, 1))["verdict"] == "changed"


def test_a_value_that_became_undefined_is_a_change_outside_the_mean():
    row = one([1, 1, 0, None], [None, 1, 0, 1])
    assert (row["n"], row["accepted"], row["current"], row["difference"]) == (2, 0.5, 0.5, 0)
    assert (row["verdict"], row["changed_queries"]) == ("changed", ["q01", "q04"])
    assert (row["broken_queries"], row["fixed_queries"]) == ([], [])
    row = one([1, None], [None, 1])
    assert (row["n"], row["difference"], row["p"], row["verdict"]) == (0, None, None, "changed")


ALL: Metrics = {
    metric: [0.5, 1.0] for metric in ("precision", "recall", "mrr", "span_coverage", "span_recall")
} | {"complete_grounding": [0.0, 1.0]}
COUNTING = {"precision", "recall", "mrr"}


def verdict_of(found: dict[tuple[str, str], Any]) -> dict[str, str]:
    return {metric: row["verdict"] for (_, metric), row in found.items()}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"chunks": "c2", "chunker": "long", "n_chunks": "7"}, "12 by clause before, 7 by long"),
        ({"chunks": "c2"}, "other chunks (12 by clause before, 12 by clause now)"),
        ({"encoder_weights": "w2"}, "other weights of the encoder mini, at most 256 word"),
        ({"encoder_weights": "w2", "encoder": "maxi"}, "another encoder (mini, at most 256 word"),
    ],
)
def test_another_chunker_or_encoder_leaves_what_counts_characters(
    settings: dict[str, str], words: str
):
    found = compare(run({"a": ALL}), run({"a": ALL}, **settings))
    for metric, verdict in verdict_of(found).items():
        row = found["a", metric]
        if metric in COUNTING:
            assert verdict == "not comparable"
            assert words in row["comparable"]
            assert f"{metric} counts chunks" in row["comparable"]
            assert (row["n"], row["difference"], row["p"], row["n_changed"]) == (None,) * 3 + (0,)
            assert row["accepted"] == row["current"] == 0.75
        else:
            assert (verdict, row["n"]) == ("pass", 2)
            across = ", with other chunks (12 by clause before, {} now): the first k hold another "
            now = "7 by long" if "chunker" in settings else "12 by clause"
            expected = across.format(now) + "amount of text" if "chunks" in settings else ""
            assert row["comparable"] == "comparable" + expected


@pytest.mark.parametrize(
    "settings",
    [
        {"fusion": "10"},
        {"retriever": "dense"},
        {"chunker": "the same cuts by another name"},
        {"reranker": "cross", "reranker_weights": "w9"},
    ],
)
def test_other_levers_are_what_is_to_be_judged(settings: dict[str, str]):
    found = compare(run({"a": ALL}), run({"a": ALL}, **settings))
    assert set(verdict_of(found).values()) == {"pass"}


def test_without_a_dense_channel_there_is_no_other_encoder():
    def lexical(held: Run) -> Run:
        keep = [
            n not in ("encoder", "encoder_weights") for n in held.fingerprints["name"].to_pylist()
        ]
        return Run(held.query_metrics, held.fingerprints.filter(pa.array(keep)), {})

    found = compare(run({"a": ALL}), lexical(run({"a": ALL})))
    assert set(verdict_of(found).values()) == {"pass"}


@pytest.mark.parametrize("part", ["documents", "queries", "gold_spans"])
def test_another_corpus_or_gold_is_not_compared_at_all(part: str):
    other = run({"a": {"mrr": [1.0]}}, {part: "other"})
    found = compare(run({"a": {"mrr": [0.5, 1.0]}}), other)
    row = found["a", "mrr"]
    assert row["verdict"] == "not comparable"
    assert row["comparable"] == f"not comparable, accept anew: other {part}"
    assert (row["accepted"], row["current"], row["difference"]) == (0.75, 1.0, None)


@pytest.mark.parametrize(
    ("depth", "others"),
    [("10", {"mrr"}), ("4", {"mrr", "precision", "recall"}), ("30", set())],
)
def test_a_depth_that_does_not_reach_k_is_another_measure(depth: str, others: set[str]):
    """Precision at 5 of lists 4 deep is precision of 4 chunks, of lists 10 deep what it was."""
    found = compare(run({"a": ALL}), run({"a": ALL}, {"depth": depth}))
    told = {m for m, v in verdict_of(found).items() if v == "not comparable"}
    assert told & {"mrr", "precision", "recall"} == others
    for metric in told:
        assert f"depth 30 before, {depth} now" in found["a", metric]["comparable"]


def test_a_value_past_the_depth_of_both_runs_is_no_value() -> None:
    """As an accepted run may hold it that was made before such values were left out."""
    held = run({"a": {"recall": [0.5, 1.0], "mrr": [1.0, 1.0]}}, {"depth": "1"})
    for now in ({"mrr": [1.0, 1.0]}, {"mrr": [1.0, 1.0], "recall": [0.5, 1.0]}):
        found = compare(held, run({"a": now}, {"depth": "1"}))
        assert found["a", "recall"]["verdict"] == "not comparable"
        why = found["a", "recall"]["comparable"]
        assert why == "not comparable: depth = 1 does not reach 10; accept anew"
        assert found["a", "mrr"]["verdict"] == "pass"


def test_what_a_deeper_run_has_more_is_not_accepted_yet() -> None:
    value: Metrics = {"precision": [0.2]}
    held, now = run({"a": value}, {"depth": "5"}), run({"a": value | {"recall": [1.0]}})
    row = compare(held, now)["a", "recall"]
    assert row["verdict"] == "not accepted"
    assert "(depth 5 before, 30 now)" in row["comparable"]
    assert verdict_of(compare(held, now))["precision"] == "pass"


def test_every_reason_is_named():
    value: Metrics = {"mrr": [1.0]}
    moved = run({"a": value}, {"documents": "other", "gold_spans": "other"})
    assert compare(run({"a": value}), moved)["a", "mrr"]["comparable"] == (
        "not comparable, accept anew: other documents and gold_spans"
    )
    deeper = run({"a": value}, {"depth": "20"}, chunks="c2")
    assert compare(run({"a": value}), deeper)["a", "mrr"]["comparable"] == (
        "not comparable: other chunks (12 by clause before, 12 by clause now), and mrr counts "
        "chunks; depth 30 before, 20 now"
    )


def test_two_corpora_at_once_are_refused():
    held = run({"a": {"mrr": [1.0]}})
    both = replace(held, query_metrics=beside_another(held.query_metrics, "corpus"))
    with pytest.raises(ValueError, match="one corpus at a time, not c, other"):
        compare(held, both)


def test_no_value_of_another_context_is_compared() -> None:
    held = run({"a": {"precision": [1.0], "mrr": [1.0]}})
    now = run({"a": {"mrr": [1.0]}}, {"context": "3"})
    row = compare(held, now)["a", "precision"]
    assert (row["verdict"], row["difference"]) == ("not comparable", None)
    assert "(context 5 before, 3 now)" in row["comparable"]
    assert compare(held, now)["a", "mrr"]["verdict"] == "pass"
    new = compare(now, held)["a", "precision"]
    assert new["verdict"] == "not accepted"
    assert "(context 3 before, 5 now)" in new["comparable"]


def test_another_depth_is_another_mrr():
    found = compare(run({"a": ALL}), run({"a": ALL}, {"depth": "20"}))
    assert verdict_of(found) == dict.fromkeys(ALL, "pass") | {"mrr": "not comparable"}
    assert "depth 30 before, 20 now" in found["a", "mrr"]["comparable"]


def test_configurations_that_came_went_or_were_not_measured():
    value: Metrics = {"mrr": [0.5, 1.0]}
    accepted = run({"kept": value, "gone": value, "weightless": value}, known=("late",))
    current = run(
        {"kept": value, "late": value, "fresh": value},
        states={"weightless": "not measured: no weights"},
    )
    found = {config: row for (config, _), row in compare(accepted, current).items()}
    assert {config: row["verdict"] for config, row in found.items()} == {
        "kept": "pass",
        "gone": "missing configuration",
        "weightless": "missing configuration",
        "late": "not accepted",
        "fresh": "new configuration",
    }
    assert found["gone"]["comparable"] == "the experiment no longer has this configuration"
    assert found["weightless"]["comparable"] == "not measured: no weights"
    assert found["late"]["comparable"] == "the accepted run had not measured it; accept anew"
    assert found["fresh"]["comparable"] == (
        "the accepted run does not know this configuration; accept anew"
    )
    assert (found["gone"]["accepted"], found["gone"]["current"]) == (0.75, None)
    assert (found["fresh"]["accepted"], found["fresh"]["current"]) == (None, 0.75)


def test_a_metric_that_only_one_run_has_is_not_passed_over():
    both, more = {"a": {"mrr": [1.0]}}, {"a": {"mrr": [1.0], "recall": [1.0]}}
    for before, after, verdict, why in (
        (both, more, "not accepted", "the accepted run does not have this metric; accept anew"),
        (more, both, "not comparable", "this run does not have this metric; accept anew"),
    ):
        row = compare(run(before), run(after))["a", "recall"]
        assert (row["verdict"], row["comparable"]) == (verdict, why)


def test_runs_that_lie_about_their_queries_are_refused():
    with pytest.raises(ValueError, match="q02"):
        one([1, 1], [1])


VALUES = st.sampled_from([None, 0.0, 0.25, 1 / 3, 1.0])


@settings(max_examples=60)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12))
def test_a_row_agrees_with_its_queries(pairs: list[tuple[float | None, float | None]]):
    row = one([a for a, _ in pairs], [b for _, b in pairs], Rule(0.05, 0.02, 500, 1))
    ids = [f"q{i:02}" for i in range(1, len(pairs) + 1)]
    changed = [q for q, (a, b) in zip(ids, pairs, strict=True) if a != b]
    defined = [(a, b) for a, b in pairs if a is not None and b is not None]
    assert row["changed_queries"] == changed
    assert row["n_changed"] == len(changed)
    assert row["n"] == len(defined)
    assert (row["verdict"] == "pass") == (not changed)
    assert not set(row["broken_queries"]) & set(row["fixed_queries"])
    assert set(row["broken_queries"]) | set(row["fixed_queries"]) <= set(changed)
    if defined:
        assert row["accepted"] == pytest.approx(sum(a for a, _ in defined) / len(defined))
        assert row["difference"] == pytest.approx(row["current"] - row["accepted"], abs=1e-12)
        assert row["low"] <= row["high"]
    if row["verdict"] in ("regression", "improved"):
        assert row["p"] < 0.05
        assert abs(row["difference"]) >= 0.02 - 1e-12
        assert (row["difference"] < 0) == (row["verdict"] == "regression")
