"""Why a query failed: one label each, the first that holds, with evidence.

A query fails when complete_grounding is 0 at the context, the number of chunks that a reader is
given. A label attributes a failure to the lever that most plainly would have helped; it does not
prove that it would.

Two of the labels ask what stands below the context. Lists that were cut there do not say: a
chunk that is not listed is below the cut or nowhere, and the label says just that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.depths import require_reached
from spanbench_pipeline.metrics.joins import Bools, Ints
from spanbench_pipeline.metrics.scored_run import ScoredRun

LABELS: dict[str, str | None] = {
    "ceiling-bound": None,
    "chunk-severance": "chunking",
    "retrieval-miss": "hybrid retrieval",
    "rank-miss": "reranking",
    "partial-grounding": "metadata filtering",
}
"""Each label, in the order in which they are tried, and the lever it points at (None: nothing)."""

DEPTH_BOUND = "depth-bound"
"""Stands for retrieval-miss or rank-miss where a list cut at the context cannot tell which."""

_TOLD = list(LABELS).index("retrieval-miss")
EVERY_LABEL = dict(
    [*list(LABELS.items())[:_TOLD], (DEPTH_BOUND, None), *list(LABELS.items())[_TOLD:]]
)
"""``LABELS`` with ``DEPTH_BOUND`` at its place in the order: all that a row may have."""

OPENING = 120
"""Characters of a failed span that the evidence quotes."""


def failure_labels(
    run: ScoredRun,
    *,
    corpus: str,
    config: str,
    depth: int | None = None,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``failure_labels`` of one configuration: a row a failing query.

    "In the ranking" means in the list as it is; ``depth`` is where lists were cut (None: nowhere).
    Where that is ``context``, a list of as many entries or more does not say what stands below,
    unless it goes on with other places there: a chunk that is not in it then gives ``DEPTH_BOUND``.
    A shorter one ended by itself. Each list is judged for itself. Raises NotMeasured where
    ``depth`` is below ``context``.
    ``evidence`` is a JSON object:

    - ``failed_spans``: spans under half, with offsets, characters covered and opening characters;
    - ``severed_spans``: those in more than one chunk, with the pieces' ids, offsets and ranks;
    - ``missing_chunks``: ids of chunks that touch a failed span and are not in the ranking;
    - ``ranks_below_<context>``: chunks that touch a failed span and are ranked below the context;
    - ``relevant_chunks``: all relevant chunks of the query, with ranks;
    - ``cut_at``, of ``DEPTH_BOUND`` alone: where the list was cut.

    A rank is null where the chunk is not in the ranking.
    """
    require_reached(context, depth)
    case = _case(run, depth, context)
    label_of = _labels(case)
    rows = [
        {
            "corpus": corpus,
            "config": config,
            "query_id": run.query_ids[query].as_py(),
            "label": label_of[query],
            "lever": EVERY_LABEL[label_of[query]],
            "evidence": json.dumps(
                _evidence(query, failed, case)
                | ({"cut_at": depth} if label_of[query] == DEPTH_BOUND else {}),
                sort_keys=True,
                ensure_ascii=False,
            ),
        }
        for query, failed in _failed_spans(case).items()
    ]
    return tables.from_rows("failure_labels", rows)


@dataclass(frozen=True)
class _Case:
    """What labels are derived from; rank 0 stands for "not in the ranking"."""

    context: int
    """How many chunks a reader is given."""
    run: ScoredRun
    covered: Ints
    """Characters of each gold span in the context, shape (m,)."""
    failed: Bools
    """Whether that is under half of it, shape (m,)."""
    touch_rank: Ints
    """The rank of the chunk in each meeting of gold span and chunk, shape (t,)."""
    pair_rank: Ints
    """The rank of each relevant chunk, shape (p,)."""
    ends_at_top: Bools
    """Whether each query's list was cut at the context, so that nothing below is known: (q,)."""


def _case(run: ScoredRun, depth: int | None, context: int) -> _Case:
    touch_query = run.gold_query[run.touch_gold]
    return _Case(
        context=context,
        run=run,
        covered=run.covered(context),
        failed=~run.reached(context),
        touch_rank=run.rank_of(touch_query, run.touch_chunk),
        pair_rank=run.rank_of(run.pair_query, run.pair_chunk),
        ends_at_top=_ends_at(context, run) & (depth == context),
    )


