from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.checks.row_keys import key_codes, n_codes


def table(queries: list[str | None], ks: list[int]) -> pa.Table:
    return pa.table({"query_id": pa.array(queries, pa.string()), "k": pa.array(ks, pa.int32())})


def test_rows_have_one_number_where_all_columns_are_equal() -> None:
    one = table(["a", "a", None, "b"], [1, 2, 1, 1])
    other = table(["b", None, "a", "c"], [1, 1, 2, 1])
    left, right = key_codes(["query_id", "k"], one, other)
    pairs = {(i, j) for i in range(4) for j in range(4) if left[i] == right[j]}
    assert pairs == {(1, 2), (2, 1), (3, 0)}
    assert {*left.tolist(), *right.tolist()} == set(range(5))
    assert n_codes(left, right) == 5


def test_tables_without_rows_and_integers_of_another_width() -> None:
    wide = pa.table({"k": pa.array([1, 3], pa.int64())})
    left, right = key_codes(["k"], table(["a"], [3]), wide)
    assert left.tolist() == [right[1]]
    assert left[0] != right[0]
    nothing = table([], [])
    assert [len(codes) for codes in key_codes(["query_id"], nothing, nothing)] == [0, 0]
    assert n_codes(*key_codes(["query_id"], nothing, nothing)) == 0
