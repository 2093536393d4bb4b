"""What may be compared: fingerprints of indexes and rankings, and who searches other chunks."""

from __future__ import annotations

from collections.abc import Iterable

from spanbench_pipeline.analysis.fingerprints import (
    INDEX_PRINT,
    RANKING_PRINT,
    by_config,
    same_chunks,
)
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import absent
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.inputs import ReportInputs, indexed
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Code,
    Column,
    Inline,
    Items,
    Table,
    paragraph,
    write,
)
from spanbench_pipeline.reports.sections.characters import character_values
from spanbench_pipeline.reports.sections.shared import (
    marked_rows,
    metric_names,
    shown_depth,
)

Blocks = list[Block]
Line = tuple[Inline, ...]


def fingerprint_table(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Table:
    """Return each configuration's hashes, as the table ``fingerprints`` has them."""
    prints = by_config(inputs.fingerprints)
    rows = tuple(
        (c.name, prints[c.name][INDEX_PRINT], prints[c.name][RANKING_PRINT])
        for c in experiment.configurations
    )
    columns = (Column("configuration"), Column("index", "code"), Column("rankings", "code"))
    caption = (
        "Fingerprints. Configurations with the same index hash search the same texts, chunked and "
        "encoded alike; with the same rankings hash, they return the same rankings."
    )
    return Table(columns, rows, caption, marked_rows(experiment, baseline))


def short_lists(experiment: Experiment) -> Blocks:
    """Return which metrics look deeper than the rankings go, and so are absent; [] where none
    does.
    """
    lines: list[Line] = [(Code(name), f": {why}.") for name, why in _absent(experiment).items()]
    return [Items(tuple(lines))] if lines else []


def _absent(experiment: Experiment) -> dict[str, str]:
    return absent(experiment.depth, registry.of_results(experiment.context, experiment.further))


def chunk_groups(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    """Return who searches the same chunks, where not all do; [] where all do."""
    prints = by_config(inputs.fingerprints)
    groups = same_chunks(prints, inputs.measured(experiment))
    if len(groups) < 2:
        return []
    lines: list[Line] = [
        (
            *_listed(Code(config) for config in group),
            f": {int(prints[group[0]]['n_chunks']):,} chunks; characters: "
            f"{prints[group[0]]['chunk_chars']}.",
        )
        for group in groups
    ]
    return [
        paragraph(
            f"{_chunk_counting(experiment, inputs)} count chunks, and the configurations use "
            "different chunks. Do not compare these figures between the groups below; compare "
            "span_coverage, span_recall and complete_grounding instead."
        ),
        Items(tuple(lines)),
    ]


def other_chunks(
    experiment: Experiment, inputs: ReportInputs, pairs: Iterable[tuple[str, str]]
) -> Blocks:
    """Return those of ``pairs`` of configurations that have different chunks, and how different."""
    prints = by_config(inputs.fingerprints)
    different = [p for p in dict.fromkeys(pairs) if len(same_chunks(prints, p)) > 1]
    if not different:
        return []
    k, _ = shown_depth(experiment.depth, registry.character_ks(experiment.further))
    median = indexed(inputs.chunk_stats.to_pylist(), "chunker", "stat")
    budget = character_values(inputs)
    lines: list[Line] = []
    for pair in different:
        chars = [median.get((prints[c]["chunker"], "median_chars")) for c in pair]
        held = [budget.get((c, None, "chars_retrieved", k)) for c in pair]
        before, after = (write(v, "count") for v in chars)
        first, second = (write(v, "count") for v in held)
        lines.append(
            (
                *(Code(pair[0]), " → ", Code(pair[1])),
                f": chunks of {before} and {after} characters (medians); the first {k} hold "
                f"{first} and {second} characters.",
            )
        )
    return [
        paragraph(
            "The two sides use different chunks, so the same number of chunks holds a different "
            "amount of text; part of the difference may come from that alone."
        ),
        Items(tuple(lines)),
    ]


def _chunk_counting(experiment: Experiment, inputs: ReportInputs) -> str:
    """Return the metrics shown that count chunks, in a line."""
    names = metric_names(facts.means(inputs.config_metrics).values(), experiment.context)
    found = [name for name in names if name.partition("@")[0] in registry.chunk_counting()]
    return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


def _listed(names: Iterable[Code]) -> Line:
    parts: list[Inline] = []
    for name in names:
        parts += [", ", name] if parts else [name]
    return tuple(parts)
