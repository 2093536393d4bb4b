from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.cli import adapt as command
from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import adapt as adapting
from spanbench_pipeline.corpora import source, source_table
from spanbench_pipeline_tests.corpora import builders
from spanbench_pipeline_tests.corpora.builders import Corpus
from spanbench_pipeline_tests.corpora.pdfs import pdf

FILTERED = "clause, unfiltered + filters"
SAMPLE = experiments.load(builders.ROOT / "data" / "experiments" / "sample.toml")
OWN = tuple(
    replace(c, bm25="lucene", tokenizer="unicode") if c.uses_bm25 else c
    for c in SAMPLE.configurations
)
"""The sample's, but that BM25 also ranks few chunks and reads any script."""


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    folder = tmp_path / 'own "contracts" \\ \u00e9t\u00e9 \U0001f44d #1'
    ask = {"query": "Which law?", "doc_id": "a", "gold_texts": ["Delaware"]}
    return Corpus(folder).document("a.txt", "Law: Delaware").lines(ask)


def adapt(corpus: Corpus, home: Path, name: str = "mine") -> Path:
    return adapting.adapt(
        builders.project(home),
        docs=corpus.documents,
        queries=corpus.queries,
        metadata=corpus.metadata,
        name=name,
    )


def test_a_registered_corpus_runs_like_the_sample(corpus: Corpus, tmp_path: Path) -> None:
    corpus.declare('{"a": {"version": 7}}')
    path = adapt(corpus, tmp_path / "home")
    project = builders.project(tmp_path / "home")
    assert path == project.registered / "mine.toml"
    assert path in project.experiment_files()
    found = experiments.load(path)
    assert found.source == {
        "kind": "directory",
        "documents": str(corpus.documents),
        "queries": str(corpus.queries),
        "metadata": str(corpus.metadata),
        "manifest": str(project.registered / "mine.manifest.json"),
        "max_documents": 250,
        "max_bytes": 2_000_000_000,
    }
    assert (found.corpus, found.depth, found.baseline) == ("mine", 30, SAMPLE.baseline)
    for part in ("chunkers", "encoders", "rerankers"):
        assert getattr(found, part) == getattr(SAMPLE, part)
    assert found.configurations == OWN != SAMPLE.configurations
    held = source.load(found, project)
    assert held.documents["metadata"].to_pylist() == [[("version", "7")]]
    recorded = json.loads((project.registered / "mine.manifest.json").read_bytes())
    assert recorded["a"]["text_sha256"] == builders.sha256(b"Law: Delaware")


@pytest.mark.parametrize("declared", [None, "{}", '{"a": {}}'])
def test_without_metadata_nothing_filters_by_it(
    corpus: Corpus, tmp_path: Path, declared: str | None
) -> None:
    if declared is not None:
        corpus.declare(declared)
    found = experiments.load(adapt(corpus, tmp_path / "home"))
    assert FILTERED in [c.name for c in SAMPLE.configurations]
    assert found.configurations == tuple(c for c in OWN if c.name != FILTERED)


def test_what_a_document_lacks_is_printed(corpus: Corpus, tmp_path: Path) -> None:
    def said() -> str:
        project = builders.project(tmp_path / "home")
        return command.adapt(project, corpus.documents, corpus.queries, None, "mine")

    assert "note" not in said()
    corpus.document("p.pdf", pdf("One.", ""))
    assert "note: document 'p': page 2: no text" in said()


def test_relative_paths_become_absolute(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.folder)
    path = adapting.adapt(
        builders.project(tmp_path / "home"),
        docs=Path("documents"),
        queries=Path("queries.jsonl"),
        name="mine",
    )
    assert experiments.load(path).source["documents"] == str(corpus.documents)


def test_a_text_that_changes_later_is_refused_until_it_is_registered_again(
    corpus: Corpus, tmp_path: Path
) -> None:
    project = builders.project(tmp_path / "home")
    path = adapt(corpus, tmp_path / "home")
    corpus.document("a.txt", "The law: Delaware")
    with pytest.raises(InputError, match="spanbench adapt"):
        source.load(experiments.load(path), project)
    assert adapt(corpus, tmp_path / "home") == path
    assert source.load(experiments.load(path), project).documents["n_chars"].to_pylist() == [17]


