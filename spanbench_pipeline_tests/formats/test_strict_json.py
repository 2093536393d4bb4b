"""The strict JSON reader: what each field must be, and what is said where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import strict_json

ENTRY = strict_json.parse(
    '{"name": "x", "empty": "", "items": [1], "inner": {}, "n": 7, "f": 7.0, "no": null,'
    ' "b": true}',
    "here",
)


def test_fields_of_their_types():
    assert strict_json.field(ENTRY, "name", str, "here") == "x"
    assert strict_json.field(ENTRY, "inner", dict, "here") == {}
    assert strict_json.field(ENTRY, "n", int, "here") == 7
    assert strict_json.field({"n": -3}, "n", int, "here") == -3  # Python's own numbers as well
    assert strict_json.text(ENTRY, "no", "here") is None
    assert strict_json.text(ENTRY, "absent", "here") is None


@pytest.mark.parametrize(
    ("key", "wanted", "problem"),
    [
        ("absent", str, "key 'absent' is missing"),
        ("no", str, "no must be text, not null"),
        ("n", str, "n must be text, not a number"),
        ("name", list, "name must be an array, not text"),
        ("items", dict, "items must be an object, not an array"),
        ("f", int, "f must be a whole number, not 7.0"),
        ("b", int, "b must be a whole number, not a bool"),
        ("name", int, "name must be a whole number, not 'x'"),
    ],
)
def test_another_type_is_refused_with_place_and_key(key: str, wanted: type, problem: str):
    with pytest.raises(InputError) as error:
        strict_json.field(ENTRY, key, wanted, "file line 3")
    assert str(error.value) == f"file line 3: {problem}"


@pytest.mark.parametrize("entry", [None, 7, "name", ["name"]])
def test_an_entry_must_be_an_object(entry: Any):
    with pytest.raises(InputError, match="line 1: must be an object with key 'name'"):
        strict_json.field(entry, "name", str, "line 1")


def test_required_text_is_not_empty():
    with pytest.raises(InputError, match="key 'empty' is empty"):
        strict_json.required(ENTRY, "empty", "here")
    with pytest.raises(InputError, match="key 'no' is missing"):
        strict_json.required(ENTRY, "no", "here")


def test_whole_numbers_end_where_no_text_is_as_long():
    assert strict_json.whole_text("9" * 15, "n", "here") == 10**15 - 1
    with pytest.raises(InputError, match="beyond"):
        strict_json.whole_text("9" * 16, "n", "here")
    with pytest.raises(InputError, match="whole number"):
        strict_json.whole_text("\u0661", "n", "here")  # a digit, but not one of JSON


def test_an_unknown_key_is_named_with_the_nearest():
    strict_json.known({"name": 1}, ("name", "start"), "here")
    with pytest.raises(InputError, match="here: unknown key 'strt'; did you mean 'start'"):
        strict_json.known({"strt": 1}, ("name", "start"), "here")
