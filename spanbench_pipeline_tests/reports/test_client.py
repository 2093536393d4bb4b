from __future__ import annotations

import re
from dataclasses import replace

import markupsafe
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spanbench_pipeline.analysis.fingerprints import by_config
from spanbench_pipeline.analysis.headroom import BOUNDS
from spanbench_pipeline.config.experiment import ChunkerSettings, Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.stages import STAGES
from spanbench_pipeline.reports.client import client
from spanbench_pipeline.reports.explanations import LABELS
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.reports.render.blocks import Heading, Quote, Report
from spanbench_pipeline.reports.sections.client_losses import STEPS, WON
from spanbench_pipeline_tests.reports import tiny
from spanbench_pipeline_tests.reports.pages import Page, read

METRICS = {name: registry.metrics()[name] for name, _ in registry.of_results()}
METRICS_AT = [(name, k) for name, k in registry.of_results() if k]
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
    assert "2 of 3 queries fail." in found.of("strong")
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
        "What could be won at most",
        "chunk-severance",
        "retrieval-miss",
        "Where the lost text was lost",
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


def backlog_of(found: Page) -> list[list[str]]:
    """The cells of the fix backlog's table."""
    (table,) = [t for t in found.tables if t[0][0] == "lever"]
    return table


def test_backlog() -> None:
    found = page(made())
    assert backlog_of(found) == [
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
    assert backlog_of(found)[1:] == [
        ["hybrid retrieval", "1", "-0.333", "halves + hybrid → halves"],
    ]
    assert "No measured configuration is better than halves + hybrid." in found.of("p")


def unmeasured() -> Report:
    return client(tiny.EXPERIMENT, tiny.inputs(None), "halves + rerank")


def test_a_baseline_that_was_not_measured_has_no_figures() -> None:
    found = page(unmeasured())
    # The hashes of what would be searched: no figure.
    assert [table[0] for table in found.tables] == [["configuration", "index", "rankings"]]
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
    assert "No failing query points at a lever." in said


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
    standing = " ".join(
        (
            *METRICS,
            *(metric.meaning for metric in METRICS.values()),
            *LABELS.values(),
            "first 5 from 0 to 1",
        )
    )
    hashes = [v for v in inputs.fingerprints["value"].to_pylist() if len(v) == 64]
    for text in (*tables_text(inputs), standing, *hashes):
        said = said.replace(text, " ")
    assert numbers(said) <= produced(inputs) | numbers(standing)


def tables_text(inputs: ReportInputs) -> list[str]:
    """Texts of queries, which hold what they hold, ids, and notes on the source's files."""
    notes = [note for note in inputs.source_files["note"].to_pylist() if note]
    return [*notes, *inputs.queries["query"].to_pylist(), *inputs.queries["query_id"].to_pylist()]


def test_the_scope_says_what_a_reader_must_know_of_the_files() -> None:
    inputs = tiny.inputs()
    (member,) = [r for r in inputs.source_files.to_pylist() if r["role"] == "member"]
    others = [
        {"corpus": "tiny", "n_bytes": 1, "sha256": "e" * 64, "role": role, "file": file}
        | {"note": note}
        for role, file, note in (
            ("archive", "b.zip", "https://example.org/b.zip"),
            ("document", "a.pdf", "page 2: no text"),
            ("document", "b.pdf", None),
        )
    ]
    inputs = replace(inputs, source_files=tables.from_rows("source_files", [member, *others]))
    shown = html.render(client(tiny.EXPERIMENT, inputs, "halves"))
    for part in (str(markupsafe.escape(member["note"])), "a.pdf: page 2: no text"):
        assert part in shown
    for part in ("b.pdf", "example.org"):
        assert part not in shown


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
    stages = inputs.span_states.filter(pc.equal(inputs.span_states["k"], 5))["lost_stage"]
    counts += [stages.to_pylist().count(stage) for stage in set(stages.to_pylist()) - {None}]
    bounds = {0.0, *inputs.headroom["value"].to_pylist()}
    shares = {f"{100 * (b - a):.1f}" for a in bounds for b in bounds if a <= b}
    return {f"{v:.3f}" for v in values} | {str(n) for n in counts} | shares


def test_markdown_has_no_raw_html() -> None:
    text = markdown.render(made())
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    assert not re.search(r"(?<!\\)<", outside)
    assert tiny.NASTY in text


def below(report: Report, title: str) -> list[str]:
    """The paragraphs between a heading and the next one, as the page shows them."""
    blocks = list(report.blocks)
    at = next(n for n, b in enumerate(blocks) if isinstance(b, Heading) and b.text == title)
    rest = blocks[at + 1 :]
    end = next((n for n, b in enumerate(rest) if isinstance(b, Heading)), len(rest))
    return page(Report("r", tuple(rest[:end]))).of("p")


def table_of(report: Report, *titles: str) -> list[list[str]]:
    (found,) = [t for t in page(report).tables if tuple(t[0][: len(titles)]) == titles]
    return found[1:]


def test_where_the_lost_text_was_lost() -> None:
    # q1's span is in neither chunk of its list, q2's second one not in its only chunk.
    assert below(made(), "Where the lost text was lost")[:1] == [
        "2 of 4 passages are lost: fewer than half of the characters are in the first 5 chunks. "
        "The table counts them by the first step that lost them."
    ]
    assert table_of(made(), "step", "passages lost") == [
        ["search", "2", "The document was searched, and the passage was not found."]
    ]


def test_what_could_be_won_at_most() -> None:
    # q3 of three is grounded. No order of what was found helps q1 or q2; other chunks would.
    assert [row[:3] for row in table_of(made(), "with")] == [
        ["as it is", "33.3 %", "–"],
        ["better ranking", "33.3 %", "0.0 %"],
        ["better search", "100.0 %", "66.7 %"],
        ["better cutting", "100.0 %", "0.0 %"],
    ]
    assert "A ceiling, not a promise." in page(made()).of("strong")


def test_every_step_has_plain_words() -> None:
    given = tiny.inputs()
    stages = ["corpus", "chunking", "candidates", "cut", None]
    rows = [
        {"corpus": "tiny", "config": "halves", "query_id": "q1", "span_no": n, "k": 5}
        | {"state": "missed", "covered_chars": 0, "severed": None, "lost_stage": stage}
        for n, stage in enumerate(stages)
    ]
    inputs = replace(given, span_states=tables.from_rows("span_states", rows))
    found = table_of(client(tiny.EXPERIMENT, inputs, "halves"), "step")
    assert [row[:2] for row in found] == [
        ["cutting", "1"],
        ["cutting", "1"],
        ["search", "1"],
        ["ranking", "1"],
        ["not measured", "1"],
    ]
    assert "so many chunks that no 5 of them hold half" in found[1][2]
    assert set(STEPS) == set(STAGES)
    assert tuple(WON) == BOUNDS


def test_nothing_lost_is_said() -> None:
    given = tiny.inputs()
    rows = [row | {"state": "covered", "lost_stage": None} for row in given.span_states.to_pylist()]
    inputs = replace(given, span_states=tables.from_rows("span_states", rows))
    said = page(client(tiny.EXPERIMENT, inputs, "halves")).of("p")
    assert "Nothing was lost: the first 5 chunks cover all 4 passages." in said


def test_shallow_rankings_say_which_depth_is_shown() -> None:
    shallow = replace(tiny.EXPERIMENT, depth=4)
    said = page(client(shallow, tiny.inputs(depth=4), "halves")).of("p")
    why = "Rankings are 4 deep, so k = 5 was not measured; shown is k = 4, the deepest that was."
    assert said.count(why) == 2


def test_what_shallow_rankings_do_not_reach_is_named_and_has_no_figure() -> None:
    shallow = replace(tiny.EXPERIMENT, depth=4)
    found = page(client(shallow, replace(tiny.inputs(depth=4), backlog=None), "halves"))
    listed = " ".join(found.of("li"))
    for name, k in METRICS_AT:
        assert (f"{name}@{k}: not measured: depth = 4 does not reach {k}." in listed) == (k > 4)
    said = " ".join(found.of("p"))
    assert said.count("Not measured: depth = 4 does not reach 5.") == 2  # patterns, backlog
    assert "How many queries fail" in said
    assert "No query fails" not in said
    assert "No lever accounts" not in said


def two_chunkers(baseline: str = "halves") -> tuple[Experiment, ReportInputs]:
    """As if ``halves, unfiltered`` had cut the documents into other chunks."""
    changed = replace(tiny.EXPERIMENT.configuration("halves, unfiltered"), chunker="thirds")
    experiment = replace(
        tiny.EXPERIMENT,
        configurations=(*tiny.EXPERIMENT.configurations[:3], changed),
        chunkers=tiny.EXPERIMENT.chunkers | {"thirds": ChunkerSettings("thirds", "thirds")},
    )
    given = tiny.inputs(baseline)
    other = {"chunker": "thirds", "chunks": "9" * 64, "n_chunks": "9"}
    prints = [
        row | ({"value": other[row["name"]]} if row["name"] in other else {})
        if row["config"] == changed.name
        else row
        for row in given.fingerprints.to_pylist()
    ]
    median = {"corpus": "tiny", "chunker": "thirds", "stat": "median_chars", "value": 33.0}
    return experiment, replace(
        given,
        fingerprints=tables.from_rows("fingerprints", prints),
        chunk_stats=pa.concat_tables(
            [given.chunk_stats, tables.from_rows("chunk_stats", [median])]
        ),
    )


def test_figures_that_count_chunks_are_not_compared_where_chunks_differ() -> None:
    same = page(made()).of("li") + page(made()).of("p")
    assert not [line for line in same if "count chunks, and the configurations" in line]
    found = page(client(*two_chunkers(), "halves"))
    assert (
        "precision@5, recall@10, mrr and ndcg@10 count chunks, and the configurations use "
        "different chunks. Do not compare these figures between the groups below; compare "
        "span_coverage, span_recall and complete_grounding instead."
    ) in found.of("p")
    items = found.of("li")
    assert "halves, halves + hybrid: 6 chunks; characters: 50 to 50, quartiles 50, 50, 50." in items
    assert any(item.startswith("halves, unfiltered: 9 chunks; ") for item in items)


def test_a_backlog_across_different_chunks_says_how_different_they_are() -> None:
    # The best configuration has other chunks than the baseline: its budget stands beside.
    experiment, inputs = two_chunkers()
    assert inputs.backlog is not None
    best = replace(inputs.backlog.best, config="halves, unfiltered")
    inputs = replace(inputs, backlog=replace(inputs.backlog, best=best))
    said = page(client(experiment, inputs, "halves")).of("li")
    # 83 characters in the first 8 chunks of both: (100 + 50 + 100) / 3.
    assert (
        "halves → halves, unfiltered: chunks of 50 and 33 characters (medians); the first 8 hold "
        "83 and 83 characters."
    ) in said
    assert not [line for line in page(made()).of("li") if "(medians)" in line]


def test_every_configurations_fingerprints_are_named() -> None:
    prints = by_config(tiny.inputs().fingerprints)
    assert table_of(made(), "configuration", "index", "rankings") == [
        [name, prints[name]["index_fingerprint"], prints[name]["ranking_fingerprint"]]
        for name in tiny.NAMES
    ]
