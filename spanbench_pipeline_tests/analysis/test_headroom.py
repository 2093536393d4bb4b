from __future__ import annotations

import itertools
from collections.abc import Collection

import pytest
from hypothesis import given, settings

from spanbench_pipeline.analysis.headroom import BOUNDS, costs
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS, Case, Place, tiles
from spanbench_pipeline_tests.metrics.flows import Flow, flows
from spanbench_pipeline_tests.metrics.measure import headroom

KS = (1, 2, 3, 5)
Values = dict[tuple[str | None, int], list[float]]
"""(subset, k) -> the value of each bound, in order."""


def values(flow: Flow, ks: Collection[int] = KS) -> Values:
    known = flow.case.eval_set()
    table = headroom(
        flow.ranking_table(),
        flow.candidate_table(),
        known.gold_spans,
        flow.case.chunk_table(),
        known.queries,
        corpus=CORPUS,
        config=CONFIG,
        ks=ks,
    )
    rows = {(r["subset"], r["k"], r["bound"]): r["value"] for r in table.to_pylist()}
    cells = dict.fromkeys((subset, k) for subset, k, _ in rows)
    assert len(rows) == len(cells) * len(BOUNDS)
    return {(subset, k): [rows[subset, k, b] for b in BOUNDS] for subset, k in cells}


def one(gold: list[Place], chunks: dict[str, Place], ranked: list[str]) -> Flow:
    """One query over documents A and B of 100 characters; the one channel's list is the ranking."""
    case = Case({"A": "x" * 100, "B": "y" * 100}, chunks, {"q": gold}, {"q": ranked})
    return Flow(case, {"dense": {"q": ranked}})


TEN = tiles("A", 100, 10) | tiles("B", 100, 10)


@pytest.mark.parametrize(
    ("gold", "chunks", "ranked", "k", "expected"),
    [
        # In the top k: nothing is lost.
        ([("A", 20, 30)], TEN, ["A2"], 1, [1, 1, 1, 1]),
        # In the list, below k: the order costs it.
        ([("A", 20, 30)], TEN, ["A1", "A2"], 1, [0, 1, 1, 1]),
        # In no list: the candidates cost it.
        ([("A", 20, 30)], TEN, ["A1", "A3"], 1, [0, 0, 1, 1]),
        # Two documents take two chunks: at 1 no chunker could do it, which is counted to chunking.
        ([("A", 20, 30), ("B", 20, 30)], TEN, ["A2", "B2"], 1, [0, 0, 0, 1]),
        ([("A", 20, 30), ("B", 20, 30)], TEN, ["A2", "B2"], 2, [1, 1, 1, 1]),
        # Both spans lie half in the chunk across the border: one chunk is enough.
        ([("A", 20, 30), ("A", 31, 41)], {"c": ("A", 25, 36)}, ["c"], 1, [1, 1, 1, 1]),
        # No chunk holds more than 4 of the 10 characters, at any k.
        ([("A", 20, 30)], {"c": ("A", 20, 24)}, ["c"], 5, [0, 0, 0, 1]),
        # [0,60) needs three tiles; the list has two of them.
        ([("A", 0, 60)], TEN, ["A0", "A5"], 3, [0, 0, 1, 1]),
        ([("A", 0, 60)], TEN, ["A0", "A5", "B0", "A3"], 3, [0, 1, 1, 1]),
        # Taking the longest, m, first would need three chunks; l and r alone hold half.
        (
            [("A", 0, 100)],
            {"m": ("A", 36, 64), "l": ("A", 20, 45), "r": ("A", 55, 80)},
            ["m", "l", "r"],
            2,
            [0, 1, 1, 1],
        ),
        # Nothing retrieved.
        ([("A", 20, 30)], TEN, [], 1, [0, 0, 1, 1]),
        # The right offsets in the wrong document.
        ([("A", 20, 30)], TEN, ["B2"], 1, [0, 0, 1, 1]),
    ],
)
def test_bounds_by_hand(
    gold: list[Place], chunks: dict[str, Place], ranked: list[str], k: int, expected: list[float]
) -> None:
    assert values(one(gold, chunks, ranked), (k,)) == {(None, k): expected}


def test_candidates_are_the_union_of_the_channels() -> None:
    case = Case(
        {"A": "x" * 100}, tiles("A", 100, 10), {"q": [("A", 0, 10), ("A", 90, 100)]}, {"q": ["A0"]}
    )
    flow = Flow(case, {"dense": {"q": ["A0"]}, "bm25": {"q": ["A9", "A0"]}}, {"q": ["A0"]})
    assert values(flow, (1, 2)) == {(None, 1): [0, 0, 0, 1], (None, 2): [0, 1, 1, 1]}


def test_means_of_the_whole_the_parts_and_over_the_parts() -> None:
    # q1 and q2 are east, q3 is west. q1 is found; q2 is listed second, q3 nowhere.
    case = Case(
        {"A": "x" * 100},
        tiles("A", 100, 10),
        {"q1": [("A", 0, 10)], "q2": [("A", 10, 20)], "q3": [("A", 20, 30)]},
        {"q1": ["A0"], "q2": ["A0", "A1"], "q3": ["A0"]},
        {"q1": "east", "q2": "east", "q3": "west"},
    )
    assert values(Flow(case, {"dense": case.rankings}), (1,)) == {
        (None, 1): [1 / 3, 2 / 3, 1, 1],
        ("east", 1): [0.5, 1, 1, 1],
        ("west", 1): [0, 0, 1, 1],
        ("macro", 1): [0.25, 0.5, 1, 1],
    }


def test_costs_are_the_steps() -> None:
    bounds = dict(zip(BOUNDS, [0.25, 0.5, 0.875, 1.0], strict=True))
    assert costs(bounds) == {"ranking": 0.25, "candidate generation": 0.375, "chunking": 0.125}


def brute(flow: Flow, query: str, k: int) -> list[float]:
    spans = [oracle.characters(place) for place in flow.case.asked(query).gold]
    held = {chunk: oracle.characters(piece) for chunk, piece in flow.case.chunks.items()}

    def grounded(chunks: Collection[str]) -> float:
        together = frozenset().union(*(held[chunk] for chunk in chunks))
        return float(all(2 * len(span & together) >= len(span) for span in spans))

    def best(chunks: Collection[str]) -> float:
        return max(grounded(some) for some in itertools.combinations(chunks, min(k, len(chunks))))

    listed = {chunk for lists in flow.channels.values() for chunk in lists[query]}
    return [grounded(flow.case.rankings[query][:k]), best(listed), best(held), 1.0]


@settings(max_examples=150, deadline=None)
@given(flows())
def test_bounds_equal_the_best_of_all_choices(flow: Flow) -> None:
    found = values(flow)
    for k in KS:
        by_query = [brute(flow, query, k) for query in flow.case.gold]
        expected = [sum(column) / len(by_query) for column in zip(*by_query, strict=True)]
        assert found[None, k] == pytest.approx(expected)


@settings(max_examples=150, deadline=None)
@given(flows())
def test_bounds_are_ordered_and_grow_with_k(flow: Flow) -> None:
    found = values(flow)
    for subset, k in found:
        bounds = found[subset, k]
        assert bounds == sorted(bounds)
        assert bounds[-1] == 1
        deeper = [found[subset, other] for other in KS if other > k]
        assert all(a <= b for more in deeper for a, b in zip(bounds, more, strict=True))
