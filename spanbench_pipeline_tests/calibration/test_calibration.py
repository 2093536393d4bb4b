"""The calibration agrees; and a fault planted in what it holds is found by it."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spanbench_pipeline.analysis import aggregate
from spanbench_pipeline.analysis.headroom import BOUNDS
from spanbench_pipeline.calibration import brute_force, components, formula, library, worked_cases
from spanbench_pipeline.calibration.calibration import calibrate
from spanbench_pipeline.calibration.report import difference, report
from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.core import spans
from spanbench_pipeline.metrics import forensic_labels, registry, scored_run
from spanbench_pipeline.metrics.failure_labels import LABELS
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.scoring import measured
from spanbench_pipeline_tests.metrics.measure import plant


def test_everything_agrees() -> None:
    tallies = calibrate(240, seed=5)
    assert [t.wrong for t in tallies if not t.agrees] == []
    assert all(t.n for t in tallies)
    assert {t.against for t in tallies if "ir_measures" in t.against}
    named = " ".join(t.what for t in tallies)
    for metric in (*(m for m, _ in registry.of_results()), *registry.characters()):
        assert metric in named


def test_the_same_seed_compares_the_same() -> None:
    one, two = (brute_force.compare(120, seed) for seed in (1, 1))
    assert [(t.what, t.n, t.largest) for t in one] == [(t.what, t.n, t.largest) for t in two]


def test_every_metric_label_state_and_bound_has_a_vector() -> None:
    values = [(n, v) for case in worked_cases.CASES for n, v in case.expected.items()]
    names = {name.partition("@")[0] for name, _ in values}
    assert {m for m, _ in registry.of_results()} | set(registry.characters()) <= names
    assert {v for n, v in values if n.startswith("label@")} == set(forensic_labels.LABELS)
    assert {v for n, v in values if n == "failure label"} == {*LABELS, None}
    assert {v for n, v in values if n.startswith("state@")} == set(forensic_labels.STATES)
    assert {v for n, v in values if n.startswith("stage@")} - {None} == set(measured.STAGES)
    assert {n.partition("@")[0] for n, _ in values if n.startswith("bound")} == {
        f"bound {bound}" for bound in BOUNDS
    }


def blind(run: scored_run.ScoredRun, of: spans.Spans, query: np.ndarray) -> spans.Spans:
    """Spans of all documents thrown together: the published fault."""
    return spans.make(query * len(run.doc_ids), of.start, of.end)


def off_by_one(covered: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *given: np.maximum(covered(*given) - 1, 0)


def strict(labels: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    """CBF taken for ICR."""

    def found(*given: object, **named: object) -> pa.Table:
        table = labels(*given, **named)
        names = pc.if_else(pc.equal(table["label"], "CBF"), "ICR", table["label"])
        return table.set_column(table.schema.get_field_index("label"), "label", names)

    return found


def early(compared: Callable[..., object]) -> Callable[..., object]:
    return lambda run, k: compared(run, k - 7)


FAULTS: list[tuple[str, ModuleType | type, str, Callable[..., object], list[str]]] = [
    (
        "covered is one short",
        scored_run.ScoredRun,
        "covered",
        off_by_one,
        ["brute force", "golden"],
    ),
    ("no CBF", measured, "forensic_labels", strict, ["brute force", "golden"]),
    ("recall cut early", registry, "recall", early, ["brute force", "ir_measures"]),
    ("ndcg cut early", registry, "ndcg", early, ["brute force", "ir_measures"]),
]


def against_of(tallies: list[Tally]) -> str:
    return " ".join(sorted({t.against for t in tallies if not t.agrees}))


@pytest.mark.parametrize("fault", FAULTS, ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found(
    fault: tuple[str, ModuleType | type, str, Callable[..., Callable[..., object]], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, module, name, wrong, finders = fault
    if module is registry:
        plant(monkeypatch, name, wrong)
    else:
        monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    found = against_of(calibrate(60, seed=3))
    for finder in finders:
        assert finder in found


def test_bare_spans_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters of another document taken for hits: golden vectors and the renaming see it."""
    monkeypatch.setattr(scored_run.ScoredRun, "_of_query", blind)
    found = against_of(
        [*worked_cases.compare(), *formula.compare(60, 1), *components.compare(60, 1)]
    )
    assert "golden" in found
    assert "published formula" in found
    assert "what follows from the rules" in found


def test_a_wrong_mean_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "mean", lambda v: sum(v) / (len(v) + 1) if v else None)
    assert "parts" in against_of(components.compare(60, 1))


def test_without_ir_measures_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    tallies = library.compare(60, 0)
    assert {t.result for t in tallies} == {"not measured: ir_measures is not installed"}
    assert {t.n for t in tallies} == {0}
    assert all(difference(t) == "" for t in tallies)


def test_differences_are_counted() -> None:
    tallies = Tallies("by hand", tolerance=0.5)
    for found, expected in ((1.0, 1.25), (1.0, 2.0), (None, None), (None, 0.0), ("a", "b")):
        tallies.add("value", "here", found, expected)
    tallies.add("value", "here", float("nan"), 1.0)
    (tally,) = tallies.all()
    assert (tally.n, tally.n_wrong, tally.result) == (6, 4, "4 disagree")
    assert tally.wrong[:2] == ["here: 1.0, expected 2.0", "here: None, expected 0.0"]


def test_the_page_names_every_comparison_and_vector() -> None:
    tallies = [Tally("mrr", "x", n=3), Tally("ndcg", "y", 0.1, n=2, largest=0.2, n_wrong=1)]
    tallies[1].wrong.append("case 7: 1, expected 2")
    page = report(tallies, {"seed": "7"})
    text = markdown.render(page)
    assert "| mrr | 3 | 0 | 0 | agrees |" in text
    assert "| ndcg | 2 | 2.0e-01 | 0.1 | 1 disagree |" in text
    assert "**ndcg**: case 7: 1, expected 2" in text
    assert text.count("exactly half is enough") == 4
    assert "<script" not in html.render(page)


def test_the_vectors_are_those_of_the_specification() -> None:
    """The rows of the label table, in its order, where shared/ is at hand."""
    folder = os.environ.get("SPANBENCH_SHARED")
    if folder is None:
        pytest.skip("SPANBENCH_SHARED is not set: the specification is not at hand")
    text = (Path(folder) / "spec" / "forensics.md").read_text(encoding="utf-8")
    rows = text.split("| ranked | gold | label |")[1].split("\n\n")[0].splitlines()[2:]
    stated = [label for row in rows for label in re.findall(r"\b[A-Z]{2,3}\b", row.split("|")[3])]
    first = next(n for n, v in enumerate(worked_cases.CASES) if v.why == "nothing was retrieved")
    found = [v.expected["label@8"] for v in worked_cases.CASES[first : first + len(stated)]]
    assert found == stated
