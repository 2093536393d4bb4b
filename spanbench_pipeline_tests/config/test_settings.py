"""Tables of a TOML file as dataclasses: types, bounds, rules, tables inside tables."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from annotated_types import Interval

from spanbench_pipeline.config.settings import TOP, TableReader, matching, one_of
from spanbench_pipeline.core.errors import InputError

FILE = Path("a.toml")


@dataclass(frozen=True)
class Inner:
    word: Annotated[str, matching("[a-z]+", "is no word")]
    low: int = 0
    high: int = 1

    def conflict(self) -> str:
        return "" if self.low < self.high else "low is not below high"


@dataclass(frozen=True)
class Outer:
    size: Annotated[int, Interval(ge=1, le=9)]
    share: float = 0.5
    on: bool = False
    colour: Annotated[str, one_of(("red", "green"))] = "red"
    names: tuple[str, ...] = ()
    inner: Inner | None = None
    path: Path = field(default=FILE)


def read(text: str) -> Outer:
    reader = TableReader(FILE)
    return reader.done(reader.read(TOP, tomllib.loads(text), Outer, path=FILE))


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as error:
        read(text)
    message = str(error.value)
    lines = message.split("\n")
    return [line.strip().removeprefix("a.toml: ") for line in lines[len(lines) > 1 :]]


def test_a_table_as_a_dataclass_with_what_it_leaves_out_at_its_default():
    assert read("size = 3") == Outer(3, 0.5, False, "red", (), None, FILE)
    text = 'size = 9\nshare = 1\non = true\nnames = ["a", "b"]\n[inner]\nword = "x"\nhigh = 7'
    found = read(text)
    assert found == Outer(9, 1.0, True, "red", ("a", "b"), Inner("x", 0, 7), FILE)
    assert type(found.share) is float


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "top level: key 'size' is missing"),
        ('size = "3"', "top level: size = '3' must be a valid integer"),
        ("size = 3.0", "top level: size = 3.0 must be a valid integer"),
        ("size = true", "top level: size = True must be a valid integer"),
        ("size = 0", "top level: size = 0 must be greater than or equal to 1"),
        ("size = 10", "top level: size = 10 must be less than or equal to 9"),
        ("size = 3\non = 1", "top level: on = 1 must be a valid boolean"),
        ("size = 3\nshare = inf", "top level: share = inf must be a finite number"),
        ("size = 3\nnames = [1]", "top level: names[0] = 1 must be a valid string"),
        ("size = 3\ninner = 3", "inner: must be a table, such as { }"),
        ('size = 3\ninner = { word = "X" }', "inner: word = 'X' is no word"),
        ('size = 3\ninner = { word = "x", low = 1 }', "inner: low is not below high"),
        (
            'size = 3\ncolour = "gren"',
            "top level: colour = 'gren' is unknown; did you mean 'green'? (valid: red, green)",
        ),
    ],
)
def test_a_problem_names_table_and_key(text: str, problem: str):
    assert problems(text) == [problem]


def test_what_is_no_key_of_the_table_is_unknown():
    (problem,) = problems('size = 3\npath = "x"')
    assert problem.startswith("top level: unknown key 'path'")
    assert "(valid: colour, inner, names, on, share, size)" in problem


def test_all_problems_are_named_in_the_order_of_the_fields():
    text = 'size = 0\nshare = "x"\nshape = 1\n[inner]\nlow = "x"'
    assert [problem.split(" = ")[0] for problem in problems(text)] == [
        "top level: unknown key 'shape'; did you mean 'share'? "
        "(valid: colour, inner, names, on, share, size)",
        "top level: size",
        "top level: share",
        "inner: low",
        "inner: key 'word' is missing",
    ]
