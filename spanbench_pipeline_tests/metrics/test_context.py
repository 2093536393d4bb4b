"""Everything that looks at the chunks that a reader is given follows the context."""

from __future__ import annotations

import json

import pytest

from spanbench_pipeline.calibration import brute_force
from spanbench_pipeline.calibration.world import World
from spanbench_pipeline.scoring.measured import measure


@pytest.mark.parametrize("context", [1, 3, 10, 16])
def test_every_value_equals_the_oracle_at_the_context(context: int) -> None:
    tallies = {tally.what: tally for tally in brute_force.compare(60, 5, context)}
    assert [tally.wrong for tally in tallies.values() if not tally.agrees] == []
    grounding = tallies[f"complete_grounding@{context}"]
    assert grounding.n == tallies["failure label"].n == 60
    assert ("complete_grounding@5" in tallies) == (context == 5)


# The span A[120, 180) lies in the chunk A[100, 200), third of four.
CHUNKS = [("A", start, start + 100) for start in range(0, 600, 100)]
RANKED = [("A", 0, 100), ("A", 300, 400), ("A", 100, 200), ("A", 400, 500)]


def world(context: int) -> World:
    return World({"A": 600}, CHUNKS, {"q": [("A", 120, 180)]}, {"q": RANKED}, context=context)


def test_a_chunk_below_the_context_is_a_rank_miss() -> None:
    found = world(2).measured().tables
    (label,) = found["failure_labels"].to_pylist()
    assert (label["label"], label["lever"]) == ("rank-miss", "reranking")
    evidence = json.loads(label["evidence"])
    below = [(piece["chunk_id"], piece["rank"]) for piece in evidence["ranks_below_2"]]
    assert below == [("A:100:200", 3)]
    (outcome,) = found["span_outcomes"].to_pylist()
    assert (outcome["k"], outcome["covered_chars"]) == (2, 0)
    assert found["chunk_stats"].filter(
        [stat == "precision_ceiling" for stat in found["chunk_stats"]["stat"].to_pylist()]
    )["value"].to_pylist() == [0.5]  # one relevant chunk of two shown


def test_with_one_chunk_more_the_query_does_not_fail() -> None:
    found = world(3).measured().tables
    assert found["failure_labels"].num_rows == 0
    (outcome,) = found["span_outcomes"].to_pylist()
    assert (outcome["k"], outcome["covered_chars"]) == (3, 60)
    assert set(found["forensic_labels"]["k"].to_pylist()) == {1, 2, 3, 4, 8, 16, 32, 64}


def test_further_metrics_stand_beside_the_standard_ones() -> None:
    given = world(2)
    found = measure(
        given.rankings(),
        given.evalset(),
        given.chunk_table(),
        corpus="calibration",
        config="random",
        depth=4,
        context=2,
        further=(("precision", 4), ("char_recall_union", 3), ("recall", 20)),
    )
    values = {
        (row["metric"], row["k"]): row["value"] for row in found.tables["query_metrics"].to_pylist()
    }
    assert values["precision", 2] == 0
    assert values["precision", 4] == 1 / 4
    assert (values["char_recall_union", 2], values["char_recall_union", 3]) == (0, 1)
    assert ("recall", 20) not in values
    assert found.not_measured["recall@20"] == "not measured: depth = 4 does not reach 20"
