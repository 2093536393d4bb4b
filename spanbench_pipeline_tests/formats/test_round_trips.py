"""What is exported and scored back gives the metrics that it gave."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

from spanbench_pipeline.formats import json_lines, legalbenchrag, rankings_file, stamp, trec
from spanbench_pipeline.formats.given_file import Given as File
from spanbench_pipeline.formats.parquet_file import content as parquet
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.scoring.measured import Measured, measure
from spanbench_pipeline.scoring.validated_run import take
from spanbench_pipeline_tests.formats.worlds import Given, worlds
from spanbench_pipeline_tests.metrics.cases import CONFIG, CORPUS

NAMED = {"corpus": CORPUS, "config": CONFIG}


def no_metrics() -> pa.Table:
    fields = [("query_id", pa.string()), ("metric", pa.string())]
    return pa.schema([*fields, ("k", pa.int64()), ("value", pa.float64())]).empty_table()


WRITERS: dict[str, Callable[[Given, Stamp], bytes]] = {
    "jsonl": lambda g, of: b"".join(
        json_lines.lines(g.rankings, g.evalset.queries, no_metrics(), of)
    ),
    "trec": lambda g, of: b"".join(trec.run(g.rankings, of.tag("a; tag"))),
    "legalbenchrag": lambda g, of: b"".join(legalbenchrag.result_file(g.rankings, g.evalset, of)),
    "parquet": lambda g, of: parquet(
        "rankings", g.rankings, {stamp.KEY: json.dumps({CONFIG: of.said()})}
    ),
}


def measured(given: Given, rankings: pa.Table) -> Measured:
    return measure(rankings, given.evalset, given.chunks, depth=16, **NAMED)


@pytest.mark.parametrize("kind", WRITERS)
@settings(max_examples=20, deadline=None)
@given(given=worlds())
def test_scored_back_it_is_the_same(kind: str, given: Given) -> None:
    parts = {q["query_id"]: q["subset"] for q in given.evalset.queries.to_pylist()}
    there = {parts[q] for q in given.rankings["query_id"].to_pylist()}
    assume(there == set(parts.values()))  # a part without an entry never ran
    of = stamp.made(given.evalset, given.chunks, "my; chunker=é", 16)
    file = File(Path("mine"), WRITERS[kind](given, of))
    found = rankings_file.read(file, None, None, CORPUS)
    assert (found.kind, found.stamp) == (kind, of)
    lists = found.lists(given.evalset, given.chunks)
    taken = take(lists, given.evalset, given.chunks, where="mine", **NAMED)
    again, before = measured(given, taken.rankings), measured(given, given.rankings)
    assert again.tables.keys() == before.tables.keys()
    for name, table in before.tables.items():
        if name == "rankings" and kind == "trec":
            table = table.drop_columns(["score"])
            assert again.tables[name].drop_columns(["score"]) == table
        else:
            assert again.tables[name] == table, name


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_without_a_chunk_table_what_is_measured_is_the_same(given: Given) -> None:
    """And what is not is absent or null, never 0."""
    full = measured(given, given.rankings)
    bare = measure(given.rankings, given.evalset, None, depth=16, **NAMED)
    assert full.not_measured == {}
    assert "failure_labels" not in bare.tables
    kept = [
        row
        for row in full.tables["query_metrics"].to_pylist()
        if row["metric"] not in ("recall", "ndcg")
    ]
    assert bare.tables["query_metrics"].to_pylist() == kept
    assert bare.tables["span_outcomes"] == full.tables["span_outcomes"]
    for one, other in zip(
        bare.tables["forensic_labels"].to_pylist(),
        full.tables["forensic_labels"].to_pylist(),
        strict=True,
    ):
        assert one["label"] in (None, other["label"])
        assert one["excess"] == other["excess"]
    states = bare.tables["span_states"]
    assert set(states["severed"].to_pylist()) == set(states["lost_stage"].to_pylist()) == {None}
    whole = [r for r in full.tables["headroom"].to_pylist() if r["bound"] != "chunks"]
    assert bare.tables["headroom"].to_pylist() == whole
