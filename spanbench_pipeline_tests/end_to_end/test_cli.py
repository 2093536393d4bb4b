"""Commands, messages and exit codes, as a person meets them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline import __version__
from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.storage import disk
from spanbench_pipeline_tests.end_to_end.conftest import BM25_ONLY, CHECKOUT, write_corpus


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the BM25-only corpus ``small`` registered and run."""
    folder = tmp_path_factory.mktemp("home")
    given = folder / "given"
    write_corpus(given)
    (folder / "experiments").mkdir()
    (folder / "experiments" / "small.toml").write_text(
        BM25_ONLY.format(corpus="small", documents=given / "docs", queries=given / "queries.jsonl")
    )
    assert cli.main(["--home", str(folder), "run", "small"]) == 0
    return folder


def call(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "spanbench_pipeline.cli.main", "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        timeout=300,
    )


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, but Dagster's state, its index, who ran last."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not {"dagster", "index", "locks"} & set(p.parts)
    }


def test_version_and_help(capsys: pytest.CaptureFixture[str]):
    for arguments in (["--version"], ["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert f"spanbench {__version__}" in printed
    assert "exit codes" in printed
    assert "spanbench adapt" in printed


def test_a_second_run_says_that_there_is_nothing_to_do(home: Path):
    before = listing(home)
    done = call(home, "run", "small")
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stdout
    assert "clause + bm25" in done.stdout
    assert "texts encoded" not in done.stdout
    assert done.stderr == ""
    assert listing(home) == before


def test_status_says_why(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(home), "status", "small"]) == 0
    assert "up to date" in capsys.readouterr().out
    path = home / "parquet" / "small" / "chunks" / "naive.parquet"
    kept = path.read_bytes()
    path.unlink()
    assert cli.main(["--home", str(home), "status"]) == 0
    shown = capsys.readouterr().out
    assert "small/chunks/naive  its file is missing" in shown
    assert "sample: never run" in shown
    assert cli.main(["--home", str(home), "sql", "SELECT count(*) FROM configs"]) == 0
    assert "small: 1 assets are out of date" in capsys.readouterr().err
    path.write_bytes(kept)


def test_a_copied_home_reads_its_own_files(home: Path, tmp_path: Path):
    copied = tmp_path / "copied"
    shutil.copytree(home, copied)
    assert cli.main(["--home", str(copied), "run", "small"]) == 0
    with duckdb.connect(str(copied / "spanbench.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
    assert not any(f"{home}/" in sql for (sql,) in found)
    assert any(f"{copied}/" in sql for (sql,) in found)


def test_damaged_state_is_named(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copied = tmp_path / "copied"
    shutil.copytree(home, copied)
    (copied / "dagster" / "dagster.yaml").write_text("{")
    assert cli.main(["--home", str(copied), "run", "small"]) == 2
    assert "move it away" in capsys.readouterr().err
    shutil.rmtree(copied / "dagster")
    assert cli.main(["--home", str(copied), "run", "small"]) == 0


def test_json_is_one_array_and_nothing_else(home: Path):
    done = call(home, "sql", "SELECT query_id, filters FROM queries", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    rows = json.loads(done.stdout)
    assert rows == [{"query_id": f"q{i}", "filters": {}} for i in (1, 2, 3)]


def test_formats_hold_the_same_rows(home: Path, capsysbinary, tmp_path: Path):
    query = "SELECT query_id, rank, score FROM rankings WHERE config = 'naive + bm25'"
    shown = {}
    for shape in ("table", "csv", "json", "parquet"):
        assert cli.main(["--home", str(home), "sql", query, "--format", shape]) == 0
        shown[shape] = capsysbinary.readouterr().out
    rows = json.loads(shown["json"])
    assert rows
    assert pq.read_table(io.BytesIO(shown["parquet"])).to_pylist() == rows
    assert len(shown["csv"].splitlines()) == len(rows) + 1
    assert len(shown["table"].splitlines()) == len(rows) + 2
    target = tmp_path / "out.csv"
    arguments = ["sql", query, "--format", "csv", "--output", str(target)]
    assert cli.main(["--home", str(home), *arguments]) == 0
    assert target.read_bytes() == shown["csv"]


def test_the_duckdb_file_holds_the_same_views(home: Path):
    with duckdb.connect(str(home / "spanbench.duckdb"), read_only=True) as connection:
        count = connection.execute("SELECT count(*) FROM query_metrics").fetchall()
    # Configurations x queries x (seven metrics, and five at each of 1, 2, 4, 8 and 16).
    assert count == [(2 * 3 * (7 + 5 * 5),)]


def test_wrong_sql_is_wrong_input(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(home), "sql", "SELECT nothing FROM configs"]) == 2
    assert "nothing" in capsys.readouterr().err
    assert cli.main(["--home", str(home), "sql"]) == 2
    assert "one of the two" in capsys.readouterr().err


@pytest.mark.parametrize(
    "query",
    [
        *("SELECT 1; SELECT 2", "DROP VIEW configs", "COPY configs TO 'x.csv'", "INSTALL httpfs"),
        *("UPDATE EXTENSIONS", ""),
    ],
)
def test_the_warehouse_is_only_read(home: Path, capsys: pytest.CaptureFixture[str], query: str):
    assert cli.main(["--home", str(home), "sql", query]) == 2
    assert "one SELECT" in capsys.readouterr().err


def test_a_broken_experiment_is_said_where_its_figures_are_missing(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    broken = home / "experiments" / "broken.toml"
    broken.write_text('corpus = "broken"\n')
    assert cli.main(["--home", str(home), "sql", "SELECT corpus FROM configs"]) == 0
    broken.unlink()
    shown = capsys.readouterr()
    assert "left out" in shown.err
    assert "broken.toml" in shown.err


def test_caps_are_raised_at_registration(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_corpus(tmp_path / "given")
    arguments = ["--home", str(tmp_path / "home"), "adapt", "--name", "own"]
    arguments += ["--docs", str(tmp_path / "given" / "docs")]
    arguments += ["--queries", str(tmp_path / "given" / "queries.jsonl")]
    assert cli.main([*arguments, "--max-documents", "1"]) == 2
    assert "--max-documents" in capsys.readouterr().err
    assert cli.main([*arguments, "--max-documents", "2"]) == 0
    next_command = capsys.readouterr().out.splitlines()[-1]
    assert next_command == f"next: spanbench --home {tmp_path / 'home'} run own"


def test_a_query_that_its_own_filters_shut_out_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_corpus(tmp_path / "given")
    queries = tmp_path / "given" / "queries.jsonl"
    first, *rest = queries.read_text().splitlines()
    lost = json.loads(first) | {"filters": {"version": 2}}
    queries.write_text("\n".join([json.dumps(lost), *rest]))
    metadata = tmp_path / "given" / "metadata.json"
    metadata.write_text(json.dumps({"alpha": {"version": 1}, "beta": {"version": 2}}))
    text = BM25_ONLY.format(corpus="own", documents=tmp_path / "given" / "docs", queries=queries)
    text = text.replace("[chunkers]", f'metadata = "{metadata}"\n[chunkers]')
    home = tmp_path / "home"
    (home / "experiments").mkdir(parents=True)
    (home / "experiments" / "own.toml").write_text(text)
    assert cli.main(["--home", str(home), "run", "own"]) == 0
    assert "query q1: its filters shut out every document" in capsys.readouterr().err


def test_reports_for_another_baseline(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(home), "report", "small"]) == 0
    assert "baseline is naive + bm25" in capsys.readouterr().out
    arguments = ["--home", str(home), "report", "small", "--baseline"]
    assert cli.main([*arguments, "clause + bm25"]) == 0
    shown = capsys.readouterr().out
    assert "baseline is clause + bm25" in shown
    client = (home / "reports" / "small" / "client.md").read_text()
    assert "clause + bm25" in client
    assert cli.main([*arguments, "clause + bm26"]) == 2
    assert "did you mean 'clause + bm25'" in capsys.readouterr().err
    assert cli.main([*arguments, "naive + bm25"]) == 0


def test_unknown_corpus_names_the_nearest(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(home), "run", "smal"]) == 2
    assert "did you mean 'small'" in capsys.readouterr().err


def test_a_corpus_that_was_not_fetched_says_how(home: Path, capsys: pytest.CaptureFixture[str]):
    before = listing(home)
    assert cli.main(["--home", str(home), "run", "cuad"]) == 2
    assert "spanbench fetch cuad" in capsys.readouterr().err
    assert listing(home) == before


def test_a_failed_check_is_exit_code_1_and_an_unexpected_error_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from spanbench_pipeline.analysis import aggregate
    from spanbench_pipeline.checks import invariants

    write_corpus(tmp_path / "given")
    (tmp_path / "experiments").mkdir()
    text = BM25_ONLY.format(
        corpus="own",
        documents=tmp_path / "given" / "docs",
        queries=tmp_path / "given" / "queries.jsonl",
    )
    (tmp_path / "experiments" / "own.toml").write_text(text)
    with monkeypatch.context() as patched:
        patched.setattr(invariants, "repeated_chunks", lambda _: [{"query_id": "q1"}])
        assert cli.main(["--home", str(tmp_path), "run", "own"]) == 1
    message = capsys.readouterr().err
    assert "own/candidates/clause_bm25: no_duplicate_chunks" in message
    assert "Traceback" not in message
    with monkeypatch.context() as patched:
        patched.setattr(aggregate, "config_metrics", lambda *_: 1 / 0)
        assert cli.main(["--home", str(tmp_path), "run", "own"]) == 3
    message = capsys.readouterr().err
    assert "ZeroDivisionError" in message
    assert "Traceback" not in message
    assert "ZeroDivisionError" in (tmp_path / "traceback.txt").read_text()
    assert cli.main(["--home", str(tmp_path), "run", "own"]) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "x", "doc_id": "alpha", "gold_texts": ["Recital."]}', "60"),
        ('{"query": "x", "doc_id": "gamma", "gold_texts": ["a"]}', "gamma"),
        ('{"query": "x", "doc_id": "alpha", "gold_spans": [[0, 99999]]}', "99999"),
        ('{"query": "x", "doc_id": "alpha"', "line 1"),
    ],
)
def test_bad_queries_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
):
    write_corpus(tmp_path / "given")
    queries = tmp_path / "given" / "bad.jsonl"
    queries.write_text(line + "\n")
    home = tmp_path / "home"
    arguments = ["adapt", "--docs", str(tmp_path / "given" / "docs"), "--queries", str(queries)]
    assert cli.main(["--home", str(home), *arguments, "--name", "own"]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert not home.exists()


@pytest.mark.parametrize("name", ["a*b", "a[1]b", "a?b", "a%20b"])
def test_a_home_that_a_database_would_read_as_a_pattern_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
):
    assert cli.main(["--home", str(tmp_path / name), "status"]) == 2
    assert "choose another" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_source_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write_corpus(tmp_path / "given")
    home = tmp_path / "home"
    arguments = ["adapt", "--name", "own", "--docs", str(tmp_path / "given" / "docs")]
    arguments += ["--queries", str(tmp_path / "given" / "queries.jsonl")]
    assert cli.main(["--home", str(home), *arguments]) == 0
    (tmp_path / "given" / "docs" / "alpha.txt").write_text("other text")
    capsys.readouterr()
    assert cli.main(["--home", str(home), "run", "own"]) == 2
    assert capsys.readouterr().err.count("document 'alpha'") == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(covered_chars) AS s FROM span_outcomes", None),
        ("SELECT 1.5 AS d, 2.0 AS w", [{"d": 1.5, "w": 2}]),
        ("SELECT 1 AS a, 2 AS a, 3 AS a_2", [{"a": 1, "a_3": 2, "a_2": 3}]),
        ("SELECT MAP {DATE '2020-01-02': [1.5]} AS m", [{"m": {"2020-01-02": [1.5]}}]),
        ("SELECT 'nan'::DOUBLE AS n, NULL AS z", [{"n": "nan", "z": None}]),
    ],
)
def test_json_holds_numbers_as_numbers(home: Path, capsysbinary, query: str, expected):
    for shape in ("csv", "table", "parquet", "json"):
        assert cli.main(["--home", str(home), "sql", query, "--format", shape]) == 0
        shown = capsysbinary.readouterr().out
    rows = json.loads(shown)
    if expected is None:
        assert isinstance(rows[0]["s"], int)
    else:
        assert rows == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"a\n1\n"), ("a.JSON", b'[\n {\n  "a": 1\n }\n]\n'), ("a.x", b"a\n-\n1\n")],
)
def test_the_ending_of_the_output_says_its_format(
    home: Path, tmp_path: Path, name: str, content: bytes
):
    target = tmp_path / name
    assert cli.main(["--home", str(home), "sql", "SELECT 1 AS a", "--output", str(target)]) == 0
    assert target.read_bytes() == content


