"""The stage that lost a gold span: the first of the pipeline that does not keep it.

A stage keeps a span when some of the chunks that survive it hold, together, at least half of the
span's characters, in integers. Which chunks survive:

| stage | chunks |
|---|---|
| corpus | all |
| chunking | some k of them, chosen as well as can be for this span |
| routing | those of the documents that routing kept; only with routing |
| candidates | those in the list of any channel |
| fusion | those in the fused list; only with fusion |
| reranking | lost here: in the top k before the reranker, not after it; only with a reranker |
| cut | whatever is left: it was in the list, below k |

This attributes a loss to the first stage that explains it. What a stage costs by counterfactual is
in :mod:`headroom`; the two need not agree, since a span may be lost to two stages at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.core import spans
from spanbench_pipeline.metrics.joins import Bools, Ints, positions, require_one
from spanbench_pipeline.metrics.minimum_cover import fewest
from spanbench_pipeline.metrics.scored_run import ScoredRun, is_reached

STAGES = ("corpus", "chunking", "routing", "candidates", "fusion", "reranking", "cut")
"""Every stage, in the order in which they are asked."""

LOST = pa.schema(
    [
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("span_no", pa.int64(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("lost_stage", pa.string()),
    ]
)
"""A row a gold span and k: the stage that lost it, null where the top k chunks cover it."""


def stages_of(*, routing: bool, fusion: bool, reranker: bool) -> tuple[str, ...]:
    """The stages of a configuration, in order."""
    absent = {
        stage
        for stage, has in (("routing", routing), ("fusion", fusion), ("reranking", reranker))
        if not has
    }
    return tuple(stage for stage in STAGES if stage not in absent)


def lost_stages(
    run: ScoredRun,
    offered: ScoredRun,
    routed: pa.Table | None = None,
    *,
    before: ScoredRun | None = None,
    has_fusion: bool,
    ks: Sequence[int],
) -> pa.Table:
    """Where one configuration lost each gold span, for each k: a table as ``LOST``, sorted.

    ``offered`` is the run with all that the channels listed, ``before`` with the lists as they went
    into the reranker (None: without one), ``routed`` the documents that routing kept (None: without
    routing). A ranking whose channels are unknown is its own candidates.

    Raises InputError where a routed document is of an unknown query.
    """
    all_chunks = is_reached(spans.covered_chars(run.gold, run.chunks), run)
    always = {
        "routing": _routed(routed, run),
        "candidates": offered.reached(len(offered.listed.rank)),
        "fusion": run.reached(len(run.listed.rank)) if has_fusion else None,
    }
    fewest_of_span = chunks_needed(run, max(ks))
    found = []
    for k in sorted(set(ks)):
        kept = {"corpus": all_chunks, "chunking": fewest_of_span <= k} | always
        if before is not None:
            kept["reranking"] = ~before.reached(k)  # here, though it was in the top k
        found.append(_first_lost(run.reached(k), kept))
    return _table(run.gold_table, sorted(set(ks)), found)


def chunks_needed(run: ScoredRun, most: int) -> Ints:
    """The fewest chunks that hold half of each gold span, ``most`` + 1 for more: shape (m,)."""
    gold, touching = run.gold, run.chunks.take(run.touch_chunk)
    return fewest(
        spans.make(np.arange(len(gold)), gold.start, gold.end),
        spans.make(run.touch_gold, touching.start, touching.end),
        len(gold),
        most,
    )


def _routed(routed: pa.Table | None, run: ScoredRun) -> Bools | None:
    """Whether routing kept the document of each gold span: shape (m,).

    The corpus stage comes first, so that the chunks of a span's document are known to hold it.
    """
    if routed is None:
        return None
    require_one(routed, "corpus", "config")
    query = positions(routed["query_id"], run.query_ids, "routed document", "query")
    # A document with neither gold nor chunks has no number, and nothing to keep.
    document = pc.fill_null(pc.index_in(routed["doc_id"], run.doc_ids), -1).to_numpy()
    known = document >= 0
    n_docs = len(run.doc_ids)
    kept = query[known] * n_docs + document[known]
    return np.isin(run.gold_query * n_docs + run.gold.group, kept)


def before_reranking(
    run: ScoredRun, rankings: pa.Table, candidates: pa.Table, *, has_fusion: bool
) -> ScoredRun:
    """Return the run with its lists as they went into the reranker.

    Raises ValueError where the tables do not say: ``fused_rank`` of every ranked chunk, or without
    fusion the list of the one channel.
    """
    if not has_fusion:
        require_one(candidates, "source")
        return run.with_lists(candidates)
    if rankings["fused_rank"].null_count:
        raise ValueError("a fused ranking with a chunk that has no fused_rank: no order before")
    column = rankings.schema.get_field_index("rank")
    return run.with_lists(rankings.set_column(column, "rank", rankings["fused_rank"]))


def _first_lost(covered: Bools, kept: dict[str, Bools | None]) -> Ints:
    """Per span 0 where it is covered, else 1 + the place in ``STAGES`` of the first that loses it.

    ``kept`` is in the order of the stages; one that the configuration lacks is None or absent.
    """
    lost = [(STAGES.index(stage) + 1, ~keeps) for stage, keeps in kept.items() if keeps is not None]
    conditions = [covered, *(mask for _, mask in lost)]
    numbers = [0, *(number for number, _ in lost)]
    return np.select(conditions, numbers, default=len(STAGES)).astype(np.int64)


def _table(gold_spans: pa.Table, ks: Sequence[int], found: Sequence[Ints]) -> pa.Table:
    n, names = gold_spans.num_rows, pa.array([None, *STAGES], pa.string())
    parts = [
        pa.table(
            {
                "query_id": gold_spans["query_id"],
                "span_no": gold_spans["span_no"],
                "k": pa.array([k] * n, pa.int64()),
                "lost_stage": names.take(pa.array(number)),
            },
            schema=LOST,
        )
        for k, number in zip(ks, found, strict=True)
    ]
    order = [(column, "ascending") for column in ("query_id", "span_no", "k")]
    return pa.concat_tables(parts or [LOST.empty_table()]).sort_by(order)
