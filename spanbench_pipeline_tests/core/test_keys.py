"""Keys of names: none is lost, none is another's, and those that stood alone keep theirs."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.core import keys as names
from spanbench_pipeline.core.keys import MAX_KEY, MAX_TAG, choices, key_of, keys, slug, told_apart

ROOT = Path(experiments.__file__).parents[2]
DAGSTER = re.compile(r"[A-Za-z0-9_]+")
close = st.lists(st.text("ab +_-éЖ条A", min_size=1, max_size=6), unique=True, max_size=8)


def test_the_projects_own_names_keep_their_keys():
    for path in sorted((ROOT / "data" / "experiments").glob("*.toml")):
        loaded = experiments.load(path)
        assert {c.name: c.slug for c in loaded.configurations} == {
            c.name: slug(c.name) for c in loaded.configurations
        }
        assert all(loaded.encoder_key(e) == slug(e) for e in loaded.encoders)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["model v1"], "model v1"),  # alone, as ever
        (["модель v1"], "модель v1"),
        (["model v1", "model-v1"], "model v1"),  # the first by code points
        (["model v1", "model_v1", "Model V1"], "model_v1"),  # its own slug
        (["Naive", "naive"], "naive"),
        (["модель", "条款"], None),  # no slug at all
    ],
)
def test_one_name_keeps_the_slug_in_whatever_order(given: list[str], kept: str | None):
    found = keys(given)
    assert [name for name in given if found[name] == slug(name)] == ([kept] if kept else [])
    for name in given:
        assert name == kept or re.fullmatch(r"(\w+)__[0-9a-f]{8}", found[name])
        assert found[name].startswith(slug(name))
    assert all(keys(order) == found for order in permutations(given))


def test_a_key_is_the_same_in_every_version():
    assert keys(["model v1", "model-v1"])["model-v1"] == "model_v1__1a1f4502"  # sha256 of the name
    assert keys(["модель"])["модель"] == "name__b68fadf0"


@given(close)
def test_no_two_names_have_one_key(given: list[str]):
    found = keys(given)
    assert set(found) == set(given)
    assert len(set(found.values())) == len(given)
    assert all(DAGSTER.fullmatch(key) and len(key) <= MAX_KEY for key in found.values())
    alone = [n for n in given if slug(n) and [slug(o) for o in given].count(slug(n)) == 1]
    assert all(found[name] == slug(name) for name in alone)


@given(close, st.integers(0, 2))
def test_hashes_that_begin_alike_are_told_apart(given: list[str], digits: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "_DIGITS", (digits, 64))
        assert len(set(keys(given).values())) == len(given)


def test_what_is_asked_for_beside_known_keys_is_none_of_theirs():
    known = told_apart({("naive", "b"): "naive_b", ("clause", "a"): "clause"})
    assert key_of(("naive", "b"), "naive_b", known) == "naive_b"
    assert key_of(("naive", "c"), "naive_c", known) == "naive_c"
    beside = key_of(("naive_b", "a"), "naive_b", known)
    assert beside not in known.values()
    assert beside.startswith("naive_b__")


def test_long_names_are_cut_and_still_told_apart():
    long = "clause " * 60
    found = keys([f"{long}{i}" for i in range(20)])
    assert len(set(found.values())) == 20
    assert {len(key) for key in found.values()} == {MAX_KEY}
    assert names.tag("a" * MAX_TAG) == "a" * MAX_TAG
    assert len({names.tag("a" * MAX_TAG + str(i)) for i in range(20)}) == 20
    assert len(names.tag("a" * 500)) == MAX_TAG


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "no letter or digit"),
        ("   ", "no letter or digit"),
        ("+", "no letter or digit"),
        ("👍", "no letter or digit"),
        ("a\nb", "control character"),
        ("a\x00", "control character"),
        ("\x1b[31ma", "control character"),
        ("a\u2028b", "line break"),
        ("a\u202eb", "direction"),
        ("a\u2066b", "direction"),
        ("a\u200fb", "direction"),
        ("a\udce9", "half a character"),
        ("clause + hybrid", ""),
        ("модель", ""),
        ("条款 👍", ""),
        ("constructor", ""),
    ],
)
def test_what_no_table_can_show_is_no_name(name: str, problem: str):
    assert problem in names.problem(name)
    assert bool(problem) == bool(names.problem(name))


@pytest.mark.parametrize(
    "like",
    [
        *("cafe\u0301 1", "café  1", " café 1", "café\u200b 1", "café\u28001\u3164"),
        *("café\ufe0f 1", "café\u034f 1", "café\U000e0100 1", "ca\u115ffé 1", "café\u180b 1"),
    ],
)
def test_names_that_look_the_same(like: str):
    assert names.seen_as(like) == names.seen_as("café 1")
    assert names.seen_as("Café 1") != names.seen_as("café 1")


def test_where_the_others_are_not_known_the_slug_comes_first():
    assert choices("model v1")[0] == "model_v1"
    assert all(key.startswith("name__") for key in choices("модель"))
    assert len({*choices("model v1"), *choices("model-v1")}) == 2 * 4 - 1
