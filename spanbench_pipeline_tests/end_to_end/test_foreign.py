"""export, score and calibrate, as a person meets them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, QUERIES, write_corpus
from spanbench_pipeline_tests.end_to_end.test_cli import listing
from spanbench_pipeline_tests.metrics.measure import plant


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the BM25-only corpus ``small`` run, and ``fresh``, which never was.

    ``shallow`` was run as well: the same with lists of three.
    """
    folder = tmp_path_factory.mktemp("home")
    given = folder / "given"
    write_corpus(given)
    (folder / "experiments").mkdir()
    for corpus in ("small", "fresh"):
        text = BM25_ONLY.format(
            corpus=corpus, documents=given / "docs", queries=given / "queries.jsonl"
        )
        (folder / "experiments" / f"{corpus}.toml").write_text(text)
    shallow = text.replace('"fresh"', '"shallow"')
    (folder / "experiments" / "shallow.toml").write_text(f"depth = 3\n{shallow}")
    assert cli.main(["--home", str(folder), "run", "small", "shallow"]) == 0
    return folder


@pytest.fixture(scope="module")
def exported(home: Path) -> Path:
    before = listing(home)
    folder = home.parent / "exported"
    assert cli.main(["--home", str(home), "export", "small", "--to", str(folder)]) == 0
    assert listing(home) == before  # the home is only read
    return folder


def means(table: Any, config: str) -> dict[tuple[str, int | None], float | None]:
    return {
        (row["metric"], row["k"]): row["value"]
        for row in table.to_pylist()
        if row["config"] == config and row["subset"] is None
    }


@pytest.mark.parametrize(
    "file",
    [
        "trec/clause_bm25.run",
        "legalbenchrag/clause_bm25.json",
        "jsonl/clause_bm25.jsonl",
        "parquet/rankings.parquet",
    ],
)
def test_what_is_exported_is_scored_as_it_was(home: Path, exported: Path, file: str) -> None:
    arguments = ["score", "--rankings", str(exported / file), "--corpus", "small"]
    arguments += ["--chunker", "clause", "--name", "clause + bm25"]
    assert cli.main(["--home", str(home), *arguments]) == 0
    stored = pq.read_table(home / "parquet" / "small" / "config_metrics.parquet")
    ours = means(stored, "clause + bm25")
    folder = home / "scored" / "small" / "clause_bm25"
    again = means(pq.read_table(folder / "config_metrics.parquet"), "clause + bm25")
    assert len(ours) >= 7
    assert {key: again[key] for key in ours} == ours
    assert {"report.md", "report.html", "queries.jsonl", "forensic_labels.parquet"} <= {
        path.name for path in folder.iterdir()
    }


FILES = ("trec/naive_bm25.run", "legalbenchrag/naive_bm25.json", "jsonl/naive_bm25.jsonl")


def unstamped(path: Path, to: Path) -> Path:
    """The file as spanbench wrote it before files said what they rank."""
    text = path.read_text()
    if path.suffix == ".run":
        text = re.sub(";chunker=.*", "", text)
    else:
        text = re.sub(', "spanbench": {[^}]*}', "", text)
    assert "documents" not in text
    to.write_text(text)
    return to


