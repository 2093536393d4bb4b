"""The metrics of chunks and gold spans, query by query.

Each function gives one metric for q queries, shape (q,), NaN where it is undefined. None of them
is comparable across chunkers but the three that count characters of gold spans: precision, recall,
mrr and ndcg count chunks, and a chunker decides how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.depths import reached, require_reached
from spanbench_pipeline.metrics.lists import Lists, covered_chars, read_lists
from spanbench_pipeline.metrics.metric import MetricAt
from spanbench_pipeline.metrics.relevance import Bools, Ints, Relevance, judge

Reals = npt.NDArray[np.float64]


def query_metrics(
    rankings: pa.Table,
    gold_spans: pa.Table,
    chunks: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    depth: int | None = None,
    metrics: Sequence[MetricAt] | None = None,
) -> pa.Table:
    """Return the table ``query_metrics`` of one configuration: a row a query and metric.

    ``depth`` is where the lists were cut (None: nowhere); a metric at a k past it has no row.
    An empty list has its rows as well.
    ``rankings`` is one configuration's; a list that repeats a chunk keeps its first occurrence and
    closes up. Raises InputError where tables do not fit together (see relevance and rankings).
    """
    relevance = judge(queries, gold_spans, chunks)
    lists = read_lists(rankings, relevance)
    wanted = reached(depth, registry.of_results() if metrics is None else metrics)
    values = _values(lists, relevance, wanted)
    n = len(relevance.query_ids)
    parts = [
        pa.table(
            {
                "corpus": pa.repeat(corpus, n),
                "config": pa.repeat(config, n),
                "query_id": relevance.query_ids,
                "metric": pa.repeat(metric, n),
                "k": pa.array([k] * n, pa.int64()),
                "value": pa.array(value, mask=np.isnan(value)),
            }
        )
        for (metric, k), value in values.items()
    ]
    empty = tables.TABLES["query_metrics"].schema.empty_table()
    return tables.conform("query_metrics", pa.concat_tables(parts) if parts else empty)


def _values(
    lists: Lists, relevance: Relevance, metrics: Sequence[MetricAt]
) -> dict[MetricAt, Reals]:
    """Return each metric's values, shape (q,)."""
    of_chunks = {"precision": precision, "recall": recall, "ndcg": ndcg}
    of_spans = {
        "span_coverage": span_coverage,
        "span_recall": span_recall,
        "complete_grounding": complete_grounding,
    }
    covered = {
        k: covered_chars(lists, relevance, k) for name, k in metrics if name in of_spans and k
    }
    values: dict[MetricAt, Reals] = {}
    for name, k in metrics:
        if k is None:
            values[name, k] = reciprocal_rank(lists, relevance)
        elif name in of_spans:
            values[name, k] = of_spans[name](covered[k], relevance)
        else:
            values[name, k] = of_chunks[name](lists, relevance, k)
    return values


def span_outcomes(
    rankings: pa.Table,
    gold_spans: pa.Table,
    chunks: pa.Table,
    queries: pa.Table,
    *,
    corpus: str,
    config: str,
    depth: int | None = None,
    context: int = CONTEXT,
) -> pa.Table:
    """Return the table ``span_outcomes`` of one configuration: a row a gold span, at ``context``.

    Takes and refuses what :func:`query_metrics` does; NotMeasured where ``depth`` is below
    ``context``.
    """
    require_reached(context, depth)
    relevance = judge(queries, gold_spans, chunks)
    covered = covered_chars(read_lists(rankings, relevance), relevance, context)
    n = gold_spans.num_rows
    outcomes = (
        gold_spans.select(["query_id", "span_no", "doc_id", "start_char", "end_char"])
        .append_column("corpus", pa.repeat(corpus, n))
        .append_column("config", pa.repeat(config, n))
        .append_column("k", pa.array([context] * n, pa.int64()))
        .append_column("covered_chars", pa.array(covered))
    )
    return tables.conform("span_outcomes", outcomes)


