"""The bundled corpus: it separates the configurations, and the README shows what a run prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT

MEASURED = {
    "naive",
    "clause",
    "clause + bm25",
    "clause + hybrid",
    "clause, unfiltered",
    "clause, unfiltered + filters",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the sample has run."""
    folder = tmp_path_factory.mktemp("sample")
    assert cli.main(["--home", str(folder), "run"]) == 0
    return folder


def values(home: Path, metric: str) -> dict[str, float]:
    path = home / "parquet" / "sample" / "config_metrics.parquet"
    rows = parquet.read(path, "config_metrics").table.to_pylist()
    return {row["config"]: row["value"] for row in rows if row["metric"] == metric}


def test_it_separates_the_configurations(home: Path):
    grounding = values(home, "complete_grounding")
    assert set(grounding) == MEASURED
    assert all(0 < value < 1 for value in grounding.values())
    assert len(set(grounding.values())) == len(MEASURED)
    # The order is not the same by every metric.
    orders = {
        tuple(sorted(MEASURED, key=values(home, metric).__getitem__))
        for metric in ("precision", "recall", "mrr", "complete_grounding")
    }
    assert len(orders) > 1
    # Filters matter where the document is not given, since versions of one agreement are alike.
    assert grounding["clause, unfiltered + filters"] > grounding["clause, unfiltered"]


def test_the_readme_shows_what_a_run_prints(home: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--home", str(home), "run"]) == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("corpus sample:") : shown.index("reports ")].strip()
    assert "nothing to do" in shown
    assert table in (CHECKOUT / "README.md").read_text(encoding="utf-8")
