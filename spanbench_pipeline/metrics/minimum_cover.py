"""The fewest pieces that cover gold spans: an exact optimum, for all groups in one go.

Asked for each group (a gold span, or a query's spans in a document): how few pieces hold at least
half of *each* of its gold spans, counting a character once however many pieces hold it? Taking the
longest first can need more: of gold [0, 100) and the pieces [36, 64), [20, 45) and [55, 80) it
takes all three, since after the first each other adds 16; without the first the two hold 50.

**Why it is exact.**

1. Characters outside gold help nobody. On the axis that has the gold characters alone
   (``spans.project``) a piece is one interval [a, b), gold spans lie end to end, groups too.
2. A piece inside another can be replaced by it. So pieces whose ``a`` and ``b`` both grow stay.
3. Let piece i be the last of a set, in this order. Every later piece begins after a_i, so what it
   adds lies at b_i or beyond: all that is before b_i is decided. Gold spans that end before b_i
   must be covered by now; the one that holds the character b_i - 1 is open. Of all sets of at most
   j pieces that end with i, one with the most characters of the open span, ``held[i]``, can
   therefore be extended at least as well as any other.
4. Which piece comes before i in a best set? Let P be the set's other pieces that overlap i. Each
   of them reaches past a_i, so that with i they hold all from the least a in P to b_i: as much as
   i holds with the *first* piece that overlaps it alone. So P is empty or is that piece.
   Otherwise the piece before i ends at or before a_i: it ends in the span where i begins, or in
   the span before that one (a span jumped over whole is not covered), and of all such pieces the
   one with the most held is as good as any (3).

``held`` for j pieces follows from ``held`` for j - 1 by one pass over the pieces; the first j with
which a piece ends in a group's last span, covered, is that group's answer.

**Worst case.** O(n log n) for sorting n pieces, then O(n) a round, at most ``most`` rounds: no
instance is hard, however pieces overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanbench_pipeline.core import spans

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NEVER = -1
"""Characters held where no set of the pieces allowed covers what lies before."""


def fewest(gold: spans.Spans, pieces: spans.Spans, n_groups: int, most: int) -> Ints:
    """The fewest pieces that cover every gold span of each group: shape (n_groups,).

    A span is covered where the pieces hold at least half of it, in integers. Groups are numbered
    0, 1, ...; one without gold needs 0. ``most`` + 1 says that ``most`` pieces are not enough, or
    that none are. Raises ValueError where two gold spans of a group share a character.
    """
    axis = _Axis.of(gold)
    counts = np.full(n_groups, most + 1, dtype=np.int64)
    counts[np.bincount(gold.group, minlength=n_groups) == 0] = 0
    if not len(gold) or not len(pieces):
        return counts
    chain = _Chain.of(axis, *spans.project(pieces, gold))
    held = np.full(len(chain.begin), _NEVER, dtype=np.int64)
    for n in range(1, most + 1):
        before, held = held, chain.extended(held)
        done = axis.group[chain.last[chain.closes & (held >= axis.half[chain.last])]]
        counts[done] = np.minimum(counts[done], n)
        if np.array_equal(before, held):
            break
    return counts


@dataclass(frozen=True)
class _Axis:
    """The gold spans end to end, on the axis that has their characters alone."""

    group: Ints
    begin: Ints
    end: Ints
    half: Ints
    """The fewest characters that cover each span."""
    opens: Bools
    """Whether each span is the first of its group."""

    @staticmethod
    def of(gold: spans.Spans) -> _Axis:
        ordered = gold.take(np.lexsort((gold.start, gold.group)))
        same = ordered.group[1:] == ordered.group[:-1]
        if np.any(same & (ordered.start[1:] < ordered.end[:-1])):
            raise ValueError("two gold spans of a group share a character; merge them first")
        end = np.cumsum(ordered.length)
        half = (ordered.length + 1) // 2
        return _Axis(ordered.group, end - ordered.length, end, half, np.append(True, ~same))


@dataclass(frozen=True)
class _Chain:
    """The pieces that can be needed, both ends growing, with what extending a set asks of each."""

    axis: _Axis
    begin: Ints
    end: Ints
    first: Ints
    """The gold span where each piece begins."""
    last: Ints
    """The gold span where each piece ends."""
    overlaps: Ints
    """The first piece that overlaps each piece; the piece itself where none before it does."""
    closes: Bools
    """Whether each piece ends in the last gold span of its group."""

    @staticmethod
    def of(axis: _Axis, begin: Ints, end: Ints) -> _Chain:
        order = np.lexsort((-end, begin))
        order = order[end[order] > begin[order]]
        reach = np.maximum.accumulate(end[order])
        order = order[np.append(True, reach[1:] > reach[:-1])[: len(order)]]
        begin, end = begin[order], end[order]
        last = np.searchsorted(axis.end, end, side="left")
        return _Chain(
            axis,
            begin,
            end,
            np.searchsorted(axis.end, begin, side="right"),
            last,
            np.searchsorted(end, begin, side="right"),
            np.append(axis.opens[1:], True)[last],
        )

    def extended(self, held: Ints) -> Ints:
        """``held`` with one piece more, from ``held``: shape as given."""
        return np.maximum(held, np.maximum(self._apart(held), self._overlapping(held)))

    def _apart(self, held: Ints) -> Ints:
        """The most held where the piece before ends at or before this one's begin, or is none."""
        axis, first = self.axis, self.first
        here, spans_before = self._most_before(held), self._most_of_span(held)[first - 1]
        fresh = axis.opens[first] | (spans_before >= axis.half[first - 1])
        start = np.maximum(here, np.where(fresh, 0, _NEVER))
        of_first = start + np.minimum(self.end, axis.end[first]) - self.begin
        of_first[start == _NEVER] = _NEVER
        closed = np.where(of_first >= axis.half[first], self._of_last(), _NEVER)
        return np.where(first == self.last, of_first, closed)

    def _overlapping(self, held: Ints) -> Ints:
        """The most held where the piece before is the first that overlaps this one."""
        axis, before = self.axis, self.overlaps
        had, open_span, reached = held[before], self.last[before], self.end[before]
        valid = (before < np.arange(len(before))) & (had != _NEVER)
        longer = had + self.end - reached
        covered = had + axis.end[open_span] - reached >= axis.half[open_span]
        closed = np.where(covered, self._of_last(), _NEVER)
        return np.where(valid, np.where(open_span == self.last, longer, closed), _NEVER)

    def _of_last(self) -> Ints:
        """Characters of the span where each piece ends, for one that came in from before it."""
        return self.end - self.axis.begin[self.last]

    def _most_before(self, held: Ints) -> Ints:
        """The most held by a piece that ends at or before each one's begin, in the same span."""
        at = np.maximum(self.overlaps - 1, 0)
        there = (self.overlaps > 0) & (self.last[at] == self.first)
        return np.where(there, self._running(held)[at], _NEVER)

    def _most_of_span(self, held: Ints) -> Ints:
        """The most held by a piece that ends in each gold span: shape (number of gold spans,)."""
        most = np.full(len(self.axis.end), _NEVER, dtype=np.int64)
        np.maximum.at(most, self.last, held)
        return most

    def _running(self, held: Ints) -> Ints:
        """The most held by a piece up to each one, among those that end in its span."""
        above = self.last * (int(self.axis.end[-1]) + 2)
        return np.maximum.accumulate(held + above) - above
