"""How deep the lists of a file are looked at: a value at a k past that is absent.

A list is as long as it has distinct places: a repeat closes up. A file does not say where its lists
were cut. Without a depth stated:

- A file with a list as long as the corpus's depth, or longer: the corpus's depth, where the
  corpus's own lists are cut.
- A file of shorter lists shows a cut where many end alike: at least ``ALIKE`` lists, and no fewer
  than half of them, have the longest length, which is two or more, and something was left to list.
  Then that length is the depth: recall@10 of a file cut at 5 would be its recall@5.
- A file that ``spanbench export`` wrote says where its lists were cut: that depth, or the corpus's
  where that is less.
- Any other file of shorter lists: they ended since nothing more was found, so the corpus's depth.
  That it is taken so is said, also where most lists end alike but a longer one speaks against it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from spanbench_pipeline.config.experiment import MAX_DEPTH
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.metrics.depths import absent
from spanbench_pipeline.metrics.metric import MetricAt
from spanbench_pipeline.metrics.quality.characters import DEPTHS

ALIKE = 3
"""Lists of one length that show a cut; two may be as long by chance."""
LABELS_DEPTH = 30
"""Failure labels look at a longer list this deep, whatever the corpus's depth."""


@dataclass(frozen=True)
class Depth:
    """The depth that values rest on, and what says so."""

    value: int
    said_by: str
    note: str = ""
    """What a reader must know of it beside that longer lists are cut there; "" for nothing."""

    @property
    def labels(self) -> int:
        """Return how deep failure labels look: a list that goes on below says what stands there."""
        return max(self.value, LABELS_DEPTH)


def depth_of(
    rankings: pa.Table,
    evalset: EvalSet,
    chunks: pa.Table | None,
    *,
    corpus_depth: int,
    metrics: Collection[MetricAt],
    stated: int | None = None,
    in_file: int | None = None,
) -> Depth:
    """Return the depth of a file's lists, as the module says; ``stated`` settles it.

    A note says which of ``metrics`` the depth hides.

    ``in_file`` is where the file itself says that its lists were cut. Raises InputError where a
    list goes on below that, and where ``stated`` is not a depth that an experiment may have.
    """
    if stated is not None and not 1 <= stated <= MAX_DEPTH:
        raise InputError(f"score: --depth {stated} is not within 1 and {MAX_DEPTH}")
    if stated is not None:
        return Depth(stated, "stated with --depth")
    listed = _listed(rankings)
    longest = max(map(len, listed.values()), default=0)
    cut = _alike(listed, evalset, chunks)
    if in_file is not None:
        return _as_the_file_says(in_file, corpus_depth, longest, cut, metrics)
    if cut is not None and cut == longest < corpus_depth:
        note = (
            f"no list of the file has more than {longest} places, and most have just as many: they "
            "are taken as cut there. If they ended since nothing more was found, "
            f"--depth {corpus_depth} says so"
        )
        return Depth(longest, "where the file's lists end", note)
    if cut is not None and cut < longest:
        note = _taken_as_ended(_ALIKE_SAID.format(cut), cut, corpus_depth, metrics)
    else:
        ends = f"no list of the file has more than {longest} places"
        note = _taken_as_ended(ends, longest, corpus_depth, metrics)
    if longest > corpus_depth and absent(corpus_depth, metrics):
        note = "; ".join(filter(None, [_deeper(longest), note]))
    return Depth(corpus_depth, "the corpus's depth", note)


_ALIKE_SAID = "half of the file's lists or more have {} places"


def _as_the_file_says(
    in_file: int, corpus_depth: int, longest: int, cut: int | None, metrics: Collection[MetricAt]
) -> Depth:
    """Return the depth of an export; lists that end alike above it may have been cut since."""
    if longest > in_file:
        raise InputError(
            f"score: the file says that its lists were cut at {in_file}, but one has {longest} "
            "places: state with --depth N where they were cut"
        )
    value = min(in_file, corpus_depth)
    note = "" if cut is None else _taken_as_ended(_ALIKE_SAID.format(cut), cut, value, metrics)
    if longest > corpus_depth and absent(corpus_depth, metrics):
        note = "; ".join(filter(None, [_deeper(longest), note]))
    by = "the corpus's depth" if in_file >= corpus_depth else "where the file says they were cut"
    return Depth(value, by, note)


def _deeper(longest: int) -> str:
    return f"--depth {longest} looks as deep as the file's lists go"


def _taken_as_ended(
    ends: str, length: int, corpus_depth: int, metrics: Collection[MetricAt]
) -> str:
    """Return what to say of lists that end at ``length``; empty where that hides no value."""
    past = {k for _, k in metrics if k is not None} | set(DEPTHS)
    if not any(length < k <= corpus_depth for k in past):
        return ""
    return (
        f"{ends}: they are taken as ended since nothing more was found. If they were cut there, "
        f"--depth {length} says so, and no value at a k past it is given"
    )


Listed = Mapping[str, Collection[tuple[str, str]]]
"""Query -> the distinct (document, chunk) of its list."""


def _listed(rankings: pa.Table) -> Listed:
    listed: dict[str, set[tuple[str, str]]] = defaultdict(set)
    columns = (rankings[c].to_pylist() for c in ("query_id", "doc_id", "chunk_id"))
    for query, doc_id, chunk_id in zip(*columns, strict=True):
        listed[query].add((doc_id, chunk_id))
    return listed


def _alike(listed: Listed, evalset: EvalSet, chunks: pa.Table | None) -> int | None:
    """Return the length at which lists end as lists do that were cut there, the longest if of
    several.
    """
    lengths = Counter(map(len, listed.values()))
    for length in sorted(lengths, reverse=True):
        if length < 2 or lengths[length] < ALIKE or 2 * lengths[length] < len(listed):
            continue
        alike = [query for query, places in listed.items() if len(places) == length]
        if not all(_nothing_left(alike, listed, evalset, chunks)):
            return length
    return None


def _nothing_left(
    queries: list[str], listed: Listed, evalset: EvalSet, chunks: pa.Table | None
) -> list[bool]:
    """Of each query, whether its list has every chunk of the corpus, or of its own document."""
    if chunks is None:
        return [False] * len(queries)
    in_document = Counter(chunks["doc_id"].to_pylist())
    asked = zip(*(evalset.queries[c].to_pylist() for c in ("query_id", "doc_id")), strict=True)
    document_of = dict(asked)
    found = []
    for query in queries:
        own = document_of[query]
        in_own = sum(doc_id == own for doc_id, _ in listed[query])
        whole = len(listed[query]) == chunks.num_rows
        found.append(
            whole or (own is not None and in_own == in_document[own] == len(listed[query]))
        )
    return found
