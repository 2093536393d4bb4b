"""Each fault that a stored table can have fires the check of that name and stops what follows.

The fault is planted where it would arise, between computing a stage and storing its table, so that
everything else about the run is true: the file is the recorded one, and only a check can tell.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.checks import metamorphic
from spanbench_pipeline.cli import accept
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.metrics.scored_run import ScoredRun
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.stage import Reader
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, CONTRACTS, QUERIES
from spanbench_pipeline_tests.support import tiny_models

DENSE = """
[encoders.tiny]
model = "{model}"
max_length = 32
[[configurations]]
name = "clause"
chunker = "clause"
[[configurations]]
name = "naive"
chunker = "naive"
[[configurations]]
name = "routed"
chunker = "clause"
retriever = "hybrid"
fusion = "cc"
doc_scope = false
routing = 1
"""
Corrupt = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Fault:
    """A table's stage, what happens to it, and the check that must notice."""

    stage: str
    corrupt: Corrupt
    check: str

    @property
    def key(self) -> Key:
        return ("own", *self.stage.split("/"))


def with_column(table: pa.Table, name: str, values: list) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(
        at, table.schema.field(at), pa.array(values, table.schema.field(at).type)
    )


def change(name: str, change_value: Callable, where: Callable = lambda row: True) -> Corrupt:
    """Changes a column in the rows that ``where`` picks."""

    def corrupt(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        picked = [where(row) for row in rows]
        assert any(picked)
        values = [
            change_value(r[name]) if p else r[name] for r, p in zip(rows, picked, strict=True)
        ]
        return with_column(table, name, values)

    return corrupt


def both(*changes: Corrupt) -> Corrupt:
    def corrupt(table: pa.Table) -> pa.Table:
        for one in changes:
            table = one(table)
        return table

    return corrupt


def first(**equal: object) -> Callable:
    return lambda row: all(row[k] == v for k, v in equal.items())


def without(index: int) -> Corrupt:
    return lambda table: table.filter(pa.array(np.arange(table.num_rows) != index % table.num_rows))


def repeat_first(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 1), table])


def swap_texts(table: pa.Table) -> pa.Table:
    return with_column(table, "text", table["text"].to_pylist()[::-1])


def shifted_vectors(table: pa.Table) -> pa.Table:
    """Every vector moved by one row."""
    rows = [*range(1, table.num_rows), 0]
    at = table.schema.get_field_index("vector")
    return table.set_column(at, table.schema.field(at), table["vector"].take(rows))


def nan_vector(table: pa.Table) -> pa.Table:
    vectors = table["vector"].to_pylist()
    vectors[0] = [float("nan"), *vectors[0][1:]]
    return with_column(table, "vector", vectors)


def repeated_chunk(table: pa.Table) -> pa.Table:
    """The second chunk of the first list becomes its first once more."""
    rows = table.to_pylist()
    for column in ("chunk_id", "doc_id", "start_char", "end_char"):
        rows[1][column] = rows[0][column]
    return pa.Table.from_pylist(rows, table.schema)


def cut_short(table: pa.Table) -> pa.Table:
    """The first query's list loses its last chunk."""
    last = table["query_id"].to_pylist().count(table["query_id"][0].as_py()) - 1
    return without(last)(table)


swap_documents = change("doc_id", lambda d: {"alpha": "beta", "beta": "alpha"}[d])

