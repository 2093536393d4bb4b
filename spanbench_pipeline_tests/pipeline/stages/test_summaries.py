"""What is said of a corpus as a whole."""

from __future__ import annotations

from spanbench_pipeline.analysis import bm25_stats
from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline.stages import summaries


def test_stats_of_nothing_are_sound() -> None:
    assert summaries._unsound_stats(tables.empty("config_stats")) == []


def test_an_average_idf_may_be_negative_and_nothing_else() -> None:
    stats = {"bm25_average_idf": -0.1, "bm25_letters_outside": -0.1, "bm25_first_by_order": -1.0}
    found = summaries._unsound_stats(bm25_stats.table("x", {"a": stats}))
    assert {row["stat"] for row in found} == {"bm25_letters_outside", "bm25_first_by_order"}
