"""Fusion by scores, routing and cards through the whole graph, against a calculation by hand.

What the graph stored is computed again from the texts: cosines and BM25 (rank-bm25's own) of every
chunk and card, min-max scaled and added up in plain Python.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rank_bm25 import BM25Okapi

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.tokenizer import Tokenizer
from spanbench_pipeline.models import encoding
from spanbench_pipeline.pipeline.dagster.runner import Result
from spanbench_pipeline.retrieval import bm25, cards
from spanbench_pipeline_tests.end_to_end.conftest import edit, names, run
from spanbench_pipeline_tests.support import tiny_models

DEPTH = 6
LAWS = ("Delaware", "Texas", "Ohio", "Nevada", "Maine")
DOCUMENTS = {
    f"{law.lower()}-agreement": f"SUPPLY AGREEMENT OF {law.upper()}\n\nThe governing law of the "
    f"agreement is the law of {law}. Payment is due upon notice of audit.\n\nThe term is {n} "
    f"years. An audit of the payment is of the essence; notice of the term is due.\n"
    for n, law in enumerate(LAWS, 2)
}
QUERIES = [
    ("q1", "Consider the Delaware agreement: what is the governing law?", 0, "the law of Delaware"),
    ("q2", "In the supply agreement of Ohio, what is the term?", 2, "The term is 4 years"),
    ("q3", "When is the payment due under the Maine agreement?", 4, "Payment is due upon notice"),
    ("q4", "?", 1, "the law of Texas"),  # no word: BM25 finds nothing, and a mark is a word piece
]
EXPERIMENT = """
corpus = "own"
depth = {depth}
[source]
kind = "directory"
documents = "{root}/docs"
queries = "{root}/queries.jsonl"
[chunkers]
recursive = {{ size = 60 }}
section = {{ cap = 80, floor = 30, overlap = 8 }}
sentences = {{ size = 80, overlap = 30 }}
summary_augmented = {{ size = 60 }}
[encoders.tiny]
model = "{root}/model"
max_length = 32
{configurations}
"""
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "recursive + rrf": {"retriever": "hybrid"},
    "recursive + cc": {"retriever": "hybrid", "fusion": "cc"},
    "recursive + cc half": {"retriever": "hybrid", "fusion": "cc", "alpha": 0.5},
    "recursive + cc + routing": {"retriever": "hybrid", "fusion": "cc", "routing": 2},
    "recursive + bm25 + routing": {"retriever": "bm25", "routing": 2, "routing_alpha": 0.9},
    "recursive + lucene + routing": {
        **{"retriever": "bm25", "routing_alpha": 0.9, "routing": 2, "bm25": "lucene"},
        **{"tokenizer": "unicode", "stemming": "english"},
    },
    "recursive + dense + routing, scoped": {"retriever": "dense", "routing": 2, "doc_scope": True},
    "section + cc": {"chunker": "section", "retriever": "hybrid", "fusion": "cc"},
    "sentences + cc": {"chunker": "sentences", "retriever": "hybrid", "fusion": "cc"},
    "summary + cc": {"chunker": "summary_augmented", "retriever": "hybrid", "fusion": "cc"},
    "summary + bm25": {"chunker": "summary_augmented", "retriever": "bm25"},
}
ROUTED = [name for name, settings in CONFIGURATIONS.items() if "routing" in settings]


def written() -> str:
    lines = []
    for name, settings in CONFIGURATIONS.items():
        lines += ["[[configurations]]", f"name = {json.dumps(name)}"]
        chosen = {"chunker": "recursive", "doc_scope": False} | settings
        lines += [f"{key} = {json.dumps(value)}" for key, value in chosen.items()]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, set[str]]:
    """A project that has run, and what that made; only the last test changes it."""
    root = tmp_path_factory.mktemp("levers")
    (root / "docs").mkdir()
    for doc_id, text in DOCUMENTS.items():
        (root / "docs" / f"{doc_id}.txt").write_text(text)
    lines = [
        {"query_id": q, "query": text, "doc_id": [*DOCUMENTS][doc], "gold_texts": [gold]}
        for q, text, doc, gold in QUERIES
    ]
    (root / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)))
    tiny_models.encoder(root / "model")
    experiments_folder = root / "checkout" / "data" / "experiments"
    experiments_folder.mkdir(parents=True)
    text = EXPERIMENT.format(root=root, depth=DEPTH, configurations=written())
    (experiments_folder / "own.toml").write_text(text)
    project = Project(root / "checkout", root / "checkout" / "warehouse")
    return project, names(run(project, "own"))


@pytest.fixture
def project(first: tuple[Project, set[str]]) -> Project:
    return first[0]


@pytest.fixture
def hand(project: Project) -> Hand:
    return Hand(project)


def table(project: Project, *key: str) -> list[dict[str, Any]]:
    path = project.parquet.joinpath("own", *key).with_suffix(".parquet")
    return pq.read_table(path, partitioning=None).to_pylist()


class Hand:
    """Cosines and BM25 scores of texts with a query, worked out on another path."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.encoder = experiments.load(
            project.root / "data" / "experiments" / "own.toml"
        ).encoders["tiny"]

    def vectors(self, texts: list[str]) -> np.ndarray:
        made = encoding.encode(
            texts,
            self.encoder,
            models=self.project.models,
            cache=self.project.vectors,
            names=texts,
        )
        return made.vectors.astype(np.float64)

    def dense(self, embedded: Mapping[str, str], query: str) -> dict[str, float]:
        found = self.vectors([query, *embedded.values()])
        asked, matrix = found[0], found[1:]
        length = np.linalg.norm(matrix, axis=1)  # of white space there is no vector
        scores = matrix @ asked / np.where(length == 0, 1, length) / np.linalg.norm(asked)
        found = zip(embedded, scores.tolist(), length.tolist(), strict=True)
        return {key: score for key, score, long in found if long}

    def bm25(self, texts: Mapping[str, str], query: str) -> dict[str, float]:
        words = {key: bm25.tokens(text) for key, text in texts.items()}
        asked = bm25.tokens(query)
        scores = BM25Okapi([*words.values()]).get_scores(asked)
        pairs = zip(words.items(), scores.tolist(), strict=True)
        return {key: score for (key, held), score in pairs if set(held) & set(asked)}