def _ends_at(n: int, run: ScoredRun) -> Bools:
    """Return whether each list has ``n`` entries or more, repeats included, and no place below."""
    below = run.count(run.listed.query[run.listed.rank > n])
    ends: Bools = (run.count(run.given.query) >= n) & (below == 0)
    return ends


def _labels(case: _Case) -> list[str]:
    """The first label that holds, for each query, failing or not: length q."""
    run, rank = case.run, case.touch_rank
    touch_query = run.gold_query[run.touch_gold]
    of_failed = case.failed[run.touch_gold]
    severed = case.failed & (run.touch_counts > 1)
    relevant = run.relevant_counts
    in_top = run.pair_query[(case.pair_rank > 0) & (case.pair_rank <= case.context)]
    unlisted = run.count(touch_query[of_failed & (rank == 0)]) > 0
    holds = [
        (relevant > 0) & (relevant < case.context) & (run.count(in_top) == relevant),
        run.count(run.gold_query[severed]) > 0,
        unlisted & case.ends_at_top,
        unlisted,
        run.count(touch_query[of_failed & (rank > case.context)]) > 0,
    ]
    names = list(EVERY_LABEL)
    return [names[i] for i in np.select(holds, range(len(holds)), len(holds)).tolist()]


def _failed_spans(case: _Case) -> dict[int, list[int]]:
    """The failed gold spans of each failing query; queries ascend, as those of the spans do."""
    failed = np.flatnonzero(case.failed)
    queries, first = np.unique(case.run.gold_query[failed], return_index=True)
    return {
        query: spans.tolist()
        for query, spans in zip(queries.tolist(), np.split(failed, first[1:]), strict=False)
    }


def _evidence(query: int, failed: list[int], case: _Case) -> dict[str, Any]:
    run = case.run
    touches = {gold: _pieces_of(gold, case) for gold in failed}
    touching = {piece["chunk_id"]: piece for pieces in touches.values() for piece in pieces}
    missing = [piece for piece in touching.values() if piece["rank"] is None]
    below = [piece for piece in touching.values() if (piece["rank"] or 0) > case.context]
    relevant = slice(*np.searchsorted(run.pair_query, [query, query + 1]).tolist())
    return {
        "failed_spans": [_span(gold, case) for gold in failed],
        "severed_spans": [
            _span(gold, case) | {"pieces": pieces}
            for gold, pieces in touches.items()
            if len(pieces) > 1
        ],
        "missing_chunks": missing,
        f"ranks_below_{case.context}": sorted(below, key=lambda piece: piece["rank"]),
        "relevant_chunks": _pieces(run.pair_chunk[relevant], case.pair_rank[relevant], run),
    }


def _pieces_of(gold: int, case: _Case) -> list[dict[str, Any]]:
    """The chunks that meet a gold span, in chunk order."""
    run = case.run
    of_gold = slice(*np.searchsorted(run.touch_gold, [gold, gold + 1]).tolist())
    return _pieces(run.touch_chunk[of_gold], case.touch_rank[of_gold], run)


def _pieces(chunk: Ints, rank: Ints, run: ScoredRun) -> list[dict[str, Any]]:
    return [
        {
            "chunk_id": run.chunk_ids[j].as_py(),
            "start": int(run.chunks.start[j]),
            "end": int(run.chunks.end[j]),
            "rank": r or None,
        }
        for j, r in zip(chunk.tolist(), rank.tolist(), strict=True)
    ]


def _span(gold: int, case: _Case) -> dict[str, Any]:
    row = case.run.gold_table.slice(gold, 1).to_pylist()[0]
    covered = int(case.covered[gold])
    return {
        "span_no": row["span_no"],
        "doc_id": row["doc_id"],
        "start": row["start_char"],
        "end": row["end_char"],
        "covered_chars": covered,
        "covered_share": covered / (row["end_char"] - row["start_char"]),
        "opening": row["text"][:OPENING],
    }
