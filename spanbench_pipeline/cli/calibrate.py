"""``spanbench calibrate``: the ruler held to other rulers, as a table, a report and a code."""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

from spanbench_pipeline import __version__
from spanbench_pipeline.calibration.calibration import FEWEST
from spanbench_pipeline.calibration.calibration import calibrate as compare
from spanbench_pipeline.calibration.report import difference, report
from spanbench_pipeline.calibration.tally import Tally
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import CHECK_FAILED, DONE
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.reports.render import html, markdown
from spanbench_pipeline.storage import folders


def calibrate(project: Project, cases: int, seed: int, shape: str) -> tuple[str, bool]:
    """Return what to print, and whether everything agrees; the report goes to ``calibration/``.

    The same cases and seed give the same comparisons. Raises InputError for too few cases.
    """
    if cases < FEWEST:
        raise InputError(f"calibrate: --cases {cases} is too few to say anything; give {FEWEST}")
    tallies = compare(cases, seed)
    settings = {
        "spanbench": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "random cases": f"{cases:,}",
        "seed": str(seed),
    }
    made = report(tallies, settings)
    folder = project.home / "calibration"
    files = {"report.md": markdown.render(made), "report.html": html.render(made)}
    folders.replace(folder, [(name, [text.encode()]) for name, text in files.items()])
    agrees = all(tally.agrees for tally in tallies)
    shown = _json(tallies, seed, agrees) if shape == "json" else _text(tallies, agrees, folder)
    return shown, agrees


def _text(tallies: list[Tally], agrees: bool, folder: Path) -> str:
    rows = [[t.against, t.what, f"{t.n:,}", difference(t), t.result] for t in tallies]
    head = ["against", "compared", "cases", "largest difference", "result"]
    table = terminal.table(head, rows, right=(2, 3))
    wrong = [f"{t.what}: {line}" for t in tallies for line in t.wrong]
    absent = sorted({t.state for t in tallies if t.state != "measured"})
    total = sum(tally.n for tally in tallies)
    verdict = "all agree" if agrees else "they do not all agree"
    last = f"{total:,} values compared: {'; '.join([verdict, *absent])}"
    return "\n\n".join([table, *wrong, last, f"report  {near(folder / 'report.html')}"])


def _json(tallies: list[Tally], seed: int, agrees: bool) -> str:
    found = {
        "result": "agrees" if agrees else "disagrees",
        "exit_code": int(not agrees),
        "seed": seed,
        "comparisons": [
            {
                "against": t.against,
                "compared": t.what,
                "cases": t.n,
                "largest_difference": t.largest if t.n else None,
                "allowed": t.tolerance,
                "result": t.result,
                "disagreements": t.wrong,
            }
            for t in tallies
        ],
    }
    return json.dumps(found, ensure_ascii=False, indent=1)


EXAMPLES = """\
  spanbench calibrate
  spanbench calibrate --cases 20000 --seed 7"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench calibrate``."""
    parser.add_argument(
        "--cases",
        type=int,
        default=3000,
        metavar="N",
        help="number of random cases (default: 3000)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random cases (default: 0)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench calibrate``; return the exit code."""
    shown, agrees = calibrate(project, parsed.cases, parsed.seed, parsed.format)
    terminal.say(shown)
    return DONE if agrees else CHECK_FAILED
