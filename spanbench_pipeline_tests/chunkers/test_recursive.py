from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.chunkers import recursive, summary_augmented
from spanbench_pipeline_tests.chunkers.texts import TEXTS

SEPARATORS = ["\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", ""]


def parts(text: str, size: int) -> list[str]:
    pieces = recursive.chunk(text, size=size)
    assert [end for _, end in pieces[:-1]] == [start for start, _ in pieces[1:]]
    return [text[start:end] for start, end in pieces]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("", 5, []),
        ("abc", 5, ["abc"]),
        ("abcde", 5, ["abcde"]),
        # Nothing to split at: the size decides.
        ("abcdefg", 5, ["abcde", "fg"]),
        # The blank line comes before the newline and begins the next piece.
        ("aa\nbb\n\ncc", 5, ["aa\nbb", "\n\ncc"]),
        ("aa\nbb\n\ncc", 4, ["aa", "\nbb", "\n\ncc"]),
        # Neighbours are joined as long as they fit.
        ("a b c d", 5, ["a b c", " d"]),
        ("One. Two. Three.", 9, ["One. Two", ". Three."]),
        # What is left of the part that was too long (" b") is not joined with ",c".
        ("aaaa b,c", 4, ["aaaa", " b", ",c"]),
        # Of three newlines the first two are the blank line; what it begins is split once more.
        ("a\n\n\nb", 3, ["a", "\n\n", "\nb"]),
        # With Windows line ends there is no blank line; the newline begins, the \r stays behind.
        ("aa\r\n\r\nbb", 4, ["aa\r", "\n\r", "\nbb"]),
        ("\n\n", 1, ["\n", "\n"]),
        # A code point is a character, however many bytes it takes.
        ("律律🙂🙂é", 2, ["律律", "🙂🙂", "é"]),
    ],
)
def test_by_hand(text: str, size: int, expected: list[str]) -> None:
    assert parts(text, size) == expected


@given(TEXTS, st.integers(1, 40))
def test_lossless_and_never_longer_than_the_size(text: str, size: int) -> None:
    found = parts(text, size)
    assert "".join(found) == text
    assert all(1 <= len(part) <= size for part in found)
    assert found == parts(text, size)


@given(TEXTS, st.integers(1, 40))
def test_as_the_definition_read_word_for_word(text: str, size: int) -> None:
    assert parts(text, size) == split(text, size, SEPARATORS)


def split(text: str, size: int, separators: list[str]) -> list[str]:
    """The definition, on strings: split, split what is too long, join what is not."""
    if not text:
        return []
    first, *rest = [
        s for n, s in enumerate(separators) if any(o in text for o in separators[: n + 1])
    ]
    made: list[str] = []
    waiting: list[str] = []
    for part in splits(text, first):
        if len(part) < size:
            waiting.append(part)
            continue
        made += joined(waiting, size)
        waiting = []
        made += split(part, size, rest) if rest else [part]
    return made + joined(waiting, size)


def splits(text: str, separator: str) -> list[str]:
    if not separator:
        return list(text)
    head, *others = text.split(separator)
    return [part for part in [head, *(separator + other for other in others)] if part]


def joined(parts: list[str], size: int) -> list[str]:
    made: list[str] = []
    for part in parts:
        if made and len(made[-1]) + len(part) <= size:
            made[-1] += part
        else:
            made.append(part)
    return made


@given(TEXTS)
def test_a_cut_stands_before_a_separator_or_where_there_was_none_in_reach(text: str) -> None:
    size = 20
    for before, after in pairwise(parts(text, size)):
        if not after.startswith(tuple(SEPARATORS[:-1])):
            assert len(before) == size
            assert not any(s in before[1:] for s in SEPARATORS[:-1])


@pytest.mark.parametrize("unit", ["x", ",", " ", "\n", "a b, c. ", "word\n\n", "律"])
def test_long_documents_take_no_more_than_their_length(unit: str) -> None:
    text = (unit * 400_000)[:400_000]
    began = time.process_time()
    assert "".join(parts(text, 500)) == text
    assert time.process_time() - began < 5


@given(TEXTS, st.integers(1, 40))
def test_with_a_card_the_pieces_are_the_same(text: str, size: int) -> None:
    assert summary_augmented.chunk(text, size=size) == recursive.chunk(text, size=size)
