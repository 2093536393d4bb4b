"""Measures that go by documents' names or positions are found by renaming and reordering."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.checks import metamorphic
from spanbench_pipeline.metrics.forensic_labels import forensic_labels
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import ScoredRun, scored_run
from spanbench_pipeline_tests.checks.test_character_metrics import CASE, DEPTH
from spanbench_pipeline_tests.metrics.places import A, Placed, placed_cases


@settings(max_examples=40, deadline=None)
@given(placed_cases())
def test_renaming_and_reordering(case: Placed) -> None:
    ranked, gold, chunks, asked = case.tables()
    assert metamorphic.blind_to_documents(ranked, gold, chunks, asked, depth=DEPTH) == []
    assert metamorphic.moved_by_row_order(ranked, gold, chunks, asked, depth=DEPTH) == []


def test_a_renamed_document_is_fresh_whatever_documents_are_called() -> None:
    gold = [("renamed:A", 0, 10), ("renamed::A", 0, 10)]
    case = Placed({"q": gold}, {"q": [A(0, 10)]}, [A(0, 10)])
    assert metamorphic.blind_to_documents(*case.tables(), depth=DEPTH) == []


def test_a_measure_blind_to_documents_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all documents were one: what the published framework did."""

    def blind(table: pa.Table) -> pa.Table:
        return table.set_column(
            table.column_names.index("doc_id"), "doc_id", pa.array(["one"] * table.num_rows)
        )

    def join(rankings: pa.Table, gold: pa.Table, _: Any, queries: pa.Table) -> ScoredRun:
        runs.append(scored_run(blind(rankings), blind(gold), None, queries))
        return scored_run(rankings, gold, None, queries)

    runs: list[ScoredRun] = []
    monkeypatch.setattr(metamorphic, "scored_run", join)
    monkeypatch.setattr(metamorphic, "query_metrics", lambda _, **n: query_metrics(runs[-1], **n))
    found = metamorphic.blind_to_documents(*CASE.tables(), depth=DEPTH)
    assert {row["query_id"] for row in found} == {"gap", "ok", "over"}


def test_a_label_that_nobody_knows_is_no_drm(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(run: ScoredRun, **named: Any) -> pa.Table:
        table = forensic_labels(run, **named)
        at = table.schema.get_field_index("label")
        return table.set_column(at, table.schema.field(at), pa.nulls(table.num_rows, pa.string()))

    monkeypatch.setattr(metamorphic, "forensic_labels", measure)
    found = metamorphic.blind_to_documents(*CASE.tables(), depth=DEPTH)
    assert {row["query_id"] for row in found} == set(CASE.gold)


@pytest.mark.parametrize("name", ["forensic_labels", "span_states"])
def test_a_measure_that_goes_by_position_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(metamorphic, name)

    def join(ranked: pa.Table, *others: Any) -> ScoredRun:
        runs.append(ranked.slice(0, 1))
        return scored_run(ranked, *others)

    def measure(run: ScoredRun, **named: Any) -> pa.Table:
        return original(run.with_lists(runs[-1]), **named)

    runs: list[pa.Table] = []
    monkeypatch.setattr(metamorphic, "scored_run", join)
    monkeypatch.setattr(metamorphic, name, measure)
    found = metamorphic.moved_by_row_order(*CASE.tables(), depth=DEPTH)
    assert found == [{"table": name}]
