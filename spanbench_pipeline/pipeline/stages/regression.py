"""fingerprints and regression: what the figures rest on, and how they stand to the accepted run."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import partial
from typing import Any

from spanbench_pipeline import chunkers
from spanbench_pipeline.analysis import fingerprints
from spanbench_pipeline.analysis.regression import Rule, Run, regression
from spanbench_pipeline.checks import accepted_run as baseline_checks
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.experiment import Encoder, Experiment, Reranker
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables, tokenizer
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.stages import embeddings
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.reports import regression_text
from spanbench_pipeline.storage import accepted_run, parquet


def stages(experiment: Experiment, project: Project) -> list[Stage]:
    """Return the two stages of one experiment."""
    return [_fingerprints_stage(experiment, project), _regression_stage(experiment, project)]


def key(corpus: str) -> Key:
    """Return the key of a corpus's regression asset."""
    return (corpus, "regression")


def inputs(experiment: Experiment) -> list[Key]:
    """Return what is accepted: each configuration's per-query values, and the fingerprints."""
    corpus = experiment.corpus
    metrics: list[Key] = [(corpus, "query_metrics", c.slug) for c in experiment.configurations]
    return [*metrics, (corpus, "fingerprints")]


def _fingerprints_stage(experiment: Experiment, project: Project) -> Stage:
    corpus = experiment.corpus
    models = _models(experiment, project)
    path = experiment.path
    carded = [c for c, s in experiment.chunkers.items() if chunkers.load(s, path).card]
    deps: list[Key] = [(corpus, t) for t in ("documents", "queries", "gold_spans")]
    return Stage(
        key=(corpus, "fingerprints"),
        table="fingerprints",
        description=f"{tables.TABLES['fingerprints'].description}.".capitalize(),
        compute=partial(_fingerprints, experiment, models, carded),
        deps=(*deps, *((corpus, "chunks", chunker) for chunker in experiment.chunkers)),
        modules=("spanbench_pipeline.analysis.fingerprints",),
        params={
            "depth": experiment.depth,
            **experiment.measured_at,
            "configurations": [repr(c) for c in experiment.configurations],
            "chunkers": {n: fingerprints.parameters(c) for n, c in experiment.chunkers.items()},
            "models": models,
            "carded": carded,
            **_words(experiment),
        },
        checks=(_counts(experiment),),
        tags={"corpus": corpus},
        owns={"corpus": corpus},
    )


def _words(experiment: Experiment) -> dict[str, Any]:
    """Return what decides BM25's words beside the project's code; nothing where all is default."""
    found = {c.name: tokenizer.versions(c.tokenizer, c.stemming) for c in experiment.configurations}
    used = {name: versions for name, versions in found.items() if versions}
    return {"words": used} if used else {}


def _models(experiment: Experiment, project: Project) -> dict[str, str]:
    """Model -> its weights' fingerprint; of absent weights no more than that they are absent."""
    settings: list[Encoder | Reranker]
    settings = [*experiment.encoders.values(), *experiment.rerankers.values()]
    found = {s.name: str(embeddings.model_params(s, project)["weights"]) for s in settings}
    return {name: "absent" if w.startswith("absent") else w for name, w in found.items()}


def _fingerprints(
    experiment: Experiment, models: dict[str, str], carded: list[str], reader: Reader
) -> Outcome:
    return Outcome(
        fingerprints.fingerprints(
            experiment,
            reader.table("documents"),
            reader.table("queries"),
            reader.table("gold_spans"),
            {chunker: reader.table("chunks", chunker) for chunker in experiment.chunkers},
            models,
            carded,
        )
    )


def _regression_stage(experiment: Experiment, project: Project) -> Stage:
    corpus = experiment.corpus
    try:
        rule: Rule | InputError = _rule(project)
    except InputError as error:
        # The other assets do not need the file; this one says what is wrong with it when it runs.
        rule = error
    held_against = accepted_run.current_or_damaged(project, corpus)
    return Stage(
        key=key(corpus),
        table="regression",
        description=f"{tables.TABLES['regression'].description}.".capitalize(),
        compute=partial(_regression, corpus, rule),
        deps=(*inputs(experiment), (corpus, "configs")),
        modules=("spanbench_pipeline.analysis.regression",),
        params={
            "accepted": held_against,
            "rule": _unusable(rule) if isinstance(rule, InputError) else asdict(rule),
        },
        libraries=("numpy",),
        checks=(_follows(rule), _NO_REGRESSION, _NOTHING_CHANGED, _ALL_COMPARED),
        tags={"corpus": corpus},
        owns={"corpus": corpus},
        partial=True,
    )


def _rule(project: Project) -> Rule:
    return Rule(**asdict(operations.regression(project)))


def _unusable(error: InputError) -> str:
    """Return what is recorded of a file that is wrong: that it is, and no word of what stands in
    it.
    """
    return f"unusable ({hashlib.sha256(str(error).encode()).hexdigest()[:12]})"


def _regression(corpus: str, rule: Rule | InputError, reader: Reader) -> Outcome:
    if isinstance(rule, InputError):
        raise rule
    before = accepted_run.read(reader.project, corpus)
    if before is None:
        raise NotMeasured(f"no accepted run; spanbench accept {corpus}")
    states = {row["config"]: row["state"] for row in reader.table("configs").to_pylist()}
    table = regression(
        Run(before.query_metrics, before.fingerprints, {}),
        Run(
            reader.all("query_metrics"),
            reader.table("fingerprints"),
            {config: state for config, state in states.items() if state != parquet.MEASURED},
        ),
        rule,
        corpus=corpus,
    )
    facts: dict[str, Any] = {"accepted": before.digest[:12]}
    return Outcome(table, facts)


def _counts(experiment: Experiment) -> Check:
    names = [c.name for c in experiment.configurations]

    def find(reader: Reader) -> Rows:
        counted = {name: reader.table(name).num_rows for name in ("documents", "queries")}
        counted |= {c: reader.table("chunks", c).num_rows for c in experiment.chunkers}
        return baseline_checks.wrong_counts(reader.own(), counted, names)

    return Check(
        "counts_of_the_tables",
        "Every configuration has fingerprints, and every count among them is its table's.",
        find,
    )


def _follows(rule: Rule | InputError) -> Check:
    def find(reader: Reader) -> Rows:
        before = accepted_run.read(reader.project, reader.stage.corpus)
        if isinstance(rule, InputError) or before is None:
            return [{"problem": "there is no rule or no accepted run that it could follow from"}]
        return baseline_checks.wrong_comparisons(
            reader.own(),
            before.query_metrics,
            reader.all("query_metrics"),
            level=rule.level,
            effect=rule.minimum_effect,
        )

    return Check(
        "comparison_follows_from_queries",
        "Every mean, change and verdict follows from both runs' queries, computed on another path.",
        find,
    )


_NO_REGRESSION = Check(
    "no_regression",
    "No metric fell significantly below its accepted value: by the minimum effect or more, and by "
    "more than chance explains (paired randomization test).",
    lambda reader: regression_text.regressions(reader.own()),
    blocking=False,
    severe=True,
)
_NOTHING_CHANGED = Check(
    "nothing_changed",
    "Runs are deterministic: every query has the value that was accepted.",
    lambda reader: regression_text.changes(reader.own()),
    blocking=False,
)
_ALL_COMPARED = Check(
    "all_compared",
    "Every accepted value has a comparable current value: of the same corpus and gold, and for "
    "metrics that count chunks of the same chunks and encoder.",
    lambda reader: regression_text.not_compared(reader.own()),
    blocking=False,
)
