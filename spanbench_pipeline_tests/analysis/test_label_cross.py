from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from spanbench_pipeline.analysis.label_cross import label_cross
from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.core import tables
from spanbench_pipeline_tests.metrics.cases import (
    CONFIG,
    CORPUS,
    Case,
    beside_another,
    cases,
    tiles,
)
from spanbench_pipeline_tests.metrics.measure import failure_labels, forensic_labels


def crossed(case: Case, depth: int = 30) -> dict[tuple[str | None, str | None], int]:
    given_tables = case.tables()
    failure = failure_labels(*given_tables, corpus=CORPUS, config=CONFIG)
    forensic = forensic_labels(*given_tables, corpus=CORPUS, config=CONFIG, depth=depth)
    rows = label_cross(failure, forensic, corpus=CORPUS).to_pylist()
    assert {(row["corpus"], row["config"]) for row in rows} <= {(CORPUS, CONFIG)}
    return {(row["failure_label"], row["forensic_label"]): row["n_queries"] for row in rows}


def test_labels_side_by_side() -> None:
    case = Case(
        texts={"A": "x" * 90, "B": "x" * 90},
        chunks={**tiles("A", 90, 10), **tiles("B", 90, 10)},
        gold={
            "ok": [("A", 2, 8)],
            "over": [("A", 0, 3)],
            "elsewhere": [("A", 2, 8)],
            "also elsewhere": [("A", 2, 8)],
            "late": [("A", 2, 8)],
            "cut": [("A", 6, 18)],
            "gap": [("A", 2, 8), ("B", 2, 8)],
        },
        rankings={
            "ok": ["A0"],
            "over": ["A0"],
            "elsewhere": ["B0"],
            "also elsewhere": [],
            "late": ["A1", "A2", "A3", "A4", "A5", "A0"],
            "cut": ["A0"],
            "gap": ["B0"],
        },
    )
    assert crossed(case) == {
        (None, "OK"): 1,
        (None, "OVR"): 1,
        ("retrieval-miss", "DRM"): 2,
        ("rank-miss", "ICR"): 1,
        ("chunk-severance", "CBF"): 1,
        ("retrieval-miss", "SGP"): 1,
    }
    assert crossed(case, depth=4) == {}  # nothing is labelled at k = 5


@settings(max_examples=60, deadline=None)
@given(cases())
def test_counts_equal_the_oracle(case: Case) -> None:
    expected = Counter(
        (oracle.failure_label(asked, context=5), oracle.forensic_label(asked, 5))
        for asked in map(case.asked, case.gold)
    )
    assert crossed(case) == expected


def test_two_corpora_at_once_are_refused() -> None:
    case = Case({"A": "xx"}, tiles("A", 2, 1), {"q": [("A", 0, 1)]}, {"q": []})
    failure = failure_labels(*case.tables(), corpus=CORPUS, config=CONFIG)
    forensic = forensic_labels(*case.tables(), corpus=CORPUS, config=CONFIG, depth=8)
    with pytest.raises(ValueError, match="one corpus at a time, not other, tiny"):
        label_cross(failure, beside_another(forensic, "corpus"), corpus=CORPUS)


def test_a_failure_label_without_a_forensic_one_is_refused() -> None:
    case = Case({"A": "xx"}, tiles("A", 2, 1), {"q": [("A", 0, 1)]}, {"q": []})
    given_tables = case.tables()
    failure = failure_labels(*given_tables, corpus=CORPUS, config=CONFIG)
    forensic = forensic_labels(*given_tables, corpus=CORPUS, config="another", depth=8)
    with pytest.raises(ValueError, match="mine, query q: no forensic label at k = 5"):
        label_cross(failure, forensic, corpus=CORPUS)
    nothing = tables.empty("forensic_labels")
    assert label_cross(failure, nothing, corpus=CORPUS).num_rows == 0
