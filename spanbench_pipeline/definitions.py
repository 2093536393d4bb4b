"""What Dagster loads: every corpus's assets and checks, and a job for each corpus and for all."""

from __future__ import annotations

import logging
import os

import dagster as dg

from spanbench_pipeline import project
from spanbench_pipeline.assets import broken, build, graph, turn


def definitions() -> dg.Definitions:
    """The definitions of this checkout; a broken experiment file is shown and left out."""
    where = project.find()
    found = graph.build(where, os.environ.get("SPANBENCH_DENSE_ENGINE"))
    for error in found.broken.values():
        logging.getLogger("spanbench").error("left out: %s", error)
    made = build.definitions(found.stages, where)
    jobs = [
        dg.define_asset_job(
            f"run_{corpus}",
            selection=dg.AssetSelection.assets(*(list(s.key) for s in found.of([corpus]))),
            description=f"Every asset of corpus {corpus}, stale or not, and the warehouse.",
            tags={turn.CORPORA_TAG: corpus},
        )
        for corpus in found.experiments
    ]
    everything = dg.define_asset_job("run_everything", selection=dg.AssetSelection.all())
    return dg.Definitions(
        assets=[
            *(a for a in made if not isinstance(a, dg.AssetChecksDefinition)),
            *broken.assets(found.broken),
        ],
        asset_checks=[a for a in made if isinstance(a, dg.AssetChecksDefinition)],
        jobs=[*jobs, everything],
        resources=build.resources(found.stages, where),
        executor=dg.in_process_executor,
    )


defs = definitions()
