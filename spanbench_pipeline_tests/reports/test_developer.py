"""The developer report of the tiny corpus; every figure below is worked out in tiny's docstring."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis import bm25_stats
from spanbench_pipeline.analysis.fingerprints import by_config
from spanbench_pipeline.core import tables
from spanbench_pipeline.reports.developer import developer
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.reports.render.blocks import Heading, Report, Table
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
        "Characters",
        "Chunkers",
        "What one lever does",
        "Hybrid against dense",
        "Documents and filters",
        "Failure labels",
        "Forensic labels",
        "Where spans were lost",
        "What each stage costs",
        "Mean MRR by clause type",
        "Provenance",
        "Limits",
    ]


RRF = "rrf, rrf_k = 60"


def test_set_up(report: Report) -> None:
    assert table(report, "what", "how many") == [
        ["documents", "2"],
        ["queries", "3"],
        ["gold spans", "4"],
        ["clause types", "2"],
        ["depth of a ranking", "30"],
    ]
    assert table(report, "configuration", "chunker")[1:3] == [
        ["halves + hybrid", "halves", "hybrid", "–", RRF, "–", "yes", "no", "e", "measured"],
        ["halves + rerank", "halves", "dense", "r", "–", "–", "yes", "no", "e", tiny.WHY],
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
    prints = by_config(tiny.inputs().fingerprints)
    assert table(report, "configuration", "index", "rankings") == [
        [name, prints[name]["index_fingerprint"], prints[name]["ranking_fingerprint"]]
        for name in tiny.NAMES
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


def test_what_bm25_does_not_read_is_said() -> None:
    given = tiny.inputs()
    stats = {
        "bm25_average_idf": -0.25,
        "bm25_texts_without_token": 2.0,
        "bm25_letters_outside": 0.125,
        "bm25_queries_without_token": 1.0,
        "bm25_query_letters_outside": None,
        "bm25_first_by_order": 3.0,
    }
    added = bm25_stats.table("tiny", {"halves + hybrid": stats})
    changed = replace(given, config_stats=pa.concat_tables([given.config_stats, added]))
    assert table(developer(tiny.EXPERIMENT, changed), "configuration", "BM25 over") == [
        ["halves + hybrid", "chunks", "okapi, ascii words", "-0.250", "2", "12.50 %", "1", "–", "3"]
    ]


def test_nothing_measured_gives_no_figure() -> None:
    given = tiny.inputs()
    states = [row | {"state": tiny.WHY} for row in given.configs.to_pylist()]
    emptied = {
        name: tables.empty(name)
        for name in (
            *("rankings", "query_metrics", "span_outcomes", "failure_labels"),
            *("forensic_labels", "span_states", "headroom", "label_cross"),
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


def pooled(depth: int = 30) -> Report:
    """The report of the pooled corpus, rankings ``depth`` deep."""
    experiment = replace(tiny.EXPERIMENT, depth=depth)
    return developer(experiment, tiny.inputs(pooled=True, depth=depth))


def test_characters_beside_their_budget(report: Report) -> None:
    # No list holds more than two chunks. Characters: (100 + 50 + 100) / 3 in all three.
    # halves: q1 none of 20; q2 10 of 30, precision 10/50; q3 20 of 20, precision 20/100.
    # hybrid: q1 10 of 20, 10/100; q2 30 of 30, 30/100; q3 none. Pieces are disjoint, so the paper's
    # scoring agrees. unfiltered: q1 none; q2 30/100; q3 20/100.
    assert table(report, "configuration", "characters retrieved") == [
        ["halves", "83", "0.133", "0.444", "0.133", "0.444"],
        ["halves + hybrid", "83", "0.133", "0.500", "0.133", "0.500"],
        ["halves + rerank", *["–"] * 5],
        ["halves, unfiltered", "83", "0.167", "0.667", "0.167", "0.667"],
    ]


def test_characters_at_every_depth_that_was_measured(report: Report) -> None:
    found = table(report, "configuration", "k", "characters retrieved")
    assert [row[1] for row in found] == ["1", "2", "4", "8", "16"] * 3
    # halves at 1: q1 none, q2 10 of 30 in 50 characters, q3 20 of 20 in 50.
    assert found[0] == ["halves", "1", "50", "0.200", "0.444", "0.200", "0.444"]
    said = read(html.render(report)).of("p")
    assert "Not measured, since rankings are 30 deep: k = 32, 64." in said


def test_a_pooled_corpus_is_shown_part_by_part() -> None:
    # east is q1, west q2 and q3; macro is (east + west) / 2.
    found = table(pooled(), "configuration", "part", "characters retrieved")
    assert found[:4] == [
        ["halves", "east", "100", "0.000", "0.000", "0.000", "0.000"],
        ["halves", "west", "75", "0.200", "0.667", "0.200", "0.667"],
        ["halves", "macro", "88", "0.100", "0.333", "0.100", "0.333"],
        ["halves", "all queries", "83", "0.133", "0.444", "0.133", "0.444"],
    ]
    assert len(found) == 12
    costs = table(pooled(), "configuration", "part", "complete_grounding@8")
    # halves grounds q3: 0 of 1 and 1 of 2. A gold span that is not in a list: candidates.
    assert costs[:3] == [
        ["halves", "east", "0.000", "0.000", "1.000", "0.000"],
        ["halves", "west", "0.500", "0.000", "0.500", "0.000"],
        ["halves", "macro", "0.250", "0.000", "0.750", "0.000"],
    ]


def test_forensic_labels_at_eight(report: Report) -> None:
    # halves: q1 has the document and no gold, q2 one span of two, q3 its one in 50 characters.
    # hybrid: q1 exactly half of its span, q2 both of them in 100 characters of 30, q3 no gold.
    # unfiltered: q1 another document, q2 as hybrid, q3 its one in 50.
    assert table(report, "configuration", "DRM") == [
        ["halves", "0", "1", "0", "1", "0", "1"],
        ["halves + hybrid", "0", "1", "0", "0", "1", "1"],
        ["halves + rerank", *["–"] * 6],
        ["halves, unfiltered", "1", "0", "0", "0", "1", "1"],
    ]


def test_how_stable_the_labels_are(report: Report) -> None:
    # The excess of the queries that are wholly covered: 50/20 (factor 2 makes it OVR) and 100/30
    # (factor 5 makes it OK). q1 of hybrid has half of a severed span: CBF from 0.7 on.
    assert table(report, "configuration", "queries with a label") == [
        ["halves", "3", "2", "3", "3", "3", "2", "3"],
        ["halves + hybrid", "3", "1", "3", "2", "2", "2", "2"],
        ["halves + rerank", *["–"] * 7],
        ["halves, unfiltered", "3", "1", "3", "3", "3", "2", "2"],
    ]


def test_both_kinds_of_labels_side_by_side(report: Report) -> None:
    none = "none: the query does not fail"
    assert table(report, "configuration", "failure label") == [
        ["halves", "chunk-severance", "0", "1", "0", "0", "0", "0"],
        ["halves", "retrieval-miss", "0", "0", "0", "1", "0", "0"],
        ["halves", none, "0", "0", "0", "0", "0", "1"],
        ["halves + hybrid", "retrieval-miss", "0", "1", "0", "0", "0", "0"],
        ["halves + hybrid", none, "0", "0", "0", "0", "1", "1"],
        ["halves, unfiltered", "chunk-severance", "1", "0", "0", "0", "0", "0"],
        ["halves, unfiltered", none, "0", "0", "0", "0", "1", "1"],
    ]


def test_where_spans_were_lost_and_what_each_stage_costs(report: Report) -> None:
    # Each lost span is in no list of its configuration's channels.
    assert table(report, "configuration", "lost spans") == [
        ["halves", "2", "0", "0", "–", "2", "–", "–", "0"],
        ["halves + hybrid", "1", "0", "0", "–", "1", "0", "–", "0"],
        ["halves + rerank", *["–"] * 8],
        ["halves, unfiltered", "1", "0", "0", "–", "1", "–", "–", "0"],
    ]
    assert table(report, "configuration", "complete_grounding@8") == [
        ["halves", "0.333", "0.000", "0.667", "0.000"],
        ["halves + hybrid", "0.667", "0.000", "0.333", "0.000"],
        ["halves + rerank", *["–"] * 4],
        ["halves, unfiltered", "0.667", "0.000", "0.333", "0.000"],
    ]


def test_rankings_less_than_eight_deep_show_the_deepest_and_say_so() -> None:
    found = pooled(depth=5)
    assert len(table(found, "configuration", "complete_grounding@5")) == 4
    assert {row[1] for row in table(found, "configuration", "k")} == {"1", "2", "4"}
    said = read(html.render(found)).of("p")
    why = "Rankings are 5 deep, so k = 8 was not measured; shown is k = {}, the deepest that was."
    assert said.count(why.format(4)) == 1  # characters, which have no k = 5
    assert said.count(why.format(5)) == 2  # labels, losses
    # Below 5 there is nothing to hold the failure labels against.
    shallow = read(html.render(pooled(depth=2))).of("p")
    assert "Not measured: failure labels look at the top 5, and rankings are 2 deep." in shallow


def test_what_rankings_of_two_do_not_reach_is_said_in_its_place() -> None:
    found = pooled(depth=2)
    said = read(html.render(found)).of("p")
    # The ceiling, levers, hybrid retrieval, filters and failure labels: each is of the top 5.
    assert said.count("Not measured: depth = 2 does not reach 5.") == 5
    assert not any(line.startswith("No two measured configurations") for line in said)
    listed = read(html.render(found)).of("li")
    assert "ndcg@10: not measured: depth = 2 does not reach 10." in listed


def test_lists_cut_at_five_have_a_label_of_their_own() -> None:
    given = tiny.inputs(depth=5)
    rows = [
        row | ({"label": "depth-bound", "lever": None} if row["label"] == "retrieval-miss" else {})
        for row in given.failure_labels.to_pylist()
    ]
    inputs = replace(given, failure_labels=tables.from_rows("failure_labels", rows))
    cut = developer(replace(tiny.EXPERIMENT, depth=5), inputs)
    header = "configuration", "failing queries", "ceiling-bound", "chunk-severance", "depth-bound"
    # halves: q2 in two chunks, q1 not in its list.
    assert table(cut, *header)[0] == ["halves", "2", "0", "1", "1", "0", "0", "0"]
    whole = developer(tiny.EXPERIMENT, tiny.inputs())
    assert "depth-bound" not in html.render(whole)


def test_labels_that_need_a_chunk_table_are_counted_apart() -> None:
    given = tiny.inputs()
    blind = [
        row | ({"label": None} if row["query_id"] == "q1" else {})
        for row in given.forensic_labels.to_pylist()
    ]
    found = developer(
        tiny.EXPERIMENT,
        replace(given, forensic_labels=tables.from_rows("forensic_labels", blind)),
    )
    assert table(found, "configuration", "DRM")[0] == [
        *("halves", "0", "0", "0", "1", "0", "1", "1")
    ]
    assert table(found, "configuration", "queries with a label")[0][:3] == ["halves", "2", "1"]
