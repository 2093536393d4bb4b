from __future__ import annotations

import re
from dataclasses import replace

import pytest

from spanbench_pipeline import tables
from spanbench_pipeline.errors import InputError
from spanbench_pipeline.reports import html, markdown
from spanbench_pipeline.reports.blocks import Heading, Quote, Report
from spanbench_pipeline.reports.client import client
from spanbench_pipeline.reports.explain import LABELS, METRICS
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline_tests.reports import tiny
from spanbench_pipeline_tests.reports.pages import Page, read

SECTIONS = ["Where retrieval stands", "Failure patterns", "Fix backlog", "Scope"]


def made(baseline: str = "halves") -> Report:
    return client(tiny.EXPERIMENT, tiny.inputs(baseline), baseline)


def page(report: Report) -> Page:
    return read(html.render(report))


def test_four_sections_and_nothing_else() -> None:
    for report in (made(), made("halves, unfiltered"), unmeasured()):
        headings = [b.text for b in report.blocks if isinstance(b, Heading) and b.level == 2]
        assert headings == SECTIONS
        assert report.blocks[0] == Heading(SECTIONS[0])


def test_where_retrieval_stands() -> None:
    found = page(made())
    assert found.of("p")[0].startswith("Measured with the configuration halves. Of 3 queries, 2 ")
    head, *rows = found.tables[0]
    assert head == ["metric", "halves", "what it says"]
    assert [row[:2] for row in rows] == [
        ["precision@5", "0.133"],
        ["recall@10", "0.500"],
        ["mrr", "0.667"],
        ["span_coverage@5", "0.444"],
        ["span_recall@5", "0.500"],
        ["complete_grounding@5", "0.333"],
        ["ndcg@10", "0.538"],
    ]
    assert "halves + rerank not measured: no weights of <r|r>." in found.of("p")


def test_each_label_with_its_queries_and_the_text_they_missed() -> None:
    report = made()
    assert [b.text for b in report.blocks if isinstance(b, Heading) and b.level == 3] == [
        "chunk-severance",
        "retrieval-miss",
    ]
    assert [b for b in report.blocks if isinstance(b, Quote)] == [
        Quote(tiny.NASTY, "Missed in a, characters [40, 60)"),
        Quote("y" * 20, f"Missed in {tiny.B}, characters [60, 80)"),
    ]
    assert f"Query q1: {tiny.ASKED}" in page(report).of("p")


def test_two_queries_a_label_at_most_and_the_first_by_id() -> None:
    given = tiny.inputs()
    lost = [row | {"covered_chars": 0} for row in given.span_outcomes.to_pylist()]
    labels = [
        {"corpus": "tiny", "config": "halves", "query_id": q, "label": "rank-miss"}
        | {"lever": "reranking", "evidence": "{}"}
        for q in ("q3", "q2", "q1")
    ]
    inputs = replace(
        given,
        span_outcomes=tables.from_rows("span_outcomes", lost),
        failure_labels=tables.from_rows("failure_labels", labels),
    )
    found = page(client(tiny.EXPERIMENT, inputs, "halves"))
    assert [p[:8] for p in found.of("p") if p.startswith("Query ")] == ["Query q1", "Query q2"]
    assert len(found.of("blockquote")) == 3  # one span of q1, two of q2


def test_a_long_text_is_cut_and_says_so() -> None:
    given = tiny.inputs()
    rows = [row | {"text": "z " * 400} for row in given.gold_spans.to_pylist()]
    inputs = replace(given, gold_spans=tables.from_rows("gold_spans", rows))
    quoted = page(client(tiny.EXPERIMENT, inputs, "halves")).of("blockquote")[0]
    assert quoted == "z " * 300 + "… (cut here)"


def test_backlog() -> None:
    found = page(made())
    assert found.tables[1] == [
        ["lever", "failing queries", "change in complete_grounding@5", "measured between"],
        ["chunking", "1", "not measured", ""],
        ["hybrid retrieval", "1", "+0.333", "halves → halves + hybrid"],
    ]
    assert (
        "Best configuration overall: halves + hybrid, with a complete_grounding@5 of 0.667 "
        "against 0.333 (+0.333). It changes: hybrid retrieval."
    ) in found.of("p")


def test_a_lever_that_made_things_worse_shows_its_negative_number() -> None:
    # From hybrid to dense q1 and q2 are lost and q3 is won: -1/3.
    found = page(made("halves + hybrid"))
    assert found.tables[1][1:] == [
        ["hybrid retrieval", "1", "-0.333", "halves + hybrid → halves"],
    ]
    assert "No measured configuration is better than halves + hybrid." in found.of("p")


