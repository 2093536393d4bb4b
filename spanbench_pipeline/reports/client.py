"""The client report: four sections, and no number that a run did not produce."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from spanbench_pipeline.analysis.backlog import Backlog
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.metrics.depths import unreached
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.audit import missed_spans
from spanbench_pipeline.reports.explanations import LABELS, limits, meaning
from spanbench_pipeline.reports.inputs import MEASURED, ReportInputs, rows_of
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Code,
    Column,
    Heading,
    Paragraph,
    Picture,
    Quote,
    Report,
    Strong,
    Table,
    fold,
    paragraph,
    write,
)
from spanbench_pipeline.reports.sections import client_losses as losses
from spanbench_pipeline.reports.sections.comparability import (
    chunk_groups,
    fingerprint_table,
    other_chunks,
    short_lists,
)
from spanbench_pipeline.reports.sections.shared import (
    label_bars,
    metric_bars,
    metric_names,
    no_top,
)

EXAMPLES = 2
"""Queries shown for each label."""

QUOTED = 600
"""Characters of a missed span that are quoted; the audit files hold all of them."""


def client(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Report:
    """Return the client report, ``baseline`` being the configuration that the reader has now.

    Where the baseline was not measured, the sections that would need its figures say so. Raises
    InputError where the experiment has no such configuration, and ValueError where the backlog is
    another configuration's, or there is none for a baseline that was measured to the context.
    """
    start = experiment.configuration(baseline).name
    state = inputs.states()[start]
    made_for = inputs.backlog.baseline if inputs.backlog else None
    if made_for != (start if state == MEASURED else None) and not no_top(experiment):
        raise ValueError(f"baseline {start!r} ({state}) with a backlog for {made_for!r}")
    blocks: list[Block] = [
        Heading("Where retrieval stands"),
        *(_standing(experiment, inputs, start) if state == MEASURED else _absent(start, state)),
        Heading("Failure patterns"),
        *(_patterns(experiment, inputs, start) if state == MEASURED else _absent(start, state)),
        *(losses.lost_words(experiment, inputs, start) if state == MEASURED else ()),
        Heading("Fix backlog"),
        *_changes(experiment, inputs, start, state),
        Heading("Scope"),
        *_scope(experiment, inputs, start),
    ]
    return Report(f"Retrieval report: {experiment.corpus}", tuple(blocks))


def _absent(baseline: str, state: str) -> list[Block]:
    return [paragraph("The baseline ", Code(baseline), f" has no figures: {state}.")]


def _standing(experiment: Experiment, inputs: ReportInputs, baseline: str) -> list[Block]:
    means = facts.means(inputs.config_metrics)
    rows = tuple(
        (name, means[baseline].get(name), meaning(name, experiment.context))
        for name in metric_names(means.values(), experiment.context)
    )
    columns = (Column("metric", "code"), Column(baseline, "number"), Column("what it says"))
    return [
        _failing(experiment, inputs, baseline),
        Table(columns, rows),
        metric_bars(experiment, inputs, baseline),
        *short_lists(experiment),
        *chunk_groups(experiment, inputs),
        *_unmeasured(experiment, inputs),
        *losses.headroom_words(experiment, inputs, baseline),
    ]


def _failing(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Paragraph:
    """Return how many queries fail, where rankings are deep enough to tell."""
    head = ("Measured with the configuration ", Code(baseline))
    if why := unreached(experiment.context, experiment.depth):
        return paragraph(
            *head,
            f". How many queries fail in the first {experiment.context} chunks: not measured, "
            f"{why}.",
        )
    failing = facts.failure_labels(inputs.failure_labels).get(baseline, Counter()).total()
    return paragraph(
        *head,
        ". A query fails when fewer than half the characters of any passage that answers it are in "
        f"the first {experiment.context} chunks. ",
        Strong(f"{failing:,} of {inputs.queries.num_rows:,} queries fail."),
    )


def _unmeasured(experiment: Experiment, inputs: ReportInputs) -> Iterator[Paragraph]:
    states = inputs.states()
    for config in experiment.configurations:
        if states[config.name] != MEASURED:
            yield paragraph(Code(config.name), f" {states[config.name]}.")


def _patterns(experiment: Experiment, inputs: ReportInputs, baseline: str) -> Iterator[Block]:
    if why := no_top(experiment):
        yield paragraph(why)
        return
    counts = facts.failure_labels(inputs.failure_labels).get(baseline, Counter())
    if not counts:
        yield paragraph("No query fails.")
        return
    bars = label_bars("Failing queries", [*counts.items()], maximum=max(counts.values()))
    yield Picture(f"Failing queries of {baseline} by label.", (bars,))
    missed = missed_spans(inputs, baseline, experiment.context)
    text_of = {row["query_id"]: row["query"] for row in inputs.queries.to_pylist()}
    for label, count in counts.items():
        labelled = rows_of(inputs.failure_labels, config=baseline, label=label)
        yield Heading(label, 3)
        yield paragraph(
            Strong(f"{count:,} of {counts.total():,} failing queries."),
            f" {LABELS[label].format(k=experiment.context)}",
        )
        for query in sorted(row["query_id"] for row in labelled)[:EXAMPLES]:
            yield paragraph(Strong(f"Query {query}"), f": {text_of[query]}")
            for span in missed[query]:
                where = f"[{span['start_char']}, {span['end_char']})"
                yield Quote(_cut(span["text"]), f"Missed in {span['doc_id']}, characters {where}")


def _changes(
    experiment: Experiment, inputs: ReportInputs, baseline: str, state: str
) -> Iterable[Block]:
    """Return the backlog, or why there is none."""
    if state != MEASURED:
        return _absent(baseline, state)
    why = no_top(experiment)
    if why or inputs.backlog is None:
        return [paragraph(why)]
    return _backlog(experiment, inputs, inputs.backlog)


def _backlog(experiment: Experiment, inputs: ReportInputs, backlog: Backlog) -> Iterator[Block]:
    rows = tuple(
        (
            row.lever,
            row.failing_queries,
            "not measured" if row.delta is None else write(row.delta, "signed"),
            "" if row.delta is None else f"{row.from_config} → {row.to_config}",
        )
        for row in backlog.rows
    )
    columns = (
        Column("lever"),
        Column("failing queries", "count"),
        Column(f"change in complete_grounding@{experiment.context}"),
        Column("measured between"),
    )
    if rows:
        yield Table(columns, rows, "What to change, by how many failing queries point at it.")
        yield paragraph(
            "A lever is a setting that can be changed. Each change was measured between two "
            "configurations that differ in that lever alone; a negative change made things worse."
        )
    else:
        yield paragraph("No failing query points at a lever.")
    if backlog.ceiling_bound:
        yield paragraph(
            f"Ceiling-bound: {backlog.ceiling_bound:,}. These queries fail although every "
            "relevant chunk was retrieved; better ranking cannot change that."
        )
    if backlog.depth_bound:
        yield paragraph(
            f"Depth-bound: {backlog.depth_bound:,}. The rankings end at the top "
            f"{experiment.context}, so it is not known whether better search or better ranking "
            "would help these queries."
        )
    yield _best(backlog, experiment.context)
    compared = [(r.from_config, r.to_config) for r in backlog.rows]
    pairs = [(a, b) for a, b in (*compared, (backlog.baseline, backlog.best.config)) if a and b]
    yield from other_chunks(experiment, inputs, pairs)


def _best(backlog: Backlog, context: int) -> Paragraph:
    best = backlog.best
    if not best.levers:
        return paragraph("No measured configuration is better than ", Code(best.config), ".")
    return paragraph(
        "Best configuration overall: ",
        Code(best.config),
        f", with a complete_grounding@{context} of {write(best.value, 'number')} against "
        f"{write(best.baseline_value, 'number')} ({write(best.delta, 'signed')}). "
        f"It changes: {', '.join(best.levers)}.",
    )


def _scope(experiment: Experiment, inputs: ReportInputs, baseline: str) -> list[Block]:
    return [
        paragraph(
            f"Corpus {experiment.corpus}",
            f": {experiment.description}." if experiment.description else ".",
        ),
        *_notes(inputs),
        fingerprint_table(experiment, inputs, baseline),
        limits(
            inputs.documents.num_rows,
            inputs.queries.num_rows,
            inputs.gold_spans.num_rows,
            experiment.context,
        ),
    ]


def _notes(inputs: ReportInputs) -> Iterator[Block]:
    """Yield what a reader must know about the files, such as which pages of a document have no
    text.
    """
    for row in inputs.source_files.to_pylist():
        if row["note"] and row["role"] != "archive":
            yield paragraph(f"{row['file']}: {row['note']}")


def _cut(text: str) -> str:
    folded = fold(text)
    return folded if len(folded) <= QUOTED else f"{folded[:QUOTED]}… (cut here)"
