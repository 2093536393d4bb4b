"""The developer report of the tiny corpus; every figure below is worked out in tiny's docstring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spanbench_pipeline import tables
from spanbench_pipeline.reports import html, markdown
from spanbench_pipeline.reports.blocks import Heading, Report, Table
from spanbench_pipeline.reports.developer import developer
from spanbench_pipeline_tests.reports import tiny
from spanbench_pipeline_tests.reports.pages import read


@pytest.fixture(scope="module")
def report() -> Report:
    return developer(tiny.EXPERIMENT, tiny.inputs())


def table(report: Report, *titles: str) -> list[list[str]]:
    """The cells of the one table whose head starts with ``titles``, as the page shows them."""
    found = [t for t in read(html.render(report)).tables if t[0][: len(titles)] == list(titles)]
    assert len(found) == 1
    return found[0][1:]


def test_sections(report: Report) -> None:
    assert [b.text for b in report.blocks if isinstance(b, Heading) and b.level == 2] == [
        "Set-up",
        "Metrics",
        "Chunkers",
        "What one lever does",
        "Hybrid against dense",
        "Documents and filters",
        "Failure labels",
        "Mean MRR by clause type",
        "Provenance",
        "Limits",
    ]


def test_set_up(report: Report) -> None:
    assert table(report, "what", "how many") == [
        ["documents", "2"],
        ["queries", "3"],
        ["gold spans", "4"],
        ["clause types", "2"],
        ["depth of a ranking", "30"],
    ]
    assert table(report, "configuration", "chunker")[1:3] == [
        ["halves + hybrid", "halves", "hybrid", "–", "yes", "no", "e", "measured"],
        ["halves + rerank", "halves", "dense", "r", "yes", "no", "e", tiny.WHY],
    ]


def test_every_configuration_and_every_metric(report: Report) -> None:
    # Means over q1, q2, q3. halves: precision (0 + 1/5 + 1/5) / 3, recall (0 + 1/2 + 1) / 3,
    # mrr (0 + 1 + 1) / 3, coverage (0 + 10/30 + 1) / 3, span recall (0 + 1/2 + 1) / 3.
    # hybrid: (1/5 + 2/5 + 0) / 3, (1/2 + 1 + 0) / 3, (1 + 1 + 0) / 3, (1/2 + 1 + 0) / 3, 2/3.
    # unfiltered: (0 + 2/5 + 1/5) / 3, (0 + 1 + 1) / 3, (0 + 1 + 1/2) / 3, 2/3, 2/3.
    # ndcg, with 1 / log2(3) = 0.631: one of two first is 1 / 1.631 = 0.613, the only one second is
    # 0.631. (0 + 0.613 + 1) / 3, (0.613 + 1 + 0) / 3, (0 + 1 + 0.631) / 3.
    assert table(report, "configuration", "precision@5", "recall@10") == [
        ["halves", "0.133", "0.500", "0.667", "0.444", "0.500", "0.333", "0.538", "measured"],
        [
            "halves + hybrid",
            "0.200",
            "0.500",
            "0.667",
            "0.500",
            "0.667",
            "0.667",
            "0.538",
            "measured",
        ],
        ["halves + rerank", *["–"] * 7, tiny.WHY],
        [
            "halves, unfiltered",
            "0.200",
            "0.667",
            "0.500",
            "0.667",
            "0.667",
            "0.667",
            "0.544",
            "measured",
        ],
    ]


def test_states_are_no_column_where_everything_was_measured() -> None:
    kept = tuple(c for c in tiny.EXPERIMENT.configurations if c.reranker is None)
    given = tiny.inputs()
    ran = [row for row in given.configs.to_pylist() if row["reranker"] is None]
    inputs = replace(given, configs=tables.from_rows("configs", ran))
    found = developer(replace(tiny.EXPERIMENT, configurations=kept), inputs)
    assert table(found, "configuration", "precision@5", "recall@10")[0] == [
        *("halves", "0.133", "0.500", "0.667", "0.444", "0.500", "0.333", "0.538")
    ]


def test_attained_share_of_the_ceiling(report: Report) -> None:
    # q1 and q2 have two relevant chunks each, q3 one: the ceiling is (2 + 2 + 1) / 15.
    assert table(report, "configuration", "precision@5", "ceiling") == [
        ["halves", "0.133", "0.333", "40.0 %"],
        ["halves + hybrid", "0.200", "0.333", "60.0 %"],
        ["halves + rerank", "–", "0.333", "–"],
        ["halves, unfiltered", "0.200", "0.333", "60.0 %"],
    ]


def test_chunkers(report: Report) -> None:
    # Three of four spans lie in one piece; nothing was encoded, so nothing is known of truncation.
    assert table(report, "chunker") == [
        ["halves", "6", "50", "75.0 %", "75.0 %", "1.667", "0.333", "–", "2"]
    ]


def test_levers_in_the_direction_of_the_experiment(report: Report) -> None:
    assert table(report, "lever") == [
        ["hybrid retrieval", "halves", "halves + hybrid", "+0.333", "2", "1"],
        ["metadata filtering", "halves", "halves, unfiltered", "+0.333", "1", "0"],
    ]


def test_hybrid_against_dense(report: Report) -> None:
    # Promoted: the first piece of a for q1, the second of b for q2.
    assert table(report, "dense", "hybrid") == [
        ["halves", "halves + hybrid", "2", "2", "1", "q1, q2", "q3"]
    ]


def test_chunks_of_wrong_documents(report: Report) -> None:
    # unfiltered: b for q1 and for q3, two of the five chunks.
    assert table(report, "configuration", "top-5 chunks from a wrong document") == [
        ["halves", "0.0 %"],
        ["halves + hybrid", "0.0 %"],
        ["halves + rerank", "–"],
        ["halves, unfiltered", "40.0 %"],
    ]


def test_queries_grounded_only_through_the_filter(report: Report) -> None:
    assert "halves, unfiltered → halves: 0." in read(html.render(report)).of("li")
    turned = tables.from_rows(
        "config_pairs",
        [
            {"corpus": "tiny", "lever": "metadata filtering", "delta": 1.0, "promoted": 1}
            | {"from_config": "halves, unfiltered", "to_config": "halves", "fixed": 2, "broken": 0}
            | {"fixed_queries": ["q1", "q3"], "broken_queries": []}
        ],
    )
    changed = developer(tiny.EXPERIMENT, replace(tiny.inputs(), config_pairs=turned))
    assert "halves, unfiltered → halves: 2 (q1, q3)." in read(html.render(changed)).of("li")


def test_documents_without_any_header(report: Report) -> None:
    assert "Documents without any header for halves: 2 of 2." in read(html.render(report)).of("li")


def test_labels(report: Report) -> None:
    assert table(report, "configuration", "failing queries") == [
        ["halves", "2", "0", "1", "1", "0", "0"],
        ["halves + hybrid", "1", "0", "0", "1", "0", "0"],
        ["halves + rerank", *["–"] * 6],
        ["halves, unfiltered", "1", "0", "1", "0", "0", "0"],
    ]


def test_mrr_by_clause_type(report: Report) -> None:
    # X is q1; Y is q2 and q3.
    assert table(report, "clause type") == [
        ["X", "1", "0.000", "1.000", "0.000"],
        ["Y", "2", "1.000", "0.500", "0.750"],
    ]


def test_provenance(report: Report) -> None:
    assert table(report, "what", "value") == [
        ["spanbench", "0.1.0"],
        ["weights of e", "sha256 `1|2`"],
        ["extractor", "utf-8"],
    ]
    note = "the official file's sha256 is another: " + "e" * 64
    assert table(report, "file") == [
        ["a.zip", "archive", "1,234", "c" * 64, "–"],
        ["m.json", "member", "9", "d" * 64, note],
    ]


def test_means_over_fewer_queries_are_said() -> None:
    given = tiny.inputs()
    rows = given.config_metrics.to_pylist()
    for row in rows:
        if (row["config"], row["metric"]) == ("halves", "recall"):
            row["n_queries"] = 2
    changed = replace(given, config_metrics=tables.from_rows("config_metrics", rows))
    assert table(developer(tiny.EXPERIMENT, changed), "configuration", "metric") == [
        ["halves", "recall@10", "2"]
    ]


def test_nothing_measured_gives_no_figure() -> None:
    given = tiny.inputs()
    states = [row | {"state": tiny.WHY} for row in given.configs.to_pylist()]
    emptied = {
        name: tables.empty(name)
        for name in (
            *("rankings", "query_metrics", "span_outcomes", "failure_labels"),
            *("config_metrics", "clause_type_metrics", "config_stats", "config_pairs"),
        )
    }
    inputs = replace(given, **emptied, configs=tables.from_rows("configs", states), backlog=None)
    report = developer(tiny.EXPERIMENT, inputs)
    assert table(report, "configuration", "failing queries") == [
        [c.name, *["–"] * 6] for c in tiny.EXPERIMENT.configurations
    ]
    assert "No configuration was measured." in read(html.render(report)).of("p")


def test_all_limits_are_stated(report: Report) -> None:
    said = read(html.render(report)).of("strong")
    assert said[-5:] == [
        "Precision and recall are not comparable across chunkers.",
        "Retrieval only.",
        "The 50 % threshold.",
        "A label attributes, it does not prove.",
        "Sample size.",
    ]


def test_both_renderings_show_the_same_tables(report: Report) -> None:
    page, text = read(html.render(report)), markdown.render(report)
    assert len(page.tables) == len([b for b in report.blocks if isinstance(b, Table)])
    rules = [line for line in text.splitlines() if line.startswith("| ---")]
    assert [line.count("---") for line in rules] == [len(t[0]) for t in page.tables]


def test_equal_tables_give_equal_bytes(report: Report) -> None:
    again = developer(tiny.EXPERIMENT, tiny.inputs())
    assert html.render(again) == html.render(report)
    assert markdown.render(again) == markdown.render(report)
