"""Every metric there is, and which of them are measured.

A module of ``quality`` declares one metric or a few that belong together, in ``METRICS``; a plug-in
declares one by an entry point of the group ``spanbench.metrics``, named as the metric is.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from spanbench_pipeline.config.experiment import CONTEXT, Experiment
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.metrics import quality
from spanbench_pipeline.metrics.metric import Metric, MetricAt


def metrics() -> dict[str, Metric]:
    """Return every metric by name: ours by position and name, then those of plug-ins by name.

    Raise InputError where a plug-in cannot be imported or declares no metric of its name.
    """
    return _metrics(tuple(sys.path))


def plugins() -> Registry:
    """Return the names of all metrics with the modules that declare them."""
    return Registry("spanbench.metrics", {name: module for name, (module, _) in _ours().items()})


def plugin_modules(further: Iterable[MetricAt]) -> tuple[str, ...]:
    """Return the modules of other distributions that declare metrics of ``further``."""
    others = {name for name, _ in further} - set(_ours())
    return tuple(sorted({plugins()[name].partition(":")[0] for name in others}))


def names(holds: Callable[[Metric], bool]) -> tuple[str, ...]:
    """Return the names of the metrics for which ``holds`` is true, in order."""
    return tuple(name for name, metric in metrics().items() if holds(metric))


def characters() -> tuple[str, ...]:
    """Return the metrics that count characters retrieved, of which all stand at each depth."""
    return names(lambda metric: metric.shown == "characters")


def of_documents() -> tuple[str, ...]:
    """Return the metrics whose k counts documents: how deep lists go says nothing of them."""
    return names(lambda metric: metric.shown == "documents")


def chunk_counting() -> tuple[str, ...]:
    """Return the metrics that count chunks, and so are not compared between chunkers."""
    return names(lambda metric: metric.counts_chunks)


def parse(text: str, where: object) -> MetricAt:
    """Return the metric and depth that ``precision@10`` names, or ``mrr``.

    Raise InputError that begins with ``where`` for a metric that there is not (with the nearest), a
    depth that is no whole number above 0, and a depth where the metric takes none.
    """
    name, at, k = text.partition("@")
    measured = {m: metric for m, metric in metrics().items() if metric.shown != "documents"}
    takes_k = [m for m, metric in measured.items() if metric.takes_k]
    if not at:
        if name in measured and name not in takes_k:
            return name, None
        raise InputError(f"{where}: no metric {text!r} without a k{nearest(name, measured)}")
    if name not in takes_k:
        raise InputError(f"{where}: no metric {text!r} at a k{nearest(name, takes_k)}")
    if not (k.isascii() and k.isdigit() and int(k) > 0):
        raise InputError(f"{where}: {text!r}: k must be a whole number above 0")
    return name, int(k)


def require_known(experiment: Experiment) -> None:
    """Raise InputError where the experiment asks for a metric that there is not, or takes no k."""
    for text in experiment.metrics:
        parse(text, f"{experiment.path}: metrics")


def printed(context: int = CONTEXT) -> tuple[MetricAt, ...]:
    """Return the metrics of the results table that a terminal shows, with their depths."""
    return _at(context, lambda metric: metric.printed)


def of_results(context: int = CONTEXT, further: Iterable[MetricAt] = ()) -> tuple[MetricAt, ...]:
    """Return the metrics of the table of results: the standard ones, then those of ``further``.

    Those that ask what a reader is given stand at ``context``.
    """
    counted = characters()
    named = (metric for metric in further if metric[0] not in counted)
    standard = _at(context, lambda metric: metric.shown == "results")
    return tuple(dict.fromkeys((*standard, *named)))


def character_ks(further: Iterable[MetricAt] = ()) -> tuple[int, ...]:
    """Return the depths of the metrics that count characters: theirs and those of ``further``.

    All of them stand at each: a recall says nothing without the characters retrieved.
    """
    counted = characters()
    standard = _at(CONTEXT, lambda metric: metric.shown == "characters")
    return tuple(sorted({k for name, k in (*standard, *further) if name in counted and k}))


def measured(context: int = CONTEXT, further: Sequence[MetricAt] = ()) -> tuple[MetricAt, ...]:
    """Return every metric of a configuration, in the order of the rows of ``query_metrics``.

    ``further`` are those that an experiment names beside the standard ones. Routing adds its own.
    """
    counted = [(name, k) for k in character_ks(further) for name in characters()]
    return (*of_results(context, further), *counted)


def label_ks(context: int = CONTEXT, further: Iterable[MetricAt] = ()) -> tuple[int, ...]:
    """Return the depths of forensic labels, span states and headroom.

    Those of the character metrics, and ``context``, the depth of the failure labels.
    """
    return tuple(sorted({*character_ks(further), context}))


def _at(context: int, holds: Callable[[Metric], bool]) -> tuple[MetricAt, ...]:
    return tuple(
        (name, context if k == "context" else k)
        for name, metric in metrics().items()
        if name in _ours() and holds(metric)
        for k in metric.depths
    )


@cache
def _ours() -> dict[str, tuple[str, Metric]]:
    """Return each metric of the package by name, with its module."""
    declared = []
    for info in pkgutil.iter_modules(quality.__path__, f"{quality.__name__}."):
        module = importlib.import_module(info.name)
        declared += [(info.name, metric) for metric in module.METRICS]
    declared.sort(key=lambda one: (one[1].position, one[1].name))
    return {metric.name: (module, metric) for module, metric in declared}


@cache
def _metrics(_: tuple[str, ...]) -> dict[str, Metric]:
    found = {name: metric for name, (_, metric) in _ours().items()}
    registry = plugins()
    for name in registry:
        if name not in found:
            metric = registry.load(name)
            if not isinstance(metric, Metric) or metric.name != name:
                place = registry[name]
                raise InputError(f"plug-in {place}: it must be a Metric with the name {name!r}")
            found[name] = metric
    return found
