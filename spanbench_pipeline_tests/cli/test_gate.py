"""The gate's exit code, of hand-made comparisons."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.cli.gate import exit_code
from spanbench_pipeline.core import tables


def row(config: str, verdict: str, n: int | None) -> dict[str, Any]:
    names = tables.TABLES["regression"].schema.names
    figures = ("accepted", "current", "difference", "low", "high", "p")
    given = dict.fromkeys(names) | dict.fromkeys(figures, 0.5)
    return given | {"config": config, "verdict": verdict, "n": n}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([("a", "pass", 3)], 0),
        ([("a", "pass", 3), ("a", "not comparable", None)], 0),
        ([("a", "pass", 3), ("a", "changed", 0)], 0),
        ([("a", "regression", 3), ("b", "not comparable", None)], 1),
        ([("a", "not comparable", None)], 2),
        # Not one query has a value in both runs: nothing was looked at.
        ([("a", "changed", 0)], 2),
        ([("a", "pass", 3), ("b", "pass", 0), ("b", "changed", 0)], 2),
        ([], 2),
    ],
)
def test_a_gate_that_looked_at_nothing_has_not_passed(
    rows: list[tuple[str, str, int | None]], code: int
):
    # Columns without a value here may be null.
    schema = pa.schema([f.with_nullable(True) for f in tables.TABLES["regression"].schema])
    assert exit_code(pa.Table.from_pylist([row(*r) for r in rows], schema)) == code
