from __future__ import annotations

import pytest

from spanbench_pipeline.reports.render.blocks import Column, Panel, Table, fold, write


@pytest.mark.parametrize(
    ("value", "format_name", "written"),
    [
        (0.0625, "number", "0.062"),
        (0.2756, "number", "0.276"),
        (1, "number", "1.000"),
        (None, "number", "–"),
        (0.0, "number", "0.000"),
        (0.12, "signed", "+0.120"),
        (-0.04, "signed", "-0.040"),
        (0.0, "signed", "0.000"),
        (-0.0001, "signed", "0.000"),
        (0.43, "share", "43.0 %"),
        (0.9912, "share", "99.1 %"),
        (0.0663, "percent", "6.63 %"),
        (0.0, "share", "0.0 %"),
        (40128638, "count", "40,128,638"),
        (21.0, "count", "21"),
        (True, "yes/no", "yes"),
        (False, "yes/no", "no"),
        ("a\n b", "text", "a b"),
        (None, "text", "–"),
    ],
)
def test_write(value: str | float | None, format_name: str, written: str) -> None:
    assert write(value, format_name) == written


def test_a_figure_must_be_a_number() -> None:
    with pytest.raises(TypeError, match="a figure is needed, not 'x'"):
        write("x", "number")


def test_fold() -> None:
    assert fold(" a\r\n\tb\u2028c ") == "a b c"
    assert fold("a\x00b\u202ec") == "a\ufffdb\ufffdc"


def test_rows_must_be_as_wide_as_the_columns() -> None:
    with pytest.raises(ValueError, match="not as wide"):
        Table((Column("a"),), ((1, 2),))


def test_a_scale_must_reach_above_zero() -> None:
    with pytest.raises(ValueError, match="scale"):
        Panel("p", (), 0.0)
