"""Choices and comparisons, by hand."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import Configuration
from spanbench_pipeline.tuning import objective

CC = Configuration("cc", "c", "hybrid", fusion="cc", doc_scope=False, encoder="e")
RRF = replace(CC, name="rrf", fusion="rrf")
DENSE = replace(CC, name="dense", retriever="dense", fusion="rrf")
TEST = objective.Test(level=0.05, rounds=10_000, seed=1)


def at(alpha: float, routing: int = 0, routing_alpha: float = 0.3) -> Configuration:
    return replace(CC, alpha=alpha, routing=routing, routing_alpha=routing_alpha)


def test_the_grid_is_the_declared_one_and_holds_what_is_untuned():
    tenths = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert objective.GRID["alpha"] == objective.GRID["routing_alpha"] == tenths
    assert objective.GRID["routing"] == (0, 3, 5, 10)
    assert objective.UNTUNED == {"routing": 0, "alpha": 0.2, "rrf_k": 60, "routing_alpha": 0.3}
    assert all(objective.UNTUNED[key] in values for key, values in objective.GRID.items())
    assert objective.untuned(at(0.9, 5, 0.1)) == CC


def test_constants_are_those_of_the_fusion():
    assert [c.alpha for c in objective.constants(at(0.5))] == list(objective.GRID["alpha"])
    assert {c.rrf_k for c in objective.constants(at(0.5))} == {60}
    assert [c.rrf_k for c in objective.constants(RRF)] == list(objective.GRID["rrf_k"])
    assert objective.constants(DENSE) == [DENSE]


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ({at(0.2): 0.5, at(0.9): 0.6}, at(0.9)),
        ({at(0.2): 0.5, at(0.9): 0.5}, at(0.2)),
        # 0.1 and 0.3 are as far from 0.2, though not in floating point: the smaller one.
        ({at(0.3): 0.5, at(0.1): 0.5, at(0.2): 0.4}, at(0.1)),
        ({at(0.5): 0.5, at(0.3): 0.5, at(0.0): 0.5}, at(0.3)),
        # No routing before routing, whatever the other keys; then fewer documents.
        ({at(0.9): 0.5, at(0.2, 3): 0.5}, at(0.9)),
        ({at(0.2, 5): 0.5, at(0.9, 3): 0.5}, at(0.9, 3)),
        # A difference of rounding is none; one above it counts.
        ({at(0.2): 0.5, at(0.9): 0.5 + 1e-13}, at(0.2)),
        ({at(0.2): 0.5, at(0.9): 0.5 + 1e-9}, at(0.9)),
        ({at(0.2): None, at(0.9): 0.0}, at(0.9)),
        ({at(0.9): None, at(0.4): None}, at(0.4)),
        # Of routing alphas the nearest to 0.3.
        ({at(0.2, 3, 0.9): 1.0, at(0.2, 3, 0.5): 1.0, at(0.2, 3, 0.0): 0.9}, at(0.2, 3, 0.5)),
    ],
)
def test_the_best_is_chosen_and_ties_go_to_the_untuned(means, chosen: Configuration):
    assert objective.choose(means) == chosen
    assert objective.choose(dict(reversed(means.items()))) == chosen


def test_a_tie_is_with_the_best_and_not_with_the_one_before():
    """Steps of less than the tolerance do not add up to a choice that is worse by more."""
    means = {at(0.2): 0.5, at(0.3): 0.5 + 0.8e-12, at(0.4): 0.5 + 1.6e-12}
    assert objective.choose(means) == at(0.3)


def test_a_comparison_by_hand():
    before = {"a": 0.0, "b": 0.0, "c": 1.0, "d": None, "e": 1.0, "x": 0.0}
    after = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": None, "x": 0.0}
    found = objective.compare(before, after, ["a", "b", "c", "d", "e"], TEST)
    # Over a, b, c: 1/3 before, 1 after. Two differences of 1: of 4 sign patterns 1 reaches 2.
    low, high = found.pop("low"), found.pop("high")
    assert found == {"n": 3, "before": 1 / 3, "after": 1, "difference": 2 / 3, "p": 0.25}
    assert 0 <= low <= 2 / 3 <= high <= 1
    nothing = objective.compare(before, after, ["d", "e"], TEST)
    assert nothing.pop("n") == 0
    assert set(nothing.values()) == {None}
    same = objective.compare(before, before, ["a", "b", "c"], TEST)
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)


def test_metrics_that_can_be_tuned_for():
    known = objective.metrics(8)
    assert known["complete_grounding@5"] == ("complete_grounding", 5)
    assert known["mrr"] == ("mrr", None)
    assert known["char_recall_union@8"] == ("char_recall_union", 8)
    assert "char_recall_union@16" not in known
    assert not any(name.startswith("chars_retrieved") for name in known)


@pytest.mark.parametrize(
    "config",
    [
        at(0.7, 5, 0.1),
        at(0.2),
        replace(RRF, rrf_k=10, metadata_filters=True),
        replace(DENSE, routing=3, routing_alpha=0.0),
        Configuration("b", "c", "bm25", doc_scope=False),
        Configuration("b", "c", "bm25", doc_scope=False, encoder="e", routing=3),
        Configuration("scoped", "c", "hybrid", fusion="cc", alpha=1.0, encoder="e"),
    ],
)
def test_the_lines_load_as_the_configuration(config: Configuration, tmp_path: Path):
    name = 'quo"ted \\ naïve, tuned'
    shown = objective.lines(config, name)
    assert set(tomllib.loads(shown)) == {"configurations"}
    path = tmp_path / "own.toml"
    head = 'corpus = "own"\n[source]\nkind = "directory"\n[chunkers.c]\nstrategy = "naive"\n'
    path.write_text(f'{head}[encoders.e]\npackage = "p"\n{shown}\n', encoding="utf-8")
    (loaded,) = experiments.load(path).configurations
    assert loaded == replace(config, name=name)


def test_settings_of_bm25_go_with_the_routing_that_had_them():
    routed = replace(DENSE, routing=3, bm25="lucene", tokenizer="unicode", stemming="czech")
    of_bm25 = {"bm25", "tokenizer", "stemming"}
    for routing, stated in ((3, of_bm25), (0, set())):
        shown = objective.lines(replace(routed, routing=routing), "tuned")
        (given,) = tomllib.loads(shown)["configurations"]
        assert (given["routing"], given.keys() & of_bm25) == (routing, stated)


def test_a_name_is_written_as_toml_has_it():
    # DEL must be escaped in TOML, as it need not be in JSON; letters stay readable.
    shown = objective.lines(CC, "naïve \x7f")
    assert 'name = "naïve \\u007f"' in shown.splitlines()
    assert tomllib.loads(shown)["configurations"][0]["name"] == "naïve \x7f"
