"""Jobs that the processes of the multiprocess executor can find by name."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph
from spanbench_pipeline.pipeline.dagster import assets

ROOT, HOME = "SPANBENCH_TEST_ROOT", "SPANBENCH_TEST_HOME"


def run_small() -> dg.JobDefinition:
    """Everything of corpus ``small`` in the project that the two variables name, two at a time.

    A checkout of its own: every process loads all experiments that there are.
    """
    where = Project(Path(os.environ[ROOT]), Path(os.environ[HOME]))
    stages = graph.build(where).of(["small"])
    forked = {"forkserver": {"preload_modules": [__name__]}}
    return dg.Definitions(
        assets=assets.definitions(stages, where),
        jobs=[dg.define_asset_job("run_small")],
        resources=assets.resources(stages, where),
        executor=dg.multiprocess_executor.configured({"max_concurrent": 2, "start_method": forked}),
    ).resolve_job_def("run_small")
