"""``spanbench gate``: the comparison with the accepted run as an exit code, and as JSON for CI."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from spanbench_pipeline.analysis.regression import MISSING, NEW, NOT_ACCEPTED, VERDICTS
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.places import command
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.reports import regression_text
from spanbench_pipeline.storage import accepted_run

PASS, REGRESSION, NOT_COMPARABLE = 0, 1, 2
RESULTS = {PASS: "pass", REGRESSION: "regression", NOT_COMPARABLE: "not comparable"}


def gate(project: Project, corpus: str, shape: str) -> tuple[str, int]:
    """Return what to print, and the exit code: 0 pass, 1 regression, 2 not comparable.

    It runs nothing. Raises InputError (exit code 2) where there is no accepted run, the
    comparison is stale, or a file is wrong; as JSON that is printed too.
    """
    try:
        found = judge(project, corpus)
    except InputError as error:
        if shape != "json":
            raise
        found = {"corpus": corpus, "result": "error", "exit_code": 2, "message": str(error)}
        return _json(found), NOT_COMPARABLE
    code: int = found["exit_code"]
    return (_json(found) if shape == "json" else _text(found)), code


def judge(project: Project, corpus: str) -> dict[str, Any]:
    """Return everything that the comparison of a corpus says, ready for JSON."""
    home = HomeState(project)
    home.experiments.require(corpus)
    rule = operations.regression(project)
    # Before anything else: without an accepted run there is nothing that could be stale.
    held_against = accepted_run.read(project, corpus)
    if held_against is None:
        raise InputError(f"gate {corpus}: no accepted run; {command(project)} accept {corpus}")
    store = open_results(home, corpus)
    store.snapshot([(corpus, "regression")], "gate")
    table = store.measured("regression", action=f"gate {corpus}: ")
    code = exit_code(table)
    counts = Counter(table["verdict"].to_pylist())
    return {
        "corpus": corpus,
        "result": RESULTS[code],
        "exit_code": code,
        "accepted": held_against.digest,
        "rule": asdict(rule),
        "verdicts": {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]},
        "regressions": regression_text.regressions(table),
        "changes": regression_text.changes(table),
        "not_compared": regression_text.not_compared(table),
        "compared_across": regression_text.across(table),
        "rows": table.to_pylist(),
    }


def exit_code(table: pa.Table) -> int:
    """Return 1 where a metric regressed; else 2 where an accepted configuration has nothing left to
    compare, since a gate that looked at nothing has not passed; else 0.

    A configuration of which some metrics are compared and some cannot be is judged by those that
    are.
    """
    if regression_text.regressions(table):
        return REGRESSION
    compared: dict[str, bool] = {}
    for row in table.to_pylist():
        if row["verdict"] not in (NEW, NOT_ACCEPTED):
            held = row["verdict"] != MISSING and bool(row["n"])  # over 0 queries nothing is held
            compared[row["config"]] = compared.get(row["config"], False) or held
    return PASS if compared and all(compared.values()) else NOT_COMPARABLE


def _json(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)


def _text(found: dict[str, Any]) -> str:
    counts = ", ".join(f"{n} {verdict}" for verdict, n in found["verdicts"].items())
    parts = [f"{found['corpus']}: {found['result']} ({counts})"]
    for title, rows in (
        ("regressions", found["regressions"]),
        ("changed values", found["changes"]),
        ("not compared", found["not_compared"]),
        ("compared across a difference", found["compared_across"]),
    ):
        if rows:
            cells = [[str(value) for value in row.values()] for row in rows]
            parts.append(f"{title}\n{terminal.table(list(rows[0]), cells)}")
    return "\n\n".join(parts)


EXAMPLES = """\
  spanbench run cuad; spanbench gate cuad --format json > gate.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench gate``."""
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench gate``; return the exit code."""
    shown, code = gate(project, parsed.corpus, parsed.format)
    terminal.say(shown)
    return code
