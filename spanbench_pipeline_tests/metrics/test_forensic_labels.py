"""Forensic labels and span states: the specification's table, corners, and sets of characters."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import LABELS, STATES
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline_tests.metrics.cases import beside_another
from spanbench_pipeline_tests.metrics.measure import forensic_labels, span_states
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
from spanbench_pipeline_tests.metrics.test_character_metrics import renamed

Rows = dict[tuple[Any, ...], dict[str, Any]]


def labelled(case: Placed, depth: int = 64, **more: Any) -> Rows:
    table = forensic_labels(*case.tables(), **NAMED, depth=depth, **more)
    return {(row["query_id"], row["k"]): row for row in table.to_pylist()}


def states(case: Placed, depth: int = 64, **more: Any) -> Rows:
    table = span_states(*case.tables(), **NAMED, depth=depth, **more)
    return {(row["query_id"], row["span_no"], row["k"]): row for row in table.to_pylist()}


def tiles(size: int) -> list[Place]:
    return [A(start, start + size) for start in range(0, 600, size)]


LONG = [B(1000 * n, 1000 * (n + 1)) for n in range(7)]
SPECIFIED: dict[str, tuple[list[Place], list[Place], list[Place], str]] = {
    "nothing": ([], [A(0, 10)], [], "DRM"),
    "another document": ([B(0, 10)], [A(0, 10)], [], "DRM"),
    "touching": ([A(100, 200)], [A(0, 100)], [], "ICR"),
    "one of two in one document": ([A(0, 100)], [A(0, 100), A(500, 600)], [], "SGP"),
    "one of two in two documents": ([A(0, 100)], [A(0, 100), B(0, 100)], [], "SGP"),
    "49 of 100 of a severed span": ([A(0, 49)], [A(0, 100)], tiles(49), "CBF"),
    "exactly half of a severed span": ([A(50, 100)], [A(0, 100)], tiles(50), "OK"),
    "299 for 100": ([A(0, 299)], [A(0, 100)], [], "OK"),
    "300 for 100": ([A(0, 300)], [A(0, 100)], [], "OVR"),
    "seven long chunks of another document": ([A(0, 100), *LONG], [A(0, 100)], [], "OK"),
}


@pytest.mark.parametrize("name", SPECIFIED)
def test_the_specified_labels(name: str) -> None:
    ranked, gold, chunks, label = SPECIFIED[name]
    found = labelled(one(gold, ranked, *chunks), depth=8)
    assert found["q", 8]["label"] == label


CORNERS: dict[str, tuple[list[Place], list[Place], list[Place], str]] = {
    # [0,100) lies whole in a chunk that was not retrieved, so it is not severed.
    "49 of 100 of a span that is whole elsewhere": ([A(0, 49)], [A(0, 100)], [A(0, 120)], "ICR"),
    # The boundary is looked at before the gap.
    "a severed piece beside a covered span": (
        [A(0, 10), A(200, 210)],
        [A(0, 10), A(200, 300)],
        tiles(10),
        "CBF",
    ),
    # The severed span was not touched at all; the other is covered.
    "a severed span missed beside a covered one": (
        [A(0, 10)],
        [A(0, 10), A(200, 300)],
        tiles(10),
        "SGP",
    ),
    # Two pieces together hold 100 of 100 characters of a span that no chunk holds.
    "a severed span put together": ([A(0, 50), A(50, 100)], [A(0, 100)], [], "OK"),
    # Only [0,10) of the second gold document's span; neither is covered.
    "some gold in one, none in the other": (
        [A(0, 10)],
        [A(0, 100), B(0, 100)],
        [A(0, 200), B(0, 200)],
        "ICR",
    ),
    # 150 + 150 characters, 100 of them twice: a union of 200 for 100.
    "overlapping chunks are no excess twice": ([A(0, 150), A(50, 200)], [A(50, 150)], [], "OK"),
    # A gold document was reached where nothing is gold, and the gold of the other was not.
    "a chunk of the gold document elsewhere": ([B(50, 60)], [A(0, 10), B(0, 10)], [], "ICR"),
}


@pytest.mark.parametrize("name", CORNERS)
def test_labels_in_the_corners(name: str) -> None:
    ranked, gold, chunks, label = CORNERS[name]
    assert labelled(one(gold, ranked, *chunks))["q", 64]["label"] == label


def test_every_label_and_state_is_met() -> None:
    assert {label for *_, label in (*SPECIFIED.values(), *CORNERS.values())} == set(LABELS)
    assert STATES == ("covered", "partial", "missed")


def test_a_label_is_of_its_k() -> None:
    found = labelled(one([A(0, 100)], [B(0, 100), A(500, 600), A(0, 40), A(0, 100)]))
    expected = {1: "DRM", 2: "ICR", 4: "OK", 5: "OK", 8: "OK", 16: "OK", 32: "OK", 64: "OK"}
    assert {k: row["label"] for (_, k), row in found.items()} == expected


@pytest.mark.parametrize(
    ("depth", "ks"),
    [(1, [1]), (4, [1, 2, 4]), (5, [1, 2, 4, 5]), (64, [1, 2, 4, 5, 8, 16, 32, 64])],
)
def test_the_depths_are_those_of_the_metrics_and_5(depth: int, ks: list[int]) -> None:
    case = one([A(0, 10)], [A(0, 10)])
    assert [k for _, k in labelled(case, depth)] == ks
    assert [k for *_, k in states(case, depth)] == ks
    assert set(registry.label_ks()) == {*DEPTHS, 5}


def test_any_k_may_be_asked_for() -> None:
    case = one([A(0, 100)], [B(0, 1), B(1, 2), A(0, 100)])
    found = labelled(case, ks=(2, 3, 99))
    assert {k: row["label"] for (_, k), row in found.items()} == {2: "DRM", 3: "OK"}
    assert {k: row["state"] for (*_, k), row in states(case, ks=(2, 3)).items()} == {
        2: "missed",
        3: "covered",
    }
    assert labelled(case, depth=4, ks=(9,)) == states(case, depth=4, ks=(9,)) == {}


@pytest.mark.parametrize(
    ("covered", "length", "state", "labels"),
    [
        (3, 10, "partial", ("OK", "ICR", "ICR")),  # 0.3 exactly
        (29, 100, "partial", ("ICR", "ICR", "ICR")),
        (7, 10, "covered", ("OK", "OK", "ICR")),  # 0.7 exactly; 7 / 10 >= 0.7 in floats too
        (21, 30, "covered", ("OK", "OK", "ICR")),
        (69, 100, "covered", ("OK", "ICR", "ICR")),
        (10, 10, "covered", ("OK", "OK", "OK")),
        (10**15, 2 * 10**15, "covered", ("OK", "ICR", "ICR")),
        (10**15 - 1, 2 * 10**15, "partial", ("OK", "ICR", "ICR")),
    ],
)
def test_thresholds_are_met_exactly(
    covered: int, length: int, state: str, labels: tuple[str, ...]
) -> None:
    case = one([A(0, length)], [A(0, covered)], A(0, length))
    row = labelled(case)["q", 1]
    assert states(case)["q", 0, 1]["state"] == state
    assert row["label"] == ("OK" if state == "covered" else "ICR")
    stability = json.loads(row["stability"])
    assert tuple(stability[f"covered {share}"] for share in ("0.3", "0.7", "1.0")) == labels


@pytest.mark.parametrize(
    ("length", "label", "two", "five"),
    [
        (199, "OK", "OK", "OK"),
        (200, "OK", "OVR", "OK"),
        (300, "OVR", "OVR", "OK"),
        (500, "OVR", "OVR", "OVR"),
    ],
)
def test_excess_and_its_factors(length: int, label: str, two: str, five: str) -> None:
    row = labelled(one([A(0, 100)], [A(0, length), B(0, 900), A(1000, 2000)]))["q", 4]
    assert (row["excess"], row["label"]) == (length / 100, label)
    stability = json.loads(row["stability"])
    assert (stability["factor 2"], stability["factor 5"]) == (two, five)


def test_stability_as_it_is_written() -> None:
    row = labelled(one([A(0, 100)], [A(0, 49)], *tiles(49)))["q", 1]
    assert row["stability"] == (
        '{"covered 0.3": "OK", "covered 0.7": "CBF", "covered 1.0": "CBF", '
        '"factor 2": "CBF", "factor 5": "CBF"}'
    )


def test_excess_is_undefined_where_no_chunk_is_relevant() -> None:
    assert labelled(one([A(0, 10)], [A(10, 20)]))["q", 1]["excess"] is None
    assert labelled(one([A(0, 10)], [A(9, 20)]))["q", 1]["excess"] == 1.1


def test_without_chunks_what_depends_on_them_is_null() -> None:
    gold = {"missed": [A(0, 9)], "partial": [A(0, 9)], "whole": [A(0, 9)], "none": [A(0, 9)]}
    ranked = {"missed": [A(9, 12)], "partial": [A(0, 4)], "whole": [A(0, 9)]}
    found = labelled(Placed(gold, ranked), depth=1)
    labels = {query: row["label"] for (query, _), row in found.items()}
    assert labels == {"missed": "ICR", "partial": None, "whole": "OK", "none": "DRM"}
    stability = json.loads(found["partial", 1]["stability"])
    assert stability["covered 0.3"] == "OK"
    assert stability["covered 0.7"] is stability["factor 2"] is None
    spans = states(Placed(gold, ranked), depth=1)
    assert {row["severed"] for row in spans.values()} == {None}
    assert {query: row["state"] for (query, *_), row in spans.items()} == {
        "missed": "missed",
        "partial": "partial",
        "whole": "covered",
        "none": "missed",
    }


def check_labels(case: Placed) -> None:
    for (query, k), row in labelled(case).items():
        asked = case.asked(query)
        assert row["label"] == oracle.forensic_label(asked, k)
        assert row["excess"] == oracle.excess(asked, k)
        assert json.loads(row["stability"]) == oracle.stability(asked, k)


def check_states(case: Placed) -> None:
    found = states(case)
    assert found.keys() == {
        (q, n, k)
        for q, places in case.gold.items()
        for n in range(len(places))
        for k in registry.label_ks()
    }
    for (query, number, k), row in found.items():
        place = case.gold[query][number]
        asked = case.asked(query)
        assert row["covered_chars"] == asked.covered(place, k)
        assert row["state"] == oracle.state(asked, place, k)
        assert row["severed"] == oracle.severed(asked, place)
        assert row["lost_stage"] is None


@settings(max_examples=80, deadline=None)
@given(placed_cases())
def test_labels_equal_sets_of_characters(case: Placed) -> None:
    check_labels(case)


@settings(max_examples=80, deadline=None)
@given(placed_cases())
def test_states_equal_sets_of_characters(case: Placed) -> None:
    check_states(case)


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_random_queries_at_once(seed: int) -> None:
    case = many(1000, seed)
    check_labels(case)
    check_states(case)
    met = {(row["label"], k) for (_, k), row in labelled(case).items()}
    # (Of one chunk that covers one span and leaves another there may be none.)
    assert met >= {(label, k) for label in LABELS for k in registry.label_ks()} - {("SGP", 1)}


@settings(max_examples=60, deadline=None)
@given(placed_cases())
def test_without_chunks_every_label_is_the_same_or_null(case: Placed) -> None:
    unknown = Placed(case.gold, case.ranked)
    for (query, k), row in labelled(unknown).items():
        assert row["label"] == oracle.forensic_label(unknown.asked(query), k)
        assert row["label"] in (None, oracle.forensic_label(case.asked(query), k))


@settings(max_examples=60, deadline=None)
@given(placed_cases())
def test_no_document_is_mistaken_for_another(case: Placed) -> None:
    found = labelled(renamed(case))
    assert {row["label"] for row in found.values()} == {"DRM"}
    for row in found.values():
        assert set(json.loads(row["stability"]).values()) == {"DRM"}
    assert {row["covered_chars"] for row in states(renamed(case)).values()} == {0}


@settings(max_examples=50, deadline=None)
@given(placed_cases())
def test_the_order_of_the_tables_changes_nothing(case: Placed) -> None:
    reverse = [t and t.take(pa.array(range(t.num_rows)[::-1], pa.int64())) for t in case.tables()]
    for measure in (forensic_labels, span_states):
        once = measure(*case.tables(), **NAMED, depth=64)
        assert measure(*reverse, **NAMED, depth=64).equals(once)


@pytest.mark.parametrize("column", ["chunker", "corpus"])
def test_chunks_of_two_chunkers_or_corpora_are_refused(column: str) -> None:
    case = one([A(0, 10)], [A(0, 10)])
    ranked, gold, chunks, asked = case.tables()
    assert chunks is not None
    both = beside_another(chunks, column)
    for measure in (forensic_labels, span_states):
        with pytest.raises(ValueError, match=f"one {column} at a time"):
            measure(ranked, gold, both, asked, **NAMED, depth=8)
