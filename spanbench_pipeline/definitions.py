"""What Dagster loads: every corpus's assets and checks, and what runs them by itself."""

from __future__ import annotations

import dagster as dg

from spanbench_pipeline.config import project
from spanbench_pipeline.pipeline.dagster import code_location


def definitions() -> dg.Definitions:
    """Return the definitions of this checkout; a broken experiment file is shown and left out."""
    return code_location.load(project.find())


defs = definitions()
