from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.chunkers import sentences
from spanbench_pipeline_tests.chunkers.texts import TEXTS, held


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", " Two!", " Three?", " Four"]),
        ("He said “no.” Then (so.) Yes.", ["He said “no.”", " Then (so.)", " Yes."]),
        ("Acme Inc. pays. Acme Inc. Foo pays.", ["Acme Inc. pays.", " Acme Inc. Foo pays."]),
        ("The art. Sec. 4 and no. No. 5", ["The art.", " Sec. 4 and no.", " No. 5"]),
        ("J. Smith v. Doe, No. 5, e.g. This.", ["J. Smith v. Doe, No. 5, e.g. This."]),
        ("Up to 3.5 per cent. Then", ["Up to 3.5 per cent.", " Then"]),
        ("1. Fees. The fee.\n2. Term. One.", ["1. Fees.", " The fee.", "\n2. Term.", " One."]),
        ("It ends.  2. Term", ["It ends.", "  2. Term"]),
        ("until 2021. Then", ["until 2021.", " Then"]),
        ("IV. Term. Then", ["IV. Term.", " Then"]),
        ("of it. the rest", ["of it. the rest"]),  # a small letter goes on
        ("A TITLE\n\nand text\nto the end", ["A TITLE", "\n\nand text\nto the end"]),
        ("A TITLE\r\n \r\nand text", ["A TITLE", "\r\n \r\nand text"]),
        ("One.\n\nTwo.", ["One.", "\n\nTwo."]),
        ("Wait... What?!  Yes", ["Wait...", " What?!", "  Yes"]),
        ("One. \n ", ["One. \n "]),
        (" \n\n ", [" \n\n "]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    ends = sentences.sentence_ends(text)
    assert [text[a:b] for a, b in pairwise([0, *ends])] == expected


def windows(text: str, size: int, overlap: int) -> list[str]:
    return [text[s:e] for s, e in sentences.chunk(text, size=size, overlap=overlap)]


def test_windows_by_hand() -> None:
    # Sentences of 4, 5, 5, 5 and 5 characters.
    text = "One. Two. Six. Ten. Two."
    assert windows(text, 14, 5) == ["One. Two. Six.", " Six. Ten.", " Ten. Two."]
    assert windows(text, 15, 5) == ["One. Two. Six.", " Six. Ten. Two."]
    assert windows(text, 14, 0) == ["One. Two. Six.", " Ten. Two."]
    # The overlap would hold two sentences, but the third must fit beside them.
    assert windows(text, 14, 13) == ["One. Two. Six.", " Six. Ten.", " Ten. Two."]
    assert windows(text, 100, 50) == [text]


def test_a_sentence_that_is_too_long_is_cut_before_white_space_else_anywhere() -> None:
    assert windows("aaa bbb ccc ddd.", 8, 0) == ["aaa bbb", " ccc", " ddd."]
    assert windows("aaaaaaaaaa.", 4, 0) == ["aaaa", "aaaa", "aa."]


def test_empty() -> None:
    assert sentences.chunk("") == []
    assert sentences.chunk(" ") == [(0, 1)]


@given(TEXTS, st.integers(1, 60), st.integers(0, 59))
def test_bounds_order_tiling_and_ends(text: str, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    pieces = sentences.chunk(text, size=size, overlap=overlap)
    assert set().union(*held(pieces)) == set(range(len(text)))
    assert all(0 < end - start <= size for start, end in pieces)
    for (start, end), (after, beyond) in pairwise(pieces):
        assert start < after <= end < beyond
        assert end - after <= overlap
    ends = sentences.sentence_ends(text) if text else []
    for _, end in pieces:
        if end not in ends:  # inside a sentence that is too long for a window
            first = max([e for e in ends if e < end], default=0)
            assert min(e for e in ends if e > end) - first > size


@given(TEXTS)
def test_ends_are_in_order_and_stand_behind_something(text: str) -> None:
    ends = sentences.sentence_ends(text)
    assert ends == sorted(set(ends))
    assert ends[-1] == len(text)
    assert all(not text[end - 1].isspace() for end in ends[:-1])
    assert all(text[end].isspace() for end in ends[:-1])


@pytest.mark.parametrize("unit", ["x", " ", "\n", ". ", "a.  ", ".)", "ab.\r\n\r\n", "1. "])
def test_long_documents_take_no_more_than_their_length(unit: str) -> None:
    text = (unit * 400_000)[:400_000]
    began = time.process_time()
    assert sentences.chunk(text)[-1][1] == len(text)
    assert time.process_time() - began < 10
