"""Precision and recall in characters: the specification's examples, traps, a brute force."""

from __future__ import annotations

import itertools
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline_tests.metrics.cases import beside_another
from spanbench_pipeline_tests.metrics.measure import character_metrics
from spanbench_pipeline_tests.metrics.places import (
    NAMED,
    A,
    B,
    Place,
    Placed,
    many,
    one,
    placed_cases,
)

Cells = dict[tuple[str, str, int], float]
"""(query, metric, k) -> value"""


def measured(case: Placed, depth: int = 64, *, foreign: bool = False) -> Cells:
    table = character_metrics(
        case.rankings(), case.gold_spans(), case.queries(), **NAMED, depth=depth, foreign=foreign
    )
    return {(r["query_id"], r["metric"], r["k"]): r["value"] for r in table.to_pylist()}


def at(case: Placed, k: int, *, foreign: bool = False) -> tuple[float, ...]:
    """Characters retrieved, union P and R, paper P and R of the one query."""
    found = measured(case, foreign=foreign)
    return tuple(found["q", metric, k] for metric in registry.characters())


def test_overlapping_chunks() -> None:
    case = one([A(0, 100)], [A(0, 100), A(50, 150)])
    assert at(case, 2) == (150, 100 / 150, 1, 150 / 200, 1.5)
    assert at(case, 1) == (100, 1, 1, 1, 1)


def test_equal_offsets_of_a_wrong_document_are_no_hit() -> None:
    assert at(one([A(0, 100)], [A(0, 100), B(0, 100)]), 2) == (200, 0.5, 1, 0.5, 1)


def test_gold_in_two_documents_one_of_which_was_retrieved() -> None:
    assert at(one([A(0, 100), B(0, 100)], [A(0, 100)]), 1) == (100, 1, 0.5, 1, 0.5)


def test_a_wrong_document_first() -> None:
    case = one([A(0, 100)], [B(0, 100), A(0, 100)])
    assert at(case, 1) == (100, 0, 0, 0, 0)
    assert at(case, 2) == (200, 0.5, 1, 0.5, 1)


def test_nothing_retrieved_has_precision_and_recall_0() -> None:
    case = Placed({"q": [A(0, 10)]}, {})
    assert [at(case, k) for k in DEPTHS] == [(0, 0, 0, 0, 0)] * 7


def test_a_short_list_is_used_whole() -> None:
    case = one([A(0, 10)], [A(0, 5), A(5, 20)])
    assert at(case, 64) == at(case, 2) == (20, 0.5, 1, 0.5, 1)


def test_a_repeat_counts_once_and_the_ranks_close_up() -> None:
    # As it stands the list has [0,10) twice at its first two ranks.
    case = one([A(0, 20)], [A(0, 10), A(0, 10), A(10, 20)])
    assert at(case, 2) == (20, 1, 1, 1, 1)


def test_the_paper_takes_a_foreign_list_as_it_stands() -> None:
    # Union closes up all the same: [0,10) and [10,40). The paper has [0,10) twice at 2: 20 of 20,
    # and 20 of 20 gold characters; at 4 it has 30 of 50 retrieved, 30 of 20 gold characters.
    case = one([A(0, 20)], [A(0, 10), A(0, 10), A(10, 40)])
    assert at(case, 2, foreign=True) == (40, 0.5, 1, 1, 1)
    assert at(case, 4, foreign=True) == (40, 0.5, 1, 30 / 50, 30 / 20)


@pytest.mark.parametrize(
    ("depth", "ks"), [(1, DEPTHS[:1]), (3, DEPTHS[:2]), (30, DEPTHS[:5]), (64, DEPTHS)]
)
def test_a_k_past_the_depth_is_absent(depth: int, ks: tuple[int, ...]) -> None:
    found = measured(one([A(0, 10)], [A(0, 5)] * 9), depth)
    assert found.keys() == {("q", metric, k) for metric in registry.characters() for k in ks}


def renamed(case: Placed) -> Placed:
    """Every ranked document by a fresh name, with chunks at the same offsets beside the others."""
    fresh = {q: [(f"new {d}", s, e) for d, s, e in ranked] for q, ranked in case.ranked.items()}
    known = None if case.chunks is None else [*case.chunks, *itertools.chain(*fresh.values())]
    return Placed(case.gold, fresh, known)