def test_csv_on_a_terminal_shows_what_a_terminal_would_obey(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    asked = ["--home", str(home), "sql", "SELECT chr(27) || '[2J' AS a", "--format", "csv"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(asked) == 0
    assert capsys.readouterr().out == "a\n\\x1b[2J\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("['101'::BIT]", '"[101]"'), ("{'b': '10'::BIT}", "\"{'b': 10}\""), ("'101'::BIT", '"101"')],
)
def test_what_arrow_has_no_value_for_is_written_by_duckdb(
    home: Path, capsysbinary: pytest.CaptureFixture[bytes], value: str, shown: str
):
    asked = ["--home", str(home), "sql", f"SELECT {value} AS a", "--format", "json"]
    assert cli.main(asked) == 0
    assert capsysbinary.readouterr().out == f'[\n {{\n  "a": {shown}\n }}\n]\n'.encode()


def test_one_odd_experiment_file_leaves_the_others_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    odd = home / "experiments" / "odd.toml"
    for source in ('documents = "~nosuchuser/x"', 'documents = "a\\u0000b"', "a = " + "[" * 3000):
        odd.write_text(
            'corpus = "odd"\n[source]\nkind = "directory"\nqueries = "q"\n'
            + source
            + '\n[chunkers]\nnaive = {}\n[[configurations]]\nname = "n"\nchunker = "naive"\n'
            'retriever = "bm25"\n'
        )
        assert cli.main(["--home", str(home), "status", "small"]) == 0
        assert "up to date" in capsys.readouterr().out
        assert cli.main(["--home", str(home), "run", "odd"]) == 2
        assert "odd" in capsys.readouterr().err
    odd.unlink()


