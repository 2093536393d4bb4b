"""The tables that a run prints, of the tiny corpus; its figures are worked out in tiny."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline.cli import results_table
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.reports import tiny

CONFIGURATIONS = tiny.EXPERIMENT.configurations[:3]


def shown(tmp_path: Path, *, pooled: bool) -> list[list[str]]:
    """The lines of what is printed, each as its columns."""
    given = tiny.inputs(pooled=pooled)
    project = Project(tmp_path, tmp_path / "warehouse")
    for name in ("configs", "config_metrics", "chunk_stats"):
        path = project.parquet / "tiny" / f"{name}.parquet"
        parquet.write(path, name, getattr(given, name))
    experiment = replace(tiny.EXPERIMENT, configurations=CONFIGURATIONS)
    text = results_table.show(project, experiment)
    return [[c.strip() for c in line.split("  ") if c.strip()] for line in text.splitlines()]


@pytest.mark.parametrize("pooled", [True, False])
def test_six_metrics_a_configuration(tmp_path: Path, pooled: bool) -> None:
    lines = shown(tmp_path, pooled=pooled)
    assert lines[3:6] == [
        ["halves", "6", "0.133", "0.500", "0.667", "0.444", "0.500", "0.333"],
        ["halves + hybrid", "6", "0.200", "0.500", "0.667", "0.500", "0.667", "0.667"],
        ["halves + rerank", "6", tiny.WHY],
    ]
    assert bool(lines[6:]) == pooled


def test_a_pooled_corpus_shows_what_the_paper_scores_part_by_part(tmp_path: Path) -> None:
    # halves: east is q1, nothing found in 100 characters. west: q2 10 of 50 characters at rank 1,
    # which are 10 of 30; q3 20 of 50 at rank 1, all of its span, 100 characters at rank 2.
    # macro is (east + west) / 2. No chunk overlaps another, and rankings are 30 deep.
    title, head, _, *rows = shown(tmp_path, pooled=True)[7:]
    assert title == ["characters, part by part; macro is the mean of the parts' means"]
    assert head == [
        *("configuration", "part", "char_precision_paper@1", "char_precision_union@1"),
        *("char_recall_paper@8", "char_recall_union@8", "chars_retrieved@8"),
        *("char_recall_paper@64", "char_recall_union@64", "chars_retrieved@64"),
    ]
    assert rows == [
        ["halves", "east", "0.000", "0.000", "0.000", "0.000", "100", "-", "-", "-"],
        ["halves", "west", "0.300", "0.300", "0.667", "0.667", "75", "-", "-", "-"],
        ["halves", "macro", "0.150", "0.150", "0.333", "0.333", "88", "-", "-", "-"],
        ["halves + hybrid", "east", "0.200", "0.200", "0.500", "0.500", "100", "-", "-", "-"],
        ["halves + hybrid", "west", "0.100", "0.100", "0.500", "0.500", "75", "-", "-", "-"],
        ["halves + hybrid", "macro", "0.150", "0.150", "0.500", "0.500", "88", "-", "-", "-"],
    ]


def test_a_benchmark_alone_has_no_mean_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "PARTS", dict.fromkeys(tiny.PARTS, "maud"))
    assert [row[:2] for row in shown(tmp_path, pooled=True)[10:]] == [
        ["halves", "maud"],
        ["halves + hybrid", "maud"],
    ]


def test_what_counts_chunks_is_not_compared_between_chunkers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [line for line in shown(tmp_path, pooled=False) if "count chunks" in line[0]]
    other = replace(CONFIGURATIONS[2], chunker="thirds")
    monkeypatch.setattr(f"{__name__}.CONFIGURATIONS", (*CONFIGURATIONS[:2], other))
    stat = {"corpus": "tiny", "chunker": "thirds", "stat": "n_chunks", "value": 9.0}
    given = tiny.inputs()
    stats = pa.concat_tables([given.chunk_stats, tables.from_rows("chunk_stats", [stat])])
    monkeypatch.setattr(tiny, "inputs", lambda pooled: replace(given, chunk_stats=stats))
    assert shown(tmp_path, pooled=False)[6] == [
        "precision, recall, mrr count chunks: do not compare between different chunkers (halves, "
        "thirds)"
    ]
