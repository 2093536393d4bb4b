from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.retrieval import cards
from spanbench_pipeline_tests.chunkers.texts import TEXTS
from spanbench_pipeline_tests.retrieval import builders


@pytest.mark.parametrize(
    ("doc_id", "title", "text", "chars", "expected"),
    [
        ("msa", "msa", "One two.", 99, "msa\nOne two."),
        # The last part of the id: a pooled corpus names the part before it.
        ("cuad/A_1-Lease", "The Lease", "One", 99, "A_1-Lease\nThe Lease\nOne"),
        # The title in the same words, however they are joined, says nothing more.
        ("acme-1999-lease", "ACME_1999-LEASE", "One", 99, "acme-1999-lease\nOne"),
        ("msa", "", "One", 99, "msa\nOne"),
        ("msa", "msa", "\ufeff  One\r\n\r\n\ttwo\n", 99, "msa\nOne two"),
        # Whole words, as many as fit: "msa", a newline and 7 characters.
        ("msa", "msa", "One two three", 11, "msa\nOne two"),
        ("msa", "msa", "One two three", 10, "msa\nOne"),
        # A first word that does not fit is cut, as is a name.
        ("msa", "msa", "Undivided", 8, "msa\nUndi"),
        ("msa", "msa", "One", 2, "ms"),
    ],
)
def test_by_hand(doc_id: str, title: str, text: str, chars: int, expected: str) -> None:
    assert cards.card(doc_id, title, text, chars) == expected


@given(TEXTS, st.integers(1, 60))
def test_a_card_holds_the_beginning_and_no_more(text: str, chars: int) -> None:
    made = cards.card("a/name", "name", text, chars)
    assert len(made) <= chars
    whole = "name\n" + " ".join(text.removeprefix("\ufeff").split())
    assert whole.startswith(made)


def test_a_table_of_cards_and_texts_behind_them() -> None:
    documents = builders.documents({"a": "First one.", "b": "Second one."})
    card_of = cards.cards(documents, 7)
    assert card_of == {"a": "a\nFirst", "b": "b\nSecon"}
    made = cards.carded(["x", "y"], ["b", "a"], card_of)
    assert made == ["b\nSecon\n\nx", "a\nFirst\n\ny"]


@pytest.mark.parametrize("unit", ["x", " ", "\n", "a "])
def test_only_the_beginning_is_read(unit: str) -> None:
    began = time.process_time()
    cards.card("d", "d", unit * 1_000_000, 300)
    assert time.process_time() - began < 1