def unmeasured() -> Report:
    return client(tiny.EXPERIMENT, tiny.inputs(None), "halves + rerank")


def test_a_baseline_that_was_not_measured_has_no_figures() -> None:
    found = page(unmeasured())
    assert found.tables == []
    assert "svg" not in found.tags
    said = f"The baseline halves + rerank has no figures: {tiny.WHY}."
    assert found.of("p").count(said) == 3


def test_no_failing_query() -> None:
    given = tiny.inputs()
    assert given.backlog is not None
    inputs = replace(
        given,
        failure_labels=tables.empty("failure_labels"),
        backlog=replace(given.backlog, rows=(), ceiling_bound=0),
    )
    said = page(client(tiny.EXPERIMENT, inputs, "halves")).of("p")
    assert "No query fails." in said
    assert "No lever accounts for a failing query." in said


def test_ceiling_bound_is_mentioned_and_no_lever() -> None:
    given = tiny.inputs()
    assert given.backlog is not None
    inputs = replace(given, backlog=replace(given.backlog, ceiling_bound=3))
    found = page(client(tiny.EXPERIMENT, inputs, "halves"))
    assert [p[:17] for p in found.of("p") if p.startswith("Ceiling")] == ["Ceiling-bound: 3."]
    assert all(row[0] != "ceiling-bound" for row in found.tables[1])


def test_unknown_baseline() -> None:
    with pytest.raises(InputError, match="did you mean 'halves'"):
        client(tiny.EXPERIMENT, tiny.inputs(), "halvs")


def test_a_backlog_of_another_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="backlog for 'halves'"):
        client(tiny.EXPERIMENT, tiny.inputs("halves"), "halves, unfiltered")
    with pytest.raises(ValueError, match="backlog for 'halves'"):
        client(tiny.EXPERIMENT, tiny.inputs("halves"), "halves + rerank")
    with pytest.raises(ValueError, match="backlog for None"):
        client(tiny.EXPERIMENT, tiny.inputs(None), "halves")


def test_no_number_that_a_run_did_not_produce() -> None:
    inputs = tiny.inputs()
    shown = re.sub(
        r"<style>.*?</style>",
        "",
        html.render(client(tiny.EXPERIMENT, inputs, "halves")),
        flags=re.S,
    )
    found = read(shown)
    said = " ".join(t for tag, t in found.texts if tag in ("p", "td", "th", "text", "figcaption"))
    standing = " ".join((*METRICS, *METRICS.values(), *LABELS.values(), "first 5 from 0 to 1"))
    for text in (*tables_text(inputs), standing):
        said = said.replace(text, " ")
    assert numbers(said) <= produced(inputs) | numbers(standing)


def tables_text(inputs: ReportInputs) -> list[str]:
    """Texts of queries, which hold what they hold, ids, and notes on the source's files."""
    notes = [note for note in inputs.source_files["note"].to_pylist() if note]
    return [*notes, *inputs.queries["query"].to_pylist(), *inputs.queries["query_id"].to_pylist()]


def test_the_scope_says_what_a_reader_must_know_of_the_files() -> None:
    inputs = tiny.inputs()
    notes = [r["note"] for r in inputs.source_files.to_pylist() if r["role"] == "member"]
    assert any(notes)
    shown = html.render(client(tiny.EXPERIMENT, inputs, "halves"))
    assert all(html.escape(note) in shown for note in notes if note)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def produced(inputs: ReportInputs) -> set[str]:
    """Every figure that the tables hold, as the report writes it."""
    values = [v for v in inputs.config_metrics["value"].to_pylist() if v is not None]
    values += [abs(v) for v in inputs.config_pairs["delta"].to_pylist()]
    counts = [inputs.queries.num_rows, inputs.documents.num_rows, inputs.gold_spans.num_rows]
    labels = inputs.failure_labels["label"].to_pylist()
    counts += [labels.count(label) for label in set(labels)]
    counts += [inputs.failure_labels["config"].to_pylist().count("halves")]
    for column in ("start_char", "end_char"):
        counts += inputs.gold_spans[column].to_pylist()
    return {f"{v:.3f}" for v in values} | {str(n) for n in counts}


def test_markdown_has_no_raw_html() -> None:
    text = markdown.render(made())
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    assert not re.search(r"(?<!\\)<", outside)
    assert tiny.NASTY in text
