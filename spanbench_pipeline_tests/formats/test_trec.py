from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import ids, trec
from spanbench_pipeline_tests.formats.worlds import NASTY, renamed
from spanbench_pipeline_tests.metrics.cases import Case, tiles

CASE = Case(
    texts={"A": "x" * 40},
    chunks=tiles("A", 40, 10),
    gold={"q": [("A", 5, 15)]},
    rankings={"q": ["A3", "A0"]},
)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_an_encoded_id_is_one_word_and_comes_back(name: str) -> None:
    encoded = ids.encode(name)
    assert encoded.isascii()
    assert encoded.split() == [encoded]
    assert ids.decoder([encoded], {name}, "chunk", "mine") == {encoded: name}


@settings(max_examples=100)
@given(st.lists(st.text("ab% 20", min_size=1), min_size=1, unique=True))
def test_ids_of_one_file_come_back_or_are_refused(names: list[str]) -> None:
    encoded = [ids.encode(name) for name in names]
    if set(encoded) <= set(names) and encoded != names:  # both readings fit: never a guess
        with pytest.raises(InputError, match="percent-decoded"):
            ids.decoder(encoded, set(names), "chunk", "mine")
    else:
        found = ids.decoder(encoded, set(names), "chunk", "mine")
        assert [found[e] for e in encoded] == names


def test_a_run_by_hand() -> None:
    given = renamed(CASE)
    written = b"".join(trec.run(given.rankings, "mine + yours")).decode()
    assert written == (
        "q%20q%25 Q0 a%20b/c%20d:A3 1 2 mine%20+%20yours\n"
        "q%20q%25 Q0 a%20b/c%20d:A0 2 1 mine%20+%20yours\n"
    )


def test_judgements_by_hand() -> None:
    given = renamed(CASE)
    found = trec.qrels(given.evalset.queries, given.evalset.gold_spans, given.chunks)
    assert b"".join(found).decode() == (
        "q%20q%25 0 a%20b/c%20d:A0 1\nq%20q%25 0 a%20b/c%20d:A1 1\n"
    )
    assert NASTY["A"] == "a b/c d"


def plain(names: list[str], what: str) -> dict[str, str]:
    return {name: name for name in names}


def test_lines_may_stand_in_any_order_and_ranks_may_have_holes() -> None:
    text = "q Q0 c 7 1.0 t\nq Q0 a 1 9.0 t\n\nr Q0 b 0 2 t\r\nq Q0 b 3 5 t\n"
    found = trec.lists(trec.read_run(text, "mine.run"), plain)
    assert {g.query_id: [(e.chunk_id, e.score, e.at) for e in g.entries] for g in found} == {
        "q": [("a", 9.0, 2), ("b", 5.0, 5), ("c", 1.0, 1)],
        "r": [("b", 2.0, 4)],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 2.0", r"mine.run line 1: 5 columns, not the six"),
        ("q Q0 a b 1 2.0 t", r"mine.run line 1: 7 columns.*percent-encoded"),
        ("q Q0 a 1.5 2.0 t", r"line 1: rank must be a whole number, not 1.5"),
        (f"q Q0 a {'7' * 5000} 2.0 t", r"line 1: rank 777777777777777… is beyond any"),
        (f"q Q0 a 1 {'7' * 5000} t", r"line 1: score '7{60}' is no number"),
        ("q Q0 a 1 2 t\n\nq Q0 b 2 1 u", r"line 3: tag 'u', but line 1 has 't': two runs"),
        ("q Q0 a 1 nan t", r"line 1: score 'nan' is no number"),
        ("q Q0 a 1 -inf t", r"line 1: score '-inf' is no number"),
        ("q Q0 a 1 1_0 t", r"line 1: score '1_0' is no number"),
        ("q Q0 a 1 \u0661 t", r"line 1: score '\u0661' is no number"),
        ("q Q0 a 1 1e999 t", r"line 1: score '1e999' is no number"),
        ("q Q0 a 1 high t", r"line 1: score 'high' is no number"),
        ("q Q0 a 1 2 t\nq Q0 b 1 1 t", r"query q: rank 1 is given twice, in lines 1 and 2"),
    ],
)
def test_what_is_no_run_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        trec.lists(trec.read_run(text, "mine.run"), plain)


def test_ids_must_be_known_in_one_reading() -> None:
    known = {"a b": 1, "c": 1}
    assert ids.decoder(["a%20b", "c"], known, "chunk", "f") == {"a%20b": "a b", "c": "c"}
    assert ids.decoder(["a%20b"], {"a%20b": 1}, "chunk", "f") == {"a%20b": "a%20b"}
    with pytest.raises(InputError, match=r"f: unknown chunk 'd'; did you|f: unknown chunk 'd' \(2"):
        ids.decoder(["d"], known, "chunk", "f")
    with pytest.raises(InputError, match="not percent-encoded, but others are"):
        ids.decoder(["a%20b", "50%25"], {"a b": 1, "50%25": 1}, "chunk", "f")
    with pytest.raises(InputError, match="one chunk as it stands and another one"):
        ids.decoder(["a%20b"], {"a b": 1, "a%20b": 1}, "chunk", "f")
