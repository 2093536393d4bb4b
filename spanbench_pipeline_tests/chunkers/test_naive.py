from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.chunkers import naive
from spanbench_pipeline_tests.chunkers.published import published_eval_set


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, []),
        (1, [(0, 1)]),
        (1000, [(0, 1000)]),  # the first window reaches the end
        (1001, [(0, 1000), (850, 1001)]),
        (1850, [(0, 1000), (850, 1850)]),  # so does the second, exactly
        (1851, [(0, 1000), (850, 1850), (1700, 1851)]),
        (2550, [(0, 1000), (850, 1850), (1700, 2550)]),
    ],
)
def test_windows(length: int, expected: list[tuple[int, int]]) -> None:
    assert naive.chunk("x" * length) == expected


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.data())
def test_windows_as_a_reader_would_lay_them(length: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 20))
    step = data.draw(st.integers(1, size))
    expected = [(0, min(size, length))]
    while expected[-1][1] < length:
        start = expected[-1][0] + step
        expected.append((start, min(start + size, length)))
    assert naive.chunk("é" * length, size=size, step=step) == expected


@pytest.mark.parametrize(
    ("size", "step", "problem"),
    [
        (10, 0, "step = 0 is below 1"),
        (9, 10, "size = 9 is below step = 10, which would leave gaps"),
        (10, 10, None),
    ],
)
def test_parameters(size: int, step: int, problem: str | None) -> None:
    assert naive.problem(size=size, step=step) == problem


def test_published_count(shared: Path) -> None:
    texts = published_eval_set(shared).documents["text"].to_pylist()
    lengths = [end - start for text in texts for start, end in naive.chunk(text)]
    assert (len(lengths), sorted(lengths)[len(lengths) // 2]) == (1103, 1000)
