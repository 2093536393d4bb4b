"""A metric as a plug-in, in the words of docs/developing.md: an experiment asks for it by name."""

from __future__ import annotations

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline_tests.metrics.cases import Case, tiles
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.metrics": {"hit_rate": "acme_metrics:HIT_RATE"}}
GOLD = {"q1": [("A", 0, 5)], "q2": [("A", 0, 5)]}
CASE = Case({"A": "x" * 30}, tiles("A", 30, 10), GOLD, {"q1": ["A1", "A0"], "q2": ["A2"]})


def values(k: int) -> list[float]:
    run = scored_run(*CASE.tables())
    table = query_metrics(run, corpus="c", config="m", metrics=[("hit_rate", k)])
    return table["value"].to_pylist()


def test_a_metric_of_another_package(acme):
    acme({"acme_metrics.py": module_of(DEVELOPING, "Hit rate")}, GROUP)
    assert values(1) == [0, 0]  # A1 and A2 are not relevant
    assert values(2) == [1, 0]
    assert registry.parse("hit_rate@2", "here") == ("hit_rate", 2)
    assert "hit_rate" in registry.chunk_counting()
    assert "hit_rate" not in [name for name, _ in registry.measured()]
    assert ("hit_rate", 2) in registry.measured(5, [("hit_rate", 2)])
    assert registry.plugin_modules([("hit_rate", 2)]) == ("acme_metrics",)


def test_one_that_gives_other_than_a_value_a_query_is_named(acme):
    code = module_of(DEVELOPING, "Hit rate").replace("(run.hits(k) > 0) * 1.0", "run.hits(k)[:1]")
    acme({"acme_metrics.py": code}, GROUP)
    with pytest.raises(InputError, match="hit_rate"):
        values(1)
