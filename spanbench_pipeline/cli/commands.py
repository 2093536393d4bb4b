"""The commands: ours, and those of plug-ins (entry points of the group ``spanbench.commands``).

A command is a module with

- ``add_arguments(parser)``: add its arguments to an argparse parser,
- ``execute(project, parsed) -> int``: do it, print, and return the exit code,
- where it has them, ``EXAMPLES``: lines for the end of its help,
- and, of a plug-in, ``SUMMARY``: what it does, in a line without a capital and a full stop.

A module is imported only where its command runs or its help is asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.plugins import Registry

DONE, CHECK_FAILED, WRONG_INPUT, UNEXPECTED, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes."""

SUMMARIES = {
    "run": "compute whatever is missing or out of date, and print the results",
    "status": "show what is out of date, and why",
    "sql": "query the stored tables with SQL",
    "report": "print the paths of a corpus's reports, or write them for another baseline",
    "fetch": "download or import a corpus or the models' weights, and verify them",
    "adapt": "register your own documents and queries as an experiment (docs/your-own-corpus.md)",
    "accept": "make the stored results the reference for later runs",
    "gate": "compare the stored results with the accepted ones; exit code 0 pass, 1 regression, "
    "2 not comparable",
    "export": "write a corpus's stored results in other tools' formats (docs/scoring.md)",
    "score": "measure rankings from another system (docs/scoring.md)",
    "calibrate": "compare the metrics with hand-worked cases, brute force, formulas and another "
    "library; exit code 1 if they disagree (docs/calibration.md)",
    "tune": "choose fusion constants and routing on one part of the queries, and measure them "
    "on the rest (docs/levers.md)",
    "forget": "remove a corpus and everything derived from its texts (docs/your-own-corpus.md)",
    "ui": "start the web UI (docs/web-ui.md)",
    "serve": "run the web UI with nightly runs and alerts (docs/operating.md)",
    "alerts": "send a test alert through the channels in operations.toml",
}
"""Each command of ours, in the order of the help; its module has its name."""

COMMANDS = Registry(
    "spanbench.commands", {name: f"spanbench_pipeline.cli.{name}" for name in SUMMARIES}
)


def add_commands(parser: Parser, arguments: Sequence[str]) -> None:
    """Add a parser for every command; plug-ins only where ``arguments`` name none of ours."""
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    word = first_word(arguments)
    for name in SUMMARIES if word in (*SUMMARIES, "--version") else COMMANDS:
        summary = SUMMARIES.get(name) or (_summary_of_plugin(name) if word is None else "")
        command = subparsers.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.command_name = name


def first_word(arguments: Sequence[str]) -> str | None:
    """Return the word that names the command, or ``--version``; None where there is neither."""
    words = iter(arguments)
    for word in words:
        if len(word) > 2 and "--home".startswith(word):
            next(words, None)
        elif word == "--version" or not word.startswith("-"):
            return word
    return None


def add_home(parser: argparse.ArgumentParser, default: object) -> None:
    """Add the option ``--home``."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="folder for results, cache and Dagster's state (default: SPANBENCH_HOME, else the "
        "checkout's warehouse/)",
    )


def path_argument(typed: str) -> Path:
    """Return a path option's value; an empty one would be the folder that one stands in."""
    if not typed:
        raise argparse.ArgumentTypeError("the name is empty")
    return Path(typed)


class Parser(argparse.ArgumentParser):
    """An argparse parser; a command's adds its arguments when it is first used."""

    command_name: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, after importing the command's module."""
        if self.command_name is not None:
            module = COMMANDS.load(self.command_name)
            summary = SUMMARIES.get(self.command_name) or module.SUMMARY
            self.command_name = None
            self.description = summary[0].upper() + summary[1:] + "."
            if examples := getattr(module, "EXAMPLES", ""):
                self.epilog = f"examples:\n{examples}"
            # --home may stand before the command or after it; absent after it, the first holds.
            add_home(self, argparse.SUPPRESS)
            module.add_arguments(self)
            self.set_defaults(execute=module.execute)
        return super().parse_known_args(args, namespace)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Exit as argparse does, without the control characters of what was typed."""
        super().exit(status, terminal.visible(message) if message else None)


def _summary_of_plugin(name: str) -> str:
    """Return a plug-in's summary for the list of commands, or that it is broken."""
    try:
        return str(COMMANDS.load(name).SUMMARY).replace("%", "%%")
    except (InputError, AttributeError) as error:
        return f"(broken: {error})".replace("%", "%%")
