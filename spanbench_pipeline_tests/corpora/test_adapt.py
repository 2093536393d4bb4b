from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline import experiment as experiments
from spanbench_pipeline.commands import adapt as command
from spanbench_pipeline.corpora import adapt as adapting
from spanbench_pipeline.corpora import source
from spanbench_pipeline.errors import InputError
from spanbench_pipeline_tests.corpora import builders
from spanbench_pipeline_tests.corpora.builders import Corpus
from spanbench_pipeline_tests.corpora.pdfs import pdf

FILTERED = "clause, unfiltered + filters"
SAMPLE = experiments.load(builders.ROOT / "data" / "experiments" / "sample.toml")


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
    for part in ("chunkers", "encoders", "rerankers", "configurations"):
        assert getattr(found, part) == getattr(SAMPLE, part)
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
    assert found.configurations == tuple(c for c in SAMPLE.configurations if c.name != FILTERED)


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
