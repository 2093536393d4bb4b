"""What must hold of forensic labels and span states, looked at again on another path.

As ``invariants``: offending rows, [] where it holds, and none of it uses the code that it checks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.character_metrics import AT, at, metrics_named, rows_of
from spanbench_pipeline.checks.invariants import TOLERANCE, Rows
from spanbench_pipeline.checks.row_keys import (
    Ints,
    in_groups,
    key_codes,
    n_codes,
    not_once_at_each_k,
    span_lengths,
    values_before,
)
from spanbench_pipeline.config.experiment import CONTEXT

SETTINGS: dict[str, tuple[str, int]] = {
    "": ("0.5", 3),
    "covered 0.3": ("0.3", 3),
    "covered 0.7": ("0.7", 3),
    "covered 1.0": ("1.0", 3),
    "factor 2": ("0.5", 2),
    "factor 5": ("0.5", 5),
}
"""The label's own setting and those of ``stability``: the share that covers a span, the factor."""

_LABELS = (None, "DRM", "ICR", "CBF", "SGP", "OVR", "OK")
"""None where it takes a chunk table to tell."""


def missing_labels(forensic_labels: pa.Table, queries: pa.Table, *, ks: Iterable[int]) -> Rows:
    """Return queries of one configuration without exactly one row at each of ``ks``, and rows
    beside.
    """
    return not_once_at_each_k(forensic_labels, queries, ("query_id",), ks, "labels")


def wrong_states(span_states: pa.Table, gold_spans: pa.Table, *, ks: Iterable[int]) -> Rows:
    """States of one configuration that do not follow from the characters covered.

    Also gold spans without exactly one row at each of ``ks``, rows of no gold span, more characters
    covered than there are, fewer than at the k before, and a span severed at one k alone.
    """
    key = ("query_id", "span_no")
    length = span_lengths(span_states, gold_spans)
    covered = span_states["covered_chars"].to_numpy()
    half = np.where(2 * covered >= length, "covered", "partial")
    sound = span_states["state"].to_numpy() == np.where(covered > 0, half, "missed")
    sound &= covered <= length
    (span,) = key_codes(key, span_states)
    order = in_groups(span, span_states["k"].to_numpy())
    sound[order] &= values_before(covered[order], span[order], 0) <= covered[order]
    severed = pc.fill_null(pc.cast(span_states["severed"], pa.int8()), -1).to_numpy()[order]
    before = values_before(severed, span[order], _NONE)
    sound[order] &= (before == severed) | (before == _NONE)
    wrong = span_states.append_column("length", pa.array(length)).filter(pa.array(~sound))
    rows: Rows = sorted(wrong.to_pylist(), key=lambda row: row["k"])
    return not_once_at_each_k(span_states, gold_spans, key, ks, "states") + rows


_NONE = -9
"""Stands before the first of a span's values, and is none of them."""


def states_unlike_outcomes(
    span_states: pa.Table, span_outcomes: pa.Table, context: int = CONTEXT
) -> Rows:
    """Return gold spans that have more or fewer characters covered here than in span_outcomes."""
    top = span_states.filter(pc.equal(span_states["k"], context))
    of_state, of_outcome = key_codes(["config", "query_id", "span_no", "k"], top, span_outcomes)
    stated = np.full(n_codes(of_state, of_outcome), -1)
    stated[of_outcome] = span_outcomes["covered_chars"].to_numpy()
    expected = stated[of_state]
    wrong = np.flatnonzero(top["covered_chars"].to_numpy() != expected)
    return [
        row | {"span_outcomes": None if value < 0 else value}
        for row, value in zip(top.take(wrong).to_pylist(), expected[wrong].tolist(), strict=True)
    ]


