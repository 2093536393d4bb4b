"""BM25 by one of two rules.

- ``okapi``: rank-bm25's definition, the scores of its ``BM25Okapi``, bit for bit. A token in more
  than half of the chunks has a negative inverse document frequency, in whose place a quarter of the
  average stands. Where that average is negative, which few or repetitive chunks make it, a chunk
  that holds what is asked for can rank below one that does not.
- ``lucene``: the definition of Lucene, and of bm25s under that name. No token ever weighs less than
  nothing. Scores do not go by the order of a query's words, and are rounded to 12 decimals, so that
  scores equal in truth are a tie.

rank-bm25 visits every chunk for every token. Here each token knows the chunks that hold it and what
it adds to their scores, so that a query touches only those; additions happen in the same order.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spanbench_pipeline.core.tokenizer import Tokenizer
from spanbench_pipeline.retrieval.lists import Floats, Ints, Lists, best, collect

K1, B, EPSILON = 1.5, 0.75, 0.25
GRID = 2.0**42
"""Multiples of 1 / GRID add up exactly below 2,048: 11 of 53 bits are left for the sum."""
DECIMALS = 12
"""What scores of ``lucene`` are rounded to before they are compared and stored."""

tokens = Tokenizer()
"""The tokens of the published figures: ``ascii``, not stemmed; no stop words."""


@dataclass(frozen=True)
class Index:
    """What each token adds to the scores of the chunks that hold it.

    Token number t, as ``vocabulary`` numbers them, is held by the chunks
    ``rows[starts[t]:starts[t + 1]]`` and adds ``weights[...]`` to them each time it is asked for.
    ``tokens`` found them, and finds those of a query.
    """

    n_chunks: int
    vocabulary: dict[str, int]
    starts: Ints
    rows: Ints
    weights: Floats
    tokens: Callable[[str], list[str]] = tokens
    ordered: bool = True
    """Whether additions stand as rank-bm25 makes them, in the order of the query's words."""

    def postings(self, token: str) -> slice:
        """Return where a token's rows and weights lie; empty for a token that no chunk holds."""
        number = self.vocabulary.get(token)
        return slice(0, 0) if number is None else slice(*self.starts[number : number + 2].tolist())

    def scores(self, query: Sequence[str]) -> Floats:
        """Return every chunk's score for the query's tokens, shape (n_chunks,).

        A token given twice counts twice, as in ``BM25Okapi.get_scores``.
        """
        scores, rest = np.zeros(self.n_chunks), np.zeros(self.n_chunks)
        for token in query:
            held = self.postings(token)
            added = self.weights[held]
            if not self.ordered:
                # What is left of a multiple is so small that its own rounding reaches no score.
                added = np.round(added * GRID) / GRID
                rest[self.rows[held]] += self.weights[held] - added
            scores[self.rows[held]] += added
        return scores if self.ordered else np.round(scores + rest, DECIMALS)

    def holding(self, query: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return whether each chunk holds any of the query's tokens, shape (n_chunks,)."""
        found = np.zeros(self.n_chunks, dtype=bool)
        for token in set(query):
            found[self.rows[self.postings(token)]] = True
        return found


def build(
    texts: Iterable[str], bm25: str = "okapi", tokenizer: str = "ascii", stemming: str | None = None
) -> Index:
    """Return the index over all chunks of a corpus, their texts given in chunk order.

    ``bm25`` is the rule, one of ``RULES``; the others are the settings of a ``Tokenizer``.
    """
    found = Tokenizer(tokenizer, stemming)
    vocabulary: dict[str, int] = {}
    stream, lengths = array("q"), array("q")
    for text in texts:
        words = found(text)
        # A number is given at a token's first occurrence, so numbers are in rank-bm25's order.
        stream.extend([vocabulary.setdefault(word, len(vocabulary)) for word in words])
        lengths.append(len(words))
    n, length = len(lengths), np.array(lengths, dtype=np.int64)
    if not vocabulary:
        return Index(n, {}, np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0), found)
    keys = np.array(stream, dtype=np.int64) * n + np.repeat(np.arange(n), length)
    held, frequency = np.unique(keys, return_counts=True)
    token, row = np.divmod(held, n)
    holders = np.bincount(token, minlength=len(vocabulary))
    idf, factor, ordered = RULES[bm25]
    weights = idf(n, holders)[token] * _saturation(frequency, row, length, factor)
    return Index(n, vocabulary, np.append(0, np.cumsum(holders)), row, weights, found, ordered)


def retrieve(
    texts: Sequence[str],
    queries: pa.Table,
    allowed: Sequence[Ints | None],
    depth: int,
    **settings: Any,
) -> tuple[Lists, list[str]]:
    """Return the list of each row of a ``queries`` table, as :func:`search`, with warnings.

    ``settings`` are those of :func:`build`. A query without any token has an empty list, and a
    warning names it. Raises NotMeasured where a text has to be segmented and nothing here can.
    """
    asked = queries["query"].to_pylist()
    index = build(texts, **settings)
    warnings = [
        f"query {query_id} has no BM25 token: its BM25 list is empty"
        for query_id, text in zip(queries["query_id"].to_pylist(), asked, strict=True)
        if not index.tokens(text)
    ]
    return search(index, asked, allowed, depth), warnings


def search(
    index: Index, queries: Sequence[str], allowed: Sequence[Ints | None], depth: int
) -> Lists:
    """Return the BM25 list of each query text: its ``depth`` best chunks among those ``allowed``.

    ``allowed`` holds chunk rows, ascending, or None for all; scores always come from the whole
    index. A chunk that holds no token of the query is not in its list, one that does is, even at a
    score of zero or below. Ties are in chunk order.
    """
    same: dict[tuple[str, ...], list[int]] = {}
    for number, text in enumerate(queries):
        same.setdefault(tuple(index.tokens(text)), []).append(number)
    found: list[tuple[int, Ints, Floats]] = []
    for words, numbers in same.items():
        scores, holding = index.scores(words), index.holding(words)
        for number in numbers:
            inside = allowed[number]
            rows = np.flatnonzero(holding) if inside is None else inside[holding[inside]]
            found.append((number, *best(rows, scores[rows], depth)))
    return collect(found)


def _okapi(n_chunks: int, holders: Ints) -> Floats:
    """Return each token's inverse document frequency; a negative one becomes EPSILON x the
    average.
    """
    # math.log and a running sum, because np.log and np.sum may differ in the last bit.
    idf = np.array([math.log(n_chunks - f + 0.5) - math.log(f + 0.5) for f in holders.tolist()])
    average = np.cumsum(idf)[-1] / len(idf)
    return np.where(idf < 0, EPSILON * average, idf)


def _lucene(n_chunks: int, holders: Ints) -> Floats:
    """Return each token's inverse document frequency; never negative."""
    return np.array([math.log1p((n_chunks - f + 0.5) / (f + 0.5)) for f in holders.tolist()])


RULES: dict[str, tuple[Callable[[int, Ints], Floats], float, bool]] = {
    "okapi": (_okapi, K1 + 1, True),
    "lucene": (_lucene, 1, False),
}
"""Each rule's inverse document frequency, the factor of how much a token counts, and ``ordered``
of its index; the factor changes no order."""


def _saturation(frequency: Ints, row: Ints, length: Ints, factor: float) -> Floats:
    """Return how much a token counts that occurs ``frequency`` times in the chunk at ``row``."""
    average = int(length.sum()) / len(length)
    norm = K1 * (1 - B + B * length / average)
    saturation: Floats = frequency * factor / (frequency + norm[row])
    return saturation
