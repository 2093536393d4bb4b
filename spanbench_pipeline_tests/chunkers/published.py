"""The published sample's texts and gold spans, read straight from the shared data."""

from __future__ import annotations

import functools
import json
import zipfile
from pathlib import Path

from spanbench_pipeline.core import evalset


@functools.cache
def published_eval_set(shared: Path) -> evalset.EvalSet:
    """The 20 documents and 50 queries of the published sample."""
    folder = shared / "data" / "cuad"
    with zipfile.ZipFile(folder / "data.zip") as archive:
        contracts = json.loads(archive.read("CUADv1.json"))["data"]
    text_of = {c["title"]: c["paragraphs"][0]["context"] for c in contracts}
    published = json.loads((folder / "published_eval_set.json").read_text(encoding="utf-8"))
    return evalset.assemble(
        "cuad",
        [
            evalset.Document(d["doc_id"], d["title"], text_of[d["title"]], "data.zip", "json")
            for d in published["documents"]
        ],
        [
            evalset.Query(
                q["query_id"],
                q["query"],
                [evalset.GoldSpan(q["doc_id"], start, end) for start, end in q["gold_spans"]],
                q["doc_id"],
                q["clause_type"],
            )
            for q in published["queries"]
        ],
    )