ROUTED = "candidates/clause_bm25_unscoped_routed_routed"
FAULTS = [
    Fault("source_archive", change("sha256", lambda _: "0" * 64), "hashes_equal_the_files"),
    Fault("documents", swap_texts, "texts_equal_their_hashes"),
    Fault("documents", change("n_chars", lambda n: n + 1), "texts_equal_their_hashes"),
    Fault("documents", change("corpus", lambda _: "other"), "own_rows_only"),
    Fault("queries", repeat_first, "keys_unique"),
    Fault("gold_spans", change("start_char", lambda n: n + 1), "gold_spans_inside_text"),
    Fault("gold_spans", change("end_char", lambda _: 10**6), "gold_spans_inside_text"),
    Fault("gold_spans", without(0), "gold_spans_inside_text"),
    Fault(
        "chunks/naive",
        both(change("start_char", lambda n: n + 1), change("end_char", lambda n: n + 1)),
        "chunks_inside_text",
    ),
    Fault("chunks/naive", change("end_char", lambda _: 0), "chunks_inside_text"),
    # A window one character longer than the chunker is set to: still inside the text, and unique.
    Fault(
        "chunks/naive",
        change("end_char", lambda n: n + 1, lambda row: row["chunk_no"] == 0),
        "sizes_as_declared",
    ),
    Fault(
        "chunks/naive",
        change("end_char", lambda n: n - 1, lambda row: row["chunk_no"] == 0),
        "sizes_as_declared",
    ),
    Fault(
        "chunks/clause",
        change("end_char", lambda n: n + 300, lambda row: row["chunk_no"] == 0),
        "sizes_as_declared",
    ),
    Fault("chunks/naive", repeat_first, "keys_unique"),
    Fault("chunks/naive", repeat_first, "chunk_ids_unique"),
    Fault("chunks/clause", without(1), "every_character_in_a_chunk"),
    Fault(
        "chunks/clause",
        change("end_char", lambda n: n + 5, lambda row: row["chunk_no"] == 0),
        "no_undeclared_overlap",
    ),
    Fault("chunks/naive", change("chunker", lambda _: "clause"), "own_rows_only"),
    Fault("embeddings/clause", nan_vector, "sound_vectors"),
    Fault("embeddings/clause", change("vector", lambda v: [2 * x for x in v]), "sound_vectors"),
    # Sound vectors all of them, but each beside the id of the chunk that follows.
    Fault("embeddings/clause", shifted_vectors, "vectors_of_the_configured_model"),
    Fault(
        "embeddings/clause",
        change("vector", lambda v: v[:-1]),
        "vectors_of_the_configured_model",
    ),
    Fault(
        "embeddings/clause",
        change("chunk_id", lambda c: c.replace(":clause:", ":naive:")),
        "same_chunks_as_table",
    ),
    Fault("embeddings/clause", without(-1), "same_chunks_as_table"),
    Fault("candidates/naive_dense_tiny", cut_short, "lists_are_full"),
    Fault("candidates/naive_bm25", cut_short, "lists_are_full"),
    Fault("candidates/clause_bm25", lambda t: t.slice(0, 0), "lists_are_full"),
    Fault(
        "candidates/naive_bm25",
        change("doc_id", lambda d: {"alpha": "beta", "beta": "alpha"}[d]),
        "inside_scope",
    ),
    Fault("candidates/naive_bm25", change("query_id", lambda _: "q9"), "inside_scope"),
    Fault("candidates/naive_dense_tiny", repeated_chunk, "no_duplicate_chunks"),
    Fault("candidates/naive_dense_tiny", without(0), "ranks_without_holes"),
    Fault("candidates/naive_dense_tiny", change("score", lambda s: -s), "scores_in_order"),
    Fault(
        "candidates/naive_bm25",
        change("end_char", lambda n: n + 1),
        "offsets_of_the_chunk_table",
    ),
    Fault("routing/routed", change("doc_id", lambda _: "gamma"), "routed_documents_exist"),
    Fault("routing/routed", change("query_id", lambda q: q + "0"), "routed_documents_exist"),
    Fault("routing/routed", change("rank", lambda n: n + 1), "ranks_without_holes"),
    Fault("routing/routed", change("score", lambda _: float("nan")), "scores_in_order"),
    Fault("routing/routed", without(0), "routes_are_full"),
    Fault(ROUTED, swap_documents, "inside_scope"),
    Fault(
        "candidates/clause_bm25_unscoped_routed_routed", lambda t: t.slice(0, 1), "lists_are_full"
    ),
    Fault("rankings/naive", repeated_chunk, "no_duplicate_chunks"),
    Fault("rankings/naive", without(0), "ranks_without_holes"),
    Fault("rankings/naive_bm25", change("rank", lambda n: n + 30), "ranks_without_holes"),
    Fault("rankings/naive", cut_short, "made_of_its_candidates"),
    Fault("rankings/clause", lambda t: t.slice(0, 0), "made_of_its_candidates"),
    Fault(
        "rankings/naive_bm25", change("start_char", lambda n: n + 1), "offsets_of_the_chunk_table"
    ),
    Fault(
        "rankings/naive_bm25",
        change("chunk_id", lambda c: c.replace(":naive:", ":clause:") + "9"),
        "offsets_of_the_chunk_table",
    ),
    Fault(
        "rankings/naive_bm25",
        change("doc_id", lambda d: {"alpha": "beta", "beta": "alpha"}[d]),
        "offsets_of_the_chunk_table",
    ),
    Fault("rankings/naive_bm25", change("query_id", lambda _: "q9"), "made_of_its_candidates"),
    Fault("rankings/naive_bm25", change("bm25_rank", lambda n: n + 1), "made_of_its_candidates"),
    Fault("rankings/naive", change("bm25_rank", lambda _: 1), "made_of_its_candidates"),
    Fault("rankings/naive", change("score", lambda s: -s), "scores_in_order"),
    Fault("rankings/naive_bm25", change("score", lambda _: float("nan")), "scores_in_order"),
    Fault(
        "span_outcomes/naive_bm25",
        change("covered_chars", lambda _: 10**6),
        "outcomes_of_the_gold_spans",
    ),
    Fault("span_outcomes/naive_bm25", without(0), "outcomes_of_the_gold_spans"),
    Fault(
        "query_metrics/naive_bm25",
        change("value", lambda _: 1.5, first(metric="mrr")),
        "metrics_in_range",
    ),
    Fault("query_metrics/naive_bm25", without(0), "every_query_has_every_metric"),
    Fault("query_metrics/naive_bm25", lambda t: t.slice(0, 0), "every_query_has_every_metric"),
    Fault(
        "query_metrics/naive_bm25",
        change("value", lambda _: None, first(metric="mrr")),
        "every_query_has_every_metric",
    ),
    Fault(
        "query_metrics/naive_bm25",
        change("value", lambda v: 1 - v, first(metric="complete_grounding")),
        "span_metrics_follow_from_outcomes",
    ),
    Fault(
        "query_metrics/naive_bm25",
        change("value", lambda v: v / 2, first(metric="char_recall_union", k=16)),
        "recall_grows_with_depth",
    ),
    Fault(
        "query_metrics/clause_bm25",
        change("value", lambda _: 0.9, first(metric="char_precision_paper", k=2)),
        "scorings_agree_where_chunks_are_disjoint",
    ),
    Fault(
        "span_states/naive_bm25",
        change("state", lambda _: "partial", first(state="covered")),
        "states_follow_from_characters",
    ),
    Fault("span_states/naive_bm25", without(0), "states_follow_from_characters"),
    Fault(
        "span_states/naive_bm25",
        change("covered_chars", lambda n: n - 1, first(k=5, state="covered")),
        "same_characters_as_outcomes",
    ),
    Fault(
        "span_states/naive_bm25",
        change("lost_stage", lambda _: "cut", first(state="covered")),
        "stages_fit_the_lost_spans",
    ),
    Fault(
        "span_states/naive_bm25",
        change("lost_stage", lambda _: "routing", lambda row: row["lost_stage"] is not None),
        "stages_fit_the_lost_spans",
    ),
    Fault(
        "span_states/naive_bm25",
        change("covered_chars", lambda n: n - 1, first(k=8, state="covered")),
        "recall_follows_from_states",
    ),
    Fault("forensic_labels/naive_bm25", without(0), "one_label_a_query_and_k"),
    Fault(
        "forensic_labels/naive_bm25",
        change("label", lambda _: "ICR", first(k=8, label="OVR")),
        "labels_follow_from_states",
    ),
    Fault(
        "forensic_labels/naive_bm25",
        change("label", lambda _: "DRM", first(label="OVR")),
        "no_hit_beside_a_missed_document",
    ),
    Fault(
        "forensic_labels/naive_bm25",
        change("label", lambda _: "ICR", first(k=5, label="OVR")),
        "ok_is_complete_grounding",
    ),
    Fault(
        "forensic_labels/naive_bm25",
        change("label", lambda _: "SGP", first(label="OVR")),
        "one_span_has_no_gap",
    ),
    Fault(
        "forensic_labels/naive_bm25",
        change("excess", lambda _: 1e9, first(label="OVR")),
        "excess_within_bounds",
    ),
    Fault(
        "headroom/naive_bm25",
        change("value", lambda _: 0.9, first(bound="perfect")),
        "bounds_in_order",
    ),
    Fault("headroom/naive_bm25", without(0), "bounds_in_order"),
    Fault("headroom/naive_bm25", change("subset", lambda _: "x"), "means_of_the_parts"),
    Fault(
        "headroom/naive_bm25",
        change("value", lambda v: v / 2, first(bound="actual", k=5)),
        "actual_is_what_was_measured",
    ),
    Fault("label_cross", change("n_queries", lambda n: n + 1), "pairs_sum_to_queries"),
    Fault(
        "query_metrics/routed",
        change("value", lambda v: 1 - v, first(metric="routing_recall")),
        "routing_recall_follows_from_documents",
    ),
    Fault(
        "query_metrics/routed",
        lambda t: t.filter(pc.not_equal(t["metric"], "routing_recall")),
        "every_query_has_every_metric",
    ),
    Fault("failure_labels/naive_bm25", without(0), "labels_partition_failures"),
    Fault("failure_labels/naive_bm25", change("lever", lambda _: "luck"), "labels_are_known"),
    Fault("failure_labels/naive_bm25", change("evidence", lambda _: "{"), "labels_are_known"),
    Fault(
        "config_metrics",
        change("value", lambda v: v / 2, first(metric="mrr")),
        "means_equal_their_parts",
    ),
    Fault("config_metrics", change("n_queries", lambda n: n - 1), "means_equal_their_parts"),
    Fault(
        "clause_type_metrics",
        change("value", lambda v: v / 2, first(metric="span_recall")),
        "means_equal_their_parts",
    ),
    Fault(
        "chunk_stats",
        change("value", lambda v: v + 1, first(stat="n_chunks")),
        "counts_and_shares_sound",
    ),
    Fault(
        "chunk_stats",
        change("value", lambda _: 1.2, first(stat="spans_contained")),
        "counts_and_shares_sound",
    ),
    Fault(
        "config_stats",
        change("value", lambda _: 1.2, first(stat="wrong_document_share")),
        "shares_in_range",
    ),
    Fault("config_pairs", change("delta", lambda d: d + 0.5), "comparisons_follow_from_queries"),
    Fault("configs", without(0), "every_configuration_once"),
    Fault(
        "fingerprints",
        change("value", lambda v: v + "0", first(name="n_chunks")),
        "counts_of_the_tables",
    ),
    Fault(
        "fingerprints",
        lambda t: t.filter(pc.not_equal(t["name"], "chunker")),
        "counts_of_the_tables",
    ),
    Fault(
        "regression",
        change("current", lambda v: v / 2, first(metric="mrr")),
        "comparison_follows_from_queries",
    ),
    Fault("regression", change("verdict", lambda _: "improved"), "comparison_follows_from_queries"),
    Fault(
        "regression",
        change("changed_queries", lambda _: ["q1"]),
        "comparison_follows_from_queries",
    ),
    Fault(
        "metric_history",
        change("value", lambda v: v / 2, first(metric="mrr")),
        "history_equals_the_metrics",
    ),
    Fault("metric_history", without(0), "history_equals_the_metrics"),
    Fault("reports", change("sha256", lambda _: "0" * 64), "files_as_written"),
]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose corpus ``own`` has run: BM25 and a tiny encoder, one query unanswered."""
    root = tmp_path_factory.mktemp("faults")
    docs = root / "docs"
    docs.mkdir()
    for doc_id, text in CONTRACTS.items():
        (docs / f"{doc_id}.txt").write_text(text)
    asked = [*QUERIES, ("q4", "zebra?", "beta", "upon notice")]
    lines = [
        {"query_id": q, "query": text, "doc_id": d, "gold_texts": [gold], "clause_type": "Any"}
        for q, text, d, gold in asked
    ]
    (root / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)))
    text = BM25_ONLY.format(corpus="own", documents=docs, queries=root / "queries.jsonl")
    text += DENSE.format(model=tiny_models.encoder(root / "model"))
    experiments = root / "checkout" / "data" / "experiments"
    experiments.mkdir(parents=True)
    (experiments / "own.toml").write_text(text)
    project = Project(root / "checkout", root / "checkout" / "warehouse")
    for _ in range(2):  # and against itself
        result = run(project)
        assert not result.failures
        assert not result.failed_checks
        accept.accept(project, "own")
    return project


@pytest.fixture(scope="module")
def clean_graph(clean: Project) -> Graph:
    return graphs.build(clean)


def run(project: Project) -> Result:
    graph = graphs.build(project)
    assert not graph.broken
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of(["own"])).run()


@pytest.fixture
def project(clean: Project, tmp_path: Path) -> Project:
    """A copy of the clean project's home."""
    shutil.copytree(clean.home, tmp_path / "home")
    return Project(clean.root, tmp_path / "home")


