from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sample.deals import spelled
from tools.sample.layout import STYLES, Builder, Mark, Style, roman

PLAIN = Style("\n{n}. {TITLE}", "{n}.{m} {title}. ")


def test_marks_are_where_their_text_is():
    page = Builder(PLAIN)
    page.raw("Ab: ")
    page.paragraphs(["one <two three>, four <other|five>."], "own key")
    assert page.text == "Ab: one two three, four five."
    assert page.marks == [Mark("own key", "own", 8, 17), Mark("other", "own", 24, 28)]


def test_a_mark_may_span_paragraphs():
    page = Builder(PLAIN)
    page.paragraphs(["a <b", "c> d"], "k", "again")
    assert page.text == "a b\n\nc d"
    assert page.marks == [Mark("k", "again", 2, 6)]


def test_headings_count():
    page = Builder(PLAIN)
    page.article("Term")
    page.section("Start")
    page.paragraphs(["Now."])
    page.section("End")
    page.article("Rest")
    assert page.text == "\n1. TERM\n\n1.1 Start. Now.\n\n1.2 End. \n2. REST"


def test_a_footer_stands_inside_the_gold_and_counts_pages():
    page = Builder(Style("", "", page=10, footer="\n{page}\n"))
    page.paragraphs(["<Aaaa bbbb cccc. Dddd eeee ffff gggg>"], "k")
    # The first page waits for a sentence's end, the second does not.
    assert page.text == "Aaaa bbbb cccc.\n1\nDddd eeee\n2\nffff gggg"
    assert page.marks == [Mark("k", "own", 0, len(page.text))]


def test_straight_quotes_leave_offsets_alone():
    page = Builder(Style("", "", straight=True))
    page.paragraphs(["“Term” <means>"], "k")
    assert (page.text, page.marks) == ('"Term" means', [Mark("k", "own", 7, 12)])


@pytest.mark.parametrize("markup", ["<never closed", "never opened>"])
def test_a_mark_must_be_opened_and_closed(markup):
    with pytest.raises(ValueError, match="never"):
        Builder(PLAIN).paragraphs([markup], "k")


WORDS = st.lists(st.text("abcä👍.,", min_size=1, max_size=12), min_size=1, max_size=60)


@given(st.sampled_from(STYLES), WORDS, WORDS, WORDS, st.integers(1, 80))
def test_marked_words_and_no_others_are_inside_the_mark(style, before, gold, after, length):
    page = Builder(Style(**{**vars(style), "page": length}))
    page.paragraphs([" ".join([*before, f"<{' '.join(gold)}>", *after])], "k")
    (mark,) = page.marks
    pieces = page.text[: mark.start], page.text[mark.start : mark.end], page.text[mark.end :]
    found = [re.sub(r"(?m)^(?:Page |- )?\d+(?: -)?$", "", p).split() for p in pieces]
    assert found == [before, gold, after]


def test_numerals():
    assert [roman(n) for n in (1, 4, 9, 14, 19, 40, 89)] == [
        *("I", "IV", "IX", "XIV", "XIX", "XL", "LXXXIX")
    ]
    assert [spelled(n) for n in (7, 14, 20, 45, 100, 120, 365)] == [
        "seven (7)",
        "fourteen (14)",
        "twenty (20)",
        "forty-five (45)",
        "one hundred (100)",
        "one hundred twenty (120)",
        "three hundred sixty-five (365)",
    ]