@settings(max_examples=60, deadline=None)
@given(placed_cases())
def test_no_document_is_mistaken_for_another(case: Placed) -> None:
    blind, seen = measured(renamed(case)), measured(case)
    for (query, metric, k), value in blind.items():
        assert value == (seen[query, metric, k] if metric == "chars_retrieved" else 0)


@settings(max_examples=100, deadline=None)
@given(placed_cases(), st.booleans())
def test_metrics_equal_sets_of_characters(case: Placed, foreign: bool) -> None:
    assert measured(case, foreign=foreign) == expected(case, foreign)


def expected(case: Placed, foreign: bool) -> Cells:
    return {
        (query, metric, k): value
        for query in case.gold
        for k in DEPTHS
        for metric, value in oracle.character_metrics(
            case.asked(query), k, as_given=foreign
        ).items()
    }


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_thousand_random_queries_at_once(seed: int, foreign: bool) -> None:
    case = many(1000, seed)
    assert measured(case, foreign=foreign) == expected(case, foreign)


@settings(max_examples=100, deadline=None)
@given(placed_cases(), st.randoms())
def test_the_order_of_the_tables_changes_nothing(case: Placed, random) -> None:
    def shuffled(table: pa.Table) -> pa.Table:
        rows = list(range(table.num_rows))
        random.shuffle(rows)
        return table.take(pa.array(rows, pa.int64()))

    tables = (case.rankings(), case.gold_spans(), case.queries())
    again = character_metrics(*map(shuffled, tables), **NAMED, depth=64)
    assert again.equals(character_metrics(*tables, **NAMED, depth=64))


def test_equal_ranks_are_ordered_by_chunk_id() -> None:
    case = one([A(0, 10)], [B(0, 10), A(0, 10)])
    tied = case.rankings().set_column(3, "rank", pa.array([7, 7], pa.int64()))
    for ranked in (tied, tied.take([1, 0])):
        table = character_metrics(ranked, case.gold_spans(), case.queries(), **NAMED, depth=1)
        found = {row["metric"]: row["value"] for row in table.to_pylist()}
        assert found["char_recall_union"] == 1  # A:0:10 comes before B:0:10


def test_several_queries_never_meet() -> None:
    gold: dict[str, list[Place]] = {"q1": [A(0, 10)], "q2": [A(20, 30)]}
    found = measured(Placed(gold, {"q1": [A(20, 30)], "q2": [A(0, 10)]}))
    assert {v for (_, metric, _), v in found.items() if metric != "chars_retrieved"} == {0}


def test_offsets_near_the_end_of_int64_are_refused_not_wrapped() -> None:
    far = 2**62
    with pytest.raises(ValueError, match="do not fit on one axis"):
        measured(one([A(0, 10)], [B(0, 10), A(far, far + 10)]))


def test_what_does_not_fit_together_is_refused() -> None:
    case = one([A(0, 10)], [A(0, 10)])
    ranked, gold, _, asked = case.tables()

    def measure(rankings: pa.Table, spans: pa.Table, queries: pa.Table) -> None:
        character_metrics(rankings, spans, queries, **NAMED, depth=8)

    other = Placed({"r": [A(0, 1)]}, {"r": [A(0, 1)]})
    with pytest.raises(InputError, match="ranking of unknown query 'r'"):
        measure(other.rankings(), gold, asked)
    with pytest.raises(InputError, match="gold span of unknown query 'r'"):
        measure(ranked, other.gold_spans(), asked)
    with pytest.raises(InputError, match="query q: no gold span"):
        measure(ranked, gold.slice(0, 0), asked)
    with pytest.raises(ValueError, match="one config at a time"):
        measure(pa.concat_tables([ranked, case.rankings("b")]), gold, asked)
    for tables in (
        (beside_another(ranked, "corpus"), gold, asked),
        (ranked, beside_another(gold, "corpus"), asked),
        (ranked, gold, beside_another(asked, "corpus")),
    ):
        with pytest.raises(ValueError, match="one corpus at a time, not other, tiny"):
            measure(*tables)


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (-1, 5)])
def test_ranked_places_without_characters_are_refused(start: int, end: int) -> None:
    case = one([A(0, 10)], [A(0, 10), A(10, 20), A(start, end), A(9, 8)])
    message = (
        f"configuration mine, query q, rank 3: A [{start}, {end}) has no characters; "
        "offsets must satisfy 0 <= start < end"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        measured(case)
