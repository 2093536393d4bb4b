"""Splits by document: what stays together, by brute force, and how near the share they come."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, GoldSpan, Query, assemble
from spanbench_pipeline.tuning import splits
from spanbench_pipeline.tuning.splits import Side, Split

Asked = Mapping[str, tuple[Sequence[str], str | None]]
"""query -> (documents with gold, subset)"""


def made(asked: Asked) -> tuple[pa.Table, pa.Table]:
    documents = sorted({doc for docs, _ in asked.values() for doc in docs} | {"distractor"})
    found = assemble(
        "tiny",
        [Document(d, d, "x" * 50, f"{d}.txt", "text") for d in documents],
        [
            Query(q, f"what is {q}?", [GoldSpan(d, 0, 5) for d in sorted(docs)], subset=subset)
            for q, (docs, subset) in asked.items()
        ],
    )
    return found.queries, found.gold_spans


def split(asked: Asked, share: float = 0.5, seed: int = 42) -> Split:
    return splits.split(*made(asked), share=share, seed=seed)


def connected(asked: Asked) -> list[tuple[set[str], set[str]]]:
    """(documents, queries) that hang together: sets merged until no two share a document."""
    groups = [(set(docs), {query}) for query, (docs, _) in asked.items()]
    while True:
        pair = next(
            ((a, b) for i, a in enumerate(groups) for b in groups[i + 1 :] if a[0] & b[0]),
            None,
        )
        if pair is None:
            return groups
        groups = [g for g in groups if g not in pair]
        groups.append((pair[0][0] | pair[1][0], pair[0][1] | pair[1][1]))


corpora = st.dictionaries(
    st.sampled_from([f"q{n:02}" for n in range(14)]),
    st.tuples(
        st.one_of(
            st.sampled_from("abcdefghijklmnop").map(lambda doc: [doc]),
            st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=2, unique=True),
        ),
        st.sampled_from([None, "one", "two"]),
    ),
    min_size=4,
)
shares = st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9])


def test_a_group_that_brings_nothing_nearer_is_held_out():
    # Half of three is 1.5: one is as near to it as two.
    found = split({"q1": (["a"], None), "q2": (["b"], None), "q3": (["c"], None)})
    assert (len(found.development.queries), len(found.held_out.queries)) == (1, 2)


@given(corpora, shares, st.integers(0, 5))
@example({"q00": (["a"], None), "q01": (["b"], None)}, 0.5, 0)
def test_every_query_once_and_no_document_on_both_sides(asked: Asked, share: float, seed: int):
    try:
        found = split(asked, share, seed)
    except InputError:
        return  # as the next test allows
    sides = (found.development, found.held_out)
    assert sorted(q for side in sides for q in side.queries) == sorted(asked)
    assert not set(sides[0].documents) & set(sides[1].documents)
    for side in sides:
        assert side.queries
        assert list(side.queries) == sorted(side.queries)
        documents = {doc for query in side.queries for doc in asked[query][0]}
        assert list(side.documents) == sorted(documents)


@given(corpora, shares, st.integers(0, 5))
def test_each_subset_is_off_by_half_of_its_largest_group_at_most(
    asked: Asked, share: float, seed: int
):
    strata: dict[frozenset[str | None], list[set[str]]] = {}
    for _, queries in connected(asked):
        subsets = frozenset(asked[query][1] for query in queries)
        strata.setdefault(subsets, []).append(queries)
    try:
        taken = set(split(asked, share, seed).development.queries)
    except InputError:
        # Refused only where one side would be empty, however groups fall within the bound.
        n, most = len(asked), sum(max(map(len, g)) / 2 for g in strata.values())
        assert min(share * n, (1 - share) * n) <= most + 1e-9
        return
    for groups in strata.values():
        queries = set().union(*groups)
        off = abs(len(taken & queries) - share * len(queries))
        assert off <= max(map(len, groups)) / 2 + 1e-9
        assert all(group <= taken or not group & taken for group in groups)


@given(corpora, shares, st.integers(0, 5), st.randoms())
def test_the_order_of_rows_changes_nothing(asked: Asked, share: float, seed: int, random):
    tables_given = made(asked)
    mixed = []
    for table in tables_given:
        order = list(range(table.num_rows))
        random.shuffle(order)
        mixed.append(table.take(pa.array(order)))
    try:
        found = splits.split(*tables_given, share=share, seed=seed)
    except InputError:
        with pytest.raises(InputError):
            splits.split(*mixed, share=share, seed=seed)
        return
    assert splits.split(*mixed, share=share, seed=seed) == found


def test_the_order_is_that_of_hashes():
    """Four documents with one query each, half of them: the two whose hashes are the lowest."""
    asked: Asked = {f"q{d}": ([d], None) for d in "abcd"}
    taken = []
    for seed in range(6):
        hashes = {d: hashlib.sha256(f"{seed}\n{d}".encode()).hexdigest() for d in "abcd"}
        wanted = sorted(sorted("abcd", key=hashes.__getitem__)[:2])
        found = split(asked, seed=seed)
        assert found.development == Side(tuple(f"q{d}" for d in wanted), tuple(wanted))
        taken.append(found)
    assert len({t.development.documents for t in taken}) > 1


def test_a_query_about_two_documents_joins_them():
    asked: Asked = {
        "q1": (["a"], None),
        "q2": (["b"], None),
        "q3": (["a", "b"], None),
        "q4": (["c"], None),
        "q5": (["c"], None),
        "q6": (["c"], None),
    }
    for seed in range(8):
        found = split(asked, seed=seed)
        assert {found.development.documents, found.held_out.documents} == {("a", "b"), ("c",)}


def test_each_subset_is_split_by_itself():
    asked: Asked = {
        f"{part}{n}": ([f"{part}{n}"], part) for part in ("one", "two") for n in range(6)
    }
    for seed in range(8):
        queries = split(asked, seed=seed).development.queries
        assert [q[:3] for q in queries] == ["one"] * 3 + ["two"] * 3


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), float("inf")])
def test_a_share_that_is_none(share: float):
    with pytest.raises(InputError, match="is not between 0 and 1"):
        split({"q1": (["a"], None), "q2": (["b"], None)}, share)


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        ({"q1": (["a"], None), "q2": (["a"], None)}, 0.5),
        ({"q1": (["a", "b"], None), "q2": (["b"], None)}, 0.5),
        ({"q1": (["a"], None), "q2": (["b"], None)}, 0.1),
        ({"q1": (["a"], None), "q2": (["b"], None)}, 0.9),
    ],
)
def test_too_few_documents(asked: Asked, share: float):
    with pytest.raises(InputError, match=r"too few documents for a split: [12] that can be told"):
        split(asked, share)


def test_a_query_without_gold_is_refused():
    queries, gold = made({"q1": (["a"], None), "q2": (["b"], None)})
    with pytest.raises(InputError, match="query q2: no gold span"):
        splits.split(queries, gold.slice(0, 1), share=0.5, seed=0)


def test_two_corpora_are_refused():
    queries, gold = made({"q1": (["a"], None), "q2": (["b"], None)})
    rows = [row | {"corpus": "other"} for row in queries.to_pylist()]
    both = pa.concat_tables([queries, tables.from_rows("queries", rows)])
    with pytest.raises(ValueError, match="one corpus at a time"):
        splits.split(both, gold, share=0.5, seed=0)


def test_subsets():
    queries, _ = made({"q1": (["a"], "two"), "q2": (["b"], "one"), "q3": (["b"], "two")})
    assert splits.subsets(queries) == {
        None: {"q1", "q2", "q3"},
        "one": {"q2"},
        "two": {"q1", "q3"},
    }
    assert list(splits.subsets(queries)) == [None, "one", "two"]
    assert list(splits.subsets(made({"q1": (["a"], None)})[0])) == [None]
