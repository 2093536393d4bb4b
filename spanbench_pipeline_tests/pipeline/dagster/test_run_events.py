"""Whether the process of a run is alive."""

from __future__ import annotations

import os
import time

from spanbench_pipeline.pipeline.dagster import run_events


def test_a_process_id_given_away_again_is_not_the_dead_one():
    now = time.time()
    assert run_events._alive(os.getpid(), now)
    assert not run_events._alive(os.getpid(), now - 86_400 * 365)
