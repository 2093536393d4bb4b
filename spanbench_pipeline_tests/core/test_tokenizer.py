from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icu4py.breakers import WordBreaker

from spanbench_pipeline.core import tokenizer as words
from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.core.tokenizer import Tokenizer, fold

UNICODE = Tokenizer("unicode")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Какой срок действия договора?", ["какой", "срок", "действия", "договора"]),
        ("Jaká je výpovědní lhůta?", ["jaká", "je", "výpovědní", "lhůta"]),
        # Apostrophes, straight or curly, join letters; a quotation mark at an end does not.
        ("Don’t 'quote' l'accord", ["don't", "quote", "l'accord"]),
        ("non-compete and/or e-mail", ["non", "compete", "and", "or", "e", "mail"]),
        ("9.1(b) 1,000.50 3rd $5 U.S.C.", ["9.1", "b", "1,000.50", "3rd", "5", "u.s.c"]),
        ("end.Next a.1 1.a k:a", ["end.next", "a", "1", "1", "a", "k:a"]),
        # A form's blanks are no words, and are in none.
        ("Name:____ __Date__ foo_bar ___", ["name", "date", "foo", "bar"]),
        ("e\u0301tude \u00e9tude", ["\u00e9tude", "\u00e9tude"]),  # decomposed, composed
        ("ΟΔΟΣ οδος Ὀδυσσεύς", ["οδοσ", "οδοσ", "ὀδυσσεύσ"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("İSTANBUL istanbul I\u0307 ı", ["istanbul", "istanbul", "i", "ı"]),
        ("co\u00adop\u00aderate a\u200db a\u200bb", ["cooperate", "ab", "a", "b"]),
        ("１２ ＡＢ ﬁle Ⅳ", ["12", "ab", "file", "iv"]),
        ("Acme™ m² ½ №5 ★", ["acme", "m", "5"]),
        ("제3조 한국어 계약 \u1112\u1161\u11ab", ["제3조", "한국어", "계약", "한"]),
        ("हिन्दी में १२", ["हिन्दी", "में", "१२"]),  # vowel signs and virama belong to the letter
        ('צה"ל שָׁלוֹם', ['צה"ל', unicodedata.normalize("NFKC", "שָׁלוֹם")]),
        ("السلام عليكم", ["السلام", "عليكم"]),
        ("期限为三年。", ["期限", "为", "三年"]),
        ("𠮷野家 A株", ["𠮷", "野家", "a", "株"]),  # beyond the basic plane
        ("契約の期間 ﾃｽﾄ か\u3099く", ["契約", "の", "期間", "テスト", "が", "く"]),
        ("สัญญานี้อยู่", ["สัญญา", "นี้", "อยู่"]),
        ("ꀀꀁ 𗀀𗀁", ["ꀀꀁ", "𗀀", "𗀁"]),  # a script of no class: each letter for itself
        ("\u0301 — “” \u200d", []),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    assert UNICODE(text) == expected
    assert UNICODE(text) == expected  # what is remembered is the same
    assert Tokenizer("unicode")(unicodedata.normalize("NFD", text)) == expected


def compared(character: str) -> bool:
    """Not what is tailored: here what joins as an underscore does, there Hangul and digits."""
    tailored = unicodedata.category(character) == "Pc" or character == "\u202f"
    hangul = "HANGUL" in unicodedata.name(character, "")
    return not (tailored or hangul or words.unspaced(character))


SPACED = st.text(
    st.characters(exclude_categories=["Cs", "Cn", "Co"]).filter(compared), max_size=12
) | st.text(alphabet="aб1.,:;’\"'-·\u0301\u00ad\u200d é\u05d0\u0915\u093f", max_size=12)


@settings(max_examples=150, deadline=None)
@given(SPACED)
def test_words_end_where_icu_ends_them(text: str) -> None:
    """ICU's breaks on another path; a part counts that has a letter or a decimal digit."""
    counted = ("L", "Nd", "Nl")
    parts = [
        part
        for part in WordBreaker(text, "root")
        if any(unicodedata.category(c).startswith(counted) for c in part)
    ]
    assert [*UNICODE(text)] == " ".join(map(fold, parts)).split()


@given(st.text(max_size=8))
def test_folding_is_stable_and_does_not_see_composition(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert fold(unicodedata.normalize("NFD", text)) == once


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected"),
    [
        ("ascii", "Section 9.1(b)", (10, 0)),
        ("ascii", "výpověď x", (8, 3)),
        ("ascii", "срок 2", (5, 4)),
        ("unicode", "výpověď x", (8, 0)),
        ("unicode", "期限 ½", (3, 1)),  # a fraction is a digit to count, and no word
        ("unicode", "__ —", (0, 0)),
    ],
)
def test_letters_that_no_word_holds_are_counted(
    tokenizer: str, text: str, expected: tuple[int, int]
) -> None:
    assert Tokenizer(tokenizer).letters(text) == expected


@given(st.text())
def test_letters_in_words_and_outside_are_all_letters(text: str) -> None:
    letters, outside = Tokenizer("ascii").letters(text.lower())
    assert letters == sum(c.isalnum() for c in text.lower())
    assert letters - outside == sum(map(len, Tokenizer("ascii")(text.lower())))


def test_stems_make_forms_of_a_word_alike() -> None:
    czech = Tokenizer("unicode", "czech")
    assert czech("lhůta LHŮTY") == czech("lhůta") * 2
    assert Tokenizer("ascii", "english")("terminating terminated") == ["termin"] * 2
    # What its rules leave nothing of stays a word.
    assert all(Tokenizer("unicode", "french")("l' qu' d' s t"))


def test_every_language_has_a_stemmer() -> None:
    assert {"czech", "english", "russian", "german"} <= {*words.languages()}
    for language in words.languages():
        assert Tokenizer("unicode", language)("word")


def test_without_icu_what_needs_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_breaker", lambda: None)
    bare = Tokenizer("unicode")
    assert bare("Jaká lhůta, 한국어?") == ["jaká", "lhůta", "한국어"]
    with pytest.raises(NotMeasured, match=r"'期限为三年'.*pip install 'spanbench\[cjk\]'"):
        bare("Term (期限为三年)")
    # The published words need nothing.
    assert Tokenizer("ascii")("期限 a") == ["a"]


def test_versions_are_of_what_decides_the_words() -> None:
    assert words.versions("ascii", None) == {}
    assert words.versions("ascii", "czech").keys() == {"snowballstemmer"}
    assert words.versions("unicode", None).keys() == {"unicode", "segmentation"}
    assert words.versions("unicode", None)["segmentation"].startswith("icu4py ")
