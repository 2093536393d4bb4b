"""The program ``spanbench``: run the command that is typed, and turn errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from spanbench_pipeline import __version__
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import (
    CHECK_FAILED,
    DONE,
    INTERRUPTED,
    UNEXPECTED,
    WRONG_INPUT,
    Parser,
    add_commands,
    add_home,
)
from spanbench_pipeline.config import project
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import disk

_COLLECT_AFTER = (50_000, 20, 100)
"""Garbage collection at Python's own thresholds takes a tenth of a run's time: definitions and rows
are many small objects, few of them in cycles."""
_PATHS = {"home", "output"}
"""Arguments that are paths, given as texts."""

ABOUT = """\
Measures whether a retriever over contracts finds the right passages. Chunks and reference answers
(marked by people) are both character ranges of a document, so this is computed; no model judges it.
"""
EXAMPLES = """\
first steps:
  spanbench run                    all configurations on the bundled sample corpus
  spanbench report                 the paths of its reports
  spanbench sql "SELECT * FROM config_metrics WHERE metric = 'complete_grounding'"
  spanbench ui                     the web UI: lineage, checks, history

real contracts:
  spanbench fetch cuad             download CUAD (18 MB), verified
  spanbench run cuad               20 contracts, 50 queries marked by lawyers
  spanbench fetch legalbenchrag --archive PATH    714 documents of four benchmarks

your own documents:
  spanbench adapt --docs DIR --queries FILE.jsonl --name my_contracts
  spanbench run my_contracts

comparison with an accepted run:
  spanbench accept my_contracts    make the stored results the reference
  spanbench gate my_contracts      after a change and a run: pass, or what regressed

with other tools:
  spanbench score --rankings FILE --corpus NAME    rankings from another system
  spanbench export my_contracts --to DIR           TREC, BEIR, LegalBench-RAG, Parquet, JSON lines
  spanbench calibrate              check the metrics against independent computations

exit codes: 0 done, 1 a check or the gate failed, 2 wrong input or configuration, 3 internal error,
130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    gc.set_threshold(*_COLLECT_AFTER)
    terminal.settle(json=False)
    if (unfit := _unfit_system()) is not None:
        terminal.say(unfit, error=True)
        return WRONG_INPUT
    given = list(sys.argv[1:] if arguments is None else arguments)
    where: Project | None = None
    try:
        parsed = _parser(given).parse_args(given)
        terminal.settle(json=getattr(parsed, "format", None) == "json")
        terminal.log_to_stderr(getattr(parsed, "verbose", False))
        _require_text(parsed)
        where = project.find(parsed.home)
        code: int = parsed.execute(where, parsed)
        sys.stdout.flush()
        return code
    except InputError as error:
        terminal.say(f"spanbench: {error}", error=True)
        return WRONG_INPUT
    except KeyboardInterrupt:
        terminal.say("spanbench: interrupted; what was finished is kept", error=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (| head): not our error, and nothing to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _failed(where, error)


def _unfit_system() -> str | None:
    """Return what to tell on a system without the file locks that everything here relies on."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return (
            f"spanbench: this system ({sys.platform}) has no fcntl, the file locks that keep two "
            "runs apart: spanbench runs on Linux and macOS; on Windows, use it in WSL"
        )
    return None


def _require_text(parsed: argparse.Namespace) -> None:
    """Refuse arguments that name something in data and are no text; a path may be any bytes."""
    for name, given in vars(parsed).items():
        texts = given if isinstance(given, list) else [given]
        for text in texts if name not in _PATHS else ():
            if isinstance(text, str) and text != without_halves(text):
                raise InputError(
                    f"{name.replace('_', '-')} {text!r}: holds bytes that are no UTF-8 text; "
                    "type it in a terminal that is set to UTF-8"
                )


def _failed(where: Project | None, error: Exception) -> int:
    """Say in one line what happened; the traceback goes to a file."""
    home = where.home if where else Path.cwd()
    if told := disk.explain(error, home):
        terminal.say(f"spanbench: {told}", error=True)
        return WRONG_INPUT
    if isinstance(error, OSError):
        # Whatever else a system refuses is for the person to mend.
        where_at = f"{error.filename}: " if error.filename else ""
        terminal.say(f"spanbench: {where_at}{error.strerror or error}", error=True)
        return WRONG_INPUT
    from spanbench_pipeline.cli.run import CheckFailed, StageFailed

    if isinstance(error, CheckFailed):
        if error.results:
            terminal.say(error.results)
        terminal.say(f"spanbench: {error}", error=True)
        return CHECK_FAILED
    text = error.traceback if isinstance(error, StageFailed) else traceback.format_exc()
    terminal.say(f"spanbench: this should not have happened: {error}", error=True)
    try:
        path = home / "traceback.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        terminal.say(f"the traceback is in {path}", error=True)
    except OSError:
        terminal.say(text, error=True)
    return UNEXPECTED


def _parser(arguments: Sequence[str]) -> Parser:
    parser = Parser(
        "spanbench",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"spanbench {__version__}")
    add_home(parser, None)
    add_commands(parser, arguments)
    return parser


if __name__ == "__main__":
    sys.exit(main())
