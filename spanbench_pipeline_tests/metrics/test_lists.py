from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.joins import deduplicate
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline_tests.metrics.cases import Case, beside_another, cases, tiles

CASE = Case(
    texts={"A": "x" * 30, "B": "x" * 30},
    chunks={**tiles("A", 30, 10), **tiles("B", 30, 10)},
    gold={"q1": [("A", 0, 5)], "q2": [("B", 0, 5)]},
    rankings={"q1": ["A0", "A1", "A0", "A2"], "q2": ["A0", "B0"]},
)


def lists(table: pa.Table) -> dict[tuple[str, str], list[tuple[int, str]]]:
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for row in table.to_pylist():
        key = (row["config"], row["query_id"])
        found.setdefault(key, []).append((row["rank"], row["chunk_id"]))
    return found


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_first_occurrence_stays_and_the_rest_close_up(case: Case) -> None:
    expected = {
        ("mine", q): [(rank, chunk) for rank, chunk in enumerate(case.ids(case.asked(q).ranked), 1)]
        for q in case.gold
        if case.rankings[q]
    }
    assert lists(deduplicate(case.ranking_table())) == expected


def test_lists_of_several_configurations_stay_apart() -> None:
    both = pa.concat_tables([CASE.ranking_table("b"), CASE.ranking_table("a")])
    assert lists(deduplicate(both)) == {
        (config, query): found
        for config in ("a", "b")
        for query, found in {
            "q1": [(1, "A0"), (2, "A1"), (3, "A2")],
            "q2": [(1, "A0"), (2, "B0")],
        }.items()
    }


def test_lists_of_one_query_stay_apart_by_configuration_and_corpus() -> None:
    # Side by side in the table, with the same query and chunk: no repeats.
    one = CASE.ranking_table().slice(0, 1)
    for column in ("config", "corpus"):
        both = beside_another(one, column)
        assert [row["rank"] for row in deduplicate(both).to_pylist()] == [1, 1]


def test_a_clean_ranking_is_left_as_it_is() -> None:
    once = deduplicate(CASE.ranking_table())
    assert deduplicate(once).equals(once)
    assert tables.conform("rankings", once).equals(once)


def test_equal_ranks_come_by_chunk_id() -> None:
    ranked = CASE.ranking_table()
    tied = ranked.set_column(3, ranked.schema.field("rank"), pa.array([7] * 6, pa.int64()))
    assert lists(deduplicate(tied))["mine", "q1"] == [(1, "A0"), (2, "A1"), (3, "A2")]


def test_no_ranking_at_all() -> None:
    empty = tables.empty("rankings")
    assert deduplicate(empty).equals(empty)


def read(case: Case, ranked: pa.Table) -> None:
    known = case.eval_set()
    scored_run(ranked, known.gold_spans, case.chunk_table(), known.queries)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("query_id", "q3", "ranking of unknown query 'q3'"),
        ("chunk_id", "A9", "ranking of unknown chunk 'A9'"),
        ("doc_id", "C", "characters of unknown document 'C'"),
        (
            "doc_id",
            "B",
            r"configuration mine, query q1: the ranking places chunk A1 at B \[10, 20\), "
            r"but the chunk is \[10, 20\) of A",
        ),
        ("start_char", 9, r"chunk A1 at A \[9, 20\), but the chunk is \[10, 20\) of A"),
        ("end_char", 21, r"chunk A1 at A \[10, 21\), but the chunk is \[10, 20\) of A"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(column: str, value: object, message: str) -> None:
    rows = CASE.ranking_table().to_pylist()
    rows[1][column] = value
    with pytest.raises(InputError, match=message):
        read(CASE, tables.from_rows("rankings", rows))


def test_a_misplaced_chunk_is_named_wherever_it_stands() -> None:
    rows = CASE.ranking_table().to_pylist()
    rows[3]["start_char"] = 19
    message = r"query q1: .* chunk A2 at A \[19, 30\), but the chunk is \[20, 30\) of A$"
    with pytest.raises(InputError, match=message):
        read(CASE, tables.from_rows("rankings", rows))


def test_two_corpora_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="one corpus at a time, not other, tiny"):
        read(CASE, beside_another(CASE.ranking_table(), "corpus"))


def test_two_configurations_at_once_are_refused() -> None:
    both = pa.concat_tables([CASE.ranking_table("b"), CASE.ranking_table("a")])
    with pytest.raises(ValueError, match="one config at a time, not a, b"):
        read(CASE, both)
