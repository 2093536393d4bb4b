"""What BM25 can tell apart, and which letters it does not read.

Counted here from texts and lists, on another path than the index's own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.tokenizer import Tokenizer

AVERAGE_IDF = "average_idf"
SHARES = ("letters_outside", "query_letters_outside")
COUNTS = ("texts_without_token", "queries_without_token", "first_by_order")
CHUNKS, CARDS = "bm25_", "routing_bm25_"
"""What a stat's name begins with: of the chunks that are searched, of the cards that documents are
chosen by."""
ROUNDING = 1e-12
"""Scores no further apart, of 1 or of the larger one, differ by rounding alone."""
MOST_OUTSIDE = 0.01
"""The share of letters above which a warning says that BM25 does not read them."""

IDF: dict[str, Callable[[int, int], float]] = {
    "okapi": lambda n, holding: math.log((n - holding + 0.5) / (holding + 0.5)),
    "lucene": lambda n, holding: math.log(1 + (n - holding + 0.5) / (holding + 0.5)),
}
"""Each rule's inverse document frequency of a token that ``holding`` of ``n`` texts hold."""

Stats = dict[str, float | None]


@dataclass(frozen=True)
class Read:
    """What a tokenizer finds in some texts."""

    n_texts: int
    n_wordless: int
    """Texts without a word."""
    letters_outside: float | None
    """The share of letters and digits that no token holds; None where there are none."""
    holding: Mapping[str, int]
    """Token -> how many of the texts hold it."""

    def average_idf(self, rule: str) -> float | None:
        """Return the mean over all tokens, as the rule has it before it mends negative ones."""
        if not self.holding:
            return None
        return math.fsum(IDF[rule](self.n_texts, n) for n in self.holding.values()) / len(
            self.holding
        )


def read(texts: Iterable[str], tokens: Tokenizer) -> Read:
    """Return what ``tokens`` finds in ``texts``."""
    holding: Counter[str] = Counter()
    n_texts = n_wordless = letters = outside = 0
    for text in texts:
        found = set(tokens(text))
        holding.update(found)
        counted = tokens.letters(text)
        n_texts, n_wordless = n_texts + 1, n_wordless + (not found)
        letters, outside = letters + counted[0], outside + counted[1]
    return Read(n_texts, n_wordless, outside / letters if letters else None, holding)


def of_texts(prefix: str, found: Read, rule: str) -> Stats:
    """Return the stats of what is indexed: of chunks (``CHUNKS``) or of cards (``CARDS``)."""
    return {
        f"{prefix}average_idf": found.average_idf(rule),
        f"{prefix}texts_without_token": float(found.n_wordless),
        f"{prefix}letters_outside": found.letters_outside,
    }


def of_queries(found: Read) -> Stats:
    """Return the stats of what is asked."""
    return {
        f"{CHUNKS}queries_without_token": float(found.n_wordless),
        f"{CHUNKS}query_letters_outside": found.letters_outside,
    }


def of_lists(candidates: pa.Table) -> Stats:
    """Return the stat of a BM25 channel's lists: in how many the first place goes by chunk order
    alone.

    Those are the lists whose first two chunks have one score, but for rounding.
    """
    first: dict[str, list[float]] = defaultdict(list)
    for row in candidates.select(["query_id", "rank", "score"]).to_pylist():
        if row["rank"] <= 2:
            first[row["query_id"]].append(row["score"])
    tied = sum(len(scores) == 2 and _is_one_score(*scores) for scores in first.values())
    return {f"{CHUNKS}first_by_order": float(tied)}


def _is_one_score(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def table(corpus: str, stats: Mapping[str, Stats]) -> pa.Table:
    """Return rows of the table ``config_stats``, from each configuration's stats."""
    rows = [
        {"corpus": corpus, "config": config, "stat": stat, "value": value}
        for config, found in stats.items()
        for stat, value in found.items()
    ]
    return tables.from_rows("config_stats", rows)


def is_one(stat: str, names: Iterable[str]) -> bool:
    """Return whether a stat is one of ``names``, of chunks or of cards."""
    return any(stat in (CHUNKS + name, CARDS + name) for name in names)
