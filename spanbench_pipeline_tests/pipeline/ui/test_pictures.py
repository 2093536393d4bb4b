"""Pictures of tables: what is drawn, against figures worked out by hand."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.ui import pictures
from spanbench_pipeline.pipeline.ui.pictures import Seen, drawn
from spanbench_pipeline.pipeline.ui.previews import INLINE

SVG = "{http://www.w3.org/2000/svg}"


def images(markdown: str) -> list[ET.Element]:
    """The pictures in some Markdown, read by a Markdown parser and an XML parser not ours."""
    parser = MarkdownIt("gfm-like", {"linkify": False})
    parser.validateLink = lambda url: url.startswith("data:image/svg+xml,")
    found = []
    for block in parser.parse(markdown):
        for token in block.children or ():
            if token.type == "image":
                address = str(token.attrs["src"])
                found.append(ET.fromstring(unquote(address.removeprefix("data:image/svg+xml,"))))
    return found


def bars(markdown: str) -> list[tuple[str, int, str]]:
    """(name, full cells, value) of each row of a table of bars."""
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines()[2:]]
    return [(name, bar.count("█"), value) for name, bar, value in lines]


def chunks(lengths: list[int]) -> pa.Table:
    return tables.from_rows(
        "chunks",
        [
            {"corpus": "c", "chunker": "n", "chunk_id": f"d:n:{i}", "doc_id": "d", "chunk_no": i}
            | {"start_char": 7, "end_char": 7 + length}
            for i, length in enumerate(lengths)
        ],
    )


def metrics(table: str, rows: list[tuple[str, str, int | None, float | None]]) -> pa.Table:
    """A table of metrics from (configuration or query, metric, k, value)."""
    return tables.from_rows(
        table,
        [
            {"corpus": "c", "metric": metric, "k": k, "value": value}
            | (
                {"config": name, "subset": None, "n_queries": 2}
                if table == "config_metrics"
                else {"config": "x", "query_id": name}
            )
            for name, metric, k, value in rows
        ],
    )


def test_lengths_of_chunks_are_counted_and_their_median_marked():
    shown = drawn("chunks", Seen(chunks([24, 240, 24, 120, 240])))["lengths"]
    assert shown.startswith("5 chunks, 24 to 240 characters, median 120.\n")
    (picture,) = images(shown)
    columns = picture.find(f"{SVG}path").get("d")
    # 24 columns of 10 characters each, 440 wide: 24 falls into the third (from 20), 120 into the
    # thirteenth, 240 ends the last. Two of five are the most, 72 high; one is half of that.
    found = re.findall(r"M(\d+) 90v-(\d+)h", columns)
    assert found == [("37", "72"), ("220", "36"), ("422", "72")]
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert texts == ["median 120", "0", "240"]


def test_a_few_very_long_chunks_do_not_flatten_the_rest():
    shown = drawn("chunks", Seen(chunks([100] * 199 + [90_000])))["lengths"]
    assert "100 to 90,000 characters" in shown
    assert "100 and more" in [text.text for text in images(shown)[0].iter(f"{SVG}text")]


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=60))
def test_a_histogram_is_small_enough_to_stand_in_place(lengths: list[int]):
    shown = drawn("chunks", Seen(chunks(lengths)))["lengths"]
    assert len(images(shown)) == 1
    assert len(shown) < INLINE


def test_the_worst_histogram_still_stands_in_place():
    lengths = [1 + 41_667 * n for n in range(24) for _ in range(1 + n % 7)]
    assert len(drawn("chunks", Seen(chunks(lengths)))["lengths"]) < INLINE


@pytest.mark.parametrize("name", sorted(pictures.PICTURES.keys() & tables.TABLES.keys()))
def test_an_empty_table_draws_nothing_that_misleads(name: str):
    shown = drawn(name, Seen(tables.empty(name)))
    assert set(shown.values()) <= {"No query fails.", "0 of 0 configurations were measured."}


def test_ranks_of_the_first_relevant_chunk():
    values = [1.0, 1.0, 0.5, 1 / 5, 1 / 6, 1 / 10, 1 / 11, 1 / 30, 0.0, None]
    table = metrics("query_metrics", [(f"q{i}", "mrr", None, v) for i, v in enumerate(values)])
    shown = drawn("query_metrics", Seen(table))["first relevant chunk"]
    assert [(name, value) for name, _, value in bars(shown)] == [
        ("1", "2"),
        ("2", "1"),
        ("3", "0"),
        ("4", "0"),
        ("5", "1"),
        ("6 to 10", "2"),
        ("11 and below", "2"),
        ("not in the list", "1"),
    ]
    assert [cells for _, cells, _ in bars(shown)] == [16, 8, 0, 0, 8, 16, 16, 8]


def test_first_ranks_of_shallow_lists_show_no_place_that_they_do_not_reach():
    rows = [("q0", "mrr", None, 1.0), ("q1", "mrr", None, 0.0), ("q0", "chars_retrieved", 1, 9.0)]
    routed = ("q0", "routing_recall", 10, 1.0)  # its k counts documents
    shown = drawn("query_metrics", Seen(metrics("query_metrics", [*rows, routed])))
    found = [(name, value) for name, _, value in bars(shown["first relevant chunk"])]
    assert found == [("1", "1"), ("not in the list", "1")]
    # Depth 3 has no k of 3: a place where something stands is shown all the same.
    third = ("q2", "mrr", None, 1 / 3)
    shown = drawn("query_metrics", Seen(metrics("query_metrics", [*rows, third])))
    found = [(name, value) for name, _, value in bars(shown["first relevant chunk"])]
    assert found == [("1", "1"), ("3", "1"), ("not in the list", "1")]


def test_covered_share_at_the_depth_of_the_metrics():
    rows = [(0, 10, 0), (0, 10, 4), (0, 10, 5), (0, 10, 10), (0, 3, 3)]
    table = tables.from_rows(
        "span_outcomes",
        [
            {"corpus": "c", "config": "x", "query_id": "q", "span_no": i, "k": k, "doc_id": "d"}
            | {"start_char": start, "end_char": end, "covered_chars": covered if k == 5 else 0}
            for i, (start, end, covered) in enumerate(rows)
            for k in (5, 10)
        ],
    )
    shown = drawn("span_outcomes", Seen(table))["covered share"]
    assert shown.startswith(
        "Of 5 gold spans, 3 have at least half of their characters in the top 5, 2 all of them, "
        "1 none."
    )
    heights = re.findall(r"M(\d+) 90v-(\d+)h", images(shown)[0].find(f"{SVG}path").get("d"))
    # 20 columns, 22 wide: 0, 0.4, 0.5 and two of 1.0 in columns 0, 8, 10 and 19.
    assert heights == [("0", "36"), ("176", "36"), ("220", "36"), ("418", "72")]


def test_labels_by_how_often_then_in_the_order_they_are_tried():
    labels = ["rank-miss", "retrieval-miss", "chunk-severance", "rank-miss"]
    table = tables.from_rows(
        "failure_labels",
        [
            {"corpus": "c", "config": "x", "query_id": f"q{i}", "label": label}
            | {"lever": None, "evidence": "{}"}
            for i, label in enumerate(labels)
        ],
    )
    assert bars(drawn("failure_labels", Seen(table))["labels"]) == [
        ("rank-miss (reranking)", 16, "2"),
        ("chunk-severance (chunking)", 8, "1"),
        ("retrieval-miss (hybrid retrieval)", 8, "1"),
    ]


def test_configurations_are_compared_best_first_and_the_baseline_marked():
    rows = [
        ("b", "complete_grounding", 5, 0.5),
        ("a", "complete_grounding", 5, 0.5),
        ("c", "complete_grounding", 5, 1.0),
        ("d", "complete_grounding", 5, None),
        ("c", "mrr", None, 0.25),
    ]
    shown = drawn("config_metrics", Seen(metrics("config_metrics", rows), baseline="b"))
    assert bars(shown["compared"]) == [
        ("c", 16, "1.000"),
        ("a", 8, "0.500"),
        ("**b (baseline)**", 8, "**0.500**"),
        ("d", 0, "–"),
    ]
    (picture,) = images(shown["all metrics"])
    widths = [
        float(r.get("width")) for r in picture.iter(f"{SVG}rect") if r.get("class") != "track"
    ]
    assert widths == [80.0, 160.0, 160.0, 320.0, 0.0]
    marked = [r.get("width") for r in picture.iter(f"{SVG}rect") if "marked" in r.get("class")]
    assert marked == ["160.0"]
    assert "over time" not in shown


def history(values: list[dict[str, float | None]]) -> pa.Table:
    """One run a mapping of configuration to value."""
    return pa.Table.from_pylist(
        [
            {"corpus": "c", "run_at": datetime(2026, 1, 1 + n, tzinfo=UTC), "run_id": f"r{n}"}
            | {"config": config, "subset": None, "metric": "complete_grounding", "k": 5}
            | {"value": value, "n_queries": 2}
            for n, run in reversed(list(enumerate(values)))
            for config, value in run.items()
        ]
    )


def test_metrics_over_time_from_the_oldest_run_to_the_newest():
    told = history([{"a": 0.5, "b": 0.0}, {"a": 1.0}, {"a": 0.25, "b": 1.0}])
    shown = drawn("metric_history", Seen(told, "b"))["over time"]
    (picture,) = images(shown)
    paths = [p.get("d") for p in picture.iter(f"{SVG}path") if p.get("fill") == "none"]
    # 640 wide, 220 high from 24: 0 is at 244, 1 at 24. The baseline first; a run without it breaks
    # its line.
    assert paths == ["M0.0 244.0M640.0 24.0", "M0.0 134.0L320.0 24.0L640.0 189.0"]
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert texts[0] == "complete_grounding@5 over 3 recorded runs"
    assert {"2026-01-01 00:00", "2026-01-03 00:00"} <= set(texts)
    assert {"b  1.000", "a  0.250"} <= set(texts)


def test_several_files_are_read_one_by_one_and_a_damaged_one_is_named(tmp_path: Path):
    paths = [tmp_path / f"{n}.parquet" for n in range(2)]
    for path in paths:
        pq.write_table(history([{"a": 0.5}]), path)
    assert pictures.read_all(paths).num_rows == 2
    paths[1].write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"1\.parquet: this file is damaged"):
        pictures.read_all(paths)


def test_what_was_not_measured_is_named_with_its_reason():
    rows = [
        {"corpus": "c", "config": name, "chunker": "n", "retriever": "bm25", "reranker": None}
        | {"doc_scope": True, "metadata_filters": False, "encoder": None, "state": state}
        for name, state in (("a", "measured"), ("b|*x*", "not measured: no weights"))
    ]
    shown = drawn("configs", Seen(tables.from_rows("configs", rows)))["states"]
    assert shown.splitlines() == [
        "1 of 2 configurations were measured.",
        "",
        r"- **b\|\*x\***: not measured: no weights",
    ]


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
@example('"><script>alert(1)</script> & ]]> ) \\ `x` % # <')
@example("&lt;&amp;#60;%3C")
def test_no_name_breaks_a_picture(name: str):
    rows = [(name, "complete_grounding", 5, 0.5), (name, "mrr", None, 0.5)]
    shown = drawn("config_metrics", Seen(metrics("config_metrics", rows), name))
    (picture,) = images(shown["all metrics"])
    plain = drawn("config_metrics", Seen(metrics("config_metrics", [("x", *r[1:]) for r in rows])))
    (other,) = images(plain["all metrics"])
    assert [e.tag for e in picture.iter()] == [e.tag for e in other.iter()]


def states(rows: list[tuple[int, str, str | None]]) -> pa.Table:
    """span_states from (k, state, stage that lost it), a span a row."""
    return tables.from_rows(
        "span_states",
        [
            {"corpus": "c", "config": "x", "query_id": "q", "span_no": n, "k": k, "state": state}
            | {"covered_chars": 0, "severed": False, "lost_stage": stage}
            for n, (k, state, stage) in enumerate(rows)
        ],
    )


def test_lost_spans_are_counted_at_eight_by_stage_in_the_order_of_the_stages():
    rows = [(8, "missed", "cut"), (8, "partial", "candidates"), (8, "missed", "cut")]
    rows += [(8, "covered", None), (16, "missed", "corpus"), (4, "missed", "corpus")]
    shown = drawn("span_states", Seen(states(rows)))["lost stages"]
    assert shown.startswith("| gold spans lost at k = 8, by stage |")
    assert bars(shown) == [("candidates", 8, "1"), ("cut", 16, "2")]
    # A ranking from elsewhere without a chunk table: lost, and nobody knows where.
    shown = drawn("span_states", Seen(states([(4, "missed", None), (4, "covered", None)])))
    assert bars(shown["lost stages"]) == [("not measured: no chunk table", 16, "1")]
    shown = drawn("span_states", Seen(states([(2, "covered", None)])))
    assert shown["lost stages"] == "The top 2 cover every gold span."
    assert drawn("span_states", Seen(states([]))) == {}


def forensic(rows: list[tuple[int, str | None]]) -> pa.Table:
    """forensic_labels from (k, label), a query a row."""
    return tables.from_rows(
        "forensic_labels",
        [
            {"corpus": "c", "config": "x", "query_id": f"q{n}", "k": k, "label": label}
            | {"excess": None, "stability": "{}"}
            for n, (k, label) in enumerate(rows)
        ],
    )


def test_forensic_labels_at_eight_and_by_depth():
    rows: list[tuple[int, str | None]] = [(8, "OK"), (8, "OK"), (8, "DRM"), (8, "CBF")]
    rows += [(1, "DRM"), (1, "DRM"), (1, "DRM"), (1, "ICR")]
    shown = drawn("forensic_labels", Seen(forensic(rows)))
    assert bars(shown["labels"]) == [
        ("DRM (document retrieval miss)", 4, "1"),
        ("ICR (incorrect region)", 0, "0"),
        ("CBF (chunk boundary failure)", 4, "1"),
        ("SGP (span gap)", 0, "0"),
        ("OVR (over-retrieval)", 0, "0"),
        ("OK (all covered)", 8, "2"),
    ]
    assert shown["labels by k"].splitlines() == [
        "| queries with the label, at k = | 1 | 8 |",
        "| --- | ---: | ---: |",
        "| DRM | 3 | 1 |",
        "| ICR | 1 | 0 |",
        "| CBF | 0 | 1 |",
        "| SGP | 0 | 0 |",
        "| OVR | 0 | 0 |",
        "| OK | 0 | 2 |",
    ]
    unknown = drawn("forensic_labels", Seen(forensic([(2, None), (2, "OK")])))
    assert bars(unknown["labels"])[-1] == ("not measured: no chunk table", 8, "1")
    assert unknown["labels by k"].splitlines()[-1] == "| not measured | 1 |"
    assert drawn("forensic_labels", Seen(forensic([]))) == {}


def test_a_waterfall_begins_each_cost_where_the_last_one_ended():
    values = {(8, None): [0.25, 0.5, 0.75, 1.0], (16, None): [0.5, 0.5, 0.5, 1.0]}
    values |= {(8, "macro"): [0.0, 0.0, 0.0, 1.0]}
    rows = [
        {"corpus": "c", "config": "x", "subset": subset, "k": k, "bound": bound, "value": value}
        for (k, subset), bounds in values.items()
        for bound, value in zip(("actual", "candidates", "chunks", "perfect"), bounds, strict=True)
    ]
    shown = drawn("headroom", Seen(tables.from_rows("headroom", rows)))
    assert shown["waterfall"].splitlines() == [
        "| complete grounding at k = 8 | | |",
        "| --- | --- | ---: |",
        f"| grounded | {'█' * 4}{'░' * 12} | 0.250 |",
        f"| lost to ranking | {'░' * 4}{'█' * 4}{'░' * 8} | 0.250 |",
        f"| lost to candidate generation | {'░' * 8}{'█' * 4}{'░' * 4} | 0.250 |",
        f"| lost to chunking | {'░' * 12}{'█' * 4} | 0.250 |",
    ]
    assert len(shown["waterfall"]) < INLINE
    (picture,) = images(shown["waterfalls"])
    titles = [t.text for t in picture.iter(f"{SVG}text") if t.get("class") == "title"]
    assert titles == ["k = 8", "k = 16", "macro, k = 8"]
    assert drawn("headroom", Seen(tables.empty("headroom"))) == {}


def test_metrics_that_count_characters_have_no_panel_each():
    rows = [("a", "mrr", None, 0.5), ("a", "char_recall_union", 8, 0.5)]
    rows += [("a", "chars_retrieved", 8, 4_000.0), ("a", "complete_grounding", 5, 1.0)]
    (picture,) = images(
        drawn("config_metrics", Seen(metrics("config_metrics", rows)))["all metrics"]
    )
    titles = [t.text for t in picture.iter(f"{SVG}text") if t.get("class") == "title"]
    assert titles == ["mrr", "complete_grounding@5"]
