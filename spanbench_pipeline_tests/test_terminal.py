"""Tables line up, whatever the letters."""

from __future__ import annotations

from spanbench_pipeline import terminal


def test_columns_align_and_a_short_row_ends_in_a_sentence():
    shown = terminal.table(
        ["name", "n", "x"],
        [["a", "1", "0.500"], ["longer", "1,000", "0.250"], ["b", "2", "0.1"], ["c", "why not"]],
        right=[1, 2],
    )
    assert shown.splitlines() == [
        "name        n      x",
        "------  -----  -----",
        "a           1  0.500",
        "longer  1,000  0.250",
        "b           2    0.1",
        "c       why not",
    ]


def test_wide_and_combining_characters_count_as_they_show():
    shown = terminal.table(["t", "n"], [["漢字", "1"], ["e\u0301", "2"]])
    assert shown.splitlines()[2:] == ["漢字  1", "e\u0301     2"]
