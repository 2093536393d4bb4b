from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from spanbench_pipeline.reports.render import html
from spanbench_pipeline.reports.render.blocks import (
    Bar,
    Block,
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
from spanbench_pipeline_tests.reports.pages import read

SCRIPT = "<script>alert(\"1\")</script> & 'quoted' <img src=x onerror=alert(2)>"
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


def everything(text: str) -> Report:
    """A report that holds ``text`` in every place that takes text."""
    blocks: tuple[Block, ...] = (
        Heading(text),
        Heading(text, 3),
        paragraph(text, Code(text), Strong(text)),
        Items(((text,),)),
        Quote(text, text),
        Table((Column(text, "code"), Column(text)), ((text, text),), text),
        Picture(text, (Panel(text, (Bar(text, 1.0),), 2.0),)),
    )
    return Report(text, blocks, contents=True)


@given(texts)
@example(SCRIPT)
@example('"><svg onload=alert(1)>')
@example("]]> --> &lt;b&gt; &#60;b&#62;")
def test_text_never_becomes_markup(text: str) -> None:
    page, plain = read(html.render(everything(text))), read(html.render(everything("plain")))
    assert page.tags == plain.tags
    names = [(tag, name) for tag, name, _ in page.attributes]
    assert names == [(tag, name) for tag, name, _ in plain.attributes]


@given(texts)
@example(SCRIPT)
@example("&lt; &amp;lt; &#60;")
def test_text_reads_back_as_it_was(text: str) -> None:
    page = read(html.render(everything(text)))
    said = fold(text)
    assert page.of("title")[0] == said
    assert page.of("h2") == page.of("h3") == page.of("blockquote") == [said]
    assert page.of("caption") == [said]
    assert page.tables == [[[said, said], [said, said]]]


def test_the_page_needs_nothing_else() -> None:
    page = html.render(everything("plain"))
    found = read(page)
    assert "script" not in found.tags
    assert "link" not in found.tags
    outside = {"src", "srcset", "data", "action", "poster", "xlink:href", "style"}
    assert not [name for _, name, _ in found.attributes if name in outside]
    assert all(v.startswith("#") for _, name, v in found.attributes if name == "href")
    assert not re.search(r"@import|url\(|https?:", page)
    assert "default-src 'none'" in page


def test_links_of_the_contents_lead_to_the_sections() -> None:
    report = Report("r", (Heading("One"), Heading("inner", 3), Heading("Two")), contents=True)
    page = read(html.render(report))
    ids = [value for tag, name, value in page.attributes if (tag, name) == ("h2", "id")]
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert links == [f"#{i}" for i in ids]
    assert page.of("a") == page.of("h2") == ["One", "Two"]


def test_a_bar_is_as_long_as_its_share_of_the_scale() -> None:
    panel = Panel("p", (Bar("quarter", 0.5), Bar("none", None), Bar("all", 2.0, True)), 2.0)
    page = read(html.render(Report("r", (Picture("c", (panel,)),))))
    bars = [[]]
    for tag, name, value in page.attributes:
        if tag == "rect" and name == "class":
            bars.append([value])
        elif tag == "rect" and name == "width":
            bars[-1].append(value)
    assert bars[1:] == [
        ["track", "320"],
        ["bar", "80.0"],
        ["track", "320"],
        ["bar", "0.0"],
        ["track", "320"],
        ["bar marked", "320.0"],
    ]
    assert page.of("text") == ["p", "quarter", "0.500", "none", "–", "all", "2.000"]


def test_figures_stand_right_and_marked_rows_stand_out() -> None:
    table = Table(
        (Column("a"), Column("b", "number")), (("x", 1.0), ("y", 2.0)), "", frozenset({1})
    )
    page = html.render(Report("r", (table,)))
    assert '<td class="figures">1.000</td>' in page
    assert '<tr class="marked"><th scope="row">y</th>' in page
    assert page.count('class="marked"') == 1
