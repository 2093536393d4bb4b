"""Configurations whose weights are absent: never zero, never dropped; stale when they arrive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spanbench_pipeline.cli import results_table
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, write_corpus
from spanbench_pipeline_tests.support import tiny_models

WITH_RERANKER = """
[rerankers.tiny]
model = "{model}"
max_length = 32
[[configurations]]
name = "clause + bm25 + rerank"
chunker = "clause"
retriever = "bm25"
reranker = "tiny"
"""
RERANKED = "clause + bm25 + rerank"


def runner(project: Project, instance) -> Runner:
    return Runner(project, instance, graphs.build(project).of(["own"]))


def run(project: Project) -> Result:
    with open_instance(project) as instance:
        result = runner(project, instance).run()
    assert not result.failures
    assert not result.failed_checks
    assert not result.held
    return result


def states(project: Project) -> dict[str, str]:
    path = project.parquet / "own" / "configs.parquet"
    rows = parquet.read(path, "configs").table.to_pylist()
    return {row["config"]: row["state"] for row in rows}


def test_a_configuration_without_weights_is_measured_when_they_arrive(
    tmp_path: Path, make_project: Callable[..., Project]
):
    write_corpus(tmp_path / "given")
    model = tmp_path / "weights"
    text = BM25_ONLY.format(
        corpus="own",
        documents=tmp_path / "given" / "docs",
        queries=tmp_path / "given" / "queries.jsonl",
    )
    project = make_project(own=text + WITH_RERANKER.format(model=model))
    run(project)
    state = states(project)
    assert state[RERANKED].startswith("not measured: ")
    assert set(state.values()) - {state[RERANKED]} == {"measured"}
    shown = results_table.show(project, graphs.build(project).experiments["own"])
    line = next(text for text in shown.splitlines() if text.startswith(RERANKED))
    assert line.endswith(state[RERANKED])
    for table in ("rankings", "query_metrics", "span_outcomes", "failure_labels"):
        path = project.parquet / "own" / table / "clause_bm25_rerank.parquet"
        stored = parquet.read(path, table)
        assert (stored.table.num_rows, stored.state) == (0, state[RERANKED])
    developer = (project.reports / "own" / "developer.md").read_text()
    assert "not measured" in developer
    assert run(project).materialized == []

    tiny_models.cross_encoder(model)
    with open_instance(project) as instance:
        stale = set(runner(project, instance).stale())
    # Reports and fingerprints state every model's weights: stale beside the rankings.
    assert {name(key) for key in stale} == {
        "own/rankings/clause_bm25_rerank",
        "own/fingerprints",
        "own/reports",
    }
    ran = {name(key) for key in run(project).materialized}
    assert {f"own/{t}/clause_bm25_rerank" for t in ("rankings", "query_metrics")} <= ran
    assert not {asset for asset in ran if asset.endswith(("/clause_bm25", "/naive_bm25"))}
    assert set(states(project).values()) == {"measured"}
    path = project.parquet / "own" / "rankings" / "clause_bm25_rerank.parquet"
    reranked = parquet.read(path, "rankings").table
    plain = parquet.read(path.with_name("clause_bm25.parquet"), "rankings").table
    assert sorted(reranked["chunk_id"].to_pylist()) == sorted(plain["chunk_id"].to_pylist())
    scores = reranked["score"].to_pylist()
    for query in set(reranked["query_id"].to_pylist()):
        of_query = [
            s for s, q in zip(scores, reranked["query_id"].to_pylist(), strict=True) if q == query
        ]
        assert of_query == sorted(of_query, reverse=True)


WITH_ROUTING = """
[encoders.tiny]
model = "{model}"
max_length = 32
[[configurations]]
name = "clause + bm25 + routing"
chunker = "clause"
retriever = "bm25"
doc_scope = false
routing = 1
"""


def test_bm25_with_routing_waits_for_the_encoder_that_chooses_documents(
    tmp_path: Path, make_project: Callable[..., Project]
):
    write_corpus(tmp_path / "given")
    model = tmp_path / "weights"
    text = BM25_ONLY.format(
        corpus="own",
        documents=tmp_path / "given" / "docs",
        queries=tmp_path / "given" / "queries.jsonl",
    )
    project = make_project(own=text + WITH_ROUTING.format(model=model))
    run(project)
    state = states(project)["clause + bm25 + routing"]
    assert state.startswith("not measured: ")
    for table, kind in (("routing", "routed_documents"), ("rankings", "rankings")):
        path = project.parquet / "own" / table / "clause_bm25_routing.parquet"
        stored = parquet.read(path, kind)
        assert (stored.table.num_rows, stored.state) == (0, state)

    tiny_models.encoder(model)
    ran = {name(key) for key in run(project).materialized}
    assert {f"own/{t}/clause_bm25_routing" for t in ("routing", "rankings")} <= ran
    assert set(states(project).values()) == {"measured"}
