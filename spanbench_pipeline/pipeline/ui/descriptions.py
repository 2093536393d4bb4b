"""What the web UI says of an asset in words: what it is, what a row is, how to read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spanbench_pipeline.pipeline.stage import Check, Stage
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.reports.render.markdown import escape

STEPS = (
    "source",
    "chunks",
    "embeddings",
    "candidates",
    "rankings",
    "query_metrics",
    "span_outcomes",
    "failure_labels",
    "span_states",
    "forensic_labels",
    "headroom",
    "summary",
)
"""The groups of a corpus in the order in which data passes through them."""

READING: dict[str, str] = {
    "source_files": "A row is a file with its size and hash. When a file's hash changes, "
    "everything that was made of the corpus is made again.",
    "documents": "A row is a document with its whole text. Every offset of every other table "
    "counts Unicode code points in this text, from 0.",
    "queries": "A row is a question. `doc_id` is the document that it asks about: configurations "
    "with document scope search only there; where it is empty, all documents are searched.",
    "gold_spans": "A row is one passage `[start_char, end_char)` that answers a query, marked by "
    "people. A query may have several; all of them together are its answer.",
    "chunks": "A row is one piece of one document, `[start_char, end_char)`. Overlapping pieces "
    "are wanted where the chunker slides a window.",
    "embeddings": "A row is one chunk's vector. `n_tokens` is its length in word pieces: what "
    "lies beyond the encoder's limit is not in the vector.",
    "routed_documents": "A row is one document that is searched for a query; rank 1 is the one "
    "whose card fits best. A query's chunks come from these documents and no others.",
    "candidates": "A row is one chunk in the list that one channel gives one query. "
    "Configurations that ask it the same share it; fusion and reranking come later.",
    "rankings": "A row is one chunk in one query's list; rank 1 is the best. `dense_rank` and "
    "`bm25_rank` say where each retriever had it, a dash that it did not.",
    "query_metrics": "A row is one metric of one query, from 0 (worst) to 1. `k` is how far down "
    "the list the metric looks. An empty value is undefined, not zero. `chars_retrieved` counts "
    "characters; `char_recall_paper` may exceed 1 where chunks overlap.",
    "span_outcomes": "A row is one gold span at one depth `k`: `covered_chars` of its characters "
    "are in the top `k` chunks. A span counts as found from half of its characters on.",
    "failure_labels": "A row is a query whose answer is not wholly in its context, with the first "
    "cause that holds and the lever it points at. Queries that succeed have no row.",
    "forensic_labels": "A row is what became of one query at one depth `k`: the first of six "
    "labels that holds. Compare labels of one `k` only. `stability` has the label under other "
    "thresholds.",
    "span_states": "A row is one gold span at one depth `k`: covered (at least half of it is in "
    "the top `k`), partial or missed, and the stage that lost it.",
    "label_cross": "A row counts the queries that have these two labels at the context. An empty "
    "failure label: the query does not fail.",
    "headroom": "A row is a bound on complete grounding at one depth `k`: `actual` as it is, "
    "`candidates` with the best order of what was found, `chunks` with the best choice among all "
    "chunks of the gold documents, `perfect` 1. The steps between them are what ranking, candidate "
    "generation and chunking cost.",
    "configs": "A row is one way to retrieve, every lever's setting stated. `state` says whether "
    "it was measured, and if not, why.",
    "chunk_stats": "A row is one statistic of one chunker, before any retrieval: what its cuts "
    "make possible. Shares are from 0 to 1.",
    "config_metrics": "A row is one metric of one configuration: the mean over the queries where "
    "it is defined (`n_queries`), 1 is best. Precision and recall count chunks, so compare them "
    "only between configurations of one chunker; the span metrics compare everywhere.",
    "clause_type_metrics": "A row is one metric of one configuration over one kind of clause. "
    "Mind `n_queries`: a mean of three queries says little.",
    "config_stats": "A row is one statistic of one configuration beside its metrics; "
    "docs/metrics.md explains each.",
    "config_pairs": "A row compares two configurations that differ in one lever alone: `delta` "
    "is the change in complete grounding at the context, `fixed` and `broken` count the queries "
    "behind it.",
    "report_files": "A row is a file that was written, with its hash. The reports themselves are "
    "below, under Metadata.",
    "warehouse_views": "A row is a view of spanbench.duckdb and the number of Parquet files "
    "behind it. Open the file with any DuckDB client, or ask with `spanbench sql`.",
    "fingerprints": "A row is one thing that figures rest on, as a hash, a setting or a count. Two "
    "runs are comparable where the fingerprints say so.",
    "regression": "A row is one metric of one configuration against the accepted run. `verdict` "
    "says what to make of the difference; `p` is the chance of moving as far the same way by luck "
    "alone. No rows until a run was accepted: `spanbench accept`.",
    "metric_history": "A row is one metric of one configuration in one recorded run, with the "
    "time. The picture and the warehouse's view show every recorded run, the table the last one.",
}
"""What a row of each table is, and how to read it."""


def describe(stage: Stage, absent: str | None = None) -> str:
    """Return the asset's description in Markdown; ``absent``: why it cannot be measured as things
    are.
    """
    lead = f"**Not measured: {escape(absent)}.** " if absent else ""
    parts = [
        lead + stage.description,
        READING.get(stage.table, ""),
        *_choices(stage),
        _place(stage),
    ]
    return "\n\n".join(part for part in parts if part)


def _choices(stage: Stage) -> list[str]:
    """Return what can be chosen when launching, and where."""
    return [
        f"To choose: the arrow beside Materialize, Open launchpad, `{name}`. "
        f"{escape(option.description)} Default: {escape(option.default)}."
        for name, option in stage.options.items()
    ]


def failed(check: Check, n_rows: int) -> str:
    """Return what a failed check means, and what follows from it."""
    rows = "1 row violates this" if n_rows == 1 else f"{n_rows:,} rows violate this"
    if check.blocking:
        follows = "Nothing downstream of this asset runs until the check passes."
    else:
        kind = "An error" if check.severe else "A warning"
        follows = f"{kind}: what is downstream of this asset still runs."
    return f"Violated: {check.description} {rows}; the first are listed. {follows}"


def _place(stage: Stage) -> str:
    """Return where in the pipeline the asset stands: the UI sorts groups by name."""
    step = stage.step
    if stage.shared or step not in STEPS:
        return ""
    shown = " → ".join(f"**{s}**" if s == step else s for s in (t for t in STEPS))
    return f"Step {STEPS.index(step) + 1} of {len(STEPS)}: {shown.replace('_', ' ')}"


def absences(stages: Iterable[Stage]) -> dict[Key, str]:
    """Return the assets that cannot be measured as things are, with the reason.

    A stage whose model's weights are absent, and every stage below it that takes over its state.
    """
    found: dict[Key, str] = {}
    for stage in stages:
        inherited = [] if stage.partial else [found[d] for d in stage.deps if d in found]
        reasons = [*_absent_models(stage.params), *inherited]
        if reasons and not stage.partial:
            found[stage.key] = reasons[0]
    return found


def _absent_models(params: Mapping[str, Any]) -> list[str]:
    """Return why a model of these parameters has no weights; the hash of absent weights is the
    reason.
    """
    nested = [params, *(v for v in params.values() if isinstance(v, Mapping))]
    weights = [str(p["weights"]) for p in nested if "weights" in p]
    return [w.removeprefix("absent: ") for w in weights if w.startswith("absent: ")]
