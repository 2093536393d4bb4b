"""The developer report: everything that was measured, with what it was measured on."""

from __future__ import annotations

from collections.abc import Callable

from spanbench_pipeline.config.experiment import Experiment, fusion_text
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.reports.explanations import limits
from spanbench_pipeline.reports.inputs import ReportInputs
from spanbench_pipeline.reports.render.blocks import (
    Block,
    Code,
    Column,
    Heading,
    Report,
    Table,
    Value,
    paragraph,
)
from spanbench_pipeline.reports.sections import (
    characters,
    comparability,
    forensics,
    losses,
    yardsticks,
)
from spanbench_pipeline.reports.sections import developer_causes as causes
from spanbench_pipeline.reports.sections import developer_figures as figures
from spanbench_pipeline.reports.sections.shared import compared_parts, marked_rows, shown_depth

Blocks = list[Block]


def developer(experiment: Experiment, inputs: ReportInputs) -> Report:
    """Return the developer report of one corpus, the experiment's baseline marked."""
    blocks = [block for section in SECTIONS.values() for block in section(experiment, inputs)]
    return Report(f"Developer report: {experiment.corpus}", tuple(blocks), contents=True)


def _set_up(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    states = inputs.states()
    columns = (
        Column("configuration"),
        Column("chunker", "code"),
        Column("retriever", "code"),
        Column("reranker", "code"),
        Column("fusion", "code"),
        Column("documents routed to", "count"),
        Column("document scope", "yes/no"),
        Column("metadata filters", "yes/no"),
        Column("encoder", "code"),
        Column("state"),
    )
    rows: list[tuple[Value, ...]] = [
        (
            *(c.name, c.chunker, c.retriever, c.reranker, fusion_text(c), c.routing or None),
            *(c.doc_scope, c.metadata_filters, c.encoder, states[c.name]),
        )
        for c in experiment.configurations
    ]
    facts: list[tuple[Value, ...]] = [
        ("documents", inputs.documents.num_rows),
        ("queries", inputs.queries.num_rows),
        ("gold spans", inputs.gold_spans.num_rows),
        ("clause types", len(set(inputs.queries["clause_type"].to_pylist()) - {None})),
        ("depth of a ranking", experiment.depth),
    ]
    return [
        Heading("Set-up"),
        paragraph(
            experiment.description or experiment.corpus,
            ". Baseline: ",
            Code(experiment.baseline),
            ".",
        ),
        Table((Column("what"), Column("how many", "count")), tuple(facts)),
        Table(
            columns,
            tuple(rows),
            "The configurations, in the experiment's order.",
            marked_rows(experiment, experiment.baseline),
        ),
    ]


def _losses(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    k, note = shown_depth(
        experiment.depth, registry.label_ks(experiment.context, experiment.further)
    )
    return losses.losses(
        inputs.span_states,
        inputs.headroom,
        k,
        losses.stages_by_config(experiment),
        experiment.baseline,
        parts=compared_parts(inputs.headroom),
        note=note,
    )


def _provenance(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    sources = tuple(
        (row["file"], row["role"], row["n_bytes"], row["sha256"], row["note"])
        for row in inputs.source_files.to_pylist()
    )
    columns = (
        Column("file"),
        Column("role"),
        Column("bytes", "count"),
        Column("sha256", "code"),
        Column("note"),
    )
    extractors = sorted(set(inputs.documents["extractor"].to_pylist()))
    facts = [*inputs.provenance.items(), ("extractor", ", ".join(extractors))]
    return [
        Heading("Provenance"),
        Table((Column("what"), Column("value", "code")), tuple(facts)),
        comparability.fingerprint_table(experiment, inputs, experiment.baseline),
        Table(columns, sources, "The files that the corpus was read from."),
    ]


def _limits(experiment: Experiment, inputs: ReportInputs) -> Blocks:
    return [
        Heading("Limits"),
        limits(
            inputs.documents.num_rows,
            inputs.queries.num_rows,
            inputs.gold_spans.num_rows,
            experiment.context,
        ),
    ]


SECTIONS: dict[str, Callable[[Experiment, ReportInputs], Blocks]] = {
    "set-up": _set_up,
    "metrics": figures.metrics,
    "characters": characters.characters,
    "published figures": yardsticks.yardsticks,
    "chunkers": figures.chunkers,
    "levers": causes.levers,
    "hybrid": causes.hybrid,
    "matching": causes.matching,
    "documents": causes.documents,
    "failures": causes.failures,
    "forensic labels": forensics.forensic,
    "losses": _losses,
    "clause types": figures.clause_types,
    "provenance": _provenance,
    "limits": _limits,
}
"""The sections in the order of the report; a section with nothing to say returns no blocks."""