def precision(lists: Lists, relevance: Relevance, k: int) -> Reals:
    """Relevant chunks among the first k, divided by k.

    Always by k, however short the list is. Empty list: 0.
    """
    share: Reals = _hits(lists, relevance, k) / k
    return share


def recall(lists: Lists, relevance: Relevance, k: int) -> Reals:
    """Relevant chunks among the first k, divided by all relevant chunks of the corpus.

    Empty list: 0. No relevant chunk in the corpus: undefined.
    """
    hits, relevant = _hits(lists, relevance, k), relevance.relevant_counts
    share = np.full(len(relevant), np.nan)
    np.divide(hits, relevant, out=share, where=relevant > 0)
    return share


def reciprocal_rank(lists: Lists, relevance: Relevance) -> Reals:
    """1 / rank of the first relevant chunk, as deep as the list goes: within the depth of its cut.

    No relevant chunk in the list, or an empty list: 0. Its mean over queries is the MRR.
    """
    value = np.zeros(len(relevance.query_ids))
    query, first = np.unique(lists.query[lists.relevant], return_index=True)
    value[query] = 1 / lists.rank[lists.relevant][first]
    return value


def ndcg(lists: Lists, relevance: Relevance, k: int) -> Reals:
    """Discounted gain of the first k, divided by that of the best possible order of all chunks.

    The gain of a relevant chunk at rank r is 1 / log2(r + 1), of any other 0: relevance is binary.
    The best order has as many of the corpus's relevant chunks first as k holds. Empty list: 0. No
    relevant chunk in the corpus: undefined. Ranks are the list's, so that there are no ties.
    """
    gain = 1 / np.log2(np.arange(2, k + 2))
    hit = lists.relevant & (lists.rank <= k)
    found = np.zeros(len(relevance.query_ids))
    np.add.at(found, lists.query[hit], gain[lists.rank[hit] - 1])
    best = np.concatenate(([0.0], np.cumsum(gain)))[np.minimum(relevance.relevant_counts, k)]
    share = np.full(len(found), np.nan)
    np.divide(found, best, out=share, where=best > 0)
    return share


def span_coverage(covered: Ints, relevance: Relevance) -> Reals:
    """Distinct gold characters in the retrieved chunks, divided by the query's gold characters.

    ``covered`` has the retrieved characters of each gold span, shape (m,). A query's gold spans are
    disjoint, so that no character counts twice. Empty list: 0.
    """
    share: Reals = _sum(covered, relevance) / _sum(relevance.gold.length, relevance)
    return share


def span_recall(covered: Ints, relevance: Relevance) -> Reals:
    """Gold spans with at least half of their characters retrieved, divided by the gold spans.

    Exactly half counts. Empty list: 0.
    """
    reached = relevance.gold_query[is_reached(covered, relevance)]
    share: Reals = relevance.per_query(reached) / relevance.per_query(relevance.gold_query)
    return share


def complete_grounding(covered: Ints, relevance: Relevance) -> Reals:
    """1 if every gold span of the query has at least half of its characters retrieved, else 0.

    Exactly half counts. Empty list: 0.
    """
    failed = relevance.gold_query[~is_reached(covered, relevance)]
    return np.where(relevance.per_query(failed) == 0, 1.0, 0.0)


def is_reached(covered: Ints, relevance: Relevance) -> Bools:
    """Whether each gold span has at least half of its characters in ``covered``, in integers."""
    return 2 * covered >= relevance.gold.length


def _hits(lists: Lists, relevance: Relevance, k: int) -> Ints:
    return relevance.per_query(lists.query[lists.relevant & (lists.rank <= k)])


def _sum(of_gold: Ints, relevance: Relevance) -> Ints:
    """Sums over each query's gold spans, shape (q,)."""
    total = np.zeros(len(relevance.query_ids), dtype=np.int64)
    np.add.at(total, relevance.gold_query, of_gold)
    return total
