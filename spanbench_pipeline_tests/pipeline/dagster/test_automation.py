"""Settings of sensors and schedules."""

from __future__ import annotations

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster import automation


def test_the_interval_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(automation.TICK_VARIABLE, "5")
    assert automation.tick_seconds(30) == 5
    for wrong in ("0", "-1", "soon", "", "9" * 5000):
        monkeypatch.setenv(automation.TICK_VARIABLE, wrong)
        with pytest.raises(InputError, match="whole number"):
            automation.tick_seconds(30)
