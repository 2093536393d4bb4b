from __future__ import annotations

import json

from spanbench_pipeline.formats import beir
from spanbench_pipeline_tests.formats.worlds import renamed
from spanbench_pipeline_tests.metrics.cases import Case, tiles


def test_a_folder_by_hand() -> None:
    case = Case(
        texts={"A": "abcdefghij"},
        chunks=tiles("A", 10, 5),
        gold={"q": [("A", 4, 5)]},
        rankings={"q": []},
        subsets={"q": "east"},
    )
    given = renamed(case)
    found = {path: b"".join(data) for path, data in beir.files(given.evalset, given.chunks)}
    assert found.keys() == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
    first, second = map(json.loads, found["corpus.jsonl"].splitlines())
    assert first == {
        "_id": "a%20b/c%20d:A0",
        "title": "A",
        "text": "abcde",
        "metadata": {"chunk_id": "a b/c d:A0", "doc_id": "a b/c d", "start": 0, "end": 5},
    }
    assert second["text"] == "fghij"
    assert json.loads(found["queries.jsonl"]) == {
        "_id": "q%20q%25",
        "text": "what is q?",
        "metadata": {"query_id": "q q%", "clause_type": None, "subset": "east", "doc_id": None},
    }
    assert found["qrels/test.tsv"] == (b"query-id\tcorpus-id\tscore\nq%20q%25\ta%20b/c%20d:A0\t1\n")
