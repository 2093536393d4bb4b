"""Interval arithmetic over characters of documents: the only place that does any.

A span is half open, ``[start, end)``, in Unicode code points, and it belongs to a document. No
function here takes bare intervals: every one takes :class:`Spans`, whose ``group`` says which
intervals may meet (one number a document, or a query and document), so that equal offsets in two
documents can never be taken for an overlap.

Groups are laid out one behind another on a single axis, which turns every question into a sort and
a binary search: O((n + m) log n), with no loop over spans or characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """Intervals as three arrays of one length n: group, start, end (int64).

    Raises ValueError where lengths differ, an offset is negative, or an interval is empty.
    """

    group: Ints
    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        if not len(self.group) == len(self.start) == len(self.end):
            raise ValueError("group, start and end must have one length")
        bad = np.flatnonzero((self.start < 0) | (self.end <= self.start))
        if len(bad):
            i = int(bad[0])
            raise ValueError(
                f"{len(bad)} spans without characters or before the text, "
                f"the first at row {i}: [{self.start[i]}, {self.end[i]})"
            )

    def __len__(self) -> int:
        return len(self.start)

    @property
    def length(self) -> Ints:
        """Return characters of each span, shape (n,)."""
        return self.end - self.start

    def take(self, index: npt.NDArray[Any]) -> Spans:
        """Return the spans at ``index`` (positions, or a boolean mask of shape (n,))."""
        return Spans(self.group[index], self.start[index], self.end[index])


def make(
    group: Sequence[int] | Ints, start: Sequence[int] | Ints, end: Sequence[int] | Ints
) -> Spans:
    """Return spans from any integer sequences of one length."""
    return Spans(*(np.asarray(x, dtype=np.int64) for x in (group, start, end)))


def group_codes(*columns: Sequence[Any]) -> list[Ints]:
    """Return one number a distinct value, the same over all ``columns``: shapes as given.

    A value may be a string (a document) or a tuple (query, document).
    """
    codes: dict[Any, int] = {}
    return [
        np.fromiter((codes.setdefault(v, len(codes)) for v in column), np.int64, len(column))
        for column in columns
    ]


def merge(spans: Spans) -> Spans:
    """Return the union of ``spans`` within each group: sorted, disjoint, touching ones joined."""
    if not len(spans):
        return spans
    order = np.lexsort((spans.start, spans.group))
    group, start, end = spans.group[order], spans.start[order], spans.end[order]
    # Offsetting each group past all that came before makes one running maximum serve them all.
    base = _bases(group, _width(spans))
    reach = np.maximum.accumulate(end + base)
    first = np.ones(len(start), dtype=bool)
    first[1:] = start[1:] + base[1:] > reach[:-1]
    last = np.append(np.flatnonzero(first)[1:] - 1, len(start) - 1)
    return Spans(group[first], start[first], reach[last] - base[last])


def covered_chars(spans: Spans, cover: Spans) -> Ints:
    """Return distinct characters of each span inside the union of ``cover``: shape
    (len(spans),).
    """
    begin, stop = project(spans, cover)
    return stop - begin


def project(spans: Spans, onto: Spans) -> tuple[Ints, Ints]:
    """Return where each span lies on the axis that has the characters of the union of ``onto``
    alone.

    The axis counts those characters from 0, group after group, ascending, each in order of place.
    Two arrays of shape (len(spans),): begin and stop, half open; equal where the span has none.
    """
    if not len(spans) or not len(onto):
        return np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
    union = merge(onto)
    width = _width(spans, union)
    starts, ends = union.group * width + union.start, union.group * width + union.end
    total = np.concatenate(([0], np.cumsum(union.length)))

    def chars_before(position: Ints) -> Ints:
        """Return characters of the union before ``position``, over all groups."""
        i = np.searchsorted(starts, position, side="right")
        inside = np.where(i > 0, ends[i - 1] - position, 0)
        return total[i] - np.maximum(inside, 0)

    offset = spans.group * width
    return chars_before(offset + spans.start), chars_before(offset + spans.end)


def overlapping_pairs(left: Spans, right: Spans) -> tuple[Ints, Ints]:
    """Return all (i, j) with ``left[i]`` and ``right[j]`` of one group sharing a character.

    Two arrays of one length, sorted by i, then j. Touching spans share nothing. Where spans of
    ``right`` nest, those before a long one's end are looked at too: slower, never wrong.
    """
    if not len(left) or not len(right):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    width = _width(left, right)
    order = np.lexsort((right.end, right.start, right.group))
    starts = (right.group * width + right.start)[order]
    ends = (right.group * width + right.end)[order]
    offset = left.group * width
    # Candidates start before the left span ends; with nested spans ends are not sorted, but their
    # running maximum is, and it bounds the first candidate from below.
    stop = np.searchsorted(starts, offset + left.end, side="left")
    begin = np.searchsorted(np.maximum.accumulate(ends), offset + left.start, side="right")
    count = np.maximum(stop - begin, 0)
    i = np.repeat(np.arange(len(left), dtype=np.int64), count)
    within = np.arange(len(i), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
    at = begin[i] + within
    keep = ends[at] > (offset + left.start)[i]
    i, j = i[keep], order[at[keep]]
    sort = np.lexsort((j, i))
    return i[sort], j[sort]


def containing_pairs(inner: Spans, outer: Spans) -> tuple[Ints, Ints]:
    """Return all (i, j) where ``outer[j]`` holds the whole of ``inner[i]``; sorted by i, then j."""
    i, j = overlapping_pairs(inner, outer)
    whole = (outer.start[j] <= inner.start[i]) & (inner.end[i] <= outer.end[j])
    return i[whole], j[whole]


def shared_chars(left: Spans, right: Spans, i: Ints, j: Ints) -> Ints:
    """Return characters that ``left[i]`` and ``right[j]`` share, pair by pair: shape of ``i``.

    0 where the two are of different groups, or only touch.
    """
    first = np.maximum(left.start[i], right.start[j])
    last = np.minimum(left.end[i], right.end[j])
    return np.where(left.group[i] == right.group[j], np.maximum(last - first, 0), 0)


def _bases(group: Ints, width: int) -> Ints:
    """Return one offset per row that keeps ascending groups apart on one axis."""
    step = np.concatenate(([0], (np.diff(group) != 0).astype(np.int64)))
    return np.cumsum(step) * width


def _width(*several: Spans) -> int:
    """Return what each group takes on the one axis; ValueError where int64 does not hold the
    axis.
    """
    width = max(int(spans.end.max()) for spans in several) + 1
    groups = max(int(spans.group.max()) for spans in several) + 1
    if groups * width > np.iinfo(np.int64).max:
        raise ValueError(f"{groups} groups of {width} characters do not fit on one axis")
    return width
