"""The report of a scored run."""

from __future__ import annotations

from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.scoring.measured import NO_CHUNKS, needs_chunks
from spanbench_pipeline.scoring.report import report
from spanbench_pipeline_tests.scoring.test_measured import PAST, scored


def test_the_report_shows_every_figure() -> None:
    page = markdown.render(report(scored(with_chunks=True)))
    for what, why in PAST.items():
        assert f"**{what}**: {why}." in page
    assert "k = 16, 32, 64: not measured: depth = 8" in page
    for name in ("complete_grounding@5", "ndcg@10", "char_recall_paper", "retrieval-miss", "DRM"):
        assert name in page
    assert "| all queries | 0.133 |" in page  # precision@5: (0 + 2/5 + 0) / 3
    assert "Where spans were lost" in page
    assert NO_CHUNKS not in page
    assert "&lt;mine&gt;" in html.render(report(scored(with_chunks=True)))


def test_the_report_without_chunks_says_what_is_not_measured() -> None:
    page = markdown.render(report(scored(with_chunks=False)))
    for what in needs_chunks():
        assert f"**{what}**: {PAST.get(what, NO_CHUNKS)}." in page
    assert "Not measured: no chunk table." in page
    assert "| chunks | – | not measured: no chunk table |" in page
