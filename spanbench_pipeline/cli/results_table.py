"""The results of a corpus as a terminal shows them, read from the stored tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanbench_pipeline.analysis.aggregate import MACRO
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.config.experiment import CONTEXT, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import absent, reached
from spanbench_pipeline.metrics.metric import MetricAt, metric_label
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.results import ResultsStore

PUBLISHED = (
    ("char_precision_paper", 1),
    ("char_precision_union", 1),
    ("char_recall_paper", 8),
    ("char_recall_union", 8),
    ("chars_retrieved", 8),
    ("char_recall_paper", 64),
    ("char_recall_union", 64),
    ("chars_retrieved", 64),
)
"""What LegalBench-RAG reports, union scoring and the characters retrieved beside it."""

Mean = tuple[Any, ...]
"""(configuration, part or None for the whole, metric, k)"""


def show(project: Project, experiment: Experiment) -> str:
    """Return every configuration with the metrics of ``printed``, in the experiment's order.

    A metric that the experiment's depth does not reach has no column; below the table it is named.
    A corpus of several parts has a further table: what the paper scores, part by part.
    """

    store = ResultsStore(project, experiment.corpus)
    states = store.states
    means = {
        (row["config"], row["subset"], row["metric"], row["k"]): row["value"]
        for row in store.table("config_metrics").to_pylist()
    }
    counts = {
        row["chunker"]: f"{row['value']:,.0f}"
        for row in store.table("chunk_stats").to_pylist()
        if row["stat"] == "n_chunks"
    }
    shown = _columns(experiment)
    rows = []
    for config in experiment.configurations:
        if states[config.name] != parquet.MEASURED:
            rows.append([config.name, counts[config.chunker], states[config.name]])
            continue
        found = [means[(config.name, None, metric, k)] for metric, k in shown]
        rows.append([config.name, counts[config.chunker], *(_figure(v) for v in found)])
    head = ["configuration", "chunks", *(metric_label(*metric) for metric in shown)]
    title = f"corpus {experiment.corpus}: {experiment.description}"
    table = f"{title}\n{terminal.table(head, rows, right=range(1, len(head)))}"
    below = [
        *past_depth(experiment.depth, experiment.context, experiment.further),
        *_not_compared(experiment),
    ]
    return "\n\n".join(["\n".join([table, *below]), *_by_part(experiment, means)])


def _columns(experiment: Experiment) -> tuple[MetricAt, ...]:
    """Return the metrics of the table: the printed ones, and those that the experiment asks for."""
    named = [m for m in experiment.further if m[0] not in registry.characters()]
    wanted = tuple(dict.fromkeys((*registry.printed(experiment.context), *named)))
    return reached(experiment.depth, wanted)


def past_depth(depth: int, context: int = CONTEXT, further: Sequence[MetricAt] = ()) -> list[str]:
    """Return a line for each reason why metrics of the table are absent, with their names."""
    named: dict[str, list[str]] = {}
    for name, why in absent(depth, (*registry.printed(context), *further)).items():
        named.setdefault(why, []).append(name)
    said = [f"{', '.join(names)}: {why}" for why, names in named.items()]
    return [*said, *([f"mrr: within the depth, {depth}"] if said else [])]


def _not_compared(experiment: Experiment) -> list[str]:
    """Return a line where configurations have different chunkers; [] where all have one."""
    used = dict.fromkeys(config.chunker for config in experiment.configurations)
    if len(used) < 2:
        return []
    shown = dict(_columns(experiment))
    counting = ", ".join(name for name in shown if name in registry.chunk_counting())
    verb = "count" if "," in counting else "counts"
    return [
        f"{counting} {verb} chunks: do not compare between different chunkers ({', '.join(used)})"
    ]


def _by_part(experiment: Experiment, means: Mapping[Mean, Any]) -> list[str]:
    """Return the metrics of ``PUBLISHED`` part by part, the mean over the parts last; [] without
    parts.

    A k past the experiment's depth is not measured, and has a dash.
    """
    parts = sorted({part for _, part, *_ in means if part is not None} - {MACRO})
    if not parts:
        return []
    parts += [MACRO] * (len(parts) > 1)
    measured = {config for config, *_ in means}
    rows = [
        [config.name, part, *(_cell(means, config.name, part, *metric) for metric in PUBLISHED)]
        for config in experiment.configurations
        if config.name in measured
        for part in parts
    ]
    head = ["configuration", "part", *(metric_label(*metric) for metric in PUBLISHED)]
    said = "characters, part by part; macro is the mean of the parts' means"
    return [f"{said}\n{terminal.table(head, rows, right=range(2, len(head)))}"]


def _cell(means: Mapping[Mean, Any], *key: Any) -> str:
    if key not in means:
        return "-"
    value = means[key]
    return f"{value:,.0f}" if key[2] == "chars_retrieved" else _figure(value)


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