EDITED = """\ufeff# our own
corpus = "mine"  # and no other
depth = 5

[source]  # where it lies
kind = "directory"
documents = '/somewhere/else'  # before the move
queries = "/q.jsonl"
max_documents = 300

# what we compare
[chunkers]
naive = { size = 700, step = 600 }
[[configurations]]
name = "[source]"
chunker = "naive"
retriever = "bm25"
"""


def test_an_edited_experiment_is_kept_but_for_its_source(corpus: Corpus, tmp_path: Path) -> None:
    corpus.declare("{}")
    project = builders.project(tmp_path / "home")
    path = adapt(corpus, tmp_path / "home")
    path.write_bytes(EDITED.replace("\n", "\r\n").encode("utf-8"))
    assert adapt(corpus, tmp_path / "home") == path
    lines = path.read_bytes().decode("utf-8").split("\r\n")
    quoted = str(corpus.documents).replace("\\", "\\\\").replace('"', '\\"')
    assert f'documents = "{quoted}"  # before the move' in lines
    before = EDITED.split("\n")
    assert [line for line in before if line not in lines] == before[6:8]
    new = [line.partition(" ")[0] for line in lines if line not in before]
    assert new == ["documents", "queries", "metadata", "manifest", "max_bytes"]
    at = lines.index("# what we compare")
    assert lines[at - 1] == ""
    assert lines[at - 2].startswith("max_bytes")
    found = experiments.load(path)
    assert (found.depth, [c.name for c in found.configurations]) == (5, ["[source]"])
    assert found.source["max_documents"] == 300
    assert source.load(found, project).documents.num_rows == 1
    written = path.read_bytes()
    corpus.metadata = None
    adapt(corpus, tmp_path / "home")
    assert "metadata" not in experiments.load(path).source
    corpus.declare("{}")
    adapt(corpus, tmp_path / "home")
    assert tomllib.loads(path.read_bytes().decode("utf-8-sig")) == tomllib.loads(
        written.decode("utf-8-sig")
    )


def test_nothing_changes_where_nothing_changed(corpus: Corpus, tmp_path: Path) -> None:
    adapt(corpus, tmp_path / "home")
    before = builders.listing(tmp_path / "home")
    adapt(corpus, tmp_path / "home")
    assert builders.listing(tmp_path / "home") == before


def test_what_registering_again_says(corpus: Corpus, tmp_path: Path) -> None:
    def said() -> str:
        project = builders.project(tmp_path / "home")
        return command.adapt(project, corpus.documents, corpus.queries, corpus.metadata, "mine")

    assert "registered before" not in said()
    assert "nothing in its file changed" in said()
    path = builders.project(tmp_path / "home").registered / "mine.toml"
    head = "# Registered by spanbench adapt; registering the corpus again replaces this file."
    path.write_text("\n".join([head, *path.read_text().split("\n")[1:]]), encoding="utf-8")
    corpus.declare("{}")
    changed = [line.strip() for line in said().split("\n") if line.strip()[:1] in ("+", "-")]
    assert [line[:12] for line in changed] == ["- # Register", "+ # Register", "+ metadata ="]
    assert head not in path.read_text(encoding="utf-8")


def test_gold_with_white_space_at_an_edge_is_counted(corpus: Corpus, tmp_path: Path) -> None:
    def said(*golds: list[str]) -> str:
        corpus.lines(*[{"query": "Which?", "doc_id": "a", "gold_texts": gold} for gold in golds])
        project = builders.project(tmp_path / "home")
        return command.adapt(project, corpus.documents, corpus.queries, None, "mine")

    assert "note: 2 gold spans" in said([" Delaware"], ["Law: "], ["Law: Delaware"])
    assert "query q002, document a, [0, 5)" in said(["Delaware"], ["Law: "])
    assert "white space" not in said(["Law:"], ["Law: Delaware"])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("corpus = ", "not valid TOML"),
        ('corpus = "mine"\nconfigurationz = []\n', "unknown key 'configurationz'"),
        (EDITED.replace('"directory"', '"cuad"'), "kind = 'cuad'"),
        (EDITED + "\n[source.mine]\n# a note\nx = 1\n", r"\[source\]\nkind = "),
        (EDITED.replace("[source]  #", "[source] #").replace('kind = "d', 'kind = "D'), "kind"),
        (
            'corpus = "mine"\nsource = { kind = "directory" }\nchunkers = { naive = {} }\n'
            'configurations = [{ name = "n", chunker = "naive", retriever = "bm25" }]\n',
            r"\[source\]\nkind = \"directory\"\ndocuments = ",
        ),
    ],
)
def test_an_experiment_that_cannot_be_kept_is_refused(
    corpus: Corpus, tmp_path: Path, text: str, part: str
) -> None:
    path = adapt(corpus, tmp_path / "home")
    path.write_text(text, encoding="utf-8")
    before = builders.listing(tmp_path / "home")
    corpus.document("a.txt", "Law: Delaware, USA")
    with pytest.raises(InputError, match=rf"(?s)mine\.toml.*{part}"):
        adapt(corpus, tmp_path / "home")
    assert builders.listing(tmp_path / "home") == before