def labels_unlike_grounding(
    forensic_labels: pa.Table, query_metrics: pa.Table, context: int = CONTEXT
) -> Rows:
    """Return queries OK or OVR at ``context`` and not completely grounded, or the other way
    round.
    """
    grounded = {at(r): r["value"] == 1 for r in rows_of(query_metrics, "complete_grounding")}
    return [
        row | {"complete_grounding": grounded.get(at(row))}
        for row in forensic_labels.filter(pc.equal(forensic_labels["k"], context)).to_pylist()
        if (row["label"] in ("OK", "OVR")) != grounded.get(at(row))
    ]


def single_span_gaps(forensic_labels: pa.Table, gold_spans: pa.Table) -> Rows:
    """Return queries labelled SGP with fewer than two gold spans."""
    counted = Counter(gold_spans["query_id"].to_pylist())
    return [
        row
        for row in forensic_labels.filter(pc.equal(forensic_labels["label"], "SGP")).to_pylist()
        if counted[row["query_id"]] < 2
    ]


def labels_unlike_states(
    forensic_labels: pa.Table, span_states: pa.Table, rankings: pa.Table, gold_spans: pa.Table
) -> Rows:
    """Return labels and stabilities that do not follow from the states of the query's gold spans.

    Each label is computed again, under each setting, from the states, the excess and the rank of
    the first chunk in a gold document.
    """
    spans = _spans(forensic_labels, span_states, gold_spans)
    reached = _first_ranks(forensic_labels, rankings, gold_spans) <= forensic_labels["k"].to_numpy()
    excess = pc.fill_null(forensic_labels["excess"], 0.0).to_numpy()
    expected = np.stack(
        [
            _labels(spans, reached, excess, Fraction(share), factor)
            for share, factor in SETTINGS.values()
        ],
        axis=1,
    )
    wrong = np.flatnonzero((_stated(forensic_labels) != expected).any(axis=1))
    return [
        row | {"expected": {name: _LABELS[i] for name, i in zip(SETTINGS, codes, strict=True)}}
        for row, codes in zip(forensic_labels.take(wrong).to_pylist(), expected[wrong], strict=True)
    ]


@dataclass(frozen=True)
class _Spans:
    """The gold spans of each label's query at its depth; one array element a span."""

    of_label: Ints
    """A number for each row of the labels; of one number are the rows of one query and k."""
    of_span: Ints
    """The same for each span."""
    covered: Ints
    length: Ints
    severed: npt.NDArray[np.bool_]
    unknown: npt.NDArray[np.bool_]
    """Where it takes a chunk table to tell whether a span is severed."""

    def count(self, chosen: npt.NDArray[np.bool_]) -> Ints:
        """Return how many chosen spans each row of the labels has."""
        counts = np.bincount(self.of_span[chosen], minlength=n_codes(self.of_label, self.of_span))
        return counts[self.of_label]


def _spans(forensic_labels: pa.Table, span_states: pa.Table, gold_spans: pa.Table) -> _Spans:
    of_label, of_span = key_codes(["config", "query_id", "k"], forensic_labels, span_states)
    return _Spans(
        of_label,
        of_span,
        span_states["covered_chars"].to_numpy(),
        span_lengths(span_states, gold_spans),
        pc.fill_null(span_states["severed"], False).to_numpy(),
        pc.is_null(span_states["severed"]).to_numpy(),
    )


def _labels(
    spans: _Spans,
    reached: npt.NDArray[np.bool_],
    excess: npt.NDArray[np.float64],
    share: Fraction,
    factor: int,
) -> Ints:
    """Return the number in ``_LABELS`` of the first label that holds for each row."""
    lost = spans.covered * share.denominator < share.numerator * spans.length
    touched = spans.covered > 0
    n_lost, n_spans = spans.count(lost), spans.count(np.ones(len(lost), np.bool_))
    holds = {
        "DRM": ~reached,
        "ICR": spans.count(touched) == 0,
        "CBF": spans.count(lost & touched & spans.severed) > 0,
        None: spans.count(lost & touched & spans.unknown) > 0,
        "SGP": (n_lost > 0) & (n_lost < n_spans),
    }
    numbers = [_LABELS.index(label) for label in holds]
    last = np.where(excess >= factor, _LABELS.index("OVR"), _LABELS.index("OK"))
    last = np.where(n_lost > 0, _LABELS.index("ICR"), last)
    return np.select(list(holds.values()), numbers, last)


