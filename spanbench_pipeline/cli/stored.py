"""What commands know of a corpus before they read its results: its experiment, its freshness."""

from __future__ import annotations

from collections.abc import Sequence

from spanbench_pipeline.cli.places import command
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.storage.results import ResultsStore


def open_results(home: HomeState, corpus: str) -> ResultsStore:
    """Return a corpus's results; their snapshots refuse what is stale or in doubt.

    A failed check of the regression itself is no doubt about it: what fell is often accepted
    knowingly.
    """

    def doubts(keys: Sequence[Key]) -> Sequence[str]:
        judged = [key for key in keys if key == (corpus, "regression")]
        return home.state([corpus]).doubts(keys, judged)

    return ResultsStore(home.project, corpus, doubts, command(home.project))
