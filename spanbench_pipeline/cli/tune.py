"""``spanbench tune``: choose settings on a part of the queries, report them on the rest."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from spanbench_pipeline.analysis import fingerprints
from spanbench_pipeline.cli import terminal, tune_report
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.experiment import MAX_DEPTH, Configuration, Experiment, slug
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.storage import disk
from spanbench_pipeline.storage import files as writing
from spanbench_pipeline.tuning import objective, routing_sweep, splits
from spanbench_pipeline.tuning.lists import Corpus, needed
from spanbench_pipeline.tuning.search import Search, depths_of, router, search

METRIC = "complete_grounding"
"""What is tuned for where nothing else is said, at the experiment's context."""


def tune(
    project: Project,
    corpus: str,
    names: Sequence[str] = (),
    metric: str | None = None,
    share: float = 0.5,
    seed: int = 42,
    shape: str = "table",
) -> str:
    """Tunes the named configurations, or each that can be; writes two files each; what to print.

    Raises InputError, before anything is written, where a name, the metric, the share or the split
    is wrong, there is nothing to tune, or what is stored is not up to date.
    """
    home = HomeState(project)
    experiment = home.experiment(corpus)
    home.experiments.warn_of_broken()
    metric = metric or f"{METRIC}@{experiment.context}"
    asked_for = experiment.context, experiment.further
    known = objective.metrics(experiment.depth, *asked_for)
    if metric not in known:
        _, k = objective.metrics(MAX_DEPTH, *asked_for).get(metric, (metric, None))
        why = unreached(k, experiment.depth)
        raise InputError(
            f"tune: no metric {metric!r}{f': {why}' if why else nearest(metric, known)}"
        )
    splits.require_share(share)
    configs = _chosen(experiment, names)
    disk.require_writable(_folder(project, corpus))  # before the work, not after it
    keys = list(dict.fromkeys(key for c in configs for key in needed(experiment, c)))
    store = open_results(home, corpus)
    snapshot = store.snapshot(keys, "tune")
    stored = Corpus(store, experiment)
    rule = operations.regression(project)
    test = objective.Test(rule.level, rule.rounds, rule.seed)
    split = splits.split(stored.queries, stored.gold_spans, share=share, seed=seed)
    for config in configs:
        _require_a_choice(stored, config)
    asked = {"metric": metric, "share": share, "seed": seed}
    found = [
        asked | _result(stored, c, search(stored, c, known[metric], split), split, test)
        for c in configs
    ]
    snapshot.require_unchanged()
    places = [project.home / "tuned" / corpus / f"{c.slug}.{slug(metric)}" for c in configs]
    files = [_write(place, result) for place, result in zip(places, found, strict=True)]
    if shape == "json":
        return _json({"corpus": corpus, "results": found})
    return tune_report.text(found, files)


def _chosen(experiment: Experiment, names: Sequence[str]) -> list[Configuration]:
    """Return the configurations to tune; InputError where one of ``names`` cannot be, or none can.

    Without names, the first of those that differ in nothing but what is tuned.
    """
    if names:
        chosen = [experiment.configuration(name) for name in dict.fromkeys(names)]
        for config in chosen:
            if why := _idle(experiment, config):
                raise InputError(f"tune: configuration {config.name!r} has nothing to tune: {why}")
        return chosen
    found: dict[Configuration, Configuration] = {}
    for config in experiment.configurations:
        if not _idle(experiment, config):
            alike = replace(objective.untuned(config), name="", encoder=router(experiment, config))
            found.setdefault(alike, config)
    if not found:
        reasons = [f"  {c.name}: {_idle(experiment, c)}" for c in experiment.configurations]
        raise InputError(
            "\n".join([f"tune {experiment.corpus}: there is nothing to tune", *reasons])
        )
    return list(found.values())


def _idle(experiment: Experiment, config: Configuration) -> str:
    """Return why nothing of a configuration can be tuned; empty where something can."""
    if config.reranker is not None:
        return "its reranker orders the list; tune the same configuration without it"
    if config.fusion_used is not None or router(experiment, config) is not None:
        return ""
    if config.doc_scope:
        return "one channel, and every query's document is given (doc_scope)"
    return "one channel, and no encoder, or several, to choose documents with"


def _require_a_choice(corpus: Corpus, config: Configuration) -> None:
    if config.fusion_used is None and not depths_of(corpus, config):
        raise InputError(
            f"tune: configuration {config.name!r} has nothing to tune: one channel, and "
            f"{corpus.documents.num_rows} documents, of which routing would keep all"
        )


def _result(
    corpus: Corpus, config: Configuration, found: Search, split: splits.Split, test: objective.Test
) -> dict[str, Any]:
    """Return everything that is to be said of one configuration, ready for JSON."""
    parts = splits.subsets(corpus.queries)
    held_out = frozenset(split.held_out.queries)
    before, after = (found.readings[c].metric for c in (found.untuned, found.chosen))
    sweeping = {c: found.readings[c] for c in found.swept}
    swept = len(sweeping) > 1
    return {
        "corpus": corpus.experiment.corpus,
        "configuration": config.name,
        "split": asdict(split),
        "fingerprints": _prints(corpus, config),
        "test": asdict(test),
        "routing_alphas": [_point(c, "routing_recall", mean) for c, mean in found.routes],
        "grid": [_point(c, "development", mean) for c, mean in found.grid],
        "untuned": objective.settings(found.untuned),
        "chosen": objective.settings(found.chosen),
        "held_out": [
            {"subset": subset, **objective.compare(before, after, queries & held_out, test)}
            for subset, queries in parts.items()
        ],
        "sweep": routing_sweep.sweep(sweeping, parts, split, test) if swept else [],
        "routing": routing_sweep.verdicts(sweeping, parts, split, test) if swept else [],
        "lines": objective.lines(found.chosen, f"{config.name}, tuned"),
    }


def _point(config: Configuration, name: str, mean: float | None) -> dict[str, Any]:
    return {**objective.settings(config), name: mean}


def _prints(corpus: Corpus, config: Configuration) -> dict[str, Any]:
    """Return what the choice rests on, as hashes; not what it is about."""
    prints = fingerprints.by_config(corpus.table("fingerprints"))
    tuned = ("fusion", "routing", fingerprints.RANKING_PRINT)
    own = {k: v for k, v in prints[config.name].items() if k not in tuned}
    return {"corpus": prints[None], "configuration": own}


def _write(place: Path, result: dict[str, Any]) -> Path:
    """Write a result as JSON and as Markdown; the path of the latter."""
    path = place.with_name(f"{place.name}.md")
    writing.write_whole(place.with_name(f"{place.name}.json"), (_json(result) + "\n").encode())
    writing.write_whole(path, tune_report.markdown_page(result).encode())
    return path


def _folder(project: Project, corpus: str) -> Path:
    return project.home / "tuned" / corpus


def _json(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)


EXAMPLES = """\
  spanbench tune cuad
  spanbench tune legalbench_mini --config "recursive + CC" --metric char_recall_union@8"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench tune``."""
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument(
        "--config",
        action="append",
        metavar="NAME",
        help="configuration to tune (default: each that can be tuned)",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME@K",
        help="metric to maximise (default: complete_grounding at the experiment's context)",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=0.5,
        metavar="PART",
        help="share of the documents whose queries are used for tuning (default: 0.5)",
    )
    parser.add_argument("--seed", type=int, default=42, help="seed of the split (default: 42)")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench tune``; return the exit code."""
    names = parsed.config or ()
    terminal.say(
        tune(project, parsed.corpus, names, parsed.metric, parsed.share, parsed.seed, parsed.format)
    )
    return DONE
