"""An encoder and a reranker as plug-ins: one file each, and ``kind`` in an experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.models import encoding, kinds
from spanbench_pipeline.pipeline import code_version
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline_tests.end_to_end.conftest import CONTRACTS, QUERIES, names, run
from spanbench_pipeline_tests.pipeline.test_code_version import rewrite
from spanbench_pipeline_tests.plugins.conftest import forget
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUPS = {
    "spanbench.encoders": {"letters": "acme_letters"},
    "spanbench.rerankers": {"words": "acme_words"},
}
SETTINGS = """
[chunkers]
naive = { size = 200, step = 150 }
[encoders]
letters = { kind = "letters", letters = 20 }
[rerankers]
words = { kind = "words" }
[[configurations]]
name = "letters + words"
chunker = "naive"
reranker = "words"
doc_scope = false
"""


@pytest.fixture
def modules() -> dict[str, str]:
    return {
        "acme_letters.py": module_of(DEVELOPING, "how often each letter"),
        "acme_words.py": module_of(DEVELOPING, "query's words they hold."),
    }


def table(project: Project, *parts: str) -> list[dict]:
    path = project.parquet.joinpath("small", *parts)
    return pq.read_table(f"{path}.parquet", partitioning=None).to_pylist()


def letters(text: str) -> np.ndarray:
    counts = np.array([text.lower().count(a) for a in "abcdefghijklmnopqrst"], float)
    return counts / np.linalg.norm(counts)


def test_they_rank_a_corpus(acme, corpus, modules):
    acme(modules, GROUPS)
    project = corpus(SETTINGS)
    assert {"small/embeddings/naive", "small/rankings/letters_words"} <= names(run(project))
    text_of = {
        c["chunk_id"]: CONTRACTS[c["doc_id"]][c["start_char"] : c["end_char"]]
        for c in table(project, "chunks", "naive")
    }
    for row in table(project, "embeddings", "naive"):
        np.testing.assert_allclose(row["vector"], letters(text_of[row["chunk_id"]]), atol=1e-6)
    asked = {query_id: text for query_id, text, _, _ in QUERIES}
    for query_id, question in asked.items():
        cosines = {i: letters(question) @ letters(text) for i, text in text_of.items()}
        rows = [r for r in table(project, "rankings", "letters_words") if r["query_id"] == query_id]
        dense = sorted(rows, key=lambda r: r["dense_rank"])
        assert [r["chunk_id"] for r in dense] == sorted(cosines, key=lambda i: -cosines[i])
        words = set(question.lower().split())
        for row in rows:
            assert row["score"] == len(words & set(text_of[row["chunk_id"]].lower().split()))


def code(project: Project) -> dict[str, str]:
    """The code version of every stage, by its name."""
    forget()
    stages = graphs.build(project).of(["small"])
    return {"/".join(stage.key): code_version.digest(stage.made_by()) for stage in stages}


def test_a_change_of_their_code_is_one_of_what_uses_them(acme, corpus, modules):
    folder = acme(modules, GROUPS)
    project = corpus(SETTINGS)
    before = code(project)
    words = folder / "acme_words.py"
    rewrite(words, modules["acme_words.py"].replace("lower().split()))", "split()))"))
    after = code(project)
    changed = {k for k in after if after[k] != before[k]}
    assert "small/rankings/letters_words" in changed
    assert not {"small/embeddings/naive", "small/candidates/letters_words"} & changed

    encoder = folder / "acme_letters.py"
    rewrite(encoder, modules["acme_letters.py"].replace("[: settings", "[:: settings"))
    changed = {k for k, version in code(project).items() if version != after[k]}
    assert {"small/embeddings/naive", "small/fingerprints"} <= changed
    assert not {"small/chunks/naive", "small/rankings/letters_words"} & changed


def encode(text: str, tmp_path: Path, **parameters: object) -> list[float]:
    forget()
    encoder = experiments.Encoder("e", kind="letters", parameters=parameters)
    return (
        encoding.encode([text], encoder, models=tmp_path, cache=tmp_path / "vectors", names=["t1"])
        .vectors[0]
        .tolist()
    )


def test_the_cache_keeps_vectors_by_code_and_parameters(acme, modules, tmp_path: Path):
    folder = acme(modules, GROUPS)
    assert encode("abbc", tmp_path, letters=2) == pytest.approx([1 / 5**0.5, 2 / 5**0.5])
    assert encode("abbc", tmp_path, letters=1) == [1.0]
    encoder = folder / "acme_letters.py"
    rewrite(encoder, modules["acme_letters.py"].replace(".count(a) for a", ".count(a) ** 2 for a"))
    assert encode("abbc", tmp_path, letters=2) == pytest.approx([1 / 17**0.5, 4 / 17**0.5])


def test_parameters_and_kind_are_in_the_fingerprint_and_defaults_add_nothing(
    acme, corpus, modules, tmp_path
):
    acme(modules, GROUPS)
    project = corpus(SETTINGS)
    path = project.root / "data" / "experiments" / "small.toml"
    seen = set()
    for text in (
        path.read_text(),
        path.read_text().replace("letters = 20", "letters = 19"),
        path.read_text().replace("letters = 20", "letters = 20, normalize = false"),
        path.read_text().replace("letters = 20", "letters = 20, max_length = 7"),
    ):
        path.write_text(text)
        encoder = experiments.load(path).encoders["letters"]
        seen.add(kinds.fingerprint(encoder, tmp_path))
    assert len(seen) == 4
    assert encoder.parameters == {"letters": 20}
    assert encoder.max_length == 7
    assert experiments.Encoder("e", model="m").stated() == {
        "name": "e",
        "package": None,
        "model": "m",
        "sha256": None,
        "max_length": 256,
        "normalize": True,
    }


@pytest.mark.parametrize("table_name", ["encoders", "rerankers"])
def test_an_unknown_kind_names_the_file_and_the_nearest(acme, corpus, modules, table_name: str):
    acme(modules, GROUPS)
    wrong = {
        "encoders": ('"letters"', '"leters"'),
        "rerankers": ('kind = "words"', 'kind = "word"'),
    }
    project = corpus(SETTINGS.replace(*wrong[table_name], 1))
    broken = str(graphs.build(project).broken["small"])
    for told in ("small.toml", table_name, "kind", "sentence_transformers"):
        assert told in broken


def test_a_plug_in_that_is_broken_is_named(acme, corpus, modules):
    acme(modules | {"acme_letters.py": "import no_such_module"}, GROUPS)
    broken = graphs.build(corpus(SETTINGS)).broken["small"]
    assert isinstance(broken, InputError)
    for told in ("letters", "acme 1.0", "no_such_module"):
        assert told in str(broken)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("return counts / ", "return 1 / 0 or ", "ZeroDivisionError"),
        ("], np.float32)", "], np.float32)[None]", "one vector"),
        ("], np.float32)", "], np.float32) * np.nan", "not finite"),
    ],
)
def test_what_it_returns_is_checked(acme, modules, tmp_path, right: str, wrong: str, told: str):
    source = modules["acme_letters.py"]
    assert source.count(right) == 1
    acme({"acme_letters.py": source.replace(right, wrong)}, GROUPS)
    with pytest.raises(InputError, match=told):
        encode("abbc", tmp_path)


def test_a_text_with_no_more_tokens_than_the_empty_one_has_no_vector(acme, modules, tmp_path):
    acme(modules, GROUPS)
    assert encode("123", tmp_path, letters=3) == [0.0, 0.0, 0.0]
