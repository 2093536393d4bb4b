"""How deep the lists of a file are looked at: a value at a k past that is absent.

A file does not say where its lists were cut. Without a depth stated:

- A file with a list as long as the corpus's depth, or longer: the corpus's depth, where the
  corpus's own lists are cut.
- A file of shorter lists shows a cut where many end alike: at least ``ALIKE`` lists, and no fewer
  than half of them, have the longest length, which is two or more, and something was left to list.
  Then that length is the depth: recall@10 of a file cut at 5 would be its recall@5.
- Any other file of shorter lists: they ended since nothing more was found, so the corpus's depth.
  That it is taken so is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from spanbench_pipeline.errors import InputError
from spanbench_pipeline.evalset import EvalSet
from spanbench_pipeline.experiment import MAX_DEPTH
from spanbench_pipeline.measures import KS, METRICS
from spanbench_pipeline.measures.reach import absent

ALIKE = 3
"""Lists of one length that show a cut; two may be as long by chance."""
LABELS_DEPTH = 30
"""Failure labels look at a longer list this deep, whatever the corpus's depth."""


@dataclass(frozen=True)
class Depth:
    """The depth that values rest on, what says so, and how deep failure labels look."""

    value: int
    said_by: str
    labels: int
    note: str = ""
    """What a reader must know of it beside that longer lists are cut there; "" for nothing."""


def depth_of(
    rankings: pa.Table,
    evalset: EvalSet,
    chunks: pa.Table | None,
    *,
    corpus_depth: int,
    stated: int | None = None,
) -> Depth:
    """The depth of a file's lists, as the module says; ``stated`` settles it.

    Raises InputError where ``stated`` is not a depth that an experiment may have.
    """
    if stated is not None and not 1 <= stated <= MAX_DEPTH:
        raise InputError(f"score: --depth {stated} is not within 1 and {MAX_DEPTH}")
    lengths = Counter(rankings["query_id"].to_pylist())
    longest = max(lengths.values(), default=0)
    if stated is not None:
        return _of(stated, "stated with --depth", longest)
    if longest >= corpus_depth:
        deeper = bool(absent(corpus_depth)) and longest > corpus_depth
        note = f"--depth {longest} looks as deep as the file's lists go" if deeper else ""
        return _of(corpus_depth, "the corpus's depth", longest, note)
    ends = f"no list of the file has more than {longest} entries"
    if _is_cut(lengths, longest, rankings, evalset, chunks):
        note = (
            f"{ends}, and most have just as many: they are taken as cut there. If they ended since "
            f"nothing more was found, --depth {corpus_depth} says so"
        )
        return _of(longest, "where the file's lists end", longest, note)
    past = {k for _, k in METRICS if k is not None} | set(KS)
    note = (
        f"{ends}: they are taken as ended since nothing more was found. If they were cut there, "
        f"--depth {longest} says so, and no value at a k past it is given"
    )
    hidden = any(longest < k <= corpus_depth for k in past)
    return _of(corpus_depth, "the corpus's depth", longest, note if hidden else "")


def _of(value: int, said_by: str, longest: int, note: str = "") -> Depth:
    """A list that goes on below the depth says what stands there; any other ends at it."""
    labels = max(value, LABELS_DEPTH) if longest > value else value
    return Depth(value, said_by, labels, note)


def _is_cut(
    lengths: Mapping[str, int],
    longest: int,
    rankings: pa.Table,
    evalset: EvalSet,
    chunks: pa.Table | None,
) -> bool:
    """Whether the lists end as lists do that were cut at ``longest``."""
    alike = [query for query, n in lengths.items() if n == longest]
    if longest < 2 or len(alike) < ALIKE or 2 * len(alike) < len(lengths):
        return False
    return any(not ended for ended in _nothing_left(alike, rankings, evalset, chunks))


def _nothing_left(
    queries: list[str], rankings: pa.Table, evalset: EvalSet, chunks: pa.Table | None
) -> list[bool]:
    """Of each query, whether its list has every chunk of the corpus, or of its own document."""
    if chunks is None:
        return [False] * len(queries)
    in_document = Counter(chunks["doc_id"].to_pylist())
    asked = zip(*(evalset.queries[c].to_pylist() for c in ("query_id", "doc_id")), strict=True)
    document_of = dict(asked)
    listed: dict[str, set[tuple[str, str]]] = {}
    columns = (rankings[c].to_pylist() for c in ("query_id", "doc_id", "chunk_id"))
    for query, doc_id, chunk_id in zip(*columns, strict=True):
        listed.setdefault(query, set()).add((doc_id, chunk_id))
    found = []
    for query in queries:
        own = document_of[query]
        in_own = sum(doc_id == own for doc_id, _ in listed[query])
        whole = len(listed[query]) == chunks.num_rows
        found.append(
            whole or (own is not None and in_own == in_document[own] == len(listed[query]))
        )
    return found
