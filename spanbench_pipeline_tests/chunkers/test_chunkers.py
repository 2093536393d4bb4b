from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline import chunkers
from spanbench_pipeline.chunkers import Chunker
from spanbench_pipeline.config.experiment import ChunkerSettings
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline_tests.metrics.cases import Case
from spanbench_pipeline_tests.metrics.measure import failure_labels

PARAGRAPHS = '''
"""One piece a paragraph; the empty lines between them are in no piece."""
import re
TILES = False
OVERLAPS = False
def chunk(text: str, *, min_chars: int = 1) -> list[tuple[int, int]]:
    found = [match.span() for match in re.finditer(r"[^\\n]+", text)]
    return [(start, end) for start, end in found if end - start >= min_chars]
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """A function that writes a module of the user's own and gives its dotted name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_chunkers").mkdir()

    def write(source: str, name: str = "paragraphs") -> str:
        (tmp_path / "own_chunkers" / f"{name}.py").write_text(source, encoding="utf-8")
        return f"own_chunkers.{name}"

    yield write
    for name in [name for name in sys.modules if name.startswith("own_chunkers")]:
        del sys.modules[name]


def load(strategy: str, **params: Any) -> Chunker:
    return chunkers.load(ChunkerSettings("mine", strategy, params), "lab.toml")


def documents(**texts: str) -> pa.Table:
    (first, *_) = texts
    return evalset.assemble(
        "c",
        [evalset.Document(d, d, text, f"{d}.txt", "text") for d, text in texts.items()],
        [evalset.Query("q", "?", [evalset.GoldSpan(first, 0, 1)])],
    ).documents


def pieces_of(table: pa.Table) -> list[tuple[str, int, int]]:
    return [(r["chunk_id"], r["start_char"], r["end_char"]) for r in table.to_pylist()]


# A third chunker: one module, one line of the experiment.


def test_a_chunker_of_ones_own(own: Callable[[str], str]) -> None:
    chunker = load(own(PARAGRAPHS), min_chars=2)
    table = chunkers.chunk_documents("c", documents(A="One\n\nx\nThree", B="Four"), chunker)
    assert pieces_of(table) == [("A:mine:0", 0, 3), ("A:mine:1", 7, 12), ("B:mine:0", 0, 4)]
    assert set(table["chunker"].to_pylist()) == {"mine"}
    assert table["chunk_no"].to_pylist() == [0, 1, 0]


def test_gaps_let_the_two_labels_fire_that_need_them(own: Callable[[str], str]) -> None:
    # Gold is the line "x", too short for a chunk, with the neighbouring newlines and characters.
    text = "aaaa\n\nx\n\n\nbbbb\n\n\n\n\n\ncccc"
    chunker = load(own(PARAGRAPHS), min_chars=2)
    table = chunkers.chunk_documents("tiny", documents(A=text), chunker)
    chunks = {
        row["chunk_id"]: ("A", row["start_char"], row["end_char"]) for row in table.to_pylist()
    }
    assert list(chunks.values()) == [("A", 0, 4), ("A", 10, 14), ("A", 20, 24)]
    case = Case(
        texts={"A": text},
        chunks=chunks,
        gold={
            "ceiling": [("A", 12, 20)],  # 2 of 8 characters in the one chunk, which is first
            "partial": [("A", 4, 10)],  # no character in any chunk
        },
        rankings={q: list(chunks) for q in ("ceiling", "partial")},
    )
    known = case.eval_set()
    labels = failure_labels(
        case.ranking_table(), known.gold_spans, table, known.queries, corpus="tiny", config="mine"
    )
    assert dict(zip(labels["query_id"].to_pylist(), labels["label"].to_pylist(), strict=True)) == {
        "ceiling": "ceiling-bound",
        "partial": "partial-grounding",
    }


# Loading: what an experiment file may say.

DECLARED = {
    "naive": (True, True, False),
    "clause": (True, False, False),
    "recursive": (True, False, False),
    "section": (True, True, False),
    "sentences": (True, True, False),
    "summary_augmented": (True, False, True),
}
"""Each of our own: whether it tiles, whether it overlaps, whether it embeds behind a card."""


def test_defaults_are_part_of_the_parameters() -> None:
    assert load("naive").params == {"size": 1000, "step": 850}
    assert load("clause", max_chars=900).params == {"min_chars": 200, "max_chars": 900}
    assert load("clause").module == "spanbench_pipeline.chunkers.clause"
    declared = {name: (c.tiles, c.overlaps, c.card) for name in DECLARED for c in [load(name)]}
    assert declared == DECLARED


@pytest.mark.parametrize(
    ("strategy", "params", "message"),
    [
        (
            "naiv",
            {},
            r"strategy = 'naiv' is unknown; did you mean 'naive'\? "
            r"\(valid: clause, naive, recursive, section, sentences, summary_augmented\)",
        ),
        ("../naive", {}, "strategy = '../naive' is no module name"),
        ("", {}, "strategy = '' is no module name"),
        ("no_such_package.x", {}, "no module 'no_such_package'.* PYTHONPATH"),
        ("os.path", {}, "module posixpath is no chunker"),
        ("naive", {"sise": 5}, r"unknown key 'sise'; did you mean 'size'\? \(valid: size, step\)"),
        ("naive", {"size": "5"}, "size = '5' must be of type int"),
        ("naive", {"size": 5.0}, "size = 5.0 must be of type int"),
        ("naive", {"size": True}, "size = True must be of type int"),
        ("naive", {"size": 500}, "size = 500 is below step = 850"),
        ("clause", {"min_chars": 2000}, "max_chars = 2000 is not above min_chars = 2000"),
        ("recursive", {"size": 0}, "size = 0 is below 1"),
        ("recursive", {"overlap": 10}, "unknown key 'overlap'"),
        ("summary_augmented", {"size": 0}, "size = 0 is below 1"),
        ("section", {"floor": -1}, "floor = -1 is below 0"),
        ("section", {"overlap": -1}, "overlap = -1 is below 0"),
        ("section", {"cap": 399}, "cap = 399 is below 400"),
        ("section", {"cap": 20, "floor": 0, "overlap": 10}, "cap = 20 is below 22"),
        ("sentences", {"overlap": -1}, "overlap = -1 is below 0"),
        ("sentences", {"size": 128}, "size = 128 is not above overlap = 128"),
    ],
)
def test_wrong_settings_are_refused(strategy: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^lab.toml: chunkers.mine: {message}"):
        load(strategy, **params)


HEAD = "TILES = False\nOVERLAPS = False\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("OVERLAPS = True\ndef chunk(text): return []", "is no chunker: it must have TILES"),
        (HEAD + "CARD = 1\ndef chunk(text): return []", "is no chunker: .*CARD"),
        ("TILES = 1\nOVERLAPS = True\ndef chunk(text): return []", "is no chunker"),
        (HEAD, "is no chunker"),
        (HEAD + "def chunk(text, *, n: int): return []", "key 'n' is missing"),
        (HEAD + "def chunk(text, *, n=3): return []", "must annotate n as one of int, float, str"),
        (HEAD + "def chunk(text, *, n: list = 3): return []", "must annotate n as one of"),
    ],
)
def test_modules_that_are_no_chunkers_are_refused(
    own: Callable[[str], str], source: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(own(source))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def chunk(:", r"SyntaxError: .*\(paragraphs\.py, line 1\)"),
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("from os import no_such_thing", "ImportError: "),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines$"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (HEAD + "def chunk(text, *, n: nowhere = 1): return []", "NameError: .*nowhere"),
        (HEAD + "def chunk(text): return []\ndef problem(): 1 / 0", "ZeroDivisionError"),
        (HEAD + "def chunk(text): return []\ndef sizes(): return {}[1]", "KeyError: 1"),
    ],
)
def test_a_module_that_breaks_is_told_with_what_it_raised(
    own: Callable[[str], str], source: str, message: str
) -> None:
    named = r"^lab\.toml: chunkers\.mine: module 'own_chunkers\.paragraphs' cannot be used: "
    with pytest.raises(InputError, match=named + message):
        load(own(source))


def test_types_of_parameters(own: Callable[[str], str]) -> None:
    source = (
        "from __future__ import annotations\n" + HEAD + "def chunk(text, *, share: float = 0.5, "
        "mark: str = '.', loose: bool = False): return []"
    )
    strategy = own(source)
    given_params = {"share": 1, "mark": ";", "loose": True}
    assert load(strategy, **given_params).params == given_params
    with pytest.raises(InputError, match="loose = 1 must be of type bool"):
        load(strategy, loose=1)


# Checking: what a chunker returns.


def returning(pieces: Any, *, tiles: bool = False, overlaps: bool = False) -> Chunker:
    return Chunker("mine", "own", tiles, overlaps, {}, lambda text: pieces)


TEN = documents(A="0123456789")


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([(0, 5), (5, 5)], r"piece 1, \[5, 5\), has no characters"),
        ([(5, 4)], r"piece 0, \[5, 4\), has no characters"),
        ([(-1, 5)], r"piece 0, \[-1, 5\), lies outside the text"),
        ([(0, 5), (5, 11)], r"piece 1, \[5, 11\), lies outside the text"),
        ([(5, 10), (0, 5)], r"piece 1, \[0, 5\), belongs before"),
        ([(0, 5), (0, 4)], r"piece 1, \[0, 4\), belongs before"),
        ([(0, 5), (0, 5)], r"piece 1, \[0, 5\), is given twice"),
        ([(0, 5), (4, 10)], r"piece 1, \[4, 10\), overlaps a piece before it"),
        ([(0, 9), (2, 3), (4, 10)], r"piece 1, \[2, 3\), overlaps a piece before it"),
        ([], r"characters \[0, 10\) are in no piece, but TILES is True"),
        ([(1, 10)], r"characters \[0, 1\) are in no piece"),
        ([(0, 4), (5, 10)], r"characters \[4, 5\) are in no piece"),
        ([(0, 9)], r"characters \[9, 10\) are in no piece"),
        ([(0.0, 10.0)], "did not return pairs of integers"),
        ([(0, 5), (5,)], "did not return pairs of integers"),
        ([0, 10], "did not return pairs of integers"),
        ([("0", "10")], "did not return pairs of integers"),
        ([(0, 2**70)], "did not return pairs of integers"),
        (None, "did not return pairs of integers"),
    ],
    ids=str,
)
def test_pieces_that_are_refused(pieces: Any, message: str) -> None:
    where = r"^chunker 'mine', document 'A' \(10 characters\): "
    with pytest.raises(InputError, match=where + message):
        chunkers.chunk_documents("c", TEN, returning(pieces, tiles=True))


def test_a_gap_behind_a_long_piece_is_none() -> None:
    # [0,9) goes on past the end of [2,3), so that nothing is missing before 4.
    table = chunkers.chunk_documents(
        "c", TEN, returning([(0, 9), (2, 3), (4, 10)], tiles=True, overlaps=True)
    )
    assert table.num_rows == 3


def test_declared_gaps_and_overlaps_are_accepted() -> None:
    made = chunkers.chunk_documents("c", TEN, returning([(1, 5), (3, 8)], overlaps=True))
    assert pieces_of(made) == [("A:mine:0", 1, 5), ("A:mine:1", 3, 8)]
    assert chunkers.chunk_documents("c", TEN, returning([])).num_rows == 0


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([(0, 6), (6, 10)], r"piece 0, \[0, 6\), has more characters than the 5 "),
        ([(0, 3), (3, 8)], r"piece 0, \[0, 3\), has fewer characters than the 4 "),
    ],
    ids=str,
)
def test_pieces_of_another_size_than_promised_are_refused(pieces: Any, message: str) -> None:
    chunker = replace(returning(pieces), sizes=(4, 5))
    with pytest.raises(InputError, match=message):
        chunkers.chunk_documents("c", TEN, chunker)
    # The last one may be short.
    last = replace(returning([(0, 4), (4, 9), (9, 10)]), sizes=(4, 5))
    assert chunkers.chunk_documents("c", TEN, last).num_rows == 3


def test_what_the_strategies_promise() -> None:
    assert load("naive", size=9, step=4).sizes == (9, 9)
    assert load("clause", min_chars=5, max_chars=9).sizes == (1, 9)


def test_the_message_names_the_document() -> None:
    with pytest.raises(InputError, match="document 'B'"):
        chunkers.chunk_documents(
            "c", documents(A="0123456789", B="01234"), returning([(0, 10)], tiles=True)
        )


pieces = st.lists(
    st.tuples(st.integers(-1, 11), st.integers(-1, 11)).map(tuple), min_size=0, max_size=6
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(pieces, pieces.map(sorted)), st.booleans(), st.booleans())
def test_what_is_accepted_is_what_was_declared(
    made: list[tuple[int, int]], tiles: bool, overlaps: bool
) -> None:
    held = [set(range(start, end)) for start, end in made]
    sound = all(0 <= start < end <= 10 for start, end in made) and made == sorted(set(made))
    disjoint = sum(map(len, held)) == len(set().union(*held))
    whole = set().union(*held) >= set(range(10))
    chunker = returning(made, tiles=tiles, overlaps=overlaps)
    if sound and (disjoint or overlaps) and (whole or not tiles):
        table = chunkers.chunk_documents("c", TEN, chunker)
        assert [(s, e) for _, s, e in pieces_of(table)] == made
    else:
        with pytest.raises(InputError):
            chunkers.chunk_documents("c", TEN, chunker)


@pytest.mark.parametrize("strategy", DECLARED)
def test_our_own_chunkers_keep_what_they_declare(strategy: str, shared: Path) -> None:
    from spanbench_pipeline_tests.chunkers.published import published_eval_set

    known = published_eval_set(shared)
    table = chunkers.chunk_documents("cuad", known.documents, load(strategy))
    published_counts = {"naive": 1103, "clause": 972}
    assert table.num_rows == published_counts.get(strategy, table.num_rows) > 20
