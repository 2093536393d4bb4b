"""What accept says that the new run takes the place of."""

from __future__ import annotations

import pytest

from spanbench_pipeline.cli import accept


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("none", ""),
        ("0123456789abcdef", ", in the place of 0123456789ab"),
        ("damaged: /home/x/current: no digest", ", in the place of a damaged one"),
    ],
)
def test_what_was_accepted_before_is_named(before: str, said: str):
    assert accept._instead_of(before) == said
