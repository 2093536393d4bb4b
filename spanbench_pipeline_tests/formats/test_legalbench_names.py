from __future__ import annotations

import unicodedata
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.formats import legalbench_names as names
from spanbench_pipeline_tests.corpora import legalbench_builders as builders


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cuad/A, B & C.txt", "cuad/A, B & C.txt"),
        ("maud/A.pdf||B No.1.txt", "maud/A.pdf__B No.1.txt"),
        ("maud/A.pdf__B No.1.txt", "maud/A.pdf__B No.1.txt"),
        ("maud/A.pdf%7C%7CB%20No.1.txt", "maud/A.pdf__B No.1.txt"),
        ("privacy_qa/Tick: Tock.txt", "privacy_qa/Tick_ Tock.txt"),
        ("privacy_qa/Tick%3A Tock.txt", "privacy_qa/Tick_ Tock.txt"),
        ("contractnli/The%20Munt.txt", "contractnli/The Munt.txt"),
        ("contractnli/The%2520Munt.txt", "contractnli/The Munt.txt"),
        ("contractnli%2Fa%2Fb.txt", "contractnli/a_b.txt"),
        ("contractnli/a/b.txt", "contractnli/a_b.txt"),
        ("cuad/100%.txt", "cuad/100%.txt"),
        ("cuad/a%ffb.txt", "cuad/a%FFb.txt"),
        ("cuad/a%20%ff%20b.txt", "cuad/a %FF b.txt"),
        ("cuad/LECLANCHE\u0301.txt", "cuad/LECLANCH\u00c9.txt"),
        ("cuad/LECLANCHE%CC%81.txt", "cuad/LECLANCH\u00c9.txt"),
        ("cuad/%0e\u0301.txt", "cuad/%0\u00e9.txt"),
        ("name.txt", "name.txt"),
    ],
)
def test_canonical_by_hand(path: str, expected: str) -> None:
    assert names.canonical(path) == expected


PATHS = st.tuples(st.sampled_from(builders.BENCHMARKS), st.text("ab |:/%20 7cC3A\u00e9e\u0301+&"))


@settings(deadline=None, max_examples=500)
@given(PATHS, st.integers(0, 3))
def test_every_copy_of_a_name_has_its_canonical_form(parts: tuple[str, str], times: int) -> None:
    path = "/".join(parts)
    canonical = names.canonical(path)
    assert names.canonical(canonical) == canonical
    assert "|" not in canonical
    assert ":" not in canonical
    assert canonical.count("/") == 1
    benchmark, _, name = path.partition("/")
    encoded = name
    for _ in range(times):
        encoded = urllib.parse.quote(encoded, safe="")
    for copy in (
        f"{benchmark}/{encoded}",
        unicodedata.normalize("NFD", path),
        names.canonical(path).replace(" ", "%20"),
    ):
        assert names.canonical(copy) == canonical


def variants(path: str) -> list[str]:
    """The path as copies have it."""
    benchmark, _, name = path.partition("/")
    replaced = name.replace("|", "_").replace(":", "_")
    return [
        path,
        f"{benchmark}/{replaced}",
        f"{benchmark}/{urllib.parse.quote(name)}",
        f"{benchmark}/{urllib.parse.quote(name, safe='')}",
        f"{benchmark}/{urllib.parse.quote(replaced)}",
        f"{benchmark}/{urllib.parse.unquote(name)}",
    ]


def test_the_real_names_keep_apart_and_come_back_as_published(shared: Path) -> None:
    archive = shared / "data" / "legalbenchrag" / "legalbenchrag.zip"
    paths = [p[7:] for p in builders.contents(archive) if p.startswith("corpus/")]
    assert len(paths) == 714
    canonical = [names.canonical(path) for path in paths]
    assert len(set(canonical)) == 714
    assert all(names.can_be_stored(path) for path in canonical)
    for path, form in zip(paths, canonical, strict=True):
        for copy in variants(path):
            assert names.canonical(copy) == form
            assert names.published(copy) == path


def test_a_name_that_was_not_published_is_what_it_is_once_decoded() -> None:
    assert names.published("maud/own|name.txt") == "maud/own|name.txt"
    assert names.published("maud/own%7Cname.txt") == "maud/own|name.txt"


@pytest.mark.parametrize(
    "path",
    [
        *("cuad/.txt", "cuad/..txt", "cuad/a\0.txt", "cuad/a\n.txt", "cuad/a", "cuad/\udcff.txt"),
        *("other/a.txt", "a.txt", "cuad/" + "\u00e9" * 126 + ".txt"),
    ],
)
def test_what_cannot_be_the_name_of_a_document(path: str) -> None:
    assert not names.can_be_stored(path)


def test_a_name_may_have_255_bytes() -> None:
    assert names.can_be_stored("cuad/" + "a" * 251 + ".txt")
    assert not names.can_be_stored("cuad/" + "a" * 252 + ".txt")
