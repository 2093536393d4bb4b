from __future__ import annotations

import json
import random
import urllib.parse
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import legalbench_benchmark as benchmark
from spanbench_pipeline.corpora import legalbench_fetch, source
from spanbench_pipeline.corpora.legalbench import LegalBenchSource
from spanbench_pipeline_tests.corpora import builders
from spanbench_pipeline_tests.corpora import legalbench_builders as copies

FETCH = "spanbench fetch legalbenchrag --archive PATH"


def fetched(home: Path, archive: Path) -> Path:
    """A home with the copy."""
    legalbench_fetch.fetch_legalbench(builders.project(home), archive=archive)
    return home


def opened(home: Path, **settings: Any) -> source.Source:
    return source.open_source(
        builders.experiment({"kind": "legalbenchrag"} | settings), builders.project(home)
    )


def small(tmp_path: Path, files: dict[str, Any], tests: dict[str, Any]) -> Path:
    archive = copies.zipped(tmp_path / "small.zip", copies.members(files, tests))
    return fetched(tmp_path / "home", archive)


# The real data


@pytest.fixture(scope="module")
def archive(shared: Path) -> Path:
    return shared / "data" / "legalbenchrag" / "legalbenchrag.zip"


@pytest.fixture(scope="module")
def home(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetched(tmp_path_factory.mktemp("home"), archive)


@pytest.fixture(scope="module")
def raw(archive: Path) -> dict[str, bytes]:
    return copies.contents(archive)


def shape(read: evalset.EvalSet) -> tuple[dict[str, int], dict[str, int]]:
    """Documents and queries of each benchmark."""
    return (
        Counter(d.partition("/")[0] for d in read.documents["doc_id"].to_pylist()),
        Counter(read.queries["subset"].to_pylist()),
    )


def test_the_mini_set_is_as_specified(home: Path, raw: dict[str, bytes]) -> None:
    found = evalset.assemble("mini", *opened(home, sample="mini").read())
    assert shape(found) == (
        {"contractnli": 18, "cuad": 29, "maud": 18, "privacy_qa": 7},
        dict.fromkeys(copies.BENCHMARKS, 194),
    )
    expected: dict[str, tuple[str, list[list[int]]]] = {}
    for name in copies.BENCHMARKS:
        tests = json.loads(raw[f"benchmarks/{name}.json"])["tests"]
        numbered = list(enumerate(tests, 1))

        def draw(entry: tuple[int, Any]) -> float:
            random.seed(entry[1]["snippets"][0]["file_path"])
            return random.random()

        for number, test in sorted(numbered, key=draw)[:194]:
            spans = sorted(s["span"] for s in test["snippets"])
            expected[f"{name}-{number:04d}"] = (test["query"], spans)
    gold: dict[str, list[list[int]]] = {}
    for span in found.gold_spans.to_pylist():
        gold.setdefault(span["query_id"], []).append([span["start_char"], span["end_char"]])
    assert {
        q["query_id"]: (q["query"], gold[q["query_id"]]) for q in found.queries.to_pylist()
    } == expected
    assert set(found.queries["doc_id"].to_pylist()) == {None}
    assert set(found.queries["clause_type"].to_pylist()) == {None}


def test_the_full_pool_has_every_document_and_test(home: Path, raw: dict[str, bytes]) -> None:
    documents, queries = opened(home, sample="all").read()
    found = evalset.assemble("full", documents, queries)
    assert shape(found) == (
        {"contractnli": 95, "cuad": 462, "maud": 150, "privacy_qa": 7},
        {"contractnli": 977, "cuad": 194, "maud": 1676, "privacy_qa": 194},
    )
    # No two snippets of a test overlap or touch, so that each is a gold span of its own.
    assert found.gold_spans.num_rows == 4954
    answers = [
        snippet["answer"]
        for name in copies.BENCHMARKS
        for test in json.loads(raw[f"benchmarks/{name}.json"])["tests"]
        for snippet in test["snippets"]
    ]
    assert sorted(found.gold_spans["text"].to_pylist()) == sorted(answers)
    texts = {d.doc_id: d.text for d in documents}
    assert sum(len(text) for text in texts.values()) == 79_704_214
    boms = Counter(d.partition("/")[0] for d, text in texts.items() if text[0] == "\ufeff")
    assert boms["maud"] == 148
    assert sorted(text.encode("utf-8") for text in texts.values()) == sorted(
        data for name, data in raw.items() if name.startswith("corpus/")
    )


@pytest.mark.parametrize(
    ("name", "n_documents", "n_tests"),
    [("contractnli", 95, 977), ("cuad", 462, 194), ("maud", 150, 1676), ("privacy_qa", 7, 194)],
)
def test_each_benchmark_alone(home: Path, name: str, n_documents: int, n_tests: int) -> None:
    documents, queries = opened(home, benchmarks=[name], sample="all").read()
    assert (len(documents), len(queries)) == (n_documents, n_tests)
    assert {q.subset for q in queries} == {name}
    assert [q.query_id for q in queries] == [f"{name}-{n:04d}" for n in range(1, n_tests + 1)]


def replaced(path: str) -> str:
    return path.replace("|", "_").replace(":", "_")


@pytest.mark.parametrize("in_benchmarks", [False, True])
@pytest.mark.parametrize(
    "copied", [replaced, urllib.parse.quote, lambda p: urllib.parse.quote(replaced(p), safe="/,")]
)
def test_a_copy_with_other_names_gives_the_same_mini_set(
    home: Path,
    raw: dict[str, bytes],
    tmp_path: Path,
    copied: Callable[[str], str],
    in_benchmarks: bool,
) -> None:
    found: dict[str, bytes] = {}
    for name, data in raw.items():
        if name.startswith("corpus/"):
            found["corpus/" + copied(name[7:])] = data
            continue
        tests = json.loads(data)
        for snippet in (s for t in tests["tests"] for s in t["snippets"] if in_benchmarks):
            snippet["file_path"] = copied(snippet["file_path"])
        found[name] = json.dumps(tests).encode()
    other = fetched(tmp_path / "home", copies.unpacked(tmp_path / "copy", found))
    mini = opened(home).read(), opened(other).read()
    assert mini[0] == mini[1]


def test_every_corpus_in_the_project_opens(home: Path) -> None:
    from spanbench_pipeline.config import experiment

    expected = {
        "legalbench_mini": (72, 776),
        "legalbench_full": (714, 3041),
        "contractnli": (95, 977),
        "cuad_lbr": (462, 194),
        "maud": (150, 1676),
        "privacy_qa": (7, 194),
    }
    for corpus, counts in expected.items():
        loaded = experiment.load(builders.ROOT / "data" / "experiments" / f"{corpus}.toml")
        found = source.open_source(loaded, builders.project(home))
        documents, queries = found.read()
        assert (len(documents), len(queries)) == counts
        assert loaded.depth == 64
        assert not any(c.doc_scope for c in loaded.configurations)


# Small cases


def test_bom_and_newlines_count_as_characters(tmp_path: Path) -> None:
    text = "\ufeffOne\r\ntwo\rthree\n\u201cfour\u201d \U0001f600 five"
    tests = [
        copies.asked(
            "q",
            {"file_path": "maud/a||b.txt", "span": [0, 4], "answer": "\ufeffOne"},
            {"file_path": "maud/a||b.txt", "span": [4, 13], "answer": "\r\ntwo\rthr"},
            {"file_path": "maud/a||b.txt", "span": [25, 29], "answer": "five"},
        )
    ]
    home = small(tmp_path, {"maud/a||b.txt": text}, {"maud": tests})
    documents, queries = opened(home, benchmarks=["maud"], sample="all").read()
    assert [(d.doc_id, d.title, d.text) for d in documents] == [("maud/a__b", "a__b", text)]
    found = evalset.assemble("own", documents, queries)
    # The first two touch: one gold span, as every corpus has it.
    assert [(s["start_char"], s["end_char"]) for s in found.gold_spans.to_pylist()] == [
        (0, 13),
        (25, 29),
    ]
    assert queries[0].query_id == "maud-0001"


def test_snippets_that_overlap_or_repeat_are_checked_each_and_merged(tmp_path: Path) -> None:
    text = "abcdefghij"
    spans = [[2, 5], [4, 8], [2, 5]]
    tests = [
        copies.asked(
            "q",
            *({"file_path": "cuad/a.txt", "span": s, "answer": text[s[0] : s[1]]} for s in spans),
        )
    ]
    home = small(tmp_path, {"cuad/a.txt": text}, {"cuad": tests})
    found = evalset.assemble("own", *opened(home, benchmarks=["cuad"], sample="all").read())
    assert [(s["start_char"], s["end_char"]) for s in found.gold_spans.to_pylist()] == [(2, 8)]


def test_a_snippet_of_white_space_is_refused_by_test(tmp_path: Path) -> None:
    answers = [{"file_path": "cuad/a.txt", "span": [0, 1], "answer": "a"}]
    answers.append({"file_path": "cuad/a.txt", "span": [2, 4], "answer": "\n\u00a0"})
    tests = {"cuad": [copies.asked("q", *answers)]}
    with pytest.raises(InputError, match=r"cuad\.json, test 1.*\[2, 4\).*white space"):
        small(tmp_path, {"cuad/a.txt": "ab\n\u00a0cd"}, tests)


def test_the_mini_set_takes_the_first_194_by_their_draw_and_is_stable() -> None:
    entries = [
        copies.asked(f"q{n}", {"file_path": f"cuad/{n % 7}.txt", "span": [0, 1], "answer": "x"})
        for n in range(300)
    ]
    tests = benchmark.parse(json.dumps({"tests": entries}).encode(), "cuad")
    draws = {f"cuad/{n}.txt": random.Random(f"cuad/{n}.txt").random() for n in range(7)}
    left, expected = 194, []
    for path in sorted(draws, key=draws.__getitem__):
        of_path = [n for n in range(300) if f"cuad/{n % 7}.txt" == path]
        expected += of_path[:left]
        left -= len(of_path[:left])
    assert [t.query for t in benchmark.mini(tests)] == [f"q{n}" for n in sorted(expected)]


def test_the_mini_set_of_too_few_tests_is_refused(tmp_path: Path) -> None:
    home = small(tmp_path, {}, {})
    with pytest.raises(InputError, match=r"contractnli\.json: 1 tests, but the mini set takes 194"):
        opened(home).read()


ONE = {"file_path": "cuad/a.txt", "span": [0, 3], "answer": "abc"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "abd"}, "the text there is 'abc', but the answer is 'abd'"),
        ({"span": [0, 11]}, "[0, 11): outside the text, which has 10 characters"),
        ({"span": [-1, 2]}, "[-1, 2): outside the text"),
        ({"span": [3, 3], "answer": ""}, "[3, 3): outside the text, which has 10 characters, or"),
        ({"file_path": "cuad/b.txt"}, "file_path 'cuad/b.txt': the corpus has no such file"),
        ({"file_path": "cuad/A.txt"}, "looked for 'cuad/A.txt'"),
        ({"file_path": "maud/a.txt"}, "'maud/a.txt' is not of this benchmark"),
        ({"file_path": "a.txt"}, "must open with 'cuad/'"),
        ({"span": [0, 3.0]}, "must be a whole number, not 3.0"),
        ({"span": [0, True]}, "must be a whole number, not a bool"),
        ({"span": ["0", 3]}, "must be a whole number, not '0'"),
        ({"span": [0, 10**30]}, "is beyond any text"),
        ({"span": [0]}, "span [0] must be [start, end]"),
        ({"answer": None}, "answer must be text, not null"),
    ],
)
def test_a_wrong_snippet_names_benchmark_test_and_file(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    tests = [copies.asked("first", ONE), copies.asked("second", ONE, ONE | change)]
    with pytest.raises(InputError) as caught:
        small(tmp_path, {"cuad/a.txt": "abcdefghij"}, {"cuad": tests})
    assert "benchmarks/cuad.json, test 2" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "must be an object with key 'tests', not an array"),
        (b"{}", "key 'tests' is missing"),
        (b'{"tests": []}', "it holds no tests"),
        (b'{"tests": {}}', "tests must be an array, not an object"),
        (b'{"tests": [1]}', "test 1: must be an object with key 'snippets', not a number"),
        (b'{"tests": [{"query": "q", "snippets": []}]}', "test 1: it has no snippets"),
        (b'{"tests": [{"snippets": [1]}]}', "test 1, snippet 1: must be an object"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_is_no_benchmark(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        benchmark.parse(data, "cuad")
    assert str(caught.value).startswith("benchmarks/cuad.json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample": "mimi"}, "sample = 'mimi' is unknown; did you mean 'mini'?"),
        ({"sample": True}, "sample = True must be a valid string"),
        ({"benchmarks": "cuad"}, "benchmarks = 'cuad' must be a valid list"),
        (
            {"benchmarks": ["privacy"]},
            "benchmarks[0] = 'privacy' is unknown; did you mean 'privacy_qa'?",
        ),
        ({"benchmarks": [1]}, "benchmarks[0] = 1 must be a valid string"),
        ({"benchmarks": []}, "each benchmark once, and at least one"),
        ({"benchmarks": ["cuad", "cuad"]}, "each benchmark once, and at least one"),
        ({"bench": []}, "unknown key 'bench'"),
    ],
)
def test_wrong_settings(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        opened(tmp_path, **settings)
    assert "own.toml: source: " in str(caught.value)
    assert message in str(caught.value)


# What was fetched, and what is there now


def test_the_files_are_those_that_the_corpus_is_made_of(tmp_path: Path) -> None:
    home = small(tmp_path, {"cuad/touched by none.txt": "text"}, {})
    one = opened(home, benchmarks=["cuad"], sample="all").files()
    assert [(f.file, f.role) for f in one] == [
        ("small.zip", "archive"),
        ("benchmarks/cuad.json", "queries"),
        ("corpus/cuad/plain.txt", "document"),
        ("corpus/cuad/touched by none.txt", "document"),
    ]
    assert one[0].sha256 == builders.sha256((tmp_path / "small.zip").read_bytes())
    assert one[3].sha256 == builders.sha256(b"text")
    assert len(opened(home, sample="all").files()) == 1 + 4 + 5


@pytest.mark.parametrize("kept", ["corpus/cuad/plain.txt", "benchmarks/cuad.json"])
@pytest.mark.parametrize("change", [lambda p: p.unlink(), lambda p: p.write_bytes(b"{}")])
def test_a_file_that_is_not_as_fetched_is_refused(
    tmp_path: Path, kept: str, change: Callable[[Path], None]
) -> None:
    home = small(tmp_path, {}, {})
    change(home / "downloads" / "legalbenchrag" / "data" / kept)
    found = opened(home, benchmarks=["cuad"], sample="all")
    for look in (found.files, found.read):
        with pytest.raises(InputError, match=f"{kept}: .*run again: {FETCH}"):
            look()
    opened(home, benchmarks=["maud"], sample="all").read()  # it needs neither


def test_nothing_fetched(tmp_path: Path) -> None:
    for look in (opened(tmp_path).files, opened(tmp_path).read):
        with pytest.raises(InputError, match=f"not here yet; run: {FETCH}"):
            look()


@pytest.mark.parametrize("record", [b"", b"[]", b"{}", b'{"files": {"a": {}}}', b'{"files": 1}'])
def test_a_damaged_record_is_refused(tmp_path: Path, record: bytes) -> None:
    home = small(tmp_path, {}, {})
    (home / "downloads" / "legalbenchrag" / "provenance.json").write_bytes(record)
    with pytest.raises(InputError, match=f"not a record of LegalBench-RAG; run: {FETCH}"):
        opened(home).files()


def test_what_was_drawn_is_said(tmp_path: Path) -> None:
    assert "194 tests of each of cuad, maud" in str(
        opened(tmp_path, benchmarks=["maud", "cuad"]).drawn()
    )
    assert "every document and test of maud" in str(
        LegalBenchSource(tmp_path, ("maud",), "all").drawn()
    )
