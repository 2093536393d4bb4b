"""The accepted run, the comparison with it, the gate and the history, on corpora that are run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli import accept, gate
from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import run as runs
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.instance import failed_errors, open_instance
from spanbench_pipeline.pipeline.dagster.runner import Result, Runner
from spanbench_pipeline.pipeline.staleness import name
from spanbench_pipeline.storage import accepted_run, files, parquet
from spanbench_pipeline_tests.end_to_end.conftest import QUERIES, edit

WIDE = """
corpus = "wide"
[source]
kind = "directory"
documents = "{given}/docs"
queries = "{given}/queries.jsonl"
[chunkers]
naive = {{ size = 200, step = 200 }}
[[configurations]]
name = "scoped"
chunker = "naive"
retriever = "bm25"
[[configurations]]
name = "moving"
chunker = "naive"
retriever = "bm25"
doc_scope = true
"""
N_WIDE = 14

CELLS = 7 + 5 * 5
"""What a configuration is compared in: seven metrics, and five at each of 1, 2, 4, 8 and 16."""


@pytest.fixture
def wide(tmp_path: Path, make_project: Callable[..., Project]) -> Project:
    """Fourteen contracts that read alike: without scope, five queries at most are grounded."""
    given = tmp_path / "given"
    (given / "docs").mkdir(parents=True)
    lines = []
    for i in range(1, N_WIDE + 1):
        text = "Payment is due within thirty days.\n" + "x" * 165 + "\nOther matters follow here.\n"
        (given / "docs" / f"d{i:02}.txt").write_text(text)
        asked = {"query_id": f"q{i:02}", "query": "When is payment due?", "doc_id": f"d{i:02}"}
        lines.append(json.dumps(asked | {"gold_texts": ["within thirty days"]}))
    (given / "queries.jsonl").write_text("\n".join(lines) + "\n")
    return make_project(wide=WIDE.format(given=given))


def run(project: Project, corpus: str) -> set[str]:
    """Runs a corpus; returns what was materialized."""
    return {name(key) for key in result_of(project, corpus).materialized}


def result_of(project: Project, corpus: str) -> Result:
    graph = graphs.build(project)
    with open_instance(project) as instance:
        return Runner(project, instance, graph.of([corpus])).run()


def rows_of(project: Project, corpus: str) -> dict[tuple[str, str], dict[str, Any]]:
    stored = parquet.read(project.parquet / corpus / "regression.parquet", "regression")
    return {(row["config"], row["metric"]): row for row in stored.table.to_pylist()}


def judged(project: Project, corpus: str) -> tuple[int, dict[str, Any]]:
    shown, code = gate.gate(project, corpus, "json")
    found = json.loads(shown)
    assert found["exit_code"] == code
    return code, found


def test_from_no_accepted_run_to_another_gold(small: Project, tmp_path: Path):
    run(small, "small")
    stored = parquet.read(small.parquet / "small" / "regression.parquet", "regression")
    assert stored.state == "not measured: no accepted run; spanbench accept small"
    code, found = judged(small, "small")
    assert (code, found["result"]) == (2, "error")
    assert "no accepted run; spanbench --home" in found["message"]
    assert "no accepted run" in accept.show(small, "small")

    # Accepting makes the comparison stale, and nothing else.
    assert "accepted 2 of 2 configurations" in accept.accept(small, "small")
    code, found = judged(small, "small")
    assert code == 2
    assert "small/regression: its code, parameters or models changed" in found["message"]
    assert run(small, "small") == {"small/regression", "warehouse"}
    assert run(small, "small") == set()
    code, found = judged(small, "small")
    assert (code, found["verdicts"]) == (0, {"pass": 2 * CELLS})
    assert "is the accepted one already" in accept.accept(small, "small")
    assert judged(small, "small")[0] == 0

    # Another chunker's parameters: its three span metrics are still compared.
    edit(small, "small", "max_chars = 300", "max_chars = 25")
    assert "small/regression" in run(small, "small")
    code, found = judged(small, "small")
    assert code == 0  # with three queries no fall can reach the level: 2^-3 is above it
    rows = rows_of(small, "small")
    assert {m for (c, m), r in rows.items() if r["verdict"] == "not comparable"} == {
        "precision",
        "recall",
        "mrr",
        "ndcg",
    }
    assert {c for (c, m), r in rows.items() if r["verdict"] == "not comparable"} == {
        "clause + bm25"
    }
    across = rows["clause + bm25", "span_coverage"]["comparable"]
    assert across.startswith("comparable, with other chunks (8 by clause before, ")
    assert "other chunks (" in found["not_compared"][0]["why"]

    # A configuration that is gone, one that is new.
    edit(small, "small", "max_chars = 25", "max_chars = 300")
    edit(small, "small", 'name = "clause + bm25"', 'name = "other"')
    run(small, "small")
    code, found = judged(small, "small")
    assert code == 2
    assert found["verdicts"] == {
        "pass": CELLS,
        "new configuration": CELLS,
        "missing configuration": CELLS,
    }
    edit(small, "small", 'name = "other"', 'name = "clause + bm25"')

    # Another gold: nothing is compared until it is accepted anew.
    lines = [
        json.dumps({"query_id": q, "query": text, "doc_id": doc, "gold_texts": [gold[:-1]]})
        for q, text, doc, gold in QUERIES
    ]
    (tmp_path / "given" / "queries.jsonl").write_text("\n".join(lines) + "\n")
    run(small, "small")
    code, found = judged(small, "small")
    assert (code, found["result"]) == (2, "not comparable")
    assert found["verdicts"] == {"not comparable": 2 * CELLS}
    assert {row["why"] for row in found["not_compared"]} == {
        "not comparable, accept anew: other gold_spans"
    }
    accept.accept(small, "small")
    run(small, "small")
    assert judged(small, "small")[0] == 0


def test_a_planted_fall_and_its_repair(wide: Project, capsys: pytest.CaptureFixture[str]):
    run(wide, "wide")
    accept.accept(wide, "wide")
    run(wide, "wide")
    edit(wide, "wide", "doc_scope = true", "doc_scope = false")

    # The run shows its results, says what failed, and leaves what does not depend on it done.
    with pytest.raises(runs.CheckFailed, match="wide/regression: no_regression") as failed:
        runs.run(wide, ["wide"])
    assert "configuration" in failed.value.results
    assert "regression: moving, complete_grounding@5" in failed.value.results
    assert cli._failed(wide, failed.value) == 1
    assert "moving" in capsys.readouterr().out
    graph = graphs.build(wide)
    with open_instance(wide) as instance:
        assert not Runner(wide, instance, graph.of(["wide"])).stale()
        assert instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE])) == 0
        severities = check_severities(instance)
    assert severities["no_regression"] == (False, "ERROR")
    assert severities["nothing_changed"] == (False, "WARN")
    assert severities["all_compared"] == (True, "WARN")

    # A second run has nothing to do, and does not forget.
    assert run(wide, "wide") == set()
    with pytest.raises(runs.CheckFailed):
        runs.run(wide, ["wide"])

    code, found = judged(wide, "wide")
    assert (code, found["result"]) == (1, "regression")
    fell = {row["metric"]: row for row in found["regressions"]}
    row = rows_of(wide, "wide")["moving", "complete_grounding"]
    # Five of fourteen are in every list of five: nine broke. 2^-9 is their p.
    assert (row["n"], row["accepted"], row["current"]) == (14, 1.0, pytest.approx(5 / 14))
    assert row["difference"] == pytest.approx(-9 / 14)
    assert row["p"] == pytest.approx(1 / 512)
    assert len(row["broken_queries"]) == 9
    assert fell["complete_grounding@5"]["broken"].startswith("9: q")
    assert {r["config"] for r in found["regressions"]} == {"moving"}
    assert rows_of(wide, "wide")["scoped", "mrr"]["verdict"] == "pass"
    text, _ = gate.gate(wide, "wide", "text")
    assert text.startswith("wide: regression (")
    assert row["broken_queries"][0] in text

    # The same fall below a minimum effect of 0.99 is a change.
    (wide.home / "operations.toml").write_text("[regression]\nminimum_effect = 0.99\n")
    assert run(wide, "wide") == {"wide/regression", "warehouse"}
    assert judged(wide, "wide")[0] == 0
    (wide.home / "operations.toml").unlink()

    # What fell may be accepted knowingly; undoing it is then an improvement.
    run(wide, "wide")
    accept.accept(wide, "wide")
    edit(wide, "wide", "doc_scope = false", "doc_scope = true")
    run(wide, "wide")
    code, found = judged(wide, "wide")
    assert code == 0
    assert rows_of(wide, "wide")["moving", "complete_grounding"]["verdict"] == "improved"


def check_severities(instance: dg.DagsterInstance) -> dict[str, tuple[bool, str]]:
    found = {}
    for check in ("no_regression", "nothing_changed", "all_compared"):
        key = dg.AssetCheckKey(dg.AssetKey(["wide", "regression"]), check)
        record = instance.get_latest_asset_check_evaluation_record(key)
        assert record is not None
        assert record.event is not None
        evaluation = record.event.asset_check_evaluation
        assert evaluation is not None
        found[check] = (evaluation.passed, evaluation.severity.value)
    return found


def test_what_is_stale_or_broken_is_neither_accepted_nor_judged(ran: Project):
    edit(ran, "small", "max_chars = 300", "max_chars = 150")
    with pytest.raises(InputError, match=r"small/chunks/clause: its code, parameters"):
        accept.accept(ran, "small")
    assert accepted_run.read(ran, "small") is None
    edit(ran, "small", "max_chars = 150", "max_chars = 300")
    accept.accept(ran, "small")
    run(ran, "small")
    path = ran.parquet / "small" / "query_metrics" / "naive_bm25.parquet"
    path.unlink()
    for refused in (accept.accept, gate.judge):
        with pytest.raises(InputError, match=r"query_metrics/naive_bm25: its file is missing"):
            refused(ran, "small")
    run(ran, "small")
    assert judged(ran, "small")[0] == 0
    with pytest.raises(InputError, match="did you mean 'small'"):
        gate.judge(ran, "smal")
    # A wrong operations file: everything else runs, the comparison says what is wrong.
    (ran.home / "operations.toml").write_text("[regression]\nlevl = 1\n")
    failures = result_of(ran, "small").failures
    assert [name(f.key) for f in failures] == ["small/regression"]
    assert "did you mean 'level'" in failures[0].message
    code, found = judged(ran, "small")
    assert (code, "did you mean 'level'" in found["message"]) == (2, True)


def test_a_check_that_was_never_evaluated_is_made_up_for(ran: Project):
    """A run that was killed between an asset and its checks has not passed them."""
    graph = graphs.build(ran)
    stages = graph.of(["small"])
    with open_instance(ran) as instance:
        key = dg.AssetKey(["small", "regression"])
        alone = dg.AssetSelection.assets(key).without_checks()
        made, needed = assets.definitions(stages, ran), assets.resources(stages, ran)
        dg.materialize(made, selection=alone, instance=instance, resources=needed)
        why = Runner(ran, instance, stages).stale()["small", "regression"]
        assert "check never evaluated: no_regression" in why
        assert not failed_errors(instance, stages)
    assert "small/regression" in run(ran, "small")
    assert run(ran, "small") == set()


def test_history_has_a_file_for_each_run_that_made_new_metrics(ran: Project):
    run(ran, "small")
    edit(ran, "small", "max_chars = 300", "max_chars = 25")
    run(ran, "small")
    folder = ran.home / "history" / "small"
    first, second = sorted(folder.glob("*.parquet"))
    table = parquet.read(second, "metric_history").table
    metrics = parquet.read(ran.parquet / "small" / "config_metrics.parquet", "config_metrics")
    shared = tables.TABLES["config_metrics"].schema.names
    assert sorted(map(str, table.select(shared).to_pylist())) == sorted(
        map(str, metrics.table.to_pylist())
    )
    query = (
        "SELECT config, count(DISTINCT run_at) AS runs, count(DISTINCT fingerprint) AS prints "
        "FROM metric_history GROUP BY config ORDER BY config"
    )
    assert sql(ran, query) == [("clause + bm25", 2, 2), ("naive + bm25", 2, 1)]
    # Old history may be thrown away; the views follow.
    first.unlink()
    assert run(ran, "small") == {"warehouse"}
    assert sql(ran, query) == [("clause + bm25", 1, 1), ("naive + bm25", 1, 1)]
    assert run(ran, "small") == set()


def sql(project: Project, query: str) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect(str(project.database), read_only=True) as connection:
        return connection.execute(query).fetchall()


def store(project: Project, value: float, corpus: str = "c") -> str:
    metrics = tables.from_rows(
        "query_metrics",
        [
            {"corpus": corpus, "config": "a", "query_id": "q", "metric": "mrr", "k": None}
            | {"value": value}
        ],
    )
    row = {"corpus": corpus, "config": None, "name": "depth", "value": str(value)}
    prints = tables.from_rows("fingerprints", [row])
    return accepted_run.write(project, corpus, metrics, prints).digest


def held(project: Project) -> tuple[float, str]:
    found = accepted_run.read(project, "c")
    assert found is not None
    return found.query_metrics["value"][0].as_py(), found.fingerprints["value"][0].as_py()


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_leaves_the_old_acceptance_or_the_new_never_a_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Killed before every single step that touches the disk, and then done once more."""
    project = Project(tmp_path, tmp_path)
    store(project, 1.0)
    for step in range(50):
        shutil.rmtree(accepted_run.folder(project, "c"))
        store(project, 1.0)
        with monkeypatch.context() as patched:
            done = kill_before(patched, step)
            try:
                store(project, 2.0)
            except Killed:
                assert held(project) in [(1.0, "1.0"), (2.0, "2.0")]
            else:
                break
        assert done[0] == step
        store(project, 2.0)
        assert held(project) == (2.0, "2.0")
    assert step >= 5
    assert held(project) == (2.0, "2.0")
    assert len(list(accepted_run.folder(project, "c").iterdir())) == 2


