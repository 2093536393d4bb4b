import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.core.codepoints import NO_CHARACTER, is_blank, join_surrogates
from spanbench_pipeline.core.errors import InputError


def test_a_pair_is_joined_into_one_character():
    assert join_surrogates("a\ud83d\ude00b", "x") == "a\U0001f600b"


@pytest.mark.parametrize(
    ("text", "offset", "name"),
    [
        ("ab\ud83d", 2, "U+D83D"),
        ("\ude00", 0, "U+DE00"),
        ("\ud83d\ude00\ude00", 1, "U+DE00"),
        ("\ud83dx", 0, "U+D83D"),
        ("\U0001f600é\udcff!", 2, "U+DCFF"),
    ],
)
def test_half_a_pair_is_refused_at_its_offset(text, offset, name):
    with pytest.raises(InputError) as raised:
        join_surrogates(text, "contract.pdf")
    assert str(raised.value).startswith(f"contract.pdf: character {offset} is {name}")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_without_surrogates_stays_as_it_is(text):
    assert join_surrogates(text, "x") == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_split_into_utf16_units_is_put_together_again(text):
    units = text.encode("utf-16-be")
    split = "".join(chr(int.from_bytes(units[i : i + 2])) for i in range(0, len(units), 2))
    assert join_surrogates(split, "x") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\r\n\f\v\x00\x7f\x85\x1b",
        "\u00a0\u1680\u2003\u202f\u205f\u3000\u2028\u2029",
        "\ufeff\u200b\u200c\u200d\u2060\u00ad\u200e\u202e\u2066\u061c\u180e",
        "\u034f\u115f\u3164\uffa0\u2800\ufe0f\U000e0100\U000e0041",
    ],
)
def test_text_that_shows_nothing_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("character", "a7.§¶•—�\u0301\ue000合قřи한ก😀☐①\u0903")
def test_a_character_that_shows_anything_is_not_blank(character):
    assert not is_blank(f"\u200b \n{character}\ufeff")


def test_no_character_is_every_control_but_those_of_text_and_every_noncharacter():
    controls = {n for n in range(0x100) if unicodedata.category(chr(n)) == "Cc"}
    pairs = {n for n in range(sys.maxunicode + 1) if n & 0xFFFE == 0xFFFE}
    expected = controls - set(b"\t\n\v\f\r\x85") | pairs | {*range(0xFDD0, 0xFDF0), 0xFFFD}
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert {ord(found[0]) for found in NO_CHARACTER.finditer(everything)} == expected
