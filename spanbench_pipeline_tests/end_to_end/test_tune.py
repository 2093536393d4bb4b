"""``spanbench tune`` on a corpus that has run, held to what the pipeline itself measures.

What the grid says of a setting must be what a run of a configuration with that setting gives, on
the queries that the command says it looked at.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.analysis.aggregate import mean
from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import tune as tune_command
from spanbench_pipeline.cli import tune_report
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.storage.results import ResultsStore
from spanbench_pipeline.tuning.lists import Corpus, Route, sources_of
from spanbench_pipeline_tests.end_to_end.conftest import names
from spanbench_pipeline_tests.support import tiny_models

LAWS = ("Delaware", "Texas", "Ohio", "Nevada", "Maine", "Utah", "Iowa", "Kansas", "Oregon", "Idaho")
LAWS += ("Alaska", "Hawaii")
DOCUMENTS = {
    f"{law.lower()}-agreement": f"SUPPLY AGREEMENT OF {law.upper()}\n\nThe governing law of the "
    f"agreement is the law of {law}. Payment is due upon notice of audit.\n\nThe term is {n} "
    f"years. An audit of the payment is of the essence; notice of the term is due.\n"
    for n, law in enumerate(LAWS, 2)
}
EXPERIMENT = """
corpus = "own"
depth = 6
[source]
kind = "directory"
documents = "{root}/docs"
queries = "{root}/queries.jsonl"
[chunkers]
recursive = {{ size = 60 }}
[encoders.tiny]
model = "{root}/model"
max_length = 32
"""
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "rrf": {"retriever": "hybrid"},
    "cc": {"retriever": "hybrid", "fusion": "cc"},
    "cc at 0.7": {"retriever": "hybrid", "fusion": "cc", "alpha": 0.7},
    "cc, 3 documents at 0.9": {
        "retriever": "hybrid",
        "fusion": "cc",
        "alpha": 0.4,
        "routing": 3,
        "routing_alpha": 0.9,
    },
    "bm25": {"retriever": "bm25"},
    "dense, scoped": {"retriever": "dense", "doc_scope": True},
    "cc, scoped": {"retriever": "hybrid", "fusion": "cc", "doc_scope": True},
}


def block(name: str, settings: dict[str, Any]) -> str:
    chosen = {"name": name, "chunker": "recursive", "doc_scope": False} | settings
    return "\n".join(["[[configurations]]", *(f"{k} = {json.dumps(v)}" for k, v in chosen.items())])


def run_measures(project: Project) -> None:
    """Runs what is measured by query, and nothing that comes of it."""
    graph = graphs.build(project)
    nodes = {stage.key: stage.node() for stage in graph.of(["own"])}
    wanted = [key for key in nodes if key[1:2] in (("query_metrics",), ("fingerprints",))]
    kept = staleness.ancestors(nodes, wanted)
    with open_instance(project) as instance:
        stages = [stage for stage in graph.of(["own"]) if stage.key in kept]
        names(Runner(project, instance, stages).run())


def query_lines() -> list[dict[str, Any]]:
    lines = []
    for n, law in enumerate(LAWS):
        asked = {"doc_id": [*DOCUMENTS][n]}
        law_of = f"Consider the {law} agreement: what is the governing law?"
        lines.append({"query": law_of, "gold_texts": [f"the law of {law}"]} | asked)
        term = f"In the supply agreement of {law}, what is the term?"
        lines.append({"query": term, "gold_texts": [f"The term is {n + 2} years"]} | asked)
    return [{"query_id": f"q{n:02}"} | line for n, line in enumerate(lines)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that has run; copy it to change it."""
    root = tmp_path_factory.mktemp("tune")
    (root / "docs").mkdir()
    for doc_id, text in DOCUMENTS.items():
        (root / "docs" / f"{doc_id}.txt").write_text(text)
    (root / "queries.jsonl").write_text("\n".join(map(json.dumps, query_lines())))
    tiny_models.encoder(root / "model")
    folder = root / "checkout" / "data" / "experiments"
    folder.mkdir(parents=True)
    blocks = [block(name, settings) for name, settings in CONFIGURATIONS.items()]
    (folder / "own.toml").write_text("\n".join([EXPERIMENT.format(root=root), *blocks]))
    project = Project(root / "checkout", root / "checkout" / "warehouse")
    run_measures(project)
    return project