def test_other_chunks_than_those_ranked_are_refused(
    home: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exported at step = 150 and scored at 50: other ids, and more relevant chunks."""
    copied = tmp_path / "home"
    shutil.copytree(home, copied)
    experiment = copied / "experiments" / "small.toml"
    experiment.write_text(experiment.read_text().replace("step = 150", "step = 50"))
    stored = copied / "parquet" / "small" / "chunks" / "naive.parquet"
    ours = means(pq.read_table(home / "parquet/small/config_metrics.parquet"), "naive + bm25")

    def scored(path: Path, *more: str) -> tuple[int, dict[str, Any]]:
        given = ["score", "--rankings", str(path), "--corpus", "small", "--format", "json", *more]
        code = cli.main(["--home", str(copied), *given, "--name", "naive + bm25"])
        return code, json.loads(capsys.readouterr().out)

    capsys.readouterr()
    beir = exported / "beir" / "naive" / "corpus.jsonl"
    for file in (*FILES, "parquet/rankings.parquet"):
        code, said = scored(exported / file, "--chunker", "naive")
        assert (code, said["result"]) == (2, "error")
        assert "the chunks are not those that were ranked" in said["message"]
        assert "'naive'" in said["message"]
        assert scored(exported / file, "--chunker", "clause")[0] == 2
    both = exported / "parquet" / "chunks.parquet"  # of both chunkers
    for file, chunks in zip(FILES, (both, beir, stored), strict=True):
        code, said = scored(exported / file, "--chunks", str(chunks))
        assert code == 0
        assert not [note for note in said["notes"] if "no list of the file has more" not in note]
        found = {(m["metric"], m["k"]): m["value"] for m in said["metrics"] if not m["subset"]}
        assert {key: found[key] for key in ours} == ours
    for file in FILES:
        path = unstamped(exported / file, tmp_path / Path(file).name)
        code, said = scored(path, "--chunker", "naive")
        assert code == 2
        assert "cuts otherwise now than when the corpus was last run" in said["message"]
        assert str(stored.name) in said["message"]
    # Without a stamp, what the last run stored is taken for what was ranked.
    experiment.write_text(experiment.read_text().replace("step = 50", "step = 150"))
    code, said = scored(tmp_path / "naive_bm25.run", "--chunker", "naive")
    assert code == 0
    assert "does not say which chunks it ranks" in " ".join(said["notes"])


def test_a_pipe_is_scored_and_hashed_as_it_was_read(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = foreign(tmp_path / "mine.jsonl", q1=[span("alpha", 0, 70)]).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(text,), daemon=True)
    writer.start()
    given = ["score", "--rankings", str(pipe), "--corpus", "fresh", "--format", "json"]
    assert cli.main(["--home", str(home), *given]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["provenance"]["sha256 of the file"] == hashlib.sha256(text).hexdigest()


def test_the_exported_files(exported: Path) -> None:
    files = {p.relative_to(exported).as_posix() for p in exported.rglob("*") if p.is_file()}
    assert {
        "manifest.json",
        "trec/naive_bm25.run",
        "trec/naive.qrels",
        "beir/clause/corpus.jsonl",
        "beir/clause/qrels/test.tsv",
        "parquet/documents.parquet",
        "parquet/query_metrics.parquet",
    } <= files
    manifest = json.loads((exported / "manifest.json").read_text())
    assert [c["config"] for c in manifest["configurations"]] == ["naive + bm25", "clause + bm25"]
    naive, clause = (c["ranked"] for c in manifest["configurations"])
    assert naive["documents"] == clause["documents"]
    assert naive["chunks"] != clause["chunks"]
    metrics = pq.read_table(exported / "parquet" / "query_metrics.parquet")
    assert set(metrics["config"].to_pylist()) == {"naive + bm25", "clause + bm25"}
    first = json.loads((exported / "jsonl" / "naive_bm25.jsonl").read_text().splitlines()[0])
    assert first["query_id"] == "q1"
    assert first["metrics"]["complete_grounding@5"] == 1.0
    assert first["ranking"][0].keys() == {"doc_id", "start", "end", "score", "chunk_id"}


def test_the_eval_set_comes_back_as_a_directory(home: Path, tmp_path: Path) -> None:
    to = tmp_path / "out"
    arguments = ["export", "small", "--to", str(to), "--format", "directory"]
    assert cli.main(["--home", str(home), *arguments]) == 0
    assert (to / "directory" / "documents" / "alpha.txt").is_file()
    assert len((to / "directory" / "queries.jsonl").read_text().splitlines()) == len(QUERIES)


def test_export_writes_over_nothing(
    home: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(exported)
    assert cli.main(["--home", str(home), "export", "small", "--to", str(exported)]) == 2
    assert "there is something already" in capsys.readouterr().err
    assert listing(exported) == before


def test_export_of_what_was_never_run(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for corpus, message in (("fresh", "run fresh first"), ("nobody", "no experiment for")):
        to = tmp_path / corpus
        assert cli.main(["--home", str(home), "export", corpus, "--to", str(to)]) == 2
        assert message in capsys.readouterr().err
        assert not to.exists()


@pytest.mark.parametrize(
    "file", ["forensic_labels/naive_bm25", "headroom/clause_bm25", "config_metrics", "label_cross"]
)
def test_export_mixes_no_tables_of_two_runs(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    copied = tmp_path / "home"
    shutil.copytree(home, copied)
    (copied / "parquet" / "small" / f"{file}.parquet").unlink()  # as a killed run leaves it
    to = tmp_path / "exported"
    assert cli.main(["--home", str(copied), "export", "small", "--to", str(to)]) == 2
    assert f"small/{file}: its file is missing" in capsys.readouterr().err
    assert not to.exists()


def foreign(path: Path, **lists: list[dict[str, Any]]) -> Path:
    lines = [json.dumps({"query_id": q, "results": r}) for q, r in lists.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def span(doc_id: str, start: int, end: int) -> dict[str, Any]:
    return {"doc_id": doc_id, "start": start, "end": end}


@pytest.mark.parametrize("corpus", ["small", "fresh"])
def test_a_ranking_from_elsewhere(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], corpus: str
) -> None:
    """Of a corpus that was run, and of one that is read from its source."""
    path = foreign(
        tmp_path / "mine.jsonl",
        q1=[span("beta", 0, 50), span("alpha", 60, 140)],
        q2=[span("alpha", 0, 70)],
    )
    given = ["--home", str(home), "score", "--rankings", str(path), "--corpus", corpus]
    assert cli.main(given) == 0
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.startswith("mine")).split()
    # q1: the laws of Delaware are at 112 of alpha, second; q2: at 47, first; q3 is missing.
    assert row == ["mine", "0.133", "not", "measured", "0.500", "0.667", "0.667", "0.667"]
    assert "1 of 3 queries have no list in the file and count as empty lists: q3" in printed
    assert "not measured: no chunk table: recall@10, ndcg@10, severed, failure labels" in printed
    assert "labels at k = 8: 1 DRM" in printed
    assert cli.main([*given, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], found["exit_code"]) == ("scored", 0)
    assert found["missing_queries"] == ["q3"]
    assert found["failure_labels"] is None
    assert found["not_measured"]["recall@10"] == "not measured: no chunk table"
    by_name = {(m["metric"], m["k"]): m["value"] for m in found["metrics"]}
    assert by_name["mrr", None] == (1 / 2 + 1 + 0) / 3
    assert not {"recall", "ndcg"} & {metric for metric, _ in by_name}


def test_lists_of_three_have_no_value_further_down(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "parquet" / "shallow"
    for name in ("query_metrics", "span_states", "forensic_labels", "headroom"):
        for path in (folder / name).glob("*.parquet"):
            assert set(pq.read_table(path)["k"].to_pylist()) - {None} == {1, 2}
    ours = means(pq.read_table(folder / "config_metrics.parquet"), "clause + bm25")
    assert {metric for metric, k in ours if k is None} == {"mrr"}
    assert {k for _, k in ours} == {None, 1, 2}
    for name in ("span_outcomes", "failure_labels"):
        stored = parquet.read(folder / name / "clause_bm25.parquet", name)
        assert stored.state == "not measured: depth = 3 does not reach 5"
        assert stored.table.num_rows == 0
    # What BM25 reads is counted at any depth: as it is of the same corpus at 30.
    counted = [
        {
            (row["config"], row["stat"]): row["value"]
            for row in pq.read_table(folder.with_name(corpus) / "config_stats.parquet").to_pylist()
            if row["stat"].startswith("bm25_")
        }
        for corpus in ("shallow", "small")
    ]
    assert counted[0] == counted[1]
    assert {name for name, _ in counted[0]} == {"clause + bm25", "naive + bm25"}
    capsys.readouterr()
    assert cli.main(["--home", str(home), "run", "shallow"]) == 0
    printed = capsys.readouterr().out
    head = next(line for line in printed.splitlines() if line.startswith("configuration"))
    assert head.split() == ["configuration", "chunks", "mrr"]
    assert "recall@10: not measured: depth = 3 does not reach 10" in printed
    assert "complete_grounding@5: not measured: depth = 3 does not reach 5" in printed
    lines = (home / "reports" / "shallow" / "audit" / "clause_bm25.queries.jsonl").read_text()
    assert [json.loads(line)["missed_spans"] for line in lines.splitlines()] == [None] * 3


def test_a_deeper_file_beside_shallow_lists(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of alpha's gold at 112 the fifth entry holds all; the corpus's own lists end at three."""
    first = [span("beta", n, n + 10) for n in (0, 10, 20, 30)]
    path = foreign(tmp_path / "deep.jsonl", q1=[*first, span("alpha", 60, 140)])
    given = ["--home", str(home), "score", "--rankings", str(path), "--corpus", "shallow"]
    assert cli.main([*given, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["depth"], found["context"]) == (3, 5)
    why = "not measured: depth = 3 does not reach 5"
    assert found["not_measured"]["complete_grounding@5"] == why
    assert found["k_not_measured"]["4"] == "not measured: depth = 3 does not reach 4"
    assert {m["k"] for m in found["metrics"]} == {None, 1, 2}
    assert cli.main([*given, "--format", "json", "--context", "4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["depth"], found["context"]) == (3, 4)
    why = "not measured: depth = 3 does not reach 4"
    assert found["not_measured"]["complete_grounding@4"] == why
    assert any("--depth 5" in note for note in found["notes"])
    assert cli.main([*given, "--format", "json", "--depth", "10"]) == 0
    deeper = json.loads(capsys.readouterr().out)
    assert (deeper["depth"], deeper["depth_from"]) == (10, "stated with --depth")
    by_name = {(m["metric"], m["k"]): m["value"] for m in deeper["metrics"]}
    assert by_name["mrr", None] == 1 / 5 / 3
    assert by_name["complete_grounding", 5] == 1 / 3
    assert cli.main([*given, "--depth", "0"]) == 2
    assert "--depth 0 is not within 1 and 10000" in capsys.readouterr().err


def test_wrong_input_leaves_the_last_result(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(tmp_path / "kept.jsonl", q1=[span("alpha", 0, 70)])
    given = ["--home", str(home), "score", "--rankings", str(path), "--corpus", "small"]
    assert cli.main(given) == 0
    before = listing(home / "scored")
    foreign(path, q1=[span("alpha", 0, 10**6)])
    capsys.readouterr()
    assert cli.main(given) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{path} line 1, query q1, entry 1: [0, 1000000) must satisfy" in said.err
    assert cli.main([*given, "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], found["exit_code"]) == ("error", 2)
    assert "must satisfy" in found["message"]
    assert listing(home / "scored") == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--chunker", "clauses"], "corpus small has no chunker 'clauses'; did you mean 'clause'"),
        (["--chunker", "clause", "--chunks", "c.jsonl"], "--chunks FILE or --chunker NAME, one of"),
        (["--chunks", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["--name", "+"], "name '+' has no letter or digit"),
        (["--name", ""], "name '' has no letter or digit"),
        (["--name", "a\nb"], "control character"),
        (["--subset", "east"], "corpus small has no part 'east'"),
        (["--rankings", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
    ],
)
def test_what_is_asked_wrongly(
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    path = foreign(tmp_path / "mine.jsonl", q1=[span("alpha", 0, 70)])
    given = ["score", "--rankings", str(path), "--corpus", "small", *more]
    assert cli.main(["--home", str(home), *given]) == 2
    assert message in capsys.readouterr().err


def test_no_name_overwrites_anothers_scores(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(tmp_path / "mine.jsonl", q1=[span("alpha", 0, 70)])
    folders = {}
    for name in ("model v1", "model-v1", "модель", "model v1"):
        given = ["score", "--rankings", str(path), "--corpus", "small", "--name", name]
        assert cli.main(["--home", str(home), *given, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["config"] == name
        assert folders.setdefault(name, found["files"]) == found["files"]
    assert len(set(folders.values())) == 3
    assert (home / "scored" / "small" / "model_v1").is_dir()
    for name, folder in folders.items():
        table = pq.read_table(Path(folder) / "query_metrics.parquet")
        assert set(table["config"].to_pylist()) == {name}


def test_calibrate(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--home", str(home), "calibrate", "--cases", "60"]
    assert cli.main(given) == 0
    printed = capsys.readouterr().out
    assert "all agree" in printed
    assert "ir_measures" in printed
    assert (home / "calibration" / "report.html").is_file()
    assert "| largest difference |" in (home / "calibration" / "report.md").read_text()
    assert cli.main(["--home", str(home), "calibrate", "--cases", "5"]) == 2
    assert "too few" in capsys.readouterr().err


def test_a_disagreement_is_an_exit_code(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, "mrr", lambda true: lambda *given: true(*given) / 2)
    given = ["--home", str(home), "calibrate", "--cases", "60", "--format", "json"]
    assert cli.main(given) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == "disagrees"
    wrong = {c["compared"] for c in found["comparisons"] if c["disagreements"]}
    assert wrong == {"mrr"}