def _stated(forensic_labels: pa.Table) -> Ints:
    """Return the number in ``_LABELS`` of each stored label, shape (rows, settings); -1 for others.

    The stabilities are few different texts, each read once.
    """
    number = {label: i for i, label in enumerate(_LABELS)}
    labels = [number.get(label, -1) for label in forensic_labels["label"].to_pylist()]
    texts = forensic_labels["stability"].combine_chunks().dictionary_encode()
    names = [name for name in SETTINGS if name]
    read = np.full((len(texts.dictionary), len(names)), -1)
    for i, text in enumerate(texts.dictionary.to_pylist()):
        stated = json.loads(text)
        if stated.keys() == set(names):
            read[i] = [number.get(stated[name], -1) for name in names]
    return np.column_stack([np.array(labels, np.int64), read[texts.indices.to_numpy()]])


def excess_out_of_bounds(
    forensic_labels: pa.Table, query_metrics: pa.Table, gold_spans: pa.Table
) -> Rows:
    """Excess that is null beside retrieved gold or the reverse, or that cannot be.

    The relevant chunks hold all the gold that was retrieved, and no more than was retrieved.
    """
    recalls = metrics_named(query_metrics, "char_recall_union")
    retrieved = metrics_named(query_metrics, "chars_retrieved")
    of_label, of_recall, of_chars = key_codes(AT, forensic_labels, recalls, retrieved)
    low, chars = (np.full(n_codes(of_label, of_recall, of_chars), np.nan) for _ in range(2))
    low[of_recall] = recalls["value"].to_numpy()
    chars[of_chars] = retrieved["value"].to_numpy()
    of_query, of_gold = key_codes(["query_id"], forensic_labels, gold_spans)
    lengths = pc.subtract(gold_spans["end_char"], gold_spans["start_char"]).to_numpy()
    gold = np.bincount(of_gold, lengths, n_codes(of_query, of_gold))
    at_least, at_most = low[of_label], chars[of_label] / np.maximum(1, gold[of_query])
    excess = pc.fill_null(forensic_labels["excess"], 0.0).to_numpy()
    null = forensic_labels["excess"].is_null().to_numpy()
    sound = (null == (at_least == 0)) & (at_least - TOLERANCE <= excess)
    sound &= excess <= at_most + TOLERANCE
    wrong = np.flatnonzero(np.isin(of_label, of_recall) & ~sound)
    bounds = zip(at_least[wrong].tolist(), at_most[wrong].tolist(), strict=True)
    return [
        row | {"at_least": low, "at_most": high}
        for row, (low, high) in zip(forensic_labels.take(wrong).to_pylist(), bounds, strict=True)
    ]


def _first_ranks(forensic_labels: pa.Table, rankings: pa.Table, gold_spans: pa.Table) -> Ints:
    """Return the rank of the first chunk in a gold document for each row of the labels.

    A place ranked twice counts once. Where no chunk is in one, more than any k.
    """
    of_label, of_list = key_codes(["config", "query_id"], forensic_labels, rankings)
    (place,) = key_codes(["config", "query_id", "doc_id", "start_char", "end_char"], rankings)
    of_document, of_gold = key_codes(["query_id", "doc_id"], rankings, gold_spans)
    order = np.lexsort((rankings["rank"].to_numpy(), of_list))
    kept = order[np.sort(np.unique(place[order], return_index=True)[1])]
    lists = of_list[kept]
    rank = np.arange(len(lists)) - np.searchsorted(lists, lists) + 1
    hits = np.isin(of_document[kept], of_gold)
    first = np.full(n_codes(of_label, of_list), np.iinfo(np.int64).max)
    np.minimum.at(first, lists[hits], rank[hits])
    return first[of_label]
