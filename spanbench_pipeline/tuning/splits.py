"""A corpus's queries in two parts: one to choose settings on, one to report what was chosen.

The parts share no gold document. Queries about one document resemble each other (the same words,
the same layout), so that a setting chosen on one of them is tuned on the others too.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.joins import require_one


@dataclass(frozen=True)
class Side:
    """One part: its queries and the documents that hold their gold spans, both sorted."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """Both parts; every query and every document with gold is in exactly one."""

    development: Side
    held_out: Side


@dataclass(frozen=True)
class _Group:
    """Documents that queries join, with all queries about them: what stays together."""

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    subsets: tuple[str, ...]


def split(queries: pa.Table, gold_spans: pa.Table, *, share: float, seed: int) -> Split:
    """About ``share`` of the queries for development, the rest held out, by document.

    Documents that one query has gold in are joined, and stay on one side with all queries about
    them. Within each subset (a group that touches several is of their combination) groups come in
    the order of sha256(``seed``, first document); one goes to development where that brings the
    number of development queries nearer to ``share`` of the subset's, else it is held out. So
    each subset's number is off by half of its largest group at most, and a document that joins
    the corpus reorders no others.

    Raises InputError for a share outside (0, 1), and where one of the sides would be empty.
    """
    require_one(queries, "corpus")
    require_share(share)
    strata: defaultdict[tuple[str, ...], list[_Group]] = defaultdict(list)
    for group in _groups(queries, gold_spans):
        strata[group.subsets].append(group)
    development: list[_Group] = []
    held_out: list[_Group] = []
    for groups in strata.values():
        target = Fraction(share) * sum(len(group.queries) for group in groups)
        taken = 0
        for group in sorted(groups, key=lambda one: _place(one, seed)):
            more = taken + len(group.queries)
            if abs(more - target) < abs(taken - target):
                development.append(group)
                taken = more
            else:
                held_out.append(group)
    if not development or not held_out:
        n = sum(len(groups) for groups in strata.values())
        raise InputError(
            f"too few documents for a split: {n} that can be told apart (documents that one query "
            f"has gold in stay together), of which share = {share} puts all on one side"
        )
    return Split(_side(development), _side(held_out))


def require_share(share: float) -> None:
    """Raise InputError for a share that leaves one side empty by itself."""
    if not 0 < share < 1:
        raise InputError(f"share = {share} is not between 0 and 1")


def subsets(queries: pa.Table) -> dict[str | None, frozenset[str]]:
    """Return the queries of the whole (None) and, where there are any, of each subset, by name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    columns = (queries[name].to_pylist() for name in ("query_id", "subset"))
    for query_id, subset in zip(*columns, strict=True):
        if subset is not None:
            found[subset].add(query_id)
    whole = frozenset(queries["query_id"].to_pylist())
    return {None: whole} | {name: frozenset(found[name]) for name in sorted(found)}


def _groups(queries: pa.Table, gold_spans: pa.Table) -> list[_Group]:
    """Return what must stay together, in the order of first documents."""
    documents_of: defaultdict[str, set[str]] = defaultdict(set)
    columns = (gold_spans[name].to_pylist() for name in ("query_id", "doc_id"))
    for query_id, doc_id in zip(*columns, strict=True):
        documents_of[query_id].add(doc_id)
    head = _joined(documents_of.values())
    members: defaultdict[str, list[str]] = defaultdict(list)
    for doc_id in sorted(head):
        members[head[doc_id]].append(doc_id)
    asked: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    columns = (queries[name].to_pylist() for name in ("query_id", "subset"))
    for query_id, subset in sorted(zip(*columns, strict=True)):
        if not documents_of[query_id]:
            raise InputError(f"query {query_id}: no gold span, nothing to measure")
        asked[head[min(documents_of[query_id])]].append((query_id, subset or ""))
    return [
        _Group(
            tuple(members[first]),
            tuple(query_id for query_id, _ in asked[first]),
            tuple(sorted({subset for _, subset in asked[first]})),
        )
        for first in sorted(members)
    ]


def _joined(together: Iterable[set[str]]) -> dict[str, str]:
    """Return each document's group, named by its first document: union by the lesser name."""
    parent: dict[str, str] = {}

    def top(doc_id: str) -> str:
        while parent.setdefault(doc_id, doc_id) != doc_id:
            parent[doc_id] = doc_id = parent[parent[doc_id]]
        return doc_id

    for documents in together:
        tops = {top(doc_id) for doc_id in documents}
        for one in tops:
            parent[one] = min(tops)
    return {doc_id: top(doc_id) for doc_id in parent}


def _place(group: _Group, seed: int) -> tuple[bytes, str]:
    first = group.documents[0]
    return hashlib.sha256(f"{seed}\n{first}".encode()).digest(), first


def _side(groups: Iterable[_Group]) -> Side:
    found = list(groups)
    return Side(
        tuple(sorted(query for group in found for query in group.queries)),
        tuple(sorted(doc_id for group in found for doc_id in group.documents)),
    )