def users(project: Project, key: Key) -> set[Key]:
    return {s.key for s in graphs.build(project).of(["own"]) if key in s.deps}


def plant(
    monkeypatch: pytest.MonkeyPatch, project: Project, key: Key, spoil: Callable[[Path], None]
) -> None:
    """Makes the stage stale, and spoils its file whenever it is written."""
    target = project.parquet / parquet.relative_path(key)
    target.unlink()
    write = parquet.write

    def spoiled(path: Path, *arguments, **named) -> parquet.Written:
        written = write(path, *arguments, **named)
        if path != target:
            return written
        spoil(path)
        return parquet.Written(parquet.file_sha256(path), written.state)

    monkeypatch.setattr(parquet, "write", spoiled)


def rewrite(corrupt: Corrupt) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        table = pq.read_table(path, partitioning=None)
        pq.write_table(corrupt(table).replace_schema_metadata(table.schema.metadata), path)

    return spoil


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


FIRST_OF_ITS_TABLE = list({f.stage.split("/")[0]: f for f in reversed(FAULTS)}.values())


def named(fault: Fault) -> str:
    return f"{fault.stage}-{fault.check}"


@pytest.mark.parametrize("fault", FIRST_OF_ITS_TABLE, ids=named)
def test_a_planted_fault_fires_its_check_and_stops_what_follows(
    project: Project, monkeypatch: pytest.MonkeyPatch, fault: Fault
):
    plant(monkeypatch, project, fault.key, rewrite(fault.corrupt))
    for _ in range(2):  # a failed check holds back in a later run too
        result = run(project)
        assert fault.check in result.failed_checks[fault.key]
        assert not users(project, fault.key) & set(result.materialized)


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in FIRST_OF_ITS_TABLE], ids=named)
def test_a_fault_breaks_a_check_that_stops_what_follows(
    clean_graph: Graph, clean: Project, tmp_path: Path, fault: Fault
):
    """What the runs above show of a failed check is true of every blocking one."""
    home = Project(clean.root, tmp_path / "home")
    unused = shutil.ignore_patterns("dagster", "cache")
    shutil.copytree(clean.home, home.home, copy_function=os.link, ignore=unused)
    stages = {stage.key: stage for stage in clean_graph.of(["own"])}
    path = stages[fault.key].path(home)
    table = pq.read_table(path, partitioning=None)
    path.unlink()  # the clean home's file stays as it is
    corrupted = fault.corrupt(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(corrupted, path)
    (check,) = (c for c in stages[fault.key].all_checks if c.name == fault.check)
    kinds = {key: stage.table for key, stage in stages.items()}
    assert check.find(Reader(home, stages[fault.key], kinds))
    assert check.blocking or not users(clean, fault.key)


@pytest.mark.parametrize("stage", ["chunks/naive", "query_metrics/clause"])
def test_a_truncated_file_breaks_every_check(
    project: Project, monkeypatch: pytest.MonkeyPatch, stage: str
):
    key = ("own", *stage.split("/"))
    plant(monkeypatch, project, key, truncate)
    result = run(project)
    expected = {c.name for s in graphs.build(project).stages if s.key == key for c in s.all_checks}
    assert set(result.failed_checks[key]) == expected
    assert not users(project, key) & set(result.materialized)


def test_every_check_of_the_graph_has_a_planted_fault(clean: Project):
    """A check that no fault fires is a check that nobody has seen work."""
    stages = graphs.build(clean).of(["own"])
    generic = {"keys_unique", "own_rows_only"}
    declared = {
        (s.key[1].split("/")[0], c.name)
        for s in stages
        if s.corpus == "own"
        for c in s.checks
        if c.blocking and c.name not in generic
    }
    of_the_code = {("forensic_labels", "survives_the_two_traps")}
    assert declared - of_the_code <= {(f.stage.split("/")[0], f.check) for f in FAULTS}


def test_scoring_that_is_blind_to_documents_is_noticed(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    """Not a table but the code is wrong: a rank's document counts for nothing."""

    def blind(rankings: pa.Table, gold_spans: pa.Table, _: object, queries: pa.Table) -> ScoredRun:
        (first, *_) = gold_spans["doc_id"].to_pylist()
        return joined(
            with_column(rankings, "doc_id", [first] * rankings.num_rows),
            with_column(gold_spans, "doc_id", [first] * gold_spans.num_rows),
            None,
            queries,
        )

    joined = metamorphic.scored_run
    monkeypatch.setattr(metamorphic, "scored_run", blind)
    key = ("own", "forensic_labels", "clause")
    (project.parquet / parquet.relative_path(key)).unlink()
    assert run(project).failed_checks[key] == ("survives_the_two_traps",)


def test_a_clean_table_breaks_no_check(clean: Project):
    assert run(clean).materialized == []
