from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import suggestions
from spanbench_pipeline.core.suggestions import EDGES, nearest

PIECES = ["a", "B", "é", "e\u0301", "ﬁ", "fi", " ", "\u00a0", "\r\n", "\n", "\u00ad", "“", '"', "–"]
PIECES += ["\u0430", "\ufeff", "律", "🙂", "İ", "ß"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@settings(deadline=None)
@given(TEXTS, TEXTS.filter(lambda text: suggestions.folded(text).strip()), TEXTS)
def test_a_place_looks_like_what_was_looked_for(before: str, part: str, behind: str) -> None:
    text = before + part + behind
    found = suggestions.find(part, text)
    every = [
        (start, end)
        for start in range(len(text) + 1)
        for end in range(start + 1, len(text) + 1)
        if suggestions.differences(part, text[start:end]) is not None
    ]
    assert found is None or (found.start, found.end) in every or found.differences[0] == EDGES


FORMS = [
    ("é", "e\u0301", "É"),
    ("o", "\u043e", "O", "\u03bf"),
    ("ffi", "ﬃ", "f\ufb01"),
    (" ", "\u00a0", "\r\n", "\n", "\t  ", " \u200b", "\u2028"),
    ('"', "“", "”", "„"),
    ("-", "–", "\u2011"),
    ("", "\u00ad", "\u200b", "\ufeff"),
    ("律",),
    ("🙂",),
]
PAIRS = st.sampled_from(FORMS).flatmap(lambda f: st.tuples(st.sampled_from(f), st.sampled_from(f)))


@settings(deadline=None)
@given(TEXTS, st.lists(PAIRS, max_size=10), TEXTS)
def test_whatever_form_a_text_has_its_place_is_found(
    before: str, pairs: list[tuple[str, str]], behind: str
) -> None:
    part, there = ("[" + "".join(forms) + "]" for forms in zip(("", ""), *pairs, strict=True))
    found = suggestions.find(part, before + there + behind)
    assert found is not None
    assert (found.start, found.end) == (len(before), len(before) + len(there))
    assert suggestions.folded(part, found.differences) == suggestions.folded(
        there, found.differences
    )


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_differences_are_enough_and_none_is_too_many(one: str, other: str) -> None:
    names = suggestions.differences(one, other)
    if names is None:
        assert suggestions.folded(one) != suggestions.folded(other)
        return
    assert suggestions.folded(one, names) == suggestions.folded(other, names)
    if one != other:
        for name in names:
            fewer = [n for n in names if n != name]
            assert suggestions.folded(one, fewer) != suggestions.folded(other, fewer)


def test_of_several_places_the_nearest_then_the_first_is_named() -> None:
    text = "THE  TERM, The Term, the  term, The Term"
    assert suggestions.find("the term", text) == suggestions.Place(
        21, 30, ("line breaks and runs of white space",)
    )
    assert suggestions.find("THE TERM", text) == suggestions.Place(
        0, 9, ("line breaks and runs of white space",)
    )
    assert suggestions.find("tHE TERM", text) == suggestions.Place(11, 19, ("capitals",))
    assert suggestions.find(" the  term", "(the  term)") == suggestions.Place(1, 10, (EDGES,))
    assert suggestions.find("THE TERM\n", "(the term)") == suggestions.Place(
        1, 9, (EDGES, "capitals")
    )
    assert suggestions.find("no such", text) is None
    assert suggestions.find(" \u200b", text) is None


@pytest.mark.parametrize(
    ("name", "known", "parts"),
    [
        ("caf\u00e9", ["cafe\u0301"], ["NFC", r"'cafe\u0301'", r"'caf\xe9'"]),
        ("a\u00a0b", ["a b"], ["space", r"'a\xa0b'"]),
        ("d\u043ec-1", ["d0c-1", "doc-1"], ["did you mean 'doc-1'", "script", r"d\u043ec-1"]),
        ("Doc", ["doc", "Dog"], ["did you mean 'doc'", "capitals"]),
        ("cluase", ["naive", "clause"], ["did you mean 'clause'?"]),
    ],
)
def test_what_an_unknown_name_meant(name: str, known: list[str], parts: list[str]) -> None:
    for hint in (suggestions.suggested(name, known), nearest(name, known)):
        for part in parts:
            assert part in hint


def test_nothing_is_suggested_for_what_is_like_nothing() -> None:
    assert suggestions.suggested("zzz", ["abc"]) == ""
    assert suggestions.suggested("", []) == ""


def test_long_texts_and_many_names_take_no_seconds() -> None:
    before = time.process_time()
    text = "a \u201cTerm\u201d of 3\u00a0years\r\n" * 20_000
    found = suggestions.find('a "Term" of 3 years\nA', text)
    assert found is not None
    assert found.start == 0
    assert suggestions.find("a" * 2000, "a" * 200_000 + "b") is not None
    assert suggestions.suggested("x" * 100_000, [f"doc-{n}" for n in range(20_000)]) == ""
    assert time.process_time() - before < 10
