from __future__ import annotations

import pytest

from spanbench_pipeline.calibration.worked_cases import CASES, WorkedCase, facts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.why)
def test_worked_case(case: WorkedCase) -> None:
    measured = facts(case)
    for name, expected in case.expected.items():
        is_number = isinstance(expected, int | float)
        assert measured[name] == (pytest.approx(expected, abs=1e-12) if is_number else expected)
