from pathlib import Path

import pytest

from spanbench_pipeline.core.errors import LISTED_PROBLEMS, Code, InputError, refuse_all


def test_without_a_problem_nothing_is_refused():
    refuse_all([], "q.jsonl")


def test_a_single_problem_is_the_whole_message():
    with pytest.raises(InputError) as raised:
        refuse_all(["q.jsonl line 3: no query"], "q.jsonl")
    assert str(raised.value) == "q.jsonl line 3: no query"


def test_every_problem_is_listed_in_order_up_to_the_most_and_the_rest_is_counted():
    problems = [f"q.jsonl line {n}: no query" for n in range(1, LISTED_PROBLEMS + 6)]
    with pytest.raises(InputError) as raised:
        refuse_all(problems, "q.jsonl")
    first, *listed, last = str(raised.value).splitlines()
    assert first.startswith(f"q.jsonl: {LISTED_PROBLEMS + 5} problems")
    assert [line.strip() for line in listed] == problems[:LISTED_PROBLEMS]
    assert "5 more" in last


def test_as_many_as_are_listed_are_followed_by_no_count():
    with pytest.raises(InputError) as raised:
        refuse_all(["b", "a"] * (LISTED_PROBLEMS // 2), "docs")
    assert "more" not in str(raised.value)


@pytest.mark.parametrize(
    ("place", "hint", "text"),
    [
        ("", "", "no query"),
        ("q.jsonl line 3", "", "q.jsonl line 3: no query"),
        ("", "give one", "no query; give one"),
        (Path("q.jsonl"), "give one", "q.jsonl: no query; give one"),
    ],
)
def test_the_text_of_an_error_is_its_place_its_problem_and_its_hint(place, hint, text):
    error = InputError("no query", code=Code.MISSING, place=place, hint=hint)
    assert str(error) == text
    assert (error.code, error.place, error.problem, error.hint) == (
        Code.MISSING,
        str(place),
        "no query",
        hint,
    )


def test_an_error_that_states_no_kind_is_of_the_general_one():
    assert InputError("no query").code is Code.INVALID


def test_a_list_of_problems_has_the_kind_and_the_place_that_were_stated():
    with pytest.raises(InputError) as raised:
        refuse_all(["a", "b"], "docs", Code.DUPLICATE)
    assert (raised.value.code, raised.value.place) == (Code.DUPLICATE, "docs")
