"""What must hold of lost stages and of headroom, looked at again after the fact.

Every function gives the offending rows as dicts, [] where the invariant holds. None of them uses
the code that it checks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.invariants import TOLERANCE, Rows
from spanbench_pipeline.checks.row_keys import not_once_at_each_k, span_lengths

_BOUNDS = ("actual", "candidates", "chunks", "perfect")


def wrong_lost_stages(
    span_states: pa.Table, gold_spans: pa.Table, stages: Sequence[str], ks: Sequence[int]
) -> Rows:
    """Return spans of one configuration whose stage does not fit what the top k chunks hold of
    them.

    ``lost_stage`` must be null exactly where that is at least half, else one of ``stages``, those
    that the configuration has; and each gold span has one row at each of ``ks``. Then the counts
    per stage sum to the lost spans, at each k.
    """
    lost = _is_lost(span_states, gold_spans)
    stage = span_states["lost_stage"]
    known = pc.is_in(stage, pa.array(stages, pa.string())).to_numpy()
    wrong = np.flatnonzero((lost != stage.is_valid().to_numpy()) | (lost & ~known))
    columns = ["query_id", "span_no", "k", "covered_chars", "lost_stage"]
    rows: Rows = [
        row | {"lost": of_row}
        for row, of_row in zip(
            span_states.select(columns).take(wrong).to_pylist(), lost[wrong].tolist(), strict=True
        )
    ]
    return rows + not_once_at_each_k(span_states, gold_spans, ("query_id", "span_no"), ks, "rows")


def wrong_stage_counts(span_states: pa.Table, gold_spans: pa.Table) -> Rows:
    """Return depths of a configuration at which the counts per stage do not sum to the lost
    spans.
    """
    cell = ["config", "k"]
    flags = span_states.select(cell)
    flags = flags.append_column("lost", pa.array(_is_lost(span_states, gold_spans)))
    flags = flags.append_column("counted", span_states["lost_stage"].is_valid())
    sums = flags.group_by(cell).aggregate([("lost", "sum"), ("counted", "sum")])
    return [
        {"config": row["config"], "k": row["k"], "lost": row["lost_sum"]}
        | {"counted": row["counted_sum"]}
        for row in sums.sort_by([(column, "ascending") for column in cell]).to_pylist()
        if row["lost_sum"] != row["counted_sum"]
    ]


def _is_lost(span_states: pa.Table, gold_spans: pa.Table) -> npt.NDArray[np.bool_]:
    """Return whether less than half of each row's gold span is covered; not so of no gold span."""
    lost: npt.NDArray[np.bool_] = 2 * span_states["covered_chars"].to_numpy() < span_lengths(
        span_states, gold_spans
    )
    return lost


def unordered_bounds(headroom: pa.Table) -> Rows:
    """Return bounds that are absent, below the one before, below a smaller k's, or a perfect one
    not 1.
    """
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in headroom.to_pylist():
        cells[row["config"], row["subset"], row["k"]][row["bound"]] = row["value"]
    wrong: Rows = []
    for (config, subset, k), found in cells.items():
        values = [found.get(bound, math.nan) for bound in _BOUNDS]
        ordered = all(a <= b for a, b in itertools.pairwise([0.0, *values]))  # NaN is never
        if len(found) != len(_BOUNDS) or not ordered or values[-1] != 1:
            wrong.append({"config": config, "subset": subset, "k": k} | found)
    return wrong + _falling(cells)


def wrong_headroom_means(headroom: pa.Table, queries: pa.Table) -> Rows:
    """Return values that do not follow from those of the parts: of the whole, where each query has
    a part, and of ``macro``, which is the mean of the parts' values.
    """
    sizes = Counter(queries["subset"].to_pylist())
    cells: dict[tuple[Any, ...], dict[str | None, float]] = defaultdict(dict)
    for row in headroom.to_pylist():
        cells[row["config"], row["k"], row["bound"]][row["subset"]] = row["value"]
    parts = [subset for subset in sizes if subset is not None]
    wrong: Rows = []
    for (config, k, bound), found in cells.items():
        expected: dict[str | None, float] = {}
        if parts and found.keys() >= set(parts):
            expected["macro"] = fmean(found[part] for part in parts)
            if None not in sizes:
                weights = [sizes[part] for part in parts]
                expected[None] = fmean((found[part] for part in parts), weights)
        if found.keys() != {None, *parts, *(["macro"] if parts else [])}:
            wrong.append({"config": config, "k": k, "bound": bound, "subsets": list(found)})
        wrong += [
            {"config": config, "k": k, "bound": bound, "subset": subset}
            | {"stored": found.get(subset), "expected": value}
            for subset, value in expected.items()
            if not abs(found.get(subset, math.inf) - value) <= TOLERANCE
        ]
    return wrong


def actual_not_as_measured(headroom: pa.Table, config_metrics: pa.Table) -> Rows:
    """Actual bounds that are not the mean of ``complete_grounding`` at that k, where known."""
    measured = {
        (row["config"], row["subset"], row["k"]): row["value"]
        for row in config_metrics.to_pylist()
        if row["metric"] == "complete_grounding"
    }
    return [
        row | {"measured": known}
        for row in headroom.to_pylist()
        if row["bound"] == "actual"
        for known in [measured.get((row["config"], row["subset"], row["k"]), row["value"])]
        if not abs(row["value"] - known) <= TOLERANCE
    ]


def ranked_without_candidate(rankings: pa.Table, candidates: pa.Table) -> Rows:
    """Return ranked chunks that no channel listed: neither a stage nor a bound can be trusted
    then.
    """
    keys = ["config", "query_id", "chunk_id"]
    columns = [*keys, "rank"]
    outside = rankings.select(columns).join(
        candidates.select(keys), keys, join_type="left anti", use_threads=False
    )
    rows: Rows = outside.sort_by([(c, "ascending") for c in (*keys[:2], "rank")]).to_pylist()
    return rows


def _falling(cells: dict[tuple[Any, ...], dict[str, float]]) -> Rows:
    """Return bounds that fall where k grows: more chunks can never ground less."""
    by_depth: dict[tuple[Any, ...], list[tuple[int, float]]] = defaultdict(list)
    for (config, subset, k), found in cells.items():
        for bound, value in found.items():
            by_depth[config, subset, bound].append((k, value))
    return [
        {"config": config, "subset": subset, "bound": bound, "k": k, "value": value}
        | {"at_smaller_k": before}
        for (config, subset, bound), values in by_depth.items()
        for (_, before), (k, value) in itertools.pairwise(sorted(values))
        if value < before
    ]