Tune = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tune(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Tune:
    """Runs the command on the project, or a copy of it; gives its code, and what it printed."""

    def call(*arguments: str, of: Project = project) -> tuple[int, str, str]:
        monkeypatch.setattr("spanbench_pipeline.config.project.find", lambda home=None: of)
        code = cli.main(["tune", "own", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


TUNED: dict[str, dict[str, dict[str, Any]]] = {}
"""metric -> configuration -> what the command found, each made once."""


def results(tune: Tune, metric: str) -> dict[str, dict[str, Any]]:
    if metric not in TUNED:
        chosen = [a for c in CONFIGURATIONS if c != "dense, scoped" for a in ("--config", c)]
        code, shown, said = tune(*chosen, "--metric", metric, "--format", "json")
        assert (code, said) == (0, "")
        TUNED[metric] = {found["configuration"]: found for found in json.loads(shown)["results"]}
    return TUNED[metric]


def measured(project: Project, config: str, metric: str, k: int | None, queries: list[str]) -> Any:
    """The mean that the pipeline itself measured."""
    slug = experiments.slug(config)
    path = project.parquet / "own" / "query_metrics" / f"{slug}.parquet"
    rows = pq.read_table(path, partitioning=None).to_pylist()
    values = {r["query_id"]: r["value"] for r in rows if (r["metric"], r["k"]) == (metric, k)}
    return mean([values[query] for query in queries])


@pytest.mark.parametrize("metric", ["complete_grounding@5", "char_recall_union@4", "span_recall@5"])
def test_the_grid_holds_what_a_run_measures(project: Project, tune: Tune, metric: str):
    found = results(tune, metric)["cc"]
    name, k = metric.split("@")
    development = found["split"]["development"]["queries"]
    held_out = found["split"]["held_out"]["queries"]
    off = {p["alpha"]: p["development"] for p in found["grid"] if not p["routing"]}
    assert sorted(off) == [n / 10 for n in range(11)]
    assert off[0.2] == measured(project, "cc", name, int(k), development)
    assert off[0.7] == measured(project, "cc at 0.7", name, int(k), development)
    (whole,) = found["held_out"]
    assert whole["before"] == measured(project, "cc", name, int(k), held_out)
    assert whole["n"] == len(held_out) == 12


def test_a_routing_recall_of_the_grid_is_the_one_of_a_run(project: Project, tune: Tune):
    found = results(tune, "mrr")["cc"]
    development = found["split"]["development"]["queries"]
    recalls = {(p["routing"], p["routing_alpha"]): p for p in found["routing_alphas"]}
    assert len(recalls) == 3 * 11
    stated = measured(project, "cc, 3 documents at 0.9", "routing_recall", 3, development)
    assert recalls[3, 0.9]["routing_recall"] == stated
    # The alpha of each depth is chosen by it; of equal ones the nearest to 0.3, then the smaller.
    for keep in (3, 5, 10):
        of = {a: p["routing_recall"] for (n, a), p in recalls.items() if n == keep}
        best = [a for a, value in of.items() if value == max(of.values())]
        wanted = min(best, key=lambda a: (round(abs(a - 0.3), 6), a))
        assert {p["routing_alpha"] for p in found["grid"] if p["routing"] == keep} == {wanted}


def test_the_lines_printed_run_as_the_held_out_figures_say(
    project: Project, tune: Tune, tmp_path: Path
):
    found = [results(tune, "mrr")[config] for config in ("cc", "rrf", "bm25")]
    sweep = found[0]["sweep"]
    copied = copy(project, tmp_path)
    path = copied.root / "data" / "experiments" / "own.toml"
    # As printed, and every depth of the sweep with what it was chosen with.
    blocks = [f["lines"] for f in found]
    for row in sweep:
        settings = {k: row[k] for k in ("routing", "alpha", "routing_alpha") if row[k] is not None}
        cc = {"retriever": "hybrid", "fusion": "cc"}
        blocks.append(block(f"swept {row['routing']}", cc | settings))
    path.write_text("\n".join([path.read_text(), *blocks]))
    run_measures(copied)
    for one in found:
        held_out = one["split"]["held_out"]["queries"]
        tuned = f"{one['configuration']}, tuned"
        assert one["held_out"][0]["after"] == measured(copied, tuned, "mrr", None, held_out)
    for row in sweep:
        name = f"swept {row['routing']}"
        for side in ("development", "held_out"):
            queries = found[0]["split"][side]["queries"]
            said = row[side]
            assert said["value"] == measured(copied, name, "mrr", None, queries)
            if row["routing"]:
                kept = row["routing"]
                recall = measured(copied, name, "routing_recall", kept, queries)
                assert said["routing_recall"] == recall
        off = sweep[0]["held_out"]["value"]
        if row["routing"]:
            assert row["change"]["difference"] == pytest.approx(row["held_out"]["value"] - off)


def copy(project: Project, to: Path) -> Project:
    shutil.copytree(project.root, to / "checkout")
    return Project(to / "checkout", to / "checkout" / "warehouse")


def test_characters_are_counted_at_the_metrics_depth(project: Project, tune: Tune):
    found = results(tune, "char_recall_union@4")["cc"]
    held_out = found["split"]["held_out"]["queries"]
    off = found["sweep"][0]
    if off["alpha"] == 0.2:
        assert off["held_out"]["chars"] == measured(project, "cc", "chars_retrieved", 4, held_out)
    assert off["held_out"]["chars"] <= 4 * 60


def test_what_the_file_says_of_the_tuned_keys_changes_nothing(tune: Tune):
    found = results(tune, "mrr")
    found = [found[c] for c in ("cc", "cc at 0.7", "cc, 3 documents at 0.9")]
    apart = ("configuration", "lines")
    first, *others = ({k: v for k, v in f.items() if k not in apart} for f in found)
    for other in others:
        assert other == first
    assert first["untuned"] == {"routing": 0, "routing_alpha": None, "alpha": 0.2}


def test_each_that_can_be_tuned_once_and_what_is_written(project: Project, tune: Tune):
    before = (project.root / "data" / "experiments" / "own.toml").read_bytes()
    code, shown, said = tune("--share", "0.3", "--seed", "7")
    assert (code, said) == (0, "")
    folder = project.home / "tuned" / "own"
    for config in ("rrf", "cc", "bm25", "cc_scoped"):
        stem = folder / f"{config}.complete_grounding_5"
        found = json.loads(Path(f"{stem}.json").read_text())
        assert (found["share"], found["seed"], found["metric"]) == (0.3, 7, "complete_grounding@5")
        assert len(found["split"]["development"]["queries"]) in (6, 8)
        page = Path(f"{stem}.md").read_text()
        assert found["lines"] in page
        assert found["lines"] in shown
        assert bool(found["sweep"]) == (config != "cc_scoped")
        assert found["fingerprints"]["corpus"]["n_documents"] == "12"
    assert "does routing help?" in shown
    assert "cc at 0.7:" not in shown
    assert "dense, scoped:" not in shown
    assert (project.root / "data" / "experiments" / "own.toml").read_bytes() == before
    again = {path: path.read_bytes() for path in folder.iterdir()}
    assert tune("--share", "0.3", "--seed", "7")[1] == shown
    assert {path: path.read_bytes() for path in folder.iterdir()} == again


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--config", "cc at 0.8"), "no configuration 'cc at 0.8'; did you mean 'cc at 0.7'?"),
        (("--metric", "char_recall_union@8"), "no metric 'char_recall_union@8'"),  # depth is 6
        (("--metric", "chars_retrieved@4"), "no metric 'chars_retrieved@4'"),
        (("--share", "1"), "share = 1.0 is not between 0 and 1"),
        (("--share", "nan"), "share = nan is not between 0 and 1"),
        (("--share", "0.001"), "too few documents for a split: 12 that can be told apart"),
        (("--config", "dense, scoped"), "has nothing to tune: one channel, and every query's"),
    ],
)
def test_what_cannot_be_tuned_is_refused(project: Project, tune: Tune, arguments, said: str):
    files = sorted((project.home / "tuned").rglob("*"))
    code, shown, error = tune(*arguments)
    assert (code, shown) == (2, "")
    assert said in error
    assert "Traceback" not in error
    assert sorted((project.home / "tuned").rglob("*")) == files


def test_stale_results_are_refused(project: Project, tune: Tune, tmp_path: Path):
    copied = copy(project, tmp_path)
    path = copied.root / "data" / "experiments" / "own.toml"
    path.write_text(path.read_text().replace("size = 60", "size = 61"))
    code, _, error = tune(of=copied)
    assert code == 2
    assert "run own first" in error
    assert "own/chunks/recursive" in error
    shutil.rmtree(copied.home)
    code, _, error = tune(of=copied)
    assert code == 2
    assert "never materialized" in error


def test_a_list_made_here_is_the_one_that_the_pipeline_stored(project: Project):
    experiment = graphs.build(project).experiments["own"]
    store = ResultsStore(project, "own")
    corpus = Corpus(store, experiment)
    vectors = {key for key in asset_keys.used_keys(experiment) if key[1] == "embeddings"}
    sources = sources_of(experiment.configuration("cc"))
    assert [source.channel for source in sources] == ["dense", "bm25"]
    for source in sources:
        (stored,) = corpus.lists(source, (None,))
        (made,) = Corpus(store, experiment, vectors).lists(source, (None,))
        for name in ("query", "rank", "row", "score"):
            np.testing.assert_array_equal(getattr(made, name), getattr(stored, name))
        # Several routes at once are each the one alone.
        routes: tuple[Route | None, ...] = (("tiny", 3, 0.9, ()), None, ("tiny", 5, 0.1, ()))
        together = corpus.lists(source, routes)
        for route, one in zip(routes, together, strict=True):
            (alone,) = corpus.lists(source, (route,))
            for name in ("query", "rank", "row", "score"):
                np.testing.assert_array_equal(getattr(one, name), getattr(alone, name))


def test_tables_that_are_replaced_meanwhile_are_noticed(
    project: Project, tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copied = copy(project, tmp_path)
    shutil.rmtree(copied.home / "tuned", ignore_errors=True)
    search = tune_command.search

    def replacing(*given):
        path = copied.parquet / "own" / "queries.parquet"
        shutil.copy(path, path.with_name("new"))
        path.with_name("new").replace(path)
        return search(*given)

    monkeypatch.setattr(tune_command, "search", replacing)
    code, shown, error = tune("--config", "bm25", of=copied)
    assert (code, shown) == (2, "")
    assert "a run replaced tables while they were read; tune again" in error
    assert not (copied.home / "tuned").exists()


def test_what_is_not_measured_is_refused(project: Project, tune: Tune, tmp_path: Path):
    copied = copy(project, tmp_path)
    path = copied.root / "data" / "experiments" / "own.toml"
    path.write_text(path.read_text().replace('/model"', '/absent"'))
    run_measures(copied)
    code, shown, error = tune("--config", "cc, scoped", of=copied)
    assert (code, shown) == (2, "")
    assert "not measured" in error
    code, shown, error = tune("--config", "bm25", of=copied)
    assert (code, shown) == (2, "")
    assert "absent" in error


def test_a_corpus_with_nothing_to_tune(finished: Project, tune: Tune):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "main", _of_corpus("small", cli.main))
        code, shown, error = tune(of=finished)
    assert (code, shown) == (2, "")
    assert error.startswith("spanbench: tune small: there is nothing to tune\n  naive + bm25: one")


def _of_corpus(corpus: str, main: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    return lambda arguments: main([arguments[0], corpus, *arguments[2:]])


def test_a_p_is_never_shown_as_nothing():
    row = {"subset": None, "n": 9, "before": 0.0, "after": 1.0}
    row |= {"difference": 1.0, "low": 1.0, "high": 1.0, "p": 0.0001}
    side: dict[str, Any] = {"queries": ["q"], "documents": ["d*"]}
    found: dict[str, Any] = {
        **{"corpus": "own", "configuration": "c_1_", "metric": "mrr", "share": 0.5, "seed": 1},
        **{"untuned": {"alpha": 0.2}, "chosen": {"alpha": 0.5}, "lines": "alpha = 0.5"},
        **{"split": {"development": side, "held_out": side}, "held_out": [row], "sweep": []},
        "routing": [],
    }
    shown = tune_report.text([found], [Path("x.md")])
    cells = ["all", "9", "0.000", "1.000", "+1.000", "+1.000", "+1.000", "<0.001"]
    assert cells in [line.split() for line in shown.splitlines()]
    page = tune_report.markdown_page(found)
    assert page.startswith("# own: c_1\\_, tuned for mrr\n")
    assert "| all | 9 | 0.000 | 1.000 | +1.000 | +1.000 | +1.000 | \\<0.001 |" in page
    assert page.endswith("\n```toml\nalpha = 0.5\n```\n")
