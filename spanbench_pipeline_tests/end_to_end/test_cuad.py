"""The published figures, from the archive to the warehouse, and what a change of a lever costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import results_table
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.corpora.fetch import fetch_cuad
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT, copy_experiment, edit

pytestmark = pytest.mark.integration

MEMBER = "6170e713db6211f556c6ae3d921912ef8948d479ec6507f408f9ba73a2788f2b"

# The published table: precision@5, recall@10, mrr, span_coverage@5, span_recall@5,
# complete_grounding@5 of each configuration that needs no reranker.
PUBLISHED = {
    "naive": (0.276, 0.751, 0.607, 0.705, 0.701, 0.580),
    "clause": (0.208, 0.800, 0.641, 0.735, 0.723, 0.660),
    "clause + bm25": (0.196, 0.820, 0.616, 0.659, 0.662, 0.580),
    "clause + hybrid": (0.240, 0.857, 0.700, 0.823, 0.818, 0.700),
    "clause, unfiltered": (0.064, 0.203, 0.166, 0.213, 0.207, 0.140),
}
METRICS = ["precision", "recall", "mrr", "span_coverage", "span_recall", "complete_grounding"]
CHUNKERS = {
    "naive": {
        "n_chunks": 1103,
        "median_chars": 1000,
        "spans_in_one_chunk": 0.430,
        "relevant_per_query": 2.70,
        "precision_ceiling": 0.504,
        "spans_contained": 0.719,
    },
    "clause": {
        "n_chunks": 972,
        "median_chars": 797,
        "spans_in_one_chunk": 0.991,
        "relevant_per_query": 1.58,
        "precision_ceiling": 0.312,
    },
}


@pytest.fixture(scope="module")
def project(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the corpus cuad, run once with the exact engine."""
    root = tmp_path_factory.mktemp("cuad")
    (root / "data" / "experiments").mkdir(parents=True)
    (root / "workspace.yaml").write_text("load_from: []\n")
    made = Project(root, root / "warehouse")
    copy_experiment(made, "cuad")
    fetch_cuad(made, archive=shared / "data" / "cuad" / "data.zip", sha256=MEMBER, progress=False)
    result = run(made)
    assert not result.failures
    assert not result.held
    return made


def run(project: Project, dense_engine: str | None = None) -> Result:
    graph = graphs.build(project, dense_engine)
    assert not graph.broken
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of(["cuad"])).run()


def sql(project: Project, query: str, capsysbinary) -> list[dict]:
    """Through the command, as an analyst asks; the views are the temporary home's."""
    from spanbench_pipeline.cli.sql import sql as command

    command(project, query, "json", None)
    return json.loads(capsysbinary.readouterr().out)


def check_published(project: Project, capsysbinary) -> None:
    rows = sql(project, "SELECT * FROM config_metrics WHERE subset IS NULL", capsysbinary)
    found = {(r["config"], r["metric"]): r["value"] for r in rows}
    assert {config for config, _ in found} == set(PUBLISHED)
    for config, values in PUBLISHED.items():
        for metric, value in zip(METRICS, values, strict=True):
            assert f"{found[config, metric]:.3f}" == f"{value:.3f}", (config, metric)


def test_every_published_cell_with_the_exact_engine(project: Project, capsysbinary):
    check_published(project, capsysbinary)


def lists(project: Project) -> dict[str, bytes]:
    """What the channels found and what the configurations return, byte by byte."""
    folders = (project.parquet / "cuad" / stage for stage in ("candidates", "rankings"))
    return {str(path): path.read_bytes() for folder in folders for path in folder.iterdir()}


def test_every_published_cell_with_qdrant_and_identical_rankings(project: Project, capsysbinary):
    before = lists(project)
    assert len(before) > 8
    ran = {name(key) for key in run(project, "qdrant").materialized}
    searched = {"naive_dense", "clause_dense", "clause_dense_unscoped"}
    expected = {s.replace("_dense", "_dense_all_minilm_l6_v2") for s in searched}
    assert {a.split("/")[2] for a in ran if a.startswith("cuad/candidates/")} == expected
    assert lists(project) == before
    # Identical lists stop the cascade; only reports name the engine.
    assert not {asset for asset in ran if "metrics" in asset or "rankings" in asset}
    check_published(project, capsysbinary)
    run(project)


