"""Published figures beside ours: the specification's values, and where they are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.reports.render import html
from spanbench_pipeline.reports.render.blocks import Report
from spanbench_pipeline.reports.sections.yardsticks import PUBLISHED, yardsticks
from spanbench_pipeline_tests.reports import tiny
from spanbench_pipeline_tests.reports.pages import Page, read

ROOT = Path(__file__).resolve().parents[3]
LEGAL = replace(tiny.EXPERIMENT, source={"kind": "legalbenchrag"}, depth=64)
OURS = {
    # benchmark: precision at 1, recall at 8, recall at 64, of the configuration "halves"
    "contractnli": (0.05, 0.25, 0.5),
    "cuad": (0.01, 0.5, 0.75),
    "maud": (0.02, 0.0, 0.25),
    "privacy_qa": (0.12, 0.25, 1.25),
    "macro": (0.05, 0.25, 0.6875),
}
BUDGET = {1: 500.0, 8: 4000.0, 64: 31_999.6}


def means(parts: list[str]) -> pa.Table:
    rows = [
        {"config": "halves", "subset": part, "metric": metric, "k": k, "value": value}
        for part in parts
        for (metric, k), value in zip(
            (("char_precision_paper", 1), ("char_recall_paper", 8), ("char_recall_paper", 64)),
            OURS[part],
            strict=True,
        )
    ]
    rows += [
        {"config": "halves", "subset": None, "metric": "chars_retrieved", "k": k, "value": value}
        for k, value in BUDGET.items()
    ]
    return tables.from_rows("config_metrics", [r | {"corpus": "c", "n_queries": 1} for r in rows])


def shown(experiment: Experiment, parts: list[str]) -> Page:
    inputs = replace(tiny.inputs(), config_metrics=means(parts))
    return read(html.render(Report("r", tuple(yardsticks(experiment, inputs)))))


def test_published_and_ours_stand_side_by_side_with_the_budget() -> None:
    first, second, third = shown(LEGAL, list(OURS)).tables
    parts = ["contractnli", "cuad", "maud", "privacy_qa", "mean"]
    assert first[0] == ["configuration", *parts, "characters retrieved at 1"]
    assert first[1] == ["published", "6.63 %", "1.97 %", "2.65 %", "14.38 %", "6.41 %", "–"]
    assert first[2] == ["halves", "5.00 %", "1.00 %", "2.00 %", "12.00 %", "5.00 %", "500"]
    assert first[3] == ["halves + hybrid", *["–"] * 6]
    assert second[1] == ["published", "24.99 %", "31.68 %", "6.18 %", "42.37 %", "26.31 %", "–"]
    assert second[2] == ["halves", "25.00 %", "50.00 %", "0.00 %", "25.00 %", "25.00 %", "4,000"]
    assert third[1] == ["published", "61.72 %", "74.70 %", "28.28 %", "84.19 %", "62.22 %", "–"]
    assert third[2][-3:] == ["125.00 %", "68.75 %", "32,000"]


def test_the_published_means_are_those_of_the_published_parts() -> None:
    for figure in PUBLISHED["legalbenchrag"].figures:
        parts = [value for part, value in figure.by_part.items() if part != "macro"]
        # Both are rounded to two decimals of a percent.
        assert figure.by_part["macro"] == pytest.approx(sum(parts) / 4, abs=1e-4)


def test_what_they_do_not_show_is_said() -> None:
    items = shown(LEGAL, list(OURS)).of("li")
    assert items[1].startswith(
        "Another encoder: theirs is text-embedding-3-large, ours are e. With another"
    )
    assert "the 3 queries of this corpus against one index of its 2 documents" in items[3]


def test_a_benchmark_alone_has_its_own_column_and_no_mean() -> None:
    first, *_ = shown(LEGAL, ["maud", "macro"]).tables
    assert first[:3] == [
        ["configuration", "maud", "characters retrieved at 1"],
        ["published", "2.65 %", "–"],
        ["halves", "2.00 %", "500"],
    ]


def test_a_depth_that_was_not_measured_is_said() -> None:
    page = shown(replace(LEGAL, depth=30), list(OURS))
    assert [c.endswith("Not measured here: rankings are 30 deep.") for c in page.of("caption")] == [
        *(False, False, True)
    ]


@pytest.mark.parametrize("path", sorted((ROOT / "data/experiments").glob("*.toml")))
def test_only_corpora_of_that_source_have_the_section(path: Path) -> None:
    experiment = replace(experiments.load(path), configurations=tiny.EXPERIMENT.configurations)
    of_legalbench = path.stem in {
        *("legalbench_mini", "legalbench_full", "contractnli", "maud", "privacy_qa", "cuad_lbr")
    }
    page = shown(experiment, list(OURS))
    assert page.of("h2") == (["Beside published figures"] if of_legalbench else [])


def test_nothing_measured_has_nothing_beside_it() -> None:
    inputs = replace(tiny.inputs(), config_metrics=tables.empty("config_metrics"))
    assert yardsticks(LEGAL, inputs) == []
