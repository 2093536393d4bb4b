"""Which alerts are about a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanbench_pipeline.cli import forget


@pytest.mark.parametrize(
    ("entry", "about"),
    [
        ({"corpus": "check", "asset": "check/chunks/naive"}, True),
        ({"corpus": "kept", "asset": "kept/chunks/naive", "check": "chunk ids"}, False),
        ({"corpus": "kept", "asset": "kept/check/naive"}, False),
        ({"fault": "f", "about": "kept/documents check"}, False),
        ({"fault": "f", "about": "check/documents ids_unique"}, True),
        ({"mended": "check/documents ids_unique"}, True),
        ({"corpus": "", "asset": "warehouse", "details": "parquet/check/x.parquet"}, True),
        ({"corpus": "", "asset": "warehouse", "details": "parquet/kept/x.parquet"}, False),
    ],
)
def test_an_alert_is_about_the_corpus_of_its_fields(
    tmp_path: Path, entry: dict[str, str], about: bool
):
    """A corpus may be named like a word that every alert has."""
    path = tmp_path / "alerts.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    kept, gone = forget._lines_about(path, "check")
    assert (len(kept), len(gone)) == ((0, 1) if about else (1, 0))
