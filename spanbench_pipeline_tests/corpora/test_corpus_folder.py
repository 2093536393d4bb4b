from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.codepoints import is_blank
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query
from spanbench_pipeline.corpora import adapt as adapting
from spanbench_pipeline.corpora import corpus_folder, fetch, source
from spanbench_pipeline_tests.corpora import builders

LOST = ["title", "source_file", "extractor"]


def adapted(written: Path, home: Path) -> EvalSet:
    """The eval set that a written folder gives when it is registered and read again."""
    project = builders.project(home)
    path = adapting.adapt(
        project,
        docs=written / "documents",
        queries=written / "queries.jsonl",
        metadata=written / "metadata.json",
        name="again",
    )
    return source.load(experiments.load(path), project)


def assert_same(found: EvalSet, expected: EvalSet) -> None:
    """Equal field by field but for the corpus's name and what a directory cannot say."""
    assert found.documents.drop(["corpus", *LOST]) == expected.documents.drop(["corpus", *LOST])
    assert found.queries.drop("corpus") == expected.queries.drop("corpus")
    assert found.gold_spans.drop("corpus") == expected.gold_spans.drop("corpus")
    assert found.documents["title"] == expected.documents["doc_id"]


UNFIT = ["Cc", "Cs", "Zl", "Zp"]
NAMES = st.text(
    st.characters(exclude_categories=UNFIT, exclude_characters="/"), min_size=1, max_size=8
)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40
).filter(lambda text: not is_blank(text) and "\x1b$" not in text)
LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(
    lambda text: not is_blank(text)
)
FIELDS = st.sampled_from(["version", "\u00e9tat", "a b"])


@st.composite
def eval_sets(draw: st.DrawFn) -> EvalSet:
    ids = draw(
        st.lists(
            NAMES.filter(lambda name: not name.startswith(".")),
            min_size=1,
            max_size=4,
            unique_by=str,
        )
    )
    documents = [
        Document(
            doc_id,
            doc_id,
            draw(TEXTS),
            "f",
            "e",
            draw(st.dictionaries(FIELDS, st.text(st.characters(codec="utf-8")))),
        )
        for doc_id in ids
    ]
    declared = sorted({name for d in documents for name in d.metadata})
    queries = []
    for query_id in draw(st.lists(LABELS, min_size=1, max_size=4, unique=True)):
        document = draw(st.sampled_from(documents))
        spans = []
        for _ in range(draw(st.integers(1, 3))):
            start = draw(st.integers(0, len(document.text) - 1))
            end = draw(st.integers(start + 1, len(document.text)))
            assume(not is_blank(document.text[start:end]))
            spans.append(GoldSpan(document.doc_id, start, end))
        filters = draw(st.dictionaries(st.sampled_from(declared), LABELS)) if declared else {}
        queries.append(
            Query(
                query_id,
                draw(LABELS),
                spans,
                document.doc_id,
                draw(st.none() | LABELS),
                filters=filters,
            )
        )
    return evalset.assemble("first", documents, queries)


@settings(max_examples=60, deadline=None)
@given(eval_sets())
def test_an_eval_set_written_and_adapted_is_the_same(expected: EvalSet) -> None:
    with TemporaryDirectory() as folder:
        corpus_folder.save(expected, Path(folder) / "out")
        assert_same(adapted(Path(folder) / "out", Path(folder) / "home"), expected)


def test_cuads_sample_written_and_adapted_is_the_same(shared: Path, tmp_path: Path) -> None:
    project = builders.project(tmp_path / "cuad")
    fetch.fetch_cuad(
        project,
        archive=shared / "data" / "cuad" / "data.zip",
        sha256="6170e713db6211f556c6ae3d921912ef8948d479ec6507f408f9ba73a2788f2b",
    )
    expected = source.load(builders.experiment({"kind": "cuad"}, "cuad"), project)
    corpus_folder.save(expected, tmp_path / "out")
    found = adapted(tmp_path / "out", tmp_path / "home")
    assert_same(found, expected)
    assert (found.documents.num_rows, found.queries.num_rows, found.gold_spans.num_rows) == (
        20,
        50,
        114,
    )


def test_the_bundled_sample_written_and_adapted_is_the_same(tmp_path: Path) -> None:
    bundled = experiments.load(builders.ROOT / "data" / "experiments" / "sample.toml")
    expected = source.load(bundled, builders.project(tmp_path / "home"))
    corpus_folder.save(expected, tmp_path / "out")
    found = adapted(tmp_path / "out", tmp_path / "home")
    assert_same(found, expected)
    assert found.documents.drop("corpus") == expected.documents.drop("corpus")


def one(doc_id: str = "a", query: Query | None = None) -> EvalSet:
    asked = query or Query("q1", "q", [GoldSpan(doc_id, 0, 1)], doc_id)
    return evalset.assemble("x", [Document(doc_id, "T", "text", "f", "e", {"v": "7"})], [asked])


def test_the_files_by_hand(tmp_path: Path) -> None:
    corpus_folder.save(one(), tmp_path / "new" / "out")
    written = builders.listing(tmp_path / "new" / "out")
    assert sorted(written) == ["documents", "documents/a.txt", "metadata.json", "queries.jsonl"]
    assert written["documents/a.txt"] == b"text"
    assert json.loads(written["metadata.json"] or b"") == {"a": {"v": "7"}}
    assert json.loads(written["queries.jsonl"] or b"") == {
        "query_id": "q1",
        "query": "q",
        "doc_id": "a",
        "gold_spans": [{"start": 0, "end": 1, "text": "t"}],
    }


@pytest.mark.parametrize("doc_id", ["a/b", ".a", "a\0b", "x" * 252, "\u00e9" * 126])
def test_an_id_that_is_no_file_name(tmp_path: Path, doc_id: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a file"):
        corpus_folder.save(one(doc_id), tmp_path / "out")
    assert builders.listing(tmp_path) == {}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query("q1", "q", [GoldSpan("a", 0, 1)]), "not about one document"),
        (Query("q1", "q", [GoldSpan("a", 0, 1)], "a", subset="s"), "subset"),
    ],
)
def test_a_query_that_no_line_can_say(tmp_path: Path, query: Query, message: str) -> None:
    with pytest.raises(InputError, match=f"query q1: .*{message}"):
        corpus_folder.save(one(query=query), tmp_path / "out")
    assert builders.listing(tmp_path) == {}


def test_what_lies_there_already_is_not_mixed_with(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("mine")
    before = builders.listing(tmp_path)
    for folder in (tmp_path, tmp_path / "old.txt"):
        with pytest.raises(InputError, match="something already"):
            corpus_folder.save(one(), folder)
    assert builders.listing(tmp_path) == before
