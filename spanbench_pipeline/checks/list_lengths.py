"""How long each list must be: one that was cut short loses recall and looks sound.

Counted here on another path than retrieval's own, so that a fault there is not repeated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.checks.invariants import Rows
from spanbench_pipeline.checks.scope import admitted

Bools = npt.NDArray[np.bool_]

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
    """Queries whose list is shorter or longer than what is in their scope allows.

    ``channel`` is one of ``KNOWN``; ``vectors`` are the ids of the chunks that have one. A dense
    list holds each chunk in scope with a vector, a BM25 list each that holds a word of the query,
    both cut at ``depth``. A query without a letter or digit may have no dense list. ``routed``
    are the ``routed_documents`` of a list with routing, None without. ``tokens`` finds the words;
    without it they are those of ``ascii``, found here.
    """
    found = Counter(candidates["query_id"].to_pylist())
    doc_ids = documents["doc_id"].to_pylist()
    doc_no = np.asarray(pc.index_in(chunks["doc_id"], pa.array(doc_ids)))
    asked = queries.to_pylist()
    if channel == "dense":
        with_vector = np.array([c in vectors for c in chunks["chunk_id"].to_pylist()], dtype=bool)
        findable = {query["query_id"]: with_vector for query in asked}
    else:
        findable = _holding(asked, documents, chunks, tokens or _words)
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
        scope = inside[query_id]
        here = np.array([doc_id in scope for doc_id in doc_ids], dtype=bool)[doc_no]
        most = min(depth, int((here & findable[query_id]).sum()))
        wordless = channel == "dense" and not any(c.isalnum() for c in text)
        if found[query_id] != most and not (wordless and not found[query_id]):
            wrong.append({"query_id": query_id, "n_listed": found[query_id], "n_to_find": most})
    return wrong


def _holding(
    asked: Iterable[Mapping[str, Any]],
    documents: pa.Table,
    chunks: pa.Table,
    tokens: Callable[[str], Iterable[str]],
) -> dict[str, Bools]:
    """Query -> whether each chunk holds one of its words, shape (n_chunks,)."""
    words = {query["query_id"]: set(tokens(query["query"])) for query in asked}
    wanted = set().union(*words.values())
    places: dict[str, list[int]] = {word: [] for word in wanted}
    pairs = zip(documents["doc_id"].to_pylist(), documents["text"].to_pylist(), strict=True)
    texts = dict(pairs)
    columns = (chunks[c].to_pylist() for c in ("doc_id", "start_char", "end_char"))
    for number, (doc_id, start, end) in enumerate(zip(*columns, strict=True)):
        for word in wanted.intersection(tokens(texts[doc_id][start:end])):
            places[word].append(number)
    found = {}
    for query_id, of_query in words.items():
        holds = np.zeros(chunks.num_rows, dtype=bool)
        for word in of_query:
            holds[places[word]] = True
        found[query_id] = holds
    return found


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.lower()))
