"""What the web UI says of an asset in words."""

from __future__ import annotations

from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline.stage import Check, Option, Outcome, Reader, Stage
from spanbench_pipeline.pipeline.ui import descriptions


def compute(_: Reader) -> Outcome:
    return Outcome(tables.empty("chunks"))


def stage(*key: str, table: str = "chunks", **more: object) -> Stage:
    return Stage(key=key, table=table, description="What it is.", compute=compute, **more)  # type: ignore[arg-type]


def test_every_table_says_what_a_row_is():
    assert set(tables.TABLES) <= set(descriptions.READING)
    assert all(text.startswith("A row ") for text in descriptions.READING.values())


def test_a_description_says_what_it_is_how_to_read_it_and_where_it_stands():
    said = descriptions.describe(stage("c", "rankings", "x", table="rankings")).split("\n\n")
    assert said[0] == "What it is."
    assert said[1] == descriptions.READING["rankings"]
    assert said[2].startswith(
        "Step 5 of 12: source → chunks → embeddings → candidates → **rankings** → "
    )


def test_a_choice_names_its_values_and_its_default():
    option = Option("a", ("a", "b + c"), "From where. Allowed: a, b + c.")
    said = descriptions.describe(stage("c", "reports", options={"baseline": option}))
    assert "Open launchpad, `baseline`. From where. Allowed: a, b + c. Default: a." in said


def test_absent_weights_are_said_of_what_uses_them_and_of_all_that_takes_over_its_state():
    chain = [
        stage("c", "chunks", "n"),
        stage("c", "rankings", "x", params={"reranker": {"weights": "absent: no weights"}}),
        stage("c", "query_metrics", "x", deps=(("c", "rankings", "x"),)),
        stage("c", "config_metrics", deps=(("c", "query_metrics", "x"),), partial=True),
        stage("c", "embeddings", "n", params={"weights": "absent: none either"}),
        stage("c", "rankings", "y", params={"encoder": {"weights": "0f1e"}}),
    ]
    assert descriptions.absences(chain) == {
        ("c", "rankings", "x"): "no weights",
        ("c", "query_metrics", "x"): "no weights",
        ("c", "embeddings", "n"): "none either",
    }
    assert descriptions.describe(chain[1], "no weights").startswith("**Not measured: no weights.**")


def test_a_failed_check_says_what_follows():
    blocking = Check("c", "A holds.", lambda _: [])
    warning = Check("c", "A holds.", lambda _: [], blocking=False)
    error = Check("c", "A holds.", lambda _: [], blocking=False, severe=True)
    assert descriptions.failed(blocking, 1) == (
        "Violated: A holds. 1 row violates this; the first are listed. "
        "Nothing downstream of this asset runs until the check passes."
    )
    said = descriptions.failed(warning, 1_200)
    assert "1,200 rows violate this" in said
    assert "A warning: what is downstream of this asset still runs." in said
    assert "An error: what is downstream of this asset still runs." in descriptions.failed(error, 2)
