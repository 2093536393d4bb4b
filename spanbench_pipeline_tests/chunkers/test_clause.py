from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.chunkers import clause
from spanbench_pipeline.core.headers import headers
from spanbench_pipeline_tests.chunkers.published import published_eval_set


@pytest.mark.parametrize(
    "header",
    [
        "ARTICLE I",
        "Article XVIII",
        "ARTICLE 12",
        "ARTICLE \t 7: Term",
        "SECTION 3",
        "Section 3.2.10 Term",
        "Section 2.1a",  # "Section 2" ends at a word boundary
        "1 Term",
        "1.Term",
        "1. Term",
        "12.3 Term",
        "12.3.1. Term",
        "1 . Term",
        "1Term",
        '1. "Term"',
        "1. “Term”",
        "1. (Term)",
        "IV. Term",
        "XXXVII.\tTerm",
    ],
)
@pytest.mark.parametrize("indentation", ["", "   ", "\t \t"])
def test_header_forms(header: str, indentation: str) -> None:
    before = "Some words\n"
    assert headers(before + indentation + header) == [len(before)]
    assert headers(indentation + header) == [0]


@pytest.mark.parametrize(
    "line",
    [
        "article I",
        "ARTICLES 1",
        "Article XVIIIIII",  # more than six letters: no word boundary after the sixth
        "Article D",
        "ARTICLE IA",
        "ARTICLE 1st",
        "ARTICLE\nI",  # white space in a header is never a newline
        "ARTICLEI",
        "SECTION IV",
        "Section 12a",
        "1. term",
        "1.\nTerm",  # a page number and the page's first word
        "1\n\nTerm",
        "1.. Term",
        "1. ((Term)",
        "1. É",
        "١. Term",  # Arabic-Indic digit
        "IV.Term",
        "IV. term",
        "IV.\nTerm",
        "MDC. Term",
        "iv. Term",
        "XXXXXXX. Term",
        "“1. Term",
        "\xa01. Term",  # a no-break space is no indentation
        "see 1. Term",
    ],
)
def test_lines_that_are_no_headers(line: str) -> None:
    assert headers("Some words\n" + line) == []


@pytest.mark.parametrize("mark", [".", ";", ":", "]"])
@pytest.mark.parametrize("white", ["  ", "\t\t", " \t  "])
def test_headers_inside_a_line(mark: str, white: str) -> None:
    # The boundary is right after the mark: the white space belongs to the header.
    assert headers(f"It ends{mark}{white}2. Term") == [8]


@pytest.mark.parametrize(
    "text",
    [
        "It ends. 2. Term",
        "It ends.\t2. Term",
        "It ends,  2. Term",
        "It ends)  2. Term",
        "It ends  2. Term",
        "It ends.\n\n\nterm",
        "It ends.\xa0\xa02. Term",
    ],
)
def test_inside_a_line_a_mark_and_two_spaces_are_needed(text: str) -> None:
    assert headers(text) == []


def test_headers_do_not_overlap() -> None:
    # "1.  I" is a header; "  I. Term" inside of it is not a second one.
    assert headers("1.  I. Term") == [0]


def test_carriage_returns_stay_where_they_are() -> None:
    assert headers("Words\r\n1. Term\r\n2. Fees\r\n") == [7, 16]


OVERLAPPING = re.compile(  # as it was, with two runs of white space side by side: quadratic
    r"(?:^[ \t]*|(?<=[.;:\]])[ \t]{2,})(?:"
    r"(?:ARTICLE|Article)[ \t]+(?:[IVXLC]{1,6}|[0-9]+)\b"
    r"|(?:SECTION|Section)[ \t]+[0-9]+(?:\.[0-9]+)*\b"
    r'|[0-9]+(?:\.[0-9]+)*[ \t]*\.?[ \t]*["“(]?[A-Z]'
    r"|[IVXLC]{1,6}\.[ \t]+[A-Z])",
    re.MULTILINE,
)


@given(st.lists(st.sampled_from([*' \t\n.;]12IVAa"“(', "  ", "Section ", "ARTICLE"])).map("".join))
def test_headers_are_those_of_the_same_expression_with_overlapping_runs(text: str) -> None:
    assert headers(text) == [match.start() for match in OVERLAPPING.finditer(text)]


@pytest.mark.parametrize("mark", ["", ".", "\t."])
def test_white_space_behind_a_number_takes_linear_time(mark: str) -> None:
    # Quadratic, half a million spaces would take hours.
    assert headers("\n1" + mark + " " * 500_000 + "\nTerm") == []


def words(n: int) -> str:
    """``n`` characters without a header, a period or a newline."""
    return ("word " * n)[:n]


def test_text_before_the_first_header_is_a_chunk() -> None:
    text = words(30) + "\n" + "1. T" + words(300)
    assert clause.chunk(text) == [(0, 31), (31, len(text))]


def test_a_text_without_headers_is_one_chunk() -> None:
    assert headers(words(500)) == []
    assert clause.chunk(words(500)) == [(0, 500)]
    assert clause.chunk("") == []


