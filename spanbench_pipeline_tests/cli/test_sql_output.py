"""Values print as SQL writes them; DuckDB's own casts are the measure."""

from __future__ import annotations

import csv
import io
import json

import duckdb
import pytest

from spanbench_pipeline.cli import sql, sql_output

INTERVALS = (
    "1 year 2 months -3 days 04:05:06.5",
    "0 days",
    "-13 months",
    "12 months",
    "1 month",
    "25 hours",
    "-1 hour",
    "-1.5 seconds",
    "100 hours 1 microsecond",
    "-1 day -2 hours",
    "-5 microseconds",
)
BLOBS = ("", "plain text ~", r"\x00\x1F\x7F\xFF", r"\x5C\x27\x22", r"=\x0A")


@pytest.mark.parametrize(
    ("kind", "values"), [("INTERVAL", INTERVALS), ("BLOB", BLOBS)], ids=["INTERVAL", "BLOB"]
)
def test_as_sql_writes_them_also_inside_other_values(kind: str, values: tuple[str, ...]) -> None:
    for text in values:
        found = duckdb.sql(
            f"SELECT v, [v] AS l, {{'k': v}} AS s, MAP {{'k': v}} AS m, v::VARCHAR AS t "
            f"FROM (SELECT ?::{kind} AS v)",
            params=[text],
        ).to_arrow_table()
        expected = found["t"][0].as_py()
        [row] = json.loads(sql_output.as_json(found))
        assert row == {
            "v": expected,
            "l": [expected],
            "s": {"k": expected},
            "m": {"k": expected},
            "t": expected,
        }
        [_, cells] = csv.reader(io.StringIO(sql_output.as_csv(found).decode()))
        assert cells[0] == expected
        assert json.loads(cells[1]) == [expected]
        shown = sql_output.table(found.select(["v"])).decode().splitlines()
        assert "".join(shown[2:]) == expected.rstrip()


def test_what_arrow_cannot_hold_is_written_by_sql() -> None:
    relation = duckdb.sql("SELECT 1 AS a, '0101'::BIT AS \"b\"\"c\", '10:00:00+02'::TIMETZ AS b")
    found = sql._as_text(relation, "csv").to_arrow_table()
    assert found.to_pylist() == [{"a": 1, 'b"c': "0101", "b": "10:00:00+02"}]


def test_a_safe_csv_holds_no_formula() -> None:
    texts = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "\na", "＝1", "a=1", "", "-5", "+1.5e3", "-.5"]
    query = 'SELECT ? AS "=text", -5 AS n, -0.5::DOUBLE AS d, [?] AS l'
    for text in texts:
        found = duckdb.sql(query, params=[text, text]).to_arrow_table()
        rows = list(csv.reader(io.StringIO(sql_output.safe_csv(found).decode(), newline="")))
        quoted = text in texts[:8]
        assert rows == [
            ["'=text", "n", "d", "l"],
            [f"'{text}" if quoted else text, "-5", "-0.5", json.dumps([text], ensure_ascii=False)],
        ]
        plain = list(csv.reader(io.StringIO(sql_output.as_csv(found).decode(), newline="")))
        assert plain[1][0] == text
