"""Markdown read back by a parser of CommonMark with GitHub's tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanbench_pipeline.reports.render import markdown
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Code,
    Column,
    Heading,
    Items,
    Panel,
    Picture,
    Quote,
    Report,
    Strong,
    Table,
    fold,
    paragraph,
)

markdown_it = pytest.importorskip("markdown_it", reason="no Markdown parser is installed")

PUNCTUATION = "\\`*_{}[]()#+-.!|<>&~=:@$^\"'/ 1aw\n\t"
nasty = st.text(PUNCTUATION, min_size=1, max_size=30)
any_text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
texts = (nasty | any_text).filter(lambda text: bool(fold(text)))
EXAMPLES = [
    "<script>alert(1)</script>",
    "a | b \\| c \\\\| d",
    "```\ncode\n```",
    "`a``b`",
    "# no heading",
    "- no list",
    "1. no list",
    "1) no list",
    "> no quote",
    "--- \n===",
    "**no** _emphasis_ ~~struck~~",
    "[no](link) ![no](image)",
    "&lt; &amp; &#60; AT&T",
    "http://example.com www.example.com a@b.example",
    "trailing \\",
    "+ plus",
    "C #",
    "####",
]


def with_examples(test: Any) -> Any:
    for text in EXAMPLES:
        test = example(text)(test)
    return test


def with_both_examples(test: Any) -> Any:
    for text in EXAMPLES:
        test = example(text, text)(test)
    return test


def tokens(text: str) -> list[Any]:
    parser = markdown_it.MarkdownIt("commonmark", {"html": True})
    found: list[Any] = parser.enable(["table", "strikethrough"]).parse(text)
    return found


def inline(token: Any) -> list[tuple[str, str]]:
    """The pieces of a line: neighbouring texts joined."""
    pieces: list[tuple[str, str]] = []
    for child in token.children:
        kind = "text" if child.type == "text_special" else child.type
        if kind == "text" and pieces and pieces[-1][0] == "text":
            pieces[-1] = ("text", pieces[-1][1] + child.content)
        elif child.content or kind != "text":
            pieces.append((kind, child.content))
    return pieces


def body(*blocks: Any) -> list[Any]:
    """The tokens of a report's blocks, the title left out."""
    return tokens(markdown.render(Report("t", blocks)))[3:]


@given(texts)
@with_examples
def test_a_paragraph_stays_text(text: str) -> None:
    found = body(paragraph(text))
    assert [t.type for t in found] == ["paragraph_open", "inline", "paragraph_close"]
    assert inline(found[1]) == [("text", fold(text))]


@given(texts)
@with_examples
def test_a_heading_stays_text(text: str) -> None:
    found = body(Heading(text, 3))
    assert [t.type for t in found] == ["heading_open", "inline", "heading_close"]
    assert found[0].tag == "h3"
    assert inline(found[1]) == [("text", fold(text))]


@given(texts)
@with_examples
def test_an_item_stays_text(text: str) -> None:
    found = body(Items(((text,), ("second",))))
    assert [t.type for t in found].count("list_item_open") == 2
    lines = [inline(t) for t in found if t.type == "inline"]
    assert lines == [[("text", fold(text))], [("text", "second")]]
    assert {t.type for t in found if t.nesting == 1} == {
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
    }


@given(texts)
@with_examples
def test_code_holds_anything(text: str) -> None:
    found = body(paragraph("before ", Code(text), " after"))
    assert inline(found[1]) == [
        ("text", "before "),
        ("code_inline", fold(text)),
        ("text", " after"),
    ]


@given(texts)
@with_examples
def test_table_cells_stay_cells(text: str) -> None:
    table = Table((Column(text), Column("b", "code"), Column("c", "count")), ((text, text, 7),))
    found = body(table)
    assert found[0].type == "table_open"
    lines = [inline(t) for t in found if t.type == "inline"]
    said = fold(text)
    head = [[("text", said)], [("text", "b")], [("text", "c")]]
    assert lines[:3] == head
    assert lines[3] == [("text", said)]
    assert lines[4] in ([("code_inline", said)], [("text", said)])
    assert lines[5:] == [[("text", "7")]]


@given(texts, texts)
@with_both_examples
def test_a_quote_is_one_fenced_block(text: str, source: str) -> None:
    found = body(Quote(text, source))
    assert [t.type for t in found] == ["paragraph_open", "inline", "paragraph_close", "fence"]
    assert inline(found[1]) == [("text", f"{fold(source)}:")]
    assert " ".join(found[3].content.split()) == fold(text)


@given(texts)
@with_examples
def test_a_picture_is_one_fenced_block(text: str) -> None:
    found = body(Picture(text, (Panel(text, (Bar(text, 1.0),), 1.0),)))
    assert [t.type for t in found] == ["paragraph_open", "inline", "paragraph_close", "fence"]


def test_bars_and_missing_values() -> None:
    panel = Panel("p", (Bar("half", 0.5, True), Bar("none", None), Bar("all", 1.0)), 1.0)
    assert markdown.render(Report("t", (Picture("c", (panel,)),))) == (
        "# t\n\nc\n\n```text\np\n"
        f"  half  {'█' * 20} 0.500\n  none  –\n  all   {'▒' * 40} 1.000\n```\n"
    )


def test_a_table_is_aligned_and_its_marked_row_bold() -> None:
    columns = (Column("name"), Column("n", "count"), Column("share", "share"))
    rows = (("a", 1234, 0.5), ("b", None, None))
    assert markdown.render(Report("t", (Table(columns, rows, "c", frozenset({1})),))) == (
        "# t\n\nc\n\n| name | n | share |\n| --- | ---: | ---: |\n"
        "| a | 1,234 | 50.0 % |\n| **b** | **–** | **–** |\n"
    )


def test_common_names_are_not_disfigured() -> None:
    text = "complete_grounding@5 of clause, unfiltered + filters: -0.040"
    assert markdown.escape(text) == text


def test_strong_is_strong() -> None:
    found = body(paragraph("a ", Strong("b*"), " c"))
    assert inline(found[1]) == [
        ("text", "a "),
        ("strong_open", ""),
        ("text", "b*"),
        ("strong_close", ""),
        ("text", " c"),
    ]