PARTS = """
# note
[chunkers]
[[configurations]]
[x.y]
[source]
source = {}
kind = 'd'
queries = 1 # c
  documents = 2
x = [
]
[
"""
LINES = st.lists(st.sampled_from([*PARTS.split("\n"), 'a = """', '"""']), max_size=12)


@settings(deadline=None)
@given(LINES, st.dictionaries(st.sampled_from(["kind", "queries", "metadata"]), st.text()))
def test_whatever_the_file_nothing_but_its_source_changes(
    lines: list[str], new: dict[str, str]
) -> None:
    text = "\n".join(["corpus = 'c'", *lines])
    values = {key: (value, adapting._value(value)) for key, value in new.items()}
    try:
        before = tomllib.loads(text)
        made = source_table.replaced(text, values, Path("c.toml"))
    except (tomllib.TOMLDecodeError, InputError):
        return
    assert tomllib.loads(made) == before | {"source": new}
    if not before["source"].keys() <= {"kind", "queries", "documents"}:
        return  # then lines of any form went with a setting that is none of the source's
    kept = [line for line in lines if not line.strip().startswith(("kind", "quer", "docu"))]
    left = iter(made.split("\n"))
    assert all(line in left for line in kept)  # each behind the one before


@pytest.mark.parametrize("name", ["", "Mine", "my-corpus", "my corpus", "_x", "x__y", "../x", "é"])
def test_a_name_must_be_a_slug(corpus: Corpus, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        adapt(corpus, tmp_path / "home", name)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["sample", "cuad", "cuad_full"])
def test_the_projects_own_names_are_taken(corpus: Corpus, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"--name '{name}'.*choose another"):
        adapt(corpus, tmp_path / "home", name)
    assert not (tmp_path / "home").exists()


def test_a_wrong_corpus_leaves_an_earlier_registration_untouched(
    corpus: Corpus, tmp_path: Path
) -> None:
    adapt(corpus, tmp_path / "home")
    before = builders.listing(tmp_path / "home")
    corpus.lines({"query": "q", "doc_id": "a", "gold_texts": ["New York"]})
    with pytest.raises(InputError, match="is not in document 'a'"):
        adapt(corpus, tmp_path / "home")
    corpus.lines({"query": "q", "doc_id": "a", "gold_texts": ["Law"], "filters": {"x": "1"}})
    with pytest.raises(InputError, match="declared by no document"):
        adapt(corpus, tmp_path / "home")
    assert builders.listing(tmp_path / "home") == before


def test_a_path_that_no_experiment_file_can_hold(corpus: Corpus, tmp_path: Path) -> None:
    moved = corpus.queries.rename(
        corpus.folder / b"caf\xe9.jsonl".decode("utf-8", "surrogateescape")
    )
    corpus.queries = moved
    with pytest.raises(InputError, match=r"queries .* not UTF-8"):
        adapt(corpus, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_caps_may_be_raised(corpus: Corpus, tmp_path: Path) -> None:
    for number in range(250):
        corpus.document(f"d{number}.txt", "text")
    with pytest.raises(InputError, match="251 documents"):
        adapt(corpus, tmp_path / "home")
    path = adapting.adapt(
        builders.project(tmp_path / "home"),
        docs=corpus.documents,
        queries=corpus.queries,
        name="mine",
        max_documents=251,
    )
    held = source.load(experiments.load(path), builders.project(tmp_path / "home"))
    assert held.documents.num_rows == 251


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers(-9, 9) | st.booleans()))
def test_whatever_text_a_setting_holds_the_file_is_toml(settings: dict[str, str | int]) -> None:
    text = "".join(
        f"{adapting._key(key)} = {adapting._value(value)}\n" for key, value in settings.items()
    )
    assert tomllib.loads(text) == settings
