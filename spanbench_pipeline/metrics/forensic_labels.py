"""What became of each query and each gold span at a depth, by arithmetic on characters alone.

A gold span is ``covered``, ``partial`` or ``missed``; a query has the first of six labels that
holds. Everything is compared in whole numbers, so that exactly half is exactly half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core import spans, tables
from spanbench_pipeline.metrics.joins import Bools, Ints, Reals
from spanbench_pipeline.metrics.quality.characters import DEPTHS
from spanbench_pipeline.metrics.scored_run import ScoredRun

LABELS: dict[str, str] = {
    "DRM": "document retrieval miss",
    "ICR": "incorrect region",
    "CBF": "chunk boundary failure",
    "SGP": "span gap",
    "OVR": "over-retrieval",
    "OK": "all covered",
}
"""The six labels and their names."""

_NAMES: tuple[str | None, ...] = (*LABELS, None)

STATES = ("covered", "partial", "missed")
"""What can become of a gold span."""


@dataclass(frozen=True)
class Setting:
    """What a label depends on: ``covered`` of a span make it covered, ``factor`` is excess."""

    covered: Fraction = Fraction(1, 2)
    factor: int = 3


SETTING = Setting()
CHANGED: Mapping[str, Setting] = {
    "covered 0.3": Setting(covered=Fraction(3, 10)),
    "covered 0.7": Setting(covered=Fraction(7, 10)),
    "covered 1.0": Setting(covered=Fraction(1)),
    "factor 2": Setting(factor=2),
    "factor 5": Setting(factor=5),
}
"""The settings of ``stability``: one change at a time."""


def forensic_labels(
    run: ScoredRun,
    *,
    corpus: str,
    config: str,
    depth: int,
    ks: Sequence[int] = (*DEPTHS, CONTEXT),
) -> pa.Table:
    """The table ``forensic_labels`` of one configuration: a row a query and k of ``ks`` to depth.

    The label is the first that holds: DRM, no top k chunk is in a gold document; ICR, none holds a
    gold character; CBF, a severed span is partial; SGP, some span is covered and some is not; ICR,
    none is; OVR, ``excess`` reaches 3; OK. Without ``chunks`` no span is known to be severed: a
    label that could be CBF is null, every other stands.

    ``excess``: characters in the union of the top k chunks that share a character with gold, whole
    chunks, / characters in the union of gold; null where there is no such chunk. ``stability``: a
    JSON object, a label (or null) for each of ``CHANGED``.

    A place that a list holds twice counts at its first rank, the rest close up.
    """
    severed = severed_spans(run)
    at = [_Depth.of(run, k) for k in ks if k <= depth]
    names = np.array(_NAMES, dtype=object)
    found = [names[of_depth.labels(severed, SETTING)] for of_depth in at]
    n = len(at) * len(run.query_ids)
    return tables.from_columns(
        "forensic_labels",
        {
            "corpus": pa.repeat(corpus, n),
            "config": pa.repeat(config, n),
            "query_id": _tiled(run.query_ids, len(at)),
            "k": np.repeat([of_depth.k for of_depth in at], len(run.query_ids)),
            "label": pa.array(_joined(found), pa.string()),
            "excess": pa.array(_joined([of_depth.excess() for of_depth in at]), from_pandas=True),
            "stability": pa.array(_joined([_stability(d, severed) for d in at]), pa.string()),
        },
    )


def span_states(
    run: ScoredRun,
    *,
    corpus: str,
    config: str,
    depth: int,
    ks: Sequence[int] = (*DEPTHS, CONTEXT),
) -> pa.Table:
    """The table ``span_states`` of one configuration: a row a gold span and k of ``ks`` to depth.

    ``covered_chars`` are the distinct characters of the span inside its query's top k chunks.
    State: covered, at least half of the span is; partial, less, but some; missed, none.
    ``severed`` is null without ``chunks``: it takes every chunk to know. ``lost_stage`` is null
    here, whatever the state.
    """
    at = [_Depth.of(run, k) for k in ks if k <= depth]
    m, severed = run.gold_table.num_rows, severed_spans(run)
    names = np.array(STATES, dtype=object)
    return tables.from_columns(
        "span_states",
        {
            "corpus": pa.repeat(corpus, len(at) * m),
            "config": pa.repeat(config, len(at) * m),
            "query_id": _tiled(run.gold_table["query_id"], len(at)),
            "span_no": _tiled(run.gold_table["span_no"], len(at)),
            "k": np.repeat([of_depth.k for of_depth in at], m),
            "state": pa.array(_joined([names[d.states(SETTING)] for d in at]), pa.string()),
            "covered_chars": _joined([of_depth.covered for of_depth in at]),
            "severed": pa.nulls(len(at) * m, pa.bool_())
            if severed is None
            else np.tile(severed, len(at)),
            "lost_stage": pa.nulls(len(at) * m, pa.string()),
        },
    )


def severed_spans(run: ScoredRun) -> Bools | None:
    """Return whether no single chunk holds the whole of each gold span: shape (m,).

    None without a chunk table: it takes every chunk to know.
    """
    if not run.has_chunks:
        return None
    whole, _ = spans.containing_pairs(run.gold, run.chunks)
    severed = np.ones(len(run.gold), dtype=bool)
    severed[whole] = False
    return severed


@dataclass(frozen=True)
class _Depth:
    """What labels and states at a depth ``k`` are derived from."""

    k: int
    run: ScoredRun
    covered: Ints
    """Characters of each gold span in its query's top k, shape (m,)."""
    reached: Bools
    """Whether a top k chunk is in a gold document of the query, shape (q,)."""
    relevant_chars: Ints
    """Characters in the union of the top k chunks that share some with gold, shape (q,)."""

    @classmethod
    def of(cls, run: ScoredRun, k: int) -> _Depth:
        top, gold = run.places.top(k), run.gold_by_query
        places = run.spans_of(top)
        _, relevant = spans.overlapping_pairs(gold, places)
        return cls(
            k=k,
            run=run,
            covered=spans.covered_chars(gold, places),
            reached=run.count(top.query[np.isin(places.group, gold.group)]) > 0,
            relevant_chars=run.union_chars(places.take(relevant)),
        )

    def is_covered(self, setting: Setting) -> Bools:
        """Whether enough of each gold span is there, in whole numbers: shape (m,)."""
        share = setting.covered
        return share.denominator * self.covered >= share.numerator * self.run.gold.length

    def states(self, setting: Setting) -> Ints:
        """The position in ``STATES`` of each gold span's state, shape (m,)."""
        return np.select([self.is_covered(setting), self.covered > 0], [0, 1], 2)

    def labels(self, severed: Bools | None, setting: Setting) -> Ints:
        """The position in ``_NAMES`` of each query's label, the first that holds: shape (q,)."""
        state = self.states(setting)
        covered, partial, _ = (self._some(state == number) for number in range(len(STATES)))
        lost = self._some(state > 0)
        gold_chars = self.run.union_chars(self.run.gold_by_query)
        boundary: tuple[str | None, Bools] = (None, partial)  # as much as is known without chunks
        if severed is not None:
            boundary = ("CBF", self._some((state == 1) & severed))
        rules: list[tuple[str | None, Bools]] = [
            ("DRM", ~self.reached),
            ("ICR", ~(covered | partial)),
            boundary,
            ("SGP", covered & lost),
            ("ICR", lost),
            ("OVR", self.relevant_chars >= setting.factor * gold_chars),
        ]
        codes = [_NAMES.index(label) for label, _ in rules]
        return np.select([holds for _, holds in rules], codes, _NAMES.index("OK"))

    def excess(self) -> Reals:
        """Relevant characters / gold characters, NaN where nothing relevant is there: (q,)."""
        share = self.relevant_chars / self.run.union_chars(self.run.gold_by_query)
        return np.where(self.relevant_chars > 0, share, np.nan)

    def _some(self, of_gold: Bools) -> Bools:
        """Whether it holds for some gold span of each query, shape (q,)."""
        return self.run.count(self.run.gold_query[of_gold]) > 0


def _stability(at: _Depth, severed: Bools | None) -> Any:
    """The JSON of each query's labels under the changed settings, shape (q,)."""
    codes = np.stack([at.labels(severed, setting) for setting in CHANGED.values()])
    different, which = np.unique(codes, axis=1, return_inverse=True)
    texts = [
        json.dumps(dict(zip(CHANGED, [_NAMES[code] for code in column], strict=True)))
        for column in different.T.tolist()
    ]
    return np.array(texts, dtype=object)[which.reshape(-1)]


def _tiled(values: Any, times: int) -> Any:
    """An Arrow column ``times`` times over."""
    return values.take(np.tile(np.arange(len(values)), times))


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays one behind another; of none, an empty one."""
    return np.concatenate(parts) if parts else np.empty(0, object)
