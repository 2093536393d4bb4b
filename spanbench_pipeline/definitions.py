"""What Dagster loads: every corpus's assets and checks, and what runs them by itself."""

from __future__ import annotations

import logging

import dagster as dg

from spanbench_pipeline import automation, project
from spanbench_pipeline.assets import broken, build, graph


def definitions() -> dg.Definitions:
    """The definitions of this checkout; a broken experiment file is shown and left out."""
    where = project.find()
    found = graph.build(where, automation.dense_engine())
    for error in found.broken.values():
        logging.getLogger("spanbench").error("left out: %s", error)
    made = build.definitions(found.stages, where)
    automatic = automation.build(where, found)
    return dg.Definitions(
        assets=[
            *(a for a in made if not isinstance(a, dg.AssetChecksDefinition)),
            *broken.assets(found.broken),
        ],
        asset_checks=[a for a in made if isinstance(a, dg.AssetChecksDefinition)],
        jobs=automatic.jobs,
        schedules=automatic.schedules,
        sensors=automatic.sensors,
        resources=build.resources(found.stages, where),
        executor=dg.in_process_executor,
    )


defs = definitions()