def top(scores: Mapping[str, float], inside: Iterable[str], depth: int) -> dict[str, float]:
    """The best of those inside; ``scores`` are in chunk order, which breaks ties."""
    allowed = set(inside)
    found = [(key, score) for key, score in scores.items() if key in allowed]
    return dict(sorted(found, key=lambda pair: -round(pair[1], 14))[:depth])


def combined(dense: Mapping[str, float], sparse: Mapping[str, float], alpha: float) -> list:
    """(key, score), best first, as the specification states it."""
    scores: dict[str, float] = {}
    for weight, channel in ((1 - alpha, dense), (alpha, sparse)):
        low, high = min(channel.values(), default=0), max(channel.values(), default=0)
        for key, score in channel.items():
            scaled = (score - low) / (high - low) if high - low > 1e-14 else 0.5
            scores[key] = scores.get(key, 0.0) + weight * scaled
    place = [[*channel] for channel in (dense, sparse)]

    def order(key: str) -> tuple[float, int, str]:
        return (-round(scores[key], 9), min(p.index(key) for p in place if key in p), key)

    return [(key, scores[key]) for key in sorted(scores, key=order)]


def chunk_texts(project: Project, chunker: str) -> dict[str, str]:
    rows = table(project, "chunks", chunker)
    return {r["chunk_id"]: DOCUMENTS[r["doc_id"]][r["start_char"] : r["end_char"]] for r in rows}


def ranked(project: Project, config: str, query: str) -> list[tuple[str, float]]:
    rows = table(project, "rankings", experiments.slug(config))
    return [(r["chunk_id"], r["score"]) for r in rows if r["query_id"] == query]


def kept(project: Project, config: str, query: str) -> list[tuple[str, float]]:
    rows = table(project, "routing", experiments.slug(config))
    return [(r["doc_id"], r["score"]) for r in rows if r["query_id"] == query]


