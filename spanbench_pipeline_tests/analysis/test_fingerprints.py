"""What moves a fingerprint, and what must not."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline.analysis.fingerprints import (
    by_config,
    chunk_chars,
    digest,
    fingerprints,
    parameters,
    same_chunks,
    table_hash,
)
from spanbench_pipeline.config.experiment import (
    ChunkerSettings,
    Configuration,
    Encoder,
    Experiment,
    Reranker,
)
from spanbench_pipeline.core import tables

DOCUMENT = {
    "corpus": "c",
    "doc_id": "A",
    "title": "A",
    "n_chars": 3,
    "text": "abc",
    "text_sha256": "ba78",
    "source_file": "A.txt",
    "extractor": "utf-8",
    "metadata": [("year", "2001")],
}
QUERY = {
    "corpus": "c",
    "query_id": "q1",
    "query": "what?",
    "clause_type": None,
    "subset": None,
    "doc_id": "A",
    "filters": [],
}
GOLD = {
    "corpus": "c",
    "query_id": "q1",
    "span_no": 0,
    "doc_id": "A",
    "start_char": 0,
    "end_char": 2,
    "text": "ab",
}
CHUNK = {
    "corpus": "c",
    "chunker": "whole",
    "chunk_id": "A:whole:0",
    "doc_id": "A",
    "chunk_no": 0,
    "start_char": 0,
    "end_char": 3,
}
EXPERIMENT = Experiment(
    "c",
    Path("c.toml"),
    "",
    {},
    {"whole": ChunkerSettings("whole", "naive", {"size": 9, "step": 9})},
    (
        Configuration("plain", "whole", "bm25"),
        Configuration("both", "whole", "hybrid", encoder="mini"),
    ),
    {"mini": Encoder("mini", package="p")},
)


def made(
    experiment: Experiment = EXPERIMENT, carded: tuple[str, ...] = (), **rows: dict[str, Any]
) -> pa.Table:
    given = {"documents": DOCUMENT, "queries": QUERY, "gold_spans": GOLD, "chunks": CHUNK}
    table = {name: tables.from_rows(name, [given[name] | rows.get(name, {})]) for name in given}
    return fingerprints(
        experiment,
        table["documents"],
        table["queries"],
        table["gold_spans"],
        {"whole": table["chunks"]},
        {"mini": "w1", "cross": "w9"},
        carded,
    )


def test_each_configuration_has_what_it_uses():
    found = by_config(made())
    assert found.keys() == {None, "plain", "both"}
    counts = {name: found[None][name] for name in ("n_documents", "n_queries", "depth")}
    assert counts == {"n_documents": "1", "n_queries": "1", "depth": "30"}
    assert found["both"].keys() == {
        *("chunker", "chunker_parameters", "chunks", "n_chunks", "chunk_chars"),
        *("retriever", "doc_scope", "metadata_filters", "fusion"),
        *("encoder", "encoder_weights", "encoder_normalized"),
        *("index_fingerprint", "ranking_fingerprint"),
    }
    named = ("chunker", "n_chunks", "retriever", "doc_scope", "metadata_filters")
    assert [found["both"][name] for name in named] == ["whole", "1", "hybrid", "True", "False"]
    assert found["both"]["encoder_weights"] == "w1"
    assert found["both"]["encoder_normalized"] == "yes"
    assert by_config(made(encoder(normalize=False)))["both"]["encoder_normalized"] == "no"
    assert found["both"]["fusion"] == "rrf, rrf_k = 60"
    assert not {"encoder", "encoder_weights", "fusion"} & found["plain"].keys()
    assert found["plain"]["chunks"] == found["both"]["chunks"]


def test_how_words_are_matched_is_told_where_it_is_not_the_default():
    plain, both = EXPERIMENT.configurations
    usual = by_config(made())
    lucene = replace(plain, bm25="lucene", tokenizer="unicode", stemming="czech")
    idle = replace(both, retriever="dense", tokenizer="unicode")
    other = replace(EXPERIMENT, configurations=(lucene, idle))
    found = by_config(made(other))
    assert found["plain"]["bm25"] == "lucene, unicode words, czech stems"
    added = {"bm25", "bm25_unicode", "bm25_snowballstemmer"}
    assert found["plain"].keys() == usual["plain"].keys() | added
    assert found["plain"]["ranking_fingerprint"] != usual["plain"]["ranking_fingerprint"]
    assert found["plain"]["index_fingerprint"] == usual["plain"]["index_fingerprint"]
    assert not added & found["both"].keys()
    # What segments decides where there is something to segment: in a text, a title, a query.
    for rows in ({"queries": {"query": "期限"}}, {"documents": {"title": "สัญญา"}}):
        assert "bm25_segmentation" in by_config(made(other, **rows))["plain"]
        assert "bm25_segmentation" not in by_config(made(**rows))["plain"]


def test_fusion_routing_and_cards_are_told_apart():
    plain, both = EXPERIMENT.configurations
    other = (
        replace(plain, routing=3, encoder="mini"),
        replace(both, fusion="cc", alpha=0.5, rrf_k=1),
    )
    found = by_config(made(replace(EXPERIMENT, configurations=other), ("whole",)))
    assert found["both"]["fusion"] == "cc, alpha = 0.5"
    assert found["plain"]["routing"] == "3 documents, alpha = 0.3"
    assert found["plain"]["encoder_weights"] == "w1"  # it chooses documents
    # BM25 never sees a card; without one nothing is said of it.
    assert found["both"]["embedded"] == "card and text"
    assert "embedded" not in found["plain"]
    assert "embedded" not in by_config(made())["both"]
    assert "routing" not in found["both"]


@pytest.mark.parametrize(
    ("table", "column", "value", "moves"),
    [
        ("documents", "text_sha256", "ba79", "documents"),
        ("documents", "doc_id", "B", "documents"),
        ("documents", "metadata", [("year", "2002")], "documents"),
        ("documents", "title", "other", None),
        ("documents", "source_file", "other", None),
        ("queries", "query", "who?", "queries"),
        ("queries", "filters", [("year", "2001")], "queries"),
        ("queries", "clause_type", "other", None),
        ("gold_spans", "end_char", 3, "gold_spans"),
        ("gold_spans", "start_char", 1, "gold_spans"),
    ],
)
def test_what_decides_a_figure_moves_the_hash(table: str, column: str, value: Any, moves: Any):
    before, after = by_config(made())[None], by_config(made(**{table: {column: value}}))[None]
    moved = [name for name in before if before[name] != after[name]]
    assert moved == ([moves] if moves else [])


def test_chunks_count_by_their_cuts_alone():
    before = by_config(made())["plain"]["chunks"]
    assert (
        by_config(made(chunks={"chunker": "x", "chunk_id": "A:x:0"}))["plain"]["chunks"] == before
    )
    assert by_config(made(chunks={"end_char": 2}))["plain"]["chunks"] != before


def test_the_order_of_rows_does_not_matter_and_their_number_does():
    rows = [GOLD, GOLD | {"span_no": 1, "start_char": 2, "end_char": 3}]
    table = tables.from_rows("gold_spans", rows)
    assert table_hash("gold_spans", table) == table_hash("gold_spans", table.take([1, 0]))
    assert table_hash("gold_spans", table) != table_hash("gold_spans", table.slice(0, 1))


def test_a_hash_of_rows_is_that_of_their_json_sorted():
    # What is on record was hashed so: another way of writing it would be another corpus.
    rows = [GOLD | {"doc_id": "Ä", "span_no": 1}, GOLD]
    written = '["q1", "A", 0, 2]\n["q1", "Ä", 0, 2]'
    found = table_hash("gold_spans", tables.from_rows("gold_spans", rows))
    assert found == hashlib.sha256(written.encode()).hexdigest()


def test_a_reranker_and_its_weights_are_on_record():
    both = replace(EXPERIMENT.configurations[1], reranker="cross")
    experiment = replace(
        EXPERIMENT,
        configurations=(EXPERIMENT.configurations[0], both),
        rerankers={"cross": Reranker("cross", "m", max_length=99)},
    )
    found = by_config(made(experiment))
    assert found["both"]["reranker"] == "cross, at most 99 word pieces"
    assert found["both"]["reranker_weights"] == "w9"
    assert not {"reranker", "reranker_weights"} & found["plain"].keys()


def test_a_digest_covers_the_corpus_and_its_configuration_only():
    whole = by_config(made())
    tuned = replace(EXPERIMENT.configurations[1], rrf_k=10)
    other = by_config(
        made(replace(EXPERIMENT, configurations=(EXPERIMENT.configurations[0], tuned)))
    )
    assert digest(whole, "plain") == digest(other, "plain")
    assert digest(whole, "both") != digest(other, "both")
    moved = by_config(made(gold_spans={"end_char": 3}))
    assert digest(whole, "plain") != digest(moved, "plain")
    turned = {config: dict(reversed(prints.items())) for config, prints in whole.items()}
    assert digest(turned, "both") == digest(whole, "both")


def test_parameters_and_the_lengths_of_chunks_are_on_record():
    found = by_config(made())["plain"]
    assert found["chunker_parameters"] == 'naive {"size": 9, "step": 9}'
    assert found["chunk_chars"] == "3 to 3, quartiles 3, 3, 3"
    # In whatever order they are set, and of whatever kind.
    settings = ChunkerSettings("whole", "own", {"step": 9, "since": date(2001, 2, 3)})
    assert parameters(settings) == 'own {"since": "2001-02-03", "step": 9}'


def test_lengths_of_chunks_by_hand():
    def lengths(*chars: int) -> str:
        rows = [
            CHUNK | {"chunk_id": str(n), "start_char": 100, "end_char": 100 + c}
            for n, c in enumerate(chars)
        ]
        return chunk_chars(tables.from_rows("chunks", rows))

    # Sorted 1 2 5 7 9 30: positions 6/4 = 1, 3 and 18/4 = 4.
    assert lengths(30, 2, 9, 7, 1, 5) == "1 to 30, quartiles 2, 7, 9"
    assert lengths(1, 2) == "1 to 2, quartiles 1, 2, 2"
    assert lengths() == "no chunks"


HASHES = ("index_fingerprint", "ranking_fingerprint")


def moved(experiment: Experiment = EXPERIMENT, **rows: dict[str, Any]) -> dict[str, list[str]]:
    """Configuration -> the hashes that are others than those of the experiment as it is."""
    before, after = by_config(made()), by_config(made(experiment, **rows))
    return {
        config: [name for name in HASHES if before[config][name] != after[config][name]]
        for config in ("plain", "both")
    }


def chunker(**params: int) -> Experiment:
    return replace(EXPERIMENT, chunkers={"whole": ChunkerSettings("whole", "naive", params)})


def encoder(**settings: Any) -> Experiment:
    return replace(EXPERIMENT, encoders={"mini": Encoder("mini", package="p", **settings)})


EVERY, NONE, LAST = list(HASHES), [], ["ranking_fingerprint"]


@pytest.mark.parametrize(
    ("change", "plain", "both"),
    [
        (lambda: moved(), NONE, NONE),
        # What the index is made of, to the letter; BM25 alone has no encoder.
        (lambda: moved(documents={"text_sha256": "ba79"}), EVERY, EVERY),
        (lambda: moved(chunks={"end_char": 2}), EVERY, EVERY),
        (lambda: moved(chunker(size=9, step=8)), EVERY, EVERY),
        (lambda: moved(encoder(max_length=9)), NONE, EVERY),
        (lambda: moved(encoder(normalize=False)), NONE, EVERY),
        # What is asked of it, and how.
        (lambda: moved(queries={"query": "who?"}), LAST, LAST),
        (lambda: moved(replace(EXPERIMENT, depth=9)), LAST, LAST),
        (
            lambda: moved(
                replace(
                    EXPERIMENT,
                    configurations=(
                        replace(EXPERIMENT.configurations[0], doc_scope=False),
                        replace(EXPERIMENT.configurations[1], rrf_k=9),
                    ),
                )
            ),
            LAST,
            LAST,
        ),
        # What is judged by: the same rankings.
        (lambda: moved(gold_spans={"end_char": 3}), NONE, NONE),
        (lambda: moved(documents={"title": "other"}), NONE, NONE),
    ],
)
def test_one_hash_of_the_index_and_one_of_the_rankings(change: Any, plain: Any, both: Any):
    assert change() == {"plain": plain, "both": both}


def test_another_models_weights_are_another_index():
    def index(weights: str) -> str:
        empty = [tables.empty(name) for name in ("documents", "queries", "gold_spans")]
        chunks = {"whole": tables.empty("chunks")}
        table = fingerprints(EXPERIMENT, *empty, chunks, {"mini": weights})
        return by_config(table)["both"]["index_fingerprint"]

    assert index("w1") != index("w2")


def test_configurations_in_groups_that_search_the_same_chunks():
    prints: dict[str | None, dict[str, str]] = {
        c: {"chunks": h} for c, h in {"a": "1", "b": "2", "c": "1"}.items()
    }
    assert same_chunks(prints, ["a", "b", "c"]) == [["a", "c"], ["b"]]
    assert same_chunks(prints, ["b"]) == [["b"]]
    assert same_chunks(prints, []) == []