def header_at(length: int) -> str:
    """A piece that starts with a header and is so long, newline included."""
    return "1. T" + words(length - 5) + "\n"


def test_short_pieces_join_the_piece_before_them() -> None:
    # 199 is short, 200 is not; two short ones in a row join the same piece.
    text = header_at(200) + header_at(199) + header_at(50) + header_at(200) + header_at(10)
    assert clause.chunk(text) == [(0, 449), (449, 659)]


def test_a_short_first_piece_stays() -> None:
    assert clause.chunk(header_at(20) + header_at(300)) == [(0, 20), (20, 320)]
    # It takes short ones that follow, though.
    assert clause.chunk(header_at(20) + header_at(20) + header_at(300)) == [(0, 40), (40, 340)]


def cuts(text: str) -> list[int]:
    return [end for _, end in clause.chunk(text)]


def place(marks: dict[int, str], length: int) -> str:
    """So many letters, with each of ``marks`` written over them at its offset."""
    text = "x" * length
    for at, mark in marks.items():
        text = text[:at] + mark + text[at + len(mark) :]
    return text


@pytest.mark.parametrize(
    ("marks", "cut"),
    [
        ({}, 2000),
        ({700: ". ", 1500: ". "}, 1501),  # just after the period of the last one
        ({200: ". "}, 201),  # the first place that counts
        ({199: ". "}, 2000),
        ({1998: ". "}, 1999),  # both characters before 2000
        ({1999: ". "}, 2000),
        ({700: ". ", 1999: ". "}, 701),
        ({700: ".\n"}, 702),  # no ". ", so after the newline
        ({300: ". ", 1900: "\n"}, 301),  # a period comes before any newline
        ({400: "\n", 900: "\n"}, 901),
        ({200: "\n"}, 201),
        ({199: "\n"}, 2000),
        ({1999: "\n"}, 2000),  # just after it is 2000 as well
        ({2000: "\n"}, 2000),
    ],
    ids=str,
)
def test_where_a_long_piece_is_cut(marks: dict[int, str], cut: int) -> None:
    assert cuts(place(marks, 2500))[0] == cut


def test_a_piece_of_exactly_the_maximum_is_not_cut() -> None:
    assert cuts(place({1000: ". "}, 2000)) == [2000]
    assert cuts(place({1000: ". "}, 2001)) == [1001, 2001]


def test_cutting_goes_on_until_nothing_is_too_long() -> None:
    # After the cut at 1501 the next range is [1701, 3501): 3001 lies in it.
    assert cuts(place({1500: ". ", 3000: ". "}, 6000)) == [1501, 3001, 5001, 6000]


def test_the_rest_of_a_cut_is_not_folded() -> None:
    assert cuts("x" * 2001) == [2000, 2001]


alphabet = st.sampled_from(
    ["1. A", "ARTICLE I", "\n", "\n\n", ". ", ".  ", ";  ", " ", "word ", "é", "x" * 15, "X. Y"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(alphabet, max_size=60).map("".join), st.integers(0, 12), st.integers(13, 60))
def test_pieces_follow_the_rules(text: str, min_chars: int, max_chars: int) -> None:
    assert clause.chunk(text, min_chars=min_chars, max_chars=max_chars) == by_the_rules(
        text, min_chars, max_chars
    )


def by_the_rules(text: str, min_chars: int, max_chars: int) -> list[tuple[int, int]]:
    """Folding and splitting as the specification words them, one character at a time."""
    bounds = [0, *(h for h in headers(text) if h > 0), len(text)]
    folded: list[tuple[int, int]] = []
    for start, end in pairwise(bounds):
        if folded and end - start < min_chars:
            folded[-1] = (folded[-1][0], end)
        elif end > start:
            folded.append((start, end))
    pieces = []
    for start, end in folded:
        while end - start > max_chars:
            low, high = start + min_chars, start + max_chars
            periods = [i + 1 for i in range(low, high - 1) if text[i] + text[i + 1] == ". "]
            newlines = [i + 1 for i in range(low, high) if text[i] == "\n"]
            cut = max(periods) if periods else max(newlines) if newlines else high
            pieces.append((start, cut))
            start = cut
        pieces.append((start, end))
    return pieces


@pytest.mark.parametrize(
    ("min_chars", "max_chars", "problem"),
    [
        (-1, 10, "min_chars = -1 is below 0"),
        (10, 10, "max_chars = 10 is not above min_chars = 10"),
        (0, 1, None),
    ],
)
def test_parameters(min_chars: int, max_chars: int, problem: str | None) -> None:
    assert clause.problem(min_chars=min_chars, max_chars=max_chars) == problem


def test_published_count(shared: Path) -> None:
    texts = published_eval_set(shared).documents["text"].to_pylist()
    lengths = [end - start for text in texts for start, end in clause.chunk(text)]
    assert (len(lengths), sorted(lengths)[len(lengths) // 2]) == (972, 797)
