from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.chunkers import section
from spanbench_pipeline_tests.chunkers.texts import TEXTS, held

SMALL = {"cap": 40, "floor": 12, "overlap": 5}


def parts(text: str, **settings: int) -> list[str]:
    return [text[start:end] for start, end in section.chunk(text, **settings)]


@pytest.mark.parametrize(
    "line",
    [
        "ARTICLE IV",
        "Section 2.1 Fees",
        "3. Term",
        "LIMITATION OF LIABILITY",
        "  FEES",
        "1234 ABC",
        "ÜBERGABE",
        "(a) the Supplier",
        "(iv) the Supplier",
        "(B) the Supplier",
        "(12)\tthe Supplier",
        "Exhibit A",
        "EXHIBIT 10.1",
        "Schedule 1.2(b) - Prices",
        "Annex “C”",
        "Appendix 3: Prices",
        "Attachment B — Prices",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_headings(line: str, end: str) -> None:
    before = f"Some words{end}"
    text = f"{before}{line}{end}and more"
    assert section.headings(text) == [len(before)]


@pytest.mark.parametrize(
    "line",
    [
        "the Fees",
        "AB",  # two letters
        "12 34 --",  # no letter
        "THE LICENSOR SHALL " * 7,  # a paragraph in capitals is no heading
        "ALL BUT one",
        "(abc) the Supplier",
        "(a)the Supplier",
        "Exhibit A hereto shall",  # a reference
        "Exhibits",
        "exhibit A",
        "Schedule of prices",
    ],
)
def test_lines_that_are_no_headings(line: str) -> None:
    assert section.headings(f"Some words\n{line}\nand more") == []


def test_lines_in_capitals_in_a_row_are_one_heading() -> None:
    text = "MASTER\nSERVICE AGREEMENT\nbetween\nACME INC.\n"
    assert section.headings(text) == [0, text.index("ACME")]


def test_an_item_inside_a_line() -> None:
    text = "as follows:  (a) one;  (b) two; (c) three"
    assert section.headings(text) == [text.index("  (a)"), text.index("  (b)")]


def test_short_sections_join_the_ones_behind_them_and_the_last_one_joins_the_one_before() -> None:
    text = "FEES\n(a) ten per cent\n(b) twenty per cent\n(c) none\n"
    # FEES is 5 characters and takes in (a); (c) is 9 and joins (b).
    assert parts(text, **SMALL) == ["FEES\n(a) ten per cent\n", "(b) twenty per cent\n(c) none\n"]
    assert parts("FEES\n(a) b\n", **SMALL) == ["FEES\n(a) b\n"]


def test_a_long_section_is_cut_with_overlap() -> None:
    # 62 characters. Between 12 and 40 the last ". " ends at 31: [0, 31). From 26 on 36 are left.
    text = "The first sentence is this one. The second one is without end."
    assert section.chunk(text, **SMALL) == [(0, 31), (26, 62)]
    # No ". ", "; " or newline: the last space that leaves both pieces at most 40 is at 39.
    text = "word " * 12
    assert section.chunk(text, **SMALL) == [(0, 40), (35, 60)]
    assert section.chunk("x" * 100, **SMALL) == [(0, 40), (35, 75), (70, 100)]
    # 41 characters: cut no later than 41 + 5 - 12 = 34, so that the second piece has 12.
    assert section.chunk("x" * 41, **SMALL) == [(0, 34), (29, 41)]


def test_empty() -> None:
    assert section.chunk("") == []
    assert section.chunk(" \n") == [(0, 2)]


@given(TEXTS, st.sampled_from([(40, 12, 5), (30, 0, 0), (30, 0, 9), (60, 30, 0), (512, 200, 64)]))
def test_bounds_order_and_tiling(text: str, settings: tuple[int, int, int]) -> None:
    cap, floor, overlap = settings
    assert section.problem(cap=cap, floor=floor, overlap=overlap) is None
    pieces = section.chunk(text, cap=cap, floor=floor, overlap=overlap)
    assert set().union(*held(pieces)) == set(range(len(text)))
    lengths = [end - start for start, end in pieces]
    assert all(length <= cap for length in lengths)
    assert all(length >= min(floor, len(text)) for length in lengths)
    starts, heads = [s for s, _ in pieces], set(section.headings(text))
    for (start, end), (after, beyond) in pairwise(pieces):
        assert start < after <= end < beyond
        # Either a heading, right where the piece before it ends, or the overlap behind a cut.
        assert (after == end and after in heads) or end - after == overlap
    assert starts == sorted(set(starts))


@pytest.mark.parametrize(
    "unit", ["x", " ", "\n", "(a) ", "CAPS\n", ". ", "(a) \n", "\t(", "EXHIBIT A "]
)
def test_long_documents_take_no_more_than_their_length(unit: str) -> None:
    text = (unit * 400_000)[:400_000]
    began = time.process_time()
    pieces = section.chunk(text)
    assert pieces[-1][1] == len(text)
    assert time.process_time() - began < 5