def kill_before(patched: pytest.MonkeyPatch, step: int) -> list[int]:
    """Makes the ``step``-th call that touches the disk the process's end."""
    done = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if done[0] == step:
                raise Killed
            done[0] += 1
            return real(*arguments, **named)

        return call

    for owner, method in (
        (parquet, "write"),
        (files, "write_whole"),
        (Path, "rename"),
        (Path, "replace"),
        (shutil, "rmtree"),
    ):
        patched.setattr(owner, method, counted(getattr(owner, method)))
    return done


def test_accepting_the_same_again_never_takes_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = Project(tmp_path, tmp_path)
    digest = store(project, 1.0)
    assert store(project, 1.0) == digest
    for step in range(20):
        with monkeypatch.context() as patched:
            kill_before(patched, step)
            try:
                store(project, 1.0)
            except Killed:
                assert held(project) == (1.0, "1.0")
            else:
                break
    assert step >= 3


@pytest.mark.parametrize(
    "damage",
    ["change", "truncate", "remove", "point", "garble", "folder", "other corpus", "layout"],
)
def test_an_accepted_run_that_was_touched_is_refused(tmp_path: Path, damage: str):
    project = Project(tmp_path, tmp_path)
    digest = store(project, 1.0)
    folder = accepted_run.folder(project, "c")
    path = folder / digest / "query_metrics.parquet"
    if damage == "change":
        table = parquet.read(path, "query_metrics").table
        parquet.write(path, "query_metrics", table.slice(0, 0))
    elif damage == "truncate":
        path.write_bytes(path.read_bytes()[:-4])
    elif damage == "remove":
        path.unlink()
    elif damage == "point":
        (folder / "current").write_text("0" * 64)
    elif damage == "folder":
        (folder / "current").unlink()
        (folder / "current").mkdir()
    elif damage == "other corpus":
        elsewhere = Project(tmp_path / "other", tmp_path / "other")
        shutil.rmtree(folder)
        store(elsewhere, 1.0, "d")
        shutil.copytree(accepted_run.folder(elsewhere, "d"), folder)
    elif damage == "layout":
        older = pq.read_table(path, partitioning=None).drop_columns(["value"])
        pq.write_table(older, path)
        digest = accepted_run._digest(
            [folder / digest / f"{n}.parquet" for n in accepted_run.TABLES]
        )
        path.parent.rename(folder / digest)
        (folder / "current").write_text(digest)
    else:
        (folder / "current").write_bytes(b"\xff")
    with pytest.raises(InputError, match="spanbench accept c") as refused:
        accepted_run.read(project, "c")
    assert "spanbench run" not in str(refused.value)
    # The comparison that was made with it before is stale: a run does not say "unchanged".
    assert accepted_run.current_or_damaged(project, "c") != digest or damage == "layout"
    store(project, 2.0)
    assert held(project) == (2.0, "2.0")
