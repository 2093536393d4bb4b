"""A table's first rows as a person reads them: Markdown for the web UI.

The UI shows Markdown of less than 1,000 characters in place, and longer Markdown behind a link, in
a dialog that is wide. So a preview has the columns that tell rows apart, few and short; the dialog
has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.reports.render.blocks import DASH, fold
from spanbench_pipeline.reports.render.markdown import escape

INLINE = 1_000
"""The UI shows Markdown in place when it is shorter than this."""

PREVIEW_ROWS, PREVIEW_CHARS = 15, 44
FULL_ROWS, FULL_CHARS = 20, 160

COLUMNS: dict[str, tuple[str, ...]] = {
    "source_files": ("file", "role", "n_bytes", "note"),
    "documents": ("doc_id", "n_chars", "text"),
    "queries": ("query_id", "query", "clause_type", "doc_id"),
    "gold_spans": ("query_id", "span_no", "start_char", "end_char", "text"),
    "chunks": ("chunk_id", "start_char", "end_char"),
    "embeddings": ("chunk_id", "n_tokens"),
    "routed_documents": ("query_id", "rank", "doc_id", "score"),
    "candidates": ("query_id", "rank", "chunk_id", "score"),
    "rankings": ("query_id", "rank", "chunk_id", "score"),
    "span_outcomes": ("query_id", "span_no", "k", "start_char", "end_char", "covered_chars"),
    "failure_labels": ("query_id", "label", "lever"),
    "forensic_labels": ("query_id", "k", "label", "excess"),
    "span_states": ("query_id", "span_no", "k", "state", "covered_chars", "lost_stage"),
    "headroom": ("subset", "k", "bound", "value"),
    "config_pairs": ("from_config", "to_config", "delta", "fixed", "broken"),
    "regression": ("config", "metric", "k", "accepted", "current", "p", "verdict"),
    "metric_history": ("run_at", "config", "metric", "k", "value"),
    "configs": ("config", "chunker", "retriever", "reranker"),
    "report_files": ("file", "baseline"),
}
"""What the preview of a wide table shows. A table that is not named here shows every column."""


def preview(name: str, table: pa.Table) -> str:
    """Return the first rows of the declared table ``name``, as many as the UI shows in place."""
    chosen = [c for c in COLUMNS.get(name, table.column_names) if c in table.column_names]
    shown = _varying(table.select(chosen)) if name not in COLUMNS else table.select(chosen)
    for n in range(PREVIEW_ROWS, 0, -1):
        text = rows(shown.slice(0, n).to_pylist(), PREVIEW_CHARS)
        if len(text) < INLINE:
            return text
    return rows(shown.slice(0, 3).to_pylist(), PREVIEW_CHARS)


def first_rows(name: str, table: pa.Table) -> str:
    """Return the first rows with every column but vectors; what all rows share stands above them.

    "" where there are none, or the preview of the declared table ``name`` leaves no column out.
    """
    vectors = [f.name for f in table.schema if pa.types.is_floating(_inner(f.type))]
    kept = table.drop_columns(vectors)
    varying = _varying(kept)
    if not table.num_rows or set(varying.column_names) <= set(
        COLUMNS.get(name, varying.column_names)
    ):
        return ""
    same = [c for c in kept.column_names if c not in varying.column_names]
    head = "".join(f"{c}: {cell(kept[c][0].as_py(), FULL_CHARS)}  \n" for c in same)
    listed = rows(varying.slice(0, FULL_ROWS).to_pylist(), FULL_CHARS)
    return f"{head}\n{listed}\n\n{min(FULL_ROWS, table.num_rows):,} of {table.num_rows:,} rows"


def rows(listed: Sequence[Mapping[str, Any]], chars: int = PREVIEW_CHARS) -> str:
    """Return a Markdown table of ``listed``, its columns in the order in which rows name them."""
    if not listed:
        return "no rows"
    columns = list(dict.fromkeys(key for row in listed for key in row))
    figures = [all(_is_figure(row.get(c)) for row in listed) for c in columns]
    lines = [
        _line([escape(c) for c in columns]),
        _line(["---:" if figure else "---" for figure in figures]),
        *(_line([cell(row.get(c), chars) for c in columns]) for row in listed),
    ]
    return "\n".join(lines)


def cell(value: object, chars: int) -> str:
    """Return one value: a figure short, a text on one line and clipped, an absent one as a dash."""
    if value is None:
        return DASH
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else value
        text = ", ".join(f"{p[0]}: {p[1]}" if isinstance(p, tuple) else str(p) for p in pairs)
        return cell(text or DASH, chars)
    text = fold(str(value))
    return escape(text if len(text) <= chars else f"{text[: chars - 1]}…")


def _varying(table: pa.Table) -> pa.Table:
    """Without the columns that have one value in all of several rows: a key says them already."""
    if table.num_rows < 2:
        return table
    simple = [c for c in table.column_names if not pa.types.is_nested(table.schema.field(c).type)]
    same = [c for c in simple if pc.count_distinct(table[c], mode="all").as_py() == 1]
    return table.drop_columns(same)


def _inner(kind: pa.DataType) -> pa.DataType:
    """Return the type of a list's values; null for what is no list."""
    return kind.value_type if pa.types.is_list(kind) else pa.null()


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
