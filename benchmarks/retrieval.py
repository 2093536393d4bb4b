"""How retrieval's own parts compare with what they replace: ratios, measured in one run.

    python benchmarks/retrieval.py [--chunks N] [--queries N]

Both sides of a ratio run one after the other on the same made-up text and vectors, and give the
same answer, which is checked first; absolute times depend on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from rank_bm25 import BM25Okapi
from timing import timed

from spanbench_pipeline.core import evalset, tables
from spanbench_pipeline.core.tokenizer import Tokenizer
from spanbench_pipeline.retrieval import bm25, dense, exact, qdrant
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows

VOCABULARY, WORDS_A_CHUNK, WORDS_A_QUERY, DIMENSIONS, DEPTH = 20_000, 160, 20, 384, 30


def main() -> None:
    """Measure both pairs and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chunks", type=int, default=4_000)
    parser.add_argument("--queries", type=int, default=30)
    asked = parser.parse_args()
    found = (
        okapi(asked.chunks, asked.queries),
        words(asked.chunks),
        nearest(asked.chunks, asked.queries),
    )
    for line in itertools.chain(*found):
        sys.stdout.write(line + "\n")


def okapi(n_chunks: int, n_queries: int) -> list[str]:
    """Compare building and scoring: ours against rank-bm25."""
    random = np.random.default_rng(0)
    texts = [_text(random, WORDS_A_CHUNK) for _ in range(n_chunks)]
    queries = [bm25.tokens(_text(random, WORDS_A_QUERY)) for _ in range(n_queries)]
    split = [bm25.tokens(text) for text in texts]
    build_ours, index = timed(lambda: bm25.build(texts))
    build_theirs, reference = timed(lambda: BM25Okapi(split))
    ours, found = timed(lambda: [index.scores(query) for query in queries])
    theirs, expected = timed(lambda: [reference.get_scores(query) for query in queries])
    np.testing.assert_array_equal(found, expected)
    return [
        _line("BM25 index, tokens included on our side only", build_theirs, build_ours),
        _line(f"BM25 scores, {n_queries} queries x {n_chunks} chunks", theirs, ours),
    ]


def words(n_chunks: int) -> list[str]:
    """Tokenizing: words of any script against runs of ``[a-z0-9]``, of texts with curly quotes."""
    random = np.random.default_rng(0)
    texts = [f"\u201c{_text(random, WORDS_A_CHUNK)}\u201d" for _ in range(n_chunks)]
    ascii_words, unicode_words = Tokenizer("ascii"), Tokenizer("unicode")
    unicode_time, found = timed(lambda: [unicode_words(text) for text in texts])
    ascii_time, expected = timed(lambda: [ascii_words(text) for text in texts])
    if found != expected:
        raise SystemExit("the two tokenizers disagree on words of ASCII letters")
    return [
        _line(
            f"ascii words in the place of unicode ones, {n_chunks} chunks", unicode_time, ascii_time
        )
    ]


def nearest(n_chunks: int, n_queries: int) -> list[str]:
    """Dense lists: the exact engine against Qdrant in memory, whose upload is left out."""
    random = np.random.default_rng(0)
    vectors, queries = _vectors(random, n_chunks), _vectors(random, n_queries)
    documents, chunks = _tables(n_chunks)
    scopes = [Scope()] * n_queries
    names = {"corpus": "made_up", "chunker": "lines", "encoder": "random"}

    def lists(engine: dense.Engine) -> Any:
        return dense.search(engine, vectors, queries, scopes, DEPTH)

    engine = exact.ExactEngine(vectors, ScopedRows(documents, chunks))
    ours, found = timed(lambda: lists(engine))
    with qdrant.open_engine(
        ":memory:", **names, vectors=vectors, chunks=chunks, documents=documents
    ) as other:
        theirs, expected = timed(lambda: lists(other))
    np.testing.assert_array_equal(found.row, expected.row)
    return [_line(f"dense lists, {n_queries} queries x {n_chunks} chunks", theirs, ours)]


def _line(what: str, theirs: float, ours: float) -> str:
    return f"{what}: {theirs:.3f} s against {ours:.3f} s, {theirs / ours:.1f} times as fast"


def _text(random: np.random.Generator, n_words: int) -> str:
    """Return words as frequent as in real text: the i-th about 1/i as often as the first."""
    ranks = np.exp(random.random(n_words) * np.log(VOCABULARY)).astype(int)
    return " ".join(f"w{rank}" for rank in ranks)


def _vectors(random: np.random.Generator, n: int) -> dense.Vectors:
    matrix = random.normal(size=(n, DIMENSIONS)).astype(np.float32)
    return dense.Vectors(matrix, np.ones(n, dtype=bool))


def _tables(n_chunks: int) -> tuple[pa.Table, pa.Table]:
    """Return one document of one character a chunk."""
    text = "x" * n_chunks
    document = evalset.Document("made-up", "made-up", text, "made-up.txt", "none")
    gold = evalset.GoldSpan("made-up", 0, 1)
    made = evalset.assemble("made_up", [document], [evalset.Query("q001", "x", [gold])])
    number = list(range(n_chunks))
    columns = {
        "corpus": ["made_up"] * n_chunks,
        "chunker": ["lines"] * n_chunks,
        "chunk_id": [f"made-up:lines:{i}" for i in number],
        "doc_id": ["made-up"] * n_chunks,
        "chunk_no": number,
        "start_char": number,
        "end_char": [i + 1 for i in number],
    }
    return made.documents, tables.from_columns("chunks", columns)


if __name__ == "__main__":
    main()