def test_a_home_that_cannot_be_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "file"
    file.write_text("x")
    write_corpus(tmp_path / "given")
    arguments = ["adapt", "--name", "own", "--docs", str(tmp_path / "given" / "docs")]
    arguments += ["--queries", str(tmp_path / "given" / "queries.jsonl")]
    for home in (file, tmp_path / ("x" * 300), "~nosuchuser/x"):
        assert cli.main(["--home", str(home), *arguments]) == 2
        shown = capsys.readouterr().err
        assert "Traceback" not in shown
        assert shown.count("\n") == 1


def test_accept_and_gate(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    at = ["--home", str(home)]
    assert cli.main([*at, "gate", "small"]) == 2
    assert f"no accepted run; spanbench --home {home} accept small" in capsys.readouterr().err
    assert cli.main([*at, "gate", "small", "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["result"] == "error"
    assert cli.main([*at, "accept", "small"]) == 0
    assert "accepted 2 of 2 configurations" in capsys.readouterr().out
    assert cli.main([*at, "accept", "small", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "chunker_parameters" in shown
    assert "(corpus)" in shown
    assert cli.main([*at, "run", "small"]) == 0
    assert "small against its accepted run: unchanged" in capsys.readouterr().out
    monkeypatch.setattr(disk, "takes_writes", lambda *_: False)  # what follows only reads
    before = snapshot(home)
    assert cli.main([*at, "gate", "small"]) == 0
    assert capsys.readouterr().out == "small: pass (64 pass)\n"
    assert cli.main([*at, "gate", "small", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], len(found["rows"])) == ("pass", 64)
    assert cli.main([*at, "sql", "SELECT min(run_at) AS at FROM metric_history"]) == 0
    assert "+00:00" in capsys.readouterr().out
    assert snapshot(home) == before


def snapshot(home: Path) -> dict[str, tuple[int, ...]]:
    """Every file and folder of a home, with what any write would change."""
    stats = {str(path): path.lstat() for path in (home, *home.rglob("*"))}
    return {path: (s.st_ino, s.st_size, s.st_mtime_ns) for path, s in stats.items()}


def test_a_home_that_cannot_be_written_can_be_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(disk, "takes_writes", lambda *_: False)
    before = snapshot(home)
    for arguments, said in {
        ("sql", "SELECT config FROM configs"): "clause + bm25",
        ("status", "small"): "up to date",
        ("status", "--why", "small/chunks/naive"): "up to date",
        ("report", "small"): "client.html",
        ("export", "small", "--to", str(tmp_path / "out"), "--format", "trec"): "manifest.json",
    }.items():
        assert cli.main(["--home", str(home), *arguments]) == 0
        shown = capsys.readouterr()
        assert said in shown.out
        assert shown.err == ""
    assert snapshot(home) == before


def test_reports_that_are_damaged_are_not_shown_as_sound(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    path = home / "reports" / "small" / "client.html"
    kept = path.read_bytes()
    for damage in (lambda: path.write_bytes(kept + b"x"), path.unlink):
        damage()
        assert cli.main(["--home", str(home), "report", "small"]) == 2
        shown = capsys.readouterr().err
        assert "client.html is missing or changed" in shown
        assert "run small" in shown
    path.write_bytes(kept)
    assert cli.main(["--home", str(home), "report", "small"]) == 0


def test_sql_says_what_it_does_not_reach(home: Path, capsys: pytest.CaptureFixture[str]):
    query = ["--home", str(home), "sql", "SELECT count(*) AS n FROM read_text('/etc/hostname')"]
    assert cli.main(query) == 2
    shown = capsys.readouterr().err
    assert "/etc/hostname" in shown
    assert "--allow-files" in shown
    assert cli.main([*query, "--allow-files"]) == 0
    assert capsys.readouterr().out.split() == ["n", "-", "1"]
    assert cli.main([*query, "--safe-csv"]) == 2
    assert "--format csv" in capsys.readouterr().err


def test_arguments_that_are_no_text_are_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    at = ["--home", str(home)]
    for arguments in (["status", "b\udcff"], ["sql", "SELECT '\udcff'"], ["gate", "\udcff"]):
        assert cli.main([*at, *arguments]) == 2
        shown = capsys.readouterr().err
        assert "\\udcff" in shown
        assert "UTF-8" in shown
    assert cli.main(["--home", str(tmp_path / "\udcff"), "status"]) == 2
    assert cli.main(["--home", "", "status"]) == 2
    assert "--home" in capsys.readouterr().err
    rankings = tmp_path / "b\udcff.jsonl"  # a path may be any bytes
    place = {"doc_id": "alpha", "start": 0, "end": 150}
    rankings.write_text(json.dumps({"query_id": "q1", "ranking": [place]}))
    assert cli.main([*at, "score", "--corpus", "small", "--rankings", str(rankings)]) == 0
    assert "\\udcff" in capsys.readouterr().out


def test_json_is_utf8_whatever_the_locale(home: Path, monkeypatch: pytest.MonkeyPatch):
    shown = {}
    for shape in ("json", "table"):
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
        query = ["--home", str(home), "sql", "SELECT 'žluťoučký' AS t", "--format", shape]
        assert cli.main(query) == 0
        shown[shape] = written.getvalue()
    assert json.loads(shown["json"]) == [{"t": "žluťoučký"}]
    assert "\\u017elu" in shown["table"].decode("ascii")


def test_a_system_without_file_locks_is_told_before_anything_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert cli.main(["status"]) == 2
    shown = capsys.readouterr().err
    assert "Linux and macOS" in shown
    assert "WSL" in shown
    assert shown.count("\n") == 1
