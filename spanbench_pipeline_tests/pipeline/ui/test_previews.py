"""First rows as Markdown."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline.ui import previews
from spanbench_pipeline.pipeline.ui.previews import INLINE, cell, first_rows, preview, rows


def read(markdown: str) -> list[list[str]]:
    """The cells of a Markdown table, read by a parser not ours."""
    found: list[list[str]] = []
    inside = False
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown):
        if token.type == "tr_open":
            found.append([])
        inside = token.type in ("th_open", "td_open") or (inside and token.type == "inline")
        if token.type == "inline" and inside:
            found[-1].append("".join(c.content for c in token.children or ()))
    return found


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0322580645, "0.03226"),
        (2 / 3, "0.6667"),
        (0.0, "0"),
        (12345.678, "12,346"),
        (20703, "20703"),
        (True, "True"),
        ({}, "–"),
        ({"year": "7", "kind": "x"}, "year: 7, kind: x"),
        (["q1", "q2"], "q1, q2"),
        ([("year", "7")], "year: 7"),
        ("two\nlines\tof  it", "two lines of it"),
        ("a|b", r"a\|b"),
        ("abcdefghijk", "abcdefghi…"),
    ],
)
def test_a_cell_is_short_and_on_one_line(value: object, shown: str):
    assert cell(value, 10 if isinstance(value, str) and value.isalpha() else 40) == shown


@given(st.text(st.characters(codec="utf-8"), max_size=60))
@example("<script>|`*_[x](y)\\")
@example("| --- |\n\n# head")
def test_no_text_becomes_markup_or_another_cell(text: str):
    shown = read(rows([{"id": "q1", "text": text, "n": 1}]))
    assert [len(row) for row in shown] == [3, 3]
    folded = previews.fold(text)
    kept = folded if len(folded) <= 44 else f"{folded[:43]}…"
    assert shown[1][1] == kept.strip()


def test_figures_stand_right_and_rows_may_differ_in_columns():
    shown = rows([{"a": 1, "b": "x"}, {"a": None, "c": 2.5}]).splitlines()
    assert shown == ["| a | b | c |", "| ---: | --- | ---: |", "| 1 | x | – |", "| – | – | 2.5 |"]


def wide(n: int) -> pa.Table:
    return tables.from_rows(
        "rankings",
        [
            {"corpus": "c", "config": "x", "query_id": "q1", "rank": rank, "doc_id": "d" * 30}
            | {"chunk_id": f"{'d' * 30}:n:{rank}", "start_char": rank, "end_char": rank + 1}
            | {"score": 1 / rank, "dense_rank": rank, "bm25_rank": None, "fused_rank": None}
            for rank in range(1, n + 1)
        ],
    )


def test_a_preview_has_as_many_rows_as_the_ui_shows_in_place():
    shown = preview("rankings", wide(100))
    found = read(shown)
    assert len(shown) < INLINE
    assert found[0] == ["query_id", "rank", "chunk_id", "score"]
    assert [row[1] for row in found[1:]] == [str(n) for n in range(1, len(found))]
    longer = rows(wide(len(found)).select(found[0]).to_pylist())
    assert len(longer) >= INLINE or len(found) - 1 == previews.PREVIEW_ROWS


def test_first_rows_have_every_column_and_say_what_all_share():
    shown = first_rows("rankings", wide(30))
    assert shown.startswith("corpus: c  \nconfig: x  \nquery_id: q1  \n")
    assert read(shown)[0] == ["rank", "chunk_id", "start_char", "end_char", "score", "dense_rank"]
    assert len(read(shown)) == 1 + previews.FULL_ROWS
    assert shown.endswith("20 of 30 rows")
    assert "bm25_rank: –" in shown


def test_vectors_are_shown_nowhere():
    table = tables.from_rows(
        "embeddings",
        [
            {"corpus": "c", "chunker": "n", "encoder": "e", "chunk_id": f"d:n:{i}"}
            | {"vector": [0.1, 0.2], "n_tokens": i}
            for i in range(3)
        ],
    )
    assert read(preview("embeddings", table))[0] == ["chunk_id", "n_tokens"]
    assert first_rows("embeddings", table) == ""


@pytest.mark.parametrize("name", sorted(tables.TABLES))
def test_every_table_can_be_empty(name: str):
    assert preview(name, tables.empty(name)) == "no rows"
    assert first_rows(name, tables.empty(name)) == ""


def test_previews_name_columns_that_exist():
    for name, columns in previews.COLUMNS.items():
        assert set(columns) <= set(tables.TABLES[name].schema.names)