def test_the_readme_shows_these_figures(project: Project):
    shown = results_table.show(project, graphs.build(project).experiments["cuad"])
    assert shown in (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_chunker_table(project: Project, capsysbinary):
    rows = sql(project, "SELECT chunker, stat, value FROM chunk_stats", capsysbinary)
    found = {(r["chunker"], r["stat"]): r["value"] for r in rows}
    for chunker, stats in CHUNKERS.items():
        for stat, value in stats.items():
            tolerance = 0.5 if value > 100 else 0.005 if value > 1 else 0.0005
            assert found[chunker, stat] == pytest.approx(value, abs=tolerance), (chunker, stat)


def test_labels_on_naive(project: Project, capsysbinary):
    rows = sql(
        project,
        "SELECT label, count(*) AS n FROM failure_labels WHERE config = 'naive' GROUP BY label",
        capsysbinary,
    )
    assert {r["label"]: r["n"] for r in rows} == {"chunk-severance": 15, "rank-miss": 6}


def test_configurations_without_weights_are_in_configs_with_the_reason_and_nowhere_else(
    project: Project, capsysbinary
):
    rows = sql(project, "SELECT config, state FROM configs", capsysbinary)
    states = {r["config"]: r["state"] for r in rows}
    absent = {"clause + rerank", "clause + hybrid + rerank"}
    assert {c for c, state in states.items() if state == "measured"} == set(PUBLISHED)
    for config in absent:
        assert states[config].startswith("not measured: the weights of cross-encoder/")
    for table in ("rankings", "query_metrics", "config_metrics", "failure_labels", "config_stats"):
        rows = sql(project, f"SELECT DISTINCT config FROM {table}", capsysbinary)
        assert {r["config"] for r in rows} == set(PUBLISHED)
    for report in ("developer", "client"):
        text = (project.reports / "cuad" / f"{report}.html").read_text()
        if report == "developer":
            assert "not measured" in text
            assert MEMBER in text


def test_a_second_run_does_nothing_and_a_chunkers_parameter_costs_its_branch(project: Project):
    assert run(project).materialized == []
    edit(project, "cuad", "max_chars = 2000", "max_chars = 1900")
    result = run(project)
    edit(project, "cuad", "max_chars = 1900", "max_chars = 2000")
    ran = {name(key) for key in result.materialized}
    assert "cuad/embeddings/clause" in ran
    assert not {asset for asset in ran if "/naive" in asset}
    assert not {asset for asset in ran if asset.endswith(("documents", "queries", "gold_spans"))}
    encoded = result.facts["cuad", "embeddings", "clause"]["texts encoded now"]
    old = set(texts(project, 2000))
    assert 0 < encoded == len(set(texts(project, 1900)) - old) < 200


def texts(project: Project, max_chars: int) -> list[str]:
    """The clause chunks' texts, cut afresh."""
    from spanbench_pipeline.chunkers import clause
    from spanbench_pipeline.storage import parquet

    stored = parquet.read(project.parquet / "cuad" / "documents.parquet", "documents").table
    return [
        text[start:end]
        for text in stored["text"].to_pylist()
        for start, end in clause.chunk(text, max_chars=max_chars)
    ]


def test_the_command_line_says_what_was_fetched(shared: Path, tmp_path: Path, capsys):
    arguments = ["--home", str(tmp_path), "fetch", "cuad", "--archive"]
    archive = str(shared / "data" / "cuad" / "data.zip")
    assert cli.main([*arguments, archive]) == 2
    refused = capsys.readouterr()
    assert MEMBER in refused.err
    assert "expected" in refused.err
    assert not list((tmp_path / "downloads").rglob("*")) if tmp_path.exists() else True
    assert cli.main([*arguments, archive, "--sha256", MEMBER]) == 0
    printed = capsys.readouterr().out
    assert MEMBER in printed
    assert "b8244103a4059e766e975aea82183be7ad37235297d15cbedafaad5a6955b210" in printed
    assert CHECKOUT.is_dir()
