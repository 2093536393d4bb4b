"""All stages of all experiments: the one list that the command line and Dagster's UI read."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.registry import require_known
from spanbench_pipeline.pipeline.stage import Stage
from spanbench_pipeline.pipeline.stages import (
    candidates,
    chunks,
    embeddings,
    forensics,
    history,
    metrics,
    rankings,
    regression,
    reports,
    routing,
    sources,
    summaries,
    views,
)
from spanbench_pipeline.pipeline.staleness import name

log = logging.getLogger("spanbench")


@dataclass(frozen=True)
class Graph:
    """The stages in pipeline order, and the experiment files that could not be used."""

    experiments: dict[str, Experiment]
    stages: tuple[Stage, ...]
    broken: dict[str, InputError]
    """Name of the file without its ending -> what is wrong with it."""

    def warn_of_broken(self) -> None:
        """Say on stderr which experiments are left out, and with them their figures."""
        for error in self.broken.values():
            log.warning("left out: %s", error)

    def problem(self, corpus: str) -> str:
        """Return why nothing of a corpus can run; empty where it has an experiment."""
        if corpus in self.broken:
            return f"{corpus}: broken experiment: {self.broken[corpus]}"
        return "" if corpus in self.experiments else f"{corpus}: no experiment for this corpus"

    def of(self, corpora: Iterable[str]) -> list[Stage]:
        """Return the stages of some corpora, and the warehouse."""
        wanted = set(corpora)
        return [s for s in self.stages if s.corpus in wanted or s.key == views.KEY]


def build(project: Project, dense_engine: str | None = None) -> Graph:
    """Return the graph of all experiment files; a broken one is set aside, the others still load.

    ``dense_engine`` replaces what every experiment says.
    """
    found: dict[str, Experiment] = {}
    broken: dict[str, InputError] = {}
    stages: list[Stage] = []
    for path in project.experiment_files():
        try:
            loaded = _load(path, dense_engine, found)
            stages += experiment_stages(loaded, project)
            found[loaded.corpus] = loaded
        except InputError as error:
            _set_aside(broken, path, error)
        except Exception as error:
            # Paths that no system takes, nesting without end, whatever a chunker of one's own does:
            # one odd file must not stop the rest.
            told = f"{type(error).__name__}: {error}"
            _set_aside(broken, path, InputError(f"{path}: cannot be used: {told}"))
    return Graph(found, (*stages, views.stage(stages)), broken)


def _set_aside(broken: dict[str, InputError], path: Path, error: InputError) -> None:
    """Note what is wrong with a file, beside what is wrong with another of its name."""
    before = broken.get(path.stem)
    broken[path.stem] = error if before is None else InputError(f"{before}\n{error}")


def experiment_stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return the stages of one experiment, with what they all share of it."""
    stages = [
        *sources.stages(experiment, project),
        *chunks.stages(experiment),
        *embeddings.stages(experiment, project),
        *routing.stages(experiment, project),
        *candidates.stages(experiment, project),
        *rankings.stages(experiment, project),
        *metrics.stages(experiment),
        *forensics.stages(experiment),
        *summaries.stages(experiment),
        *regression.stages(experiment, project),
        *history.stages(experiment),
        *reports.stages(experiment, project),
    ]
    _require_distinct(experiment, stages)
    return [
        replace(
            stage,
            owners=experiment.owners,
            baseline=experiment.baseline,
            context=experiment.context,
            tags={"corpus": experiment.corpus, **stage.tags},
        )
        for stage in stages
    ]


def _require_distinct(experiment: Experiment, stages: Iterable[Stage]) -> None:
    """Refuse assets of one key here, where it is one experiment's trouble: Dagster takes none."""
    twice = [name(key) for key, n in Counter(stage.key for stage in stages).items() if n > 1]
    if twice:
        raise InputError(f"{experiment.path}: two assets have one key: {', '.join(twice)}")


def _load(path: Path, dense_engine: str | None, found: dict[str, Experiment]) -> Experiment:
    loaded = experiments.load(path)
    require_known(loaded)
    if loaded.corpus in found:
        raise InputError(f"{path}: corpus {loaded.corpus!r} is also {found[loaded.corpus].path}")
    return replace(loaded, dense_engine=dense_engine) if dense_engine else loaded