def same(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert [s for _, s in found] == pytest.approx([s for _, s in expected], abs=1e-6)


def test_only_what_routes_has_a_routing_asset(first: tuple[Project, set[str]]):
    routed = {name for name in first[1] if "/routing/" in name}
    assert routed == {f"own/routing/{slug}" for slug in map(experiments.slug, ROUTED)}
    # BM25 with routing needs an encoder, but no vectors of chunks.
    assert {name for name in first[1] if "/embeddings/" in name} == {
        f"own/embeddings/{c}" for c in ("recursive", "section", "sentences", "summary_augmented")
    }


def test_fused_as_stated(project: Project, hand: Hand) -> None:
    for config, chunker, alpha in (
        ("recursive + cc", "recursive", 0.2),
        ("recursive + cc half", "recursive", 0.5),
        ("section + cc", "section", 0.2),
        ("sentences + cc", "sentences", 0.2),
    ):
        texts = chunk_texts(project, chunker)
        for query_id, query, _, _ in QUERIES:
            dense = top(hand.dense(texts, query), texts, DEPTH)
            sparse = top(hand.bm25(texts, query), texts, DEPTH)
            same(ranked(project, config, query_id), combined(dense, sparse, alpha)[:DEPTH])
    lists = {c: [ranked(project, c, q[0]) for q in QUERIES] for c in [*CONFIGURATIONS][:3]}
    assert len({str(found) for found in lists.values()}) == 3  # each fusion says something else


def test_routed_as_stated(project: Project, hand: Hand) -> None:
    texts = chunk_texts(project, "recursive")
    of_document = {
        doc_id: f"{doc_id}\n{' '.join(text.split())}" for doc_id, text in DOCUMENTS.items()
    }
    order = sorted(of_document)
    of_document = {doc_id: of_document[doc_id] for doc_id in order}
    for query_id, query, doc, _ in QUERIES:
        near, worded = hand.dense(of_document, query), hand.bm25(of_document, query)
        best = [top(scores, order, len(order)) for scores in (near, worded)]
        for config, alpha in (
            ("recursive + cc + routing", 0.3),
            ("recursive + bm25 + routing", 0.9),
        ):
            same(kept(project, config, query_id), combined(*best, alpha)[:2])
        documents = {doc_id for doc_id, _ in kept(project, "recursive + cc + routing", query_id)}
        inside = [c for c in texts if c.rpartition(":recursive:")[0] in documents]
        dense = top(hand.dense(texts, query), inside, DEPTH)
        sparse = top(hand.bm25(texts, query), inside, DEPTH)
        expected = combined(dense, sparse, 0.2)[:DEPTH]
        same(ranked(project, "recursive + cc + routing", query_id), expected)
        # Scope and routing must both hold: where the document was not kept, nothing is left.
        scoped = ranked(project, "recursive + dense + routing, scoped", query_id)
        own = [*DOCUMENTS][doc]
        assert bool(scoped) == (own in documents)
        assert {c.rpartition(":recursive:")[0] for c, _ in scoped} <= {own}
    only_bm25 = {
        q: kept(project, "recursive + bm25 + routing", q)[0][0] for q in ("q1", "q2", "q3")
    }
    assert only_bm25 == {
        "q1": "delaware-agreement",
        "q2": "ohio-agreement",
        "q3": "maine-agreement",
    }


def test_words_are_matched_as_stated(project: Project, hand: Hand) -> None:
    config = "recursive + lucene + routing"
    texts = chunk_texts(project, "recursive")
    of_document = {d: f"{d}\n{' '.join(DOCUMENTS[d].split())}" for d in sorted(DOCUMENTS)}
    for query_id, query, _, _ in QUERIES:
        near = top(hand.dense(of_document, query), [*of_document], len(of_document))
        worded = top(lucene(of_document, query), [*of_document], len(of_document))
        same(kept(project, config, query_id), combined(near, worded, 0.9)[:2])
        documents = dict(kept(project, config, query_id))
        inside = [c for c in texts if c.rpartition(":recursive:")[0] in documents]
        expected = top(lucene(texts, query), inside, DEPTH)
        same(ranked(project, config, query_id), [*expected.items()])
    pairs = {(r["lever"], r["from_config"], r["to_config"]) for r in table(project, "config_pairs")}
    assert ("lexical matching", "recursive + bm25 + routing", config) in pairs
    stats = {(r["config"], r["stat"]): r["value"] for r in table(project, "config_stats")}
    assert stats[config, "bm25_queries_without_token"] == 1
    assert stats[config, "routing_bm25_average_idf"] > 0
    assert stats[config, "bm25_letters_outside"] == 0
    assert ("recursive + dense + routing, scoped", "bm25_average_idf") not in stats
    report = (project.reports / "own" / "developer.md").read_text(encoding="utf-8")
    assert "lucene, unicode words, english stems" in report


def lucene(texts: Mapping[str, str], query: str) -> dict[str, float]:
    """Scores by Lucene's formula, of the texts that hold a word of the query."""
    tokens = Tokenizer("unicode", "english")
    held = {key: Counter(tokens(text)) for key, text in texts.items()}
    average = sum(n.total() for n in held.values()) / len(held)
    scores: dict[str, float] = {}
    for word in tokens(query):
        holders = sum(word in n for n in held.values())
        idf = math.log(1 + (len(held) - holders + 0.5) / (holders + 0.5))
        for key, n in held.items():
            if n[word]:
                norm = 1.5 * (0.25 + 0.75 * n.total() / average)
                scores[key] = scores.get(key, 0) + idf * n[word] / (n[word] + norm)
    return scores


def test_cards_are_embedded_and_nothing_else(project: Project, hand: Hand) -> None:
    texts = chunk_texts(project, "summary_augmented")
    bare = chunk_texts(project, "recursive")
    assert [*texts.values()] == [*bare.values()]  # the card is in no span
    rows = {r["chunk_id"]: r for r in table(project, "embeddings", "summary_augmented")}
    plain = {r["chunk_id"]: r for r in table(project, "embeddings", "recursive")}
    for chunk_id, text in texts.items():
        doc_id = chunk_id.rpartition(":summary_augmented:")[0]
        card = cards.card(doc_id, doc_id, DOCUMENTS[doc_id], cards.PREFIX_CHARS)
        (expected,) = hand.vectors([f"{card}\n\n{text}"])
        assert rows[chunk_id]["vector"] == pytest.approx(expected.tolist())
        # The card counts among the word pieces, so that what is cut off is told.
        without = plain[chunk_id.replace(":summary_augmented:", ":recursive:")]
        assert rows[chunk_id]["n_tokens"] > without["n_tokens"]
    stats = {(r["chunker"], r["stat"]): r["value"] for r in table(project, "chunk_stats")}
    assert stats["summary_augmented", "truncated_share"] == 1.0
    assert stats["recursive", "truncated_share"] < 1.0
    for query_id, query, _, _ in QUERIES:  # BM25 sees the text alone
        expected = [*top(hand.bm25(texts, query), texts, DEPTH).items()]
        same(ranked(project, "summary + bm25", query_id), expected)


def test_routing_recall_is_measured(project: Project) -> None:
    for config in ("recursive + cc + routing", "recursive + bm25 + routing"):
        rows = table(project, "query_metrics", experiments.slug(config))
        found = {r["query_id"]: r["value"] for r in rows if r["metric"] == "routing_recall"}
        assert {r["k"] for r in rows if r["metric"] == "routing_recall"} == {2}
        expected = {
            query_id: float([*DOCUMENTS][doc] in dict(kept(project, config, query_id)))
            for query_id, _, doc, _ in QUERIES
        }
        assert found == expected
        (mean,) = [
            r["value"]
            for r in table(project, "config_metrics")
            if (r["config"], r["metric"], r["subset"]) == (config, "routing_recall", None)
        ]
        assert mean == sum(expected.values()) / len(expected)
    unrouted = table(project, "query_metrics", "recursive_cc")
    assert "routing_recall" not in {r["metric"] for r in unrouted}
    pairs = {(r["lever"], r["from_config"], r["to_config"]) for r in table(project, "config_pairs")}
    assert ("document routing", "recursive + cc", "recursive + cc + routing") in pairs
    assert ("hybrid retrieval", "recursive + cc", "recursive + cc half") in pairs
    report = (project.reports / "own" / "developer.md").read_text(encoding="utf-8")
    assert "routing_recall@2" in report
    assert "cc, alpha = 0.5" in report


def test_a_lever_runs_what_it_decides_and_no_more(project: Project):
    edit(project, "own", "alpha = 0.5", "alpha = 0.7")
    assert of_retrieval(run(project, "own")) == {"own/rankings/recursive_cc_half"}
    of_one = "routing = 2\nrouting_alpha = 0.9"
    edit(project, "own", of_one, of_one.replace("0.9", "0.0"))
    routed = {f"own/{stage}/recursive_bm25_routing" for stage in ("routing", "rankings")}
    assert of_retrieval(run(project, "own")) == routed


def of_retrieval(result: Result) -> set[str]:
    """The assets that were made, up to rankings."""
    early = ("chunks", "embeddings", "routing", "rankings")
    return {name for name in names(result) if name.split("/")[1:2] and name.split("/")[1] in early}
