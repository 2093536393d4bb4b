from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from spanbench_pipeline.calibration.world import World
from spanbench_pipeline.metrics.metric import metric_label
from spanbench_pipeline.scoring import text
from spanbench_pipeline.scoring.files import files
from spanbench_pipeline.scoring.measured import NO_CHUNKS, Measured, needs_chunks
from spanbench_pipeline.scoring.report import Scored, notes
from spanbench_pipeline.scoring.validated_run import Taken
from spanbench_pipeline_tests.storage.test_folders import listing

LENGTHS = {"A": 100, "B": 100}
TENS = [("A", n, n + 10) for n in range(0, 100, 10)] + [("B", n, n + 50) for n in (0, 50)]
WORLD = World(
    LENGTHS,
    TENS,
    gold={"q1": [("A", 0, 10)], "q2": [("A", 15, 25)], "q3": [("B", 0, 10)]},
    ranked={
        # Eleven entries, ten places, of which the depth shows eight; the answer is the tenth.
        "q1": [("A", n, n + 10) for n in (50, 50, 60, 70, 80, 90, 40, 30, 20, 10, 0)],
        "q2": [("A", 10, 20), ("A", 20, 30)],
        "q3": [],
    },
    subsets={"q1": "east", "q2": "east", "q3": "west"},
    depth=8,
)
PAST = dict.fromkeys(("recall@10", "ndcg@10"), "not measured: depth = 8 does not reach 10")


def values(measured: Measured, query: str) -> dict[str, float | None]:
    return {
        metric_label(row["metric"], row["k"]): row["value"]
        for row in measured.tables["query_metrics"].to_pylist()
        if row["query_id"] == query
    }


def test_lists_are_looked_at_to_the_depth_and_no_deeper() -> None:
    found = WORLD.measured()
    assert values(found, "q1")["mrr"] == 0  # the answer is below the depth
    labels = {r["query_id"]: r["label"] for r in found.tables["failure_labels"].to_pylist()}
    assert labels == {"q1": "retrieval-miss", "q3": "retrieval-miss"}
    assert found.tables["rankings"].num_rows == 13  # the table keeps what was given


def test_repeats_close_up_but_for_the_paper() -> None:
    found = values(WORLD.measured(), "q1")
    # Of the first four as given 50-60 stands twice; closed up, they are four places.
    assert found["chars_retrieved@4"] == 40
    assert found["chars_retrieved@2"] == 20
    repeated = World(
        LENGTHS, TENS, {"q": [("A", 0, 20)]}, {"q": [("A", 0, 10), ("A", 0, 10), ("B", 0, 50)]}
    )
    again = values(repeated.measured(), "q")
    assert again["char_recall_paper@2"] == 20 / 20
    assert again["char_recall_union@2"] == 10 / 20
    assert again["char_precision_paper@2"] == 20 / 20
    assert again["char_precision_union@2"] == 10 / 60


def test_means_of_the_whole_the_parts_and_macro() -> None:
    means = text.means(WORLD.measured())
    assert list(means) == [None, "east", "west", "macro"]
    grounded = {part: found["complete_grounding@5"] for part, found in means.items()}
    assert grounded == {None: 1 / 3, "east": 1 / 2, "west": 0, "macro": 1 / 4}


def test_without_chunks_nothing_that_needs_them_is_a_number() -> None:
    found = WORLD.measured(with_chunks=False)
    assert found.not_measured == dict.fromkeys(needs_chunks(), NO_CHUNKS) | PAST
    deep = replace(WORLD, depth=10).measured(with_chunks=False)
    assert deep.not_measured == dict.fromkeys(needs_chunks(), NO_CHUNKS)
    assert text.failure_counts(found) is None
    assert not {"recall@10", "ndcg@10"} & values(found, "q2").keys()
    # q2's span is cut by two chunks and covered by both; q1 and q3 have nothing of it.
    assert text.label_counts(found, 4) == {"DRM": 1, "ICR": 1, "OK": 1}
    partial = World(LENGTHS, TENS, {"q": [("A", 5, 25)]}, {"q": [("A", 0, 10)]})
    assert text.label_counts(partial.measured(with_chunks=False), 8) == {"undecided": 1}
    assert text.label_counts(partial.measured(), 8) == {"CBF": 1}


def scored(*, with_chunks: bool) -> Scored:
    taken = Taken(WORLD.rankings(), missing=("q3",), empty=(), repeats=1, n_lists=2, longest=11)
    measured = WORLD.measured(with_chunks=with_chunks)
    n_chunks = len(TENS) if with_chunks else None
    given = WORLD.evalset()
    return Scored("c", "<mine>", 8, given, taken, measured, n_chunks, {"file": "mine.jsonl"})


def test_what_a_reader_must_know() -> None:
    assert notes(scored(with_chunks=True)) == [
        "1 of 3 queries have no list in the file and count as empty lists: q3",
        "places given again in their list: 1; each counts at its first rank and the rest close "
        "up; the paper's scoring takes them as they stand",
        "lists of up to 11 entries are looked at to 8, the corpus's depth",
    ]


def test_the_files_of_a_scored_ranking(tmp_path: Path) -> None:
    from spanbench_pipeline.storage import folders

    folders.replace(tmp_path / "s", files(scored(with_chunks=True)))
    found = listing(tmp_path / "s")
    assert {"report.md", "report.html", "queries.jsonl", "labels.jsonl"} <= found.keys()
    for name, table in scored(with_chunks=True).measured.tables.items():
        assert pq.read_table(tmp_path / "s" / f"{name}.parquet").num_rows == table.num_rows
    folders.replace(tmp_path / "s", files(scored(with_chunks=False)))
    assert "labels.jsonl" not in listing(tmp_path / "s")
    assert "failure_labels.parquet" not in listing(tmp_path / "s")
