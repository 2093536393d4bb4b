import pytest

from spanbench_pipeline.core.errors import SHOWN, InputError, refuse_all


def test_without_a_problem_nothing_is_refused():
    refuse_all([], "q.jsonl")


def test_a_single_problem_is_the_whole_message():
    with pytest.raises(InputError) as raised:
        refuse_all(["q.jsonl line 3: no query"], "q.jsonl")
    assert str(raised.value) == "q.jsonl line 3: no query"


def test_every_problem_is_listed_in_order_up_to_the_most_and_the_rest_is_counted():
    problems = [f"q.jsonl line {n}: no query" for n in range(1, SHOWN + 6)]
    with pytest.raises(InputError) as raised:
        refuse_all(problems, "q.jsonl")
    first, *listed, last = str(raised.value).splitlines()
    assert first.startswith(f"q.jsonl: {SHOWN + 5} problems")
    assert [line.strip() for line in listed] == problems[:SHOWN]
    assert "5 more" in last


def test_as_many_as_are_listed_are_followed_by_no_count():
    with pytest.raises(InputError) as raised:
        refuse_all(["b", "a"] * (SHOWN // 2), "docs")
    assert "more" not in str(raised.value)
