"""The code location: every corpus's assets, checks and jobs, as Dagster loads them.

A corpus that Dagster cannot take is left out and shown, as one whose file is broken is: the others
are not concerned.
"""

from __future__ import annotations

from dataclasses import replace

import dagster as dg

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import graph
from spanbench_pipeline.pipeline.dagster import assets, automation, broken_experiments
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.stages import views


def load(where: Project) -> dg.Definitions:
    """Return the definitions of a project; what is left out of them is shown, and said on
    stderr.
    """
    found, made = _made(where, graph.build(where, automation.dense_engine()))
    found.warn_of_broken()
    automatic = automation.build(where, found)
    return dg.Definitions(
        assets=[
            *made,
            *broken_experiments.assets(found.broken, {stage.key for stage in found.stages}),
        ],
        jobs=automatic.jobs,
        schedules=automatic.schedules,
        sensors=automatic.sensors,
        resources=assets.resources(found.stages, where),
        executor=dg.in_process_executor,
    )


def check_definitions(where: Project) -> None:
    """Load a project's definitions; InputError with the reason where Dagster refuses them.

    A web server would start all the same, show an error in the place of every corpus, and run
    nothing.
    """
    try:
        dg.Definitions.validate_loadable(load(where))
    except dg.DagsterError as error:
        raise InputError(
            f"{where.home}: the definitions cannot be loaded, so nothing would be shown or run: "
            f"{type(error).__name__}: {error}"
        ) from error


def _made(where: Project, found: Graph) -> tuple[Graph, list[dg.AssetsDefinition]]:
    """Return the graph without the corpora that Dagster refuses, and what it made of the others."""
    groups = assets.group_names(found.stages)
    made: list[dg.AssetsDefinition] = []
    refused: dict[str, InputError] = {}
    for corpus, experiment in found.experiments.items():
        own = [stage for stage in found.stages if stage.corpus == corpus]
        try:
            made += assets.definitions(own, where, groups=groups)
        except Exception as error:  # one odd corpus must not stop the rest
            told = f"{type(error).__name__}: {error}"
            refused[corpus] = InputError(f"{experiment.path}: Dagster does not take it: {told}")
    left = [s for s in found.stages if s.corpus and s.corpus not in refused]
    shared = views.stage(left)
    found = replace(
        found,
        experiments={c: e for c, e in found.experiments.items() if c not in refused},
        stages=(*left, shared),
        broken={**found.broken, **refused},
    )
    return found, [*made, *assets.definitions([shared], where, groups=groups)]
