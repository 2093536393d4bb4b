"""How long each list must be: one that was cut short loses recall and looks sound.

Counted here on another path than retrieval's own, so that a fault there is not repeated.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

import pyarrow as pa

from spanbench_pipeline.checks.invariants import Rows
from spanbench_pipeline.checks.scope import admitted

Tokens = Callable[[str], Iterable[str]]
Ranges = Sequence[tuple[int, int]]
"""Numbers of chunks that stand one after the other: [first, end) each, ascending, apart."""

KNOWN = frozenset({"dense", "bm25"})
"""The channels whose lists have a length that follows from texts and vectors."""


def wrong_lengths(
    candidates: pa.Table,
    queries: pa.Table,
    documents: pa.Table,
    chunks: pa.Table,
    *,
    channel: str,
    vectors: Collection[str],
    depth: int,
    doc_scope: bool,
    metadata_filters: bool,
    routed: pa.Table | None = None,
    tokens: Callable[[str], Iterable[str]] | None = None,
) -> Rows:
    """Return queries whose list is shorter or longer than what is in their scope allows.

    ``channel`` is one of ``KNOWN``; ``vectors`` are the ids of the chunks that have one. A dense
    list holds each chunk in scope with a vector, a BM25 list each that holds a word of the query,
    both cut at ``depth``. A query without a letter or digit may have no dense list. ``routed``
    are the ``routed_documents`` of a list with routing, None without. ``tokens`` finds the words;
    without it they are those of ``ascii``, found here.
    """
    listed = Counter(candidates["query_id"].to_pylist())
    # A document's chunks get numbers in a row, so that a scope is a few ranges of numbers.
    grouped = chunks.sort_by("doc_id")
    ranges = _ranges_of_scopes(grouped["doc_id"].to_pylist())
    n_findable = (
        _counter_of_vectors(grouped, vectors)
        if channel == "dense"
        else _counter_of_words(grouped, queries, documents, tokens or _words, depth)
    )
    asked = queries.to_pylist()
    inside = admitted(
        asked,
        documents,
        doc_scope=doc_scope,
        metadata_filters=metadata_filters,
        routed=routed,
    )
    wrong: Rows = []
    for query in asked:
        query_id, text = query["query_id"], query["query"]
        most = min(depth, n_findable(text, ranges(inside[query_id])))
        wordless = channel == "dense" and not any(c.isalnum() for c in text)
        if listed[query_id] != most and not (wordless and not listed[query_id]):
            wrong.append({"query_id": query_id, "n_listed": listed[query_id], "n_to_find": most})
    return wrong


def _ranges_of_scopes(doc_ids: Sequence[str]) -> Callable[[frozenset[str]], Ranges]:
    """Return what gives a scope's chunks as ranges; ``doc_ids`` are the chunks', grouped."""
    first: dict[str, int] = {}
    for number, doc_id in enumerate(doc_ids):
        first.setdefault(doc_id, number)
    n_chunks = Counter(doc_ids)

    @cache
    def ranges(scope: frozenset[str]) -> Ranges:
        merged: list[tuple[int, int]] = []
        for start in sorted(first[doc_id] for doc_id in scope if doc_id in first):
            end = start + n_chunks[doc_ids[start]]
            joins = bool(merged) and merged[-1][1] == start
            merged.append((merged.pop()[0] if joins else start, end))
        return merged

    return ranges


def _counter_of_vectors(chunks: pa.Table, vectors: Collection[str]) -> Callable[[str, Ranges], int]:
    """Return what counts the chunks with a vector in some ranges, whatever the query's text."""
    there = [number for number, c in enumerate(chunks["chunk_id"].to_pylist()) if c in vectors]

    def count(_text: str, ranges: Ranges) -> int:
        return sum(bisect_left(there, end) - bisect_left(there, start) for start, end in ranges)

    return count


def _counter_of_words(
    chunks: pa.Table, queries: pa.Table, documents: pa.Table, tokens: Tokens, depth: int
) -> Callable[[str, Ranges], int]:
    """Return what counts the chunks in some ranges that hold a word of a query's text.

    It stops at ``depth``: a list has no more.
    """
    words = {text: set(tokens(text)) for text in set(queries["query"].to_pylist())}
    holders = _holders(chunks, documents, tokens, set().union(*words.values()))

    def count(text: str, ranges: Ranges) -> int:
        numbers: set[int] = set()
        for word in words[text]:
            of_word = holders[word]
            for start, end in ranges:
                low = bisect_left(of_word, start)
                high = bisect_left(of_word, end, low)
                numbers.update(of_word[low : min(high, low + depth)])
                if len(numbers) >= depth:
                    return depth
        return len(numbers)

    return count


def _holders(
    chunks: pa.Table, documents: pa.Table, tokens: Tokens, wanted: set[str]
) -> dict[str, list[int]]:
    """Return the numbers of the chunks that hold each wanted word, ascending."""
    holders: dict[str, list[int]] = {word: [] for word in wanted}
    texts = dict(zip(documents["doc_id"].to_pylist(), documents["text"].to_pylist(), strict=True))
    columns = (chunks[c].to_pylist() for c in ("doc_id", "start_char", "end_char"))
    for number, (doc_id, start, end) in enumerate(zip(*columns, strict=True)):
        for word in wanted.intersection(tokens(texts[doc_id][start:end])):
            holders[word].append(number)
    return holders


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.lower()))
