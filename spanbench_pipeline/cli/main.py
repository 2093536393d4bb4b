"""What a person types: ``spanbench COMMAND``. Parses, dispatches, and turns errors into codes."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from spanbench_pipeline import __version__
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.config import project
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import disk

if TYPE_CHECKING:
    from spanbench_pipeline.cli.address import Address

DONE, CHECK_FAILED, WRONG_INPUT, UNEXPECTED, INTERRUPTED = 0, 1, 2, 3, 130
_PATHS = {"home", "output"}
"""Arguments that are paths, given as texts."""

ABOUT = """\
Measures retrieval over contracts by the characters it brings back: every chunk is a span of its
document, every gold answer is a span marked by people, so "did we retrieve it?" is arithmetic.
"""
EXAMPLES = """\
first steps:
  spanbench run                    the bundled sample corpus, through all its configurations
  spanbench report                 where its reports are
  spanbench sql "SELECT * FROM config_metrics WHERE metric = 'complete_grounding'"
  spanbench ui                     the same in the browser: lineage, checks, history

real contracts:
  spanbench fetch cuad             download CUAD (18 MB), verified
  spanbench run cuad               20 contracts, 50 queries marked by lawyers
  spanbench fetch legalbenchrag --archive PATH    714 documents of four benchmarks

your own documents:
  spanbench adapt --docs DIR --queries FILE.jsonl --name my_contracts
  spanbench run my_contracts

held against an accepted run:
  spanbench accept my_contracts    the stored run is the one to stand by
  spanbench gate my_contracts      after a change and a run: pass, or what regressed

with other tools:
  spanbench score --rankings FILE --corpus NAME    anybody's rankings, measured as our own
  spanbench export my_contracts --to DIR           TREC, BEIR, LegalBench-RAG, Parquet, JSON lines
  spanbench calibrate              what the measures were held to, and how far they are off

exit codes: 0 done, 1 a check failed, 2 wrong input or configuration, 3 should not happen
(130 interrupted)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    terminal.settle(json=False)
    if (unfit := _unfit_system()) is not None:
        terminal.say(unfit, error=True)
        return WRONG_INPUT
    parsed = _parser().parse_args(arguments)
    terminal.settle(json=getattr(parsed, "format", None) == "json")
    terminal.log_to_stderr(getattr(parsed, "verbose", False))
    where: Project | None = None
    try:
        _require_text(parsed)
        where = project.find(parsed.home)
        code: int = parsed.command(where, parsed)
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
    """What to tell on a system without the file locks that everything here relies on."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return (
            f"spanbench: this system ({sys.platform}) has no fcntl, the file locks that keep two "
            "runs apart: spanbench runs on Linux and macOS; on Windows, use it in WSL"
        )
    return None


def _require_text(parsed: argparse.Namespace) -> None:
    """Refuses arguments that name something in data and are no text; a path may be any bytes."""
    for name, given in vars(parsed).items():
        texts = given if isinstance(given, list) else [given]
        for text in texts if name not in _PATHS else ():
            if isinstance(text, str) and text != without_halves(text):
                raise InputError(
                    f"{name.replace('_', '-')} {text!r}: holds bytes that are no UTF-8 text; "
                    "type it in a terminal that is set to UTF-8"
                )


def _failed(where: Project | None, error: Exception) -> int:
    """Says in one line what happened; the traceback goes to a file."""
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


def _run(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.plan import plan
    from spanbench_pipeline.cli.run import run

    does = plan if parsed.dry_run else run
    terminal.say(does(where, parsed.corpus or ["sample"], parsed.dense_engine))
    return DONE


def _status(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.status import status
    from spanbench_pipeline.cli.why import why

    if parsed.why is not None and parsed.corpus:
        raise InputError("status: give corpora or --why ASSET, one of the two")
    if parsed.why is not None:
        terminal.say(why(where, parsed.why, parsed.format))
    else:
        terminal.say(status(where, parsed.corpus, parsed.format))
    return DONE


def _sql(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.sql import sql

    if (parsed.query is None) == (parsed.file is None):
        raise InputError("sql: give a query or --file FILE, one of the two")
    query = parsed.query if parsed.file is None else _read(parsed.file)
    sql(
        where,
        query,
        parsed.format,
        parsed.output,
        safe=parsed.safe_csv,
        allow_files=parsed.allow_files,
    )
    return DONE


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # a byte order mark is no SQL
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _report(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.report import report

    terminal.say(report(where, parsed.corpus, parsed.baseline))
    return DONE


def _fetch(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.fetch import fetch

    terminal.say(fetch(where, parsed.what, parsed.archive, parsed.sha256))
    return DONE


def _adapt(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.adapt import adapt

    caps = {
        cap: value
        for cap in ("max_documents", "max_bytes")
        if (value := getattr(parsed, cap)) is not None
    }
    terminal.say(adapt(where, parsed.docs, parsed.queries, parsed.metadata, parsed.name, **caps))
    return DONE


def _accept(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli import accept

    terminal.say((accept.show if parsed.show else accept.accept)(where, parsed.corpus))
    return DONE


def _gate(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.gate import gate

    shown, code = gate(where, parsed.corpus, parsed.format)
    terminal.say(shown)
    return code


def _export(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.export import export

    terminal.say(export(where, parsed.corpus, parsed.to, parsed.format or ()))
    return DONE


def _score(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.score import Asked, score

    asked = Asked(
        rankings=parsed.rankings,
        corpus=parsed.corpus,
        chunks=parsed.chunks,
        chunker=parsed.chunker,
        name=parsed.name,
        subsets=parsed.subset or (),
        order=parsed.order,
        kind=parsed.rankings_format,
        depth=parsed.depth,
    )
    shown, code = score(where, asked, parsed.format)
    terminal.say(shown)
    return code


def _calibrate(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.calibrate import calibrate

    shown, agrees = calibrate(where, parsed.cases, parsed.seed, parsed.format)
    terminal.say(shown)
    return DONE if agrees else CHECK_FAILED


def _tune(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.tune import METRIC, tune

    metric = parsed.metric or METRIC
    names = parsed.config or ()
    terminal.say(
        tune(where, parsed.corpus, names, metric, parsed.share, parsed.seed, parsed.format)
    )
    return DONE


def _forget(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.forget import forget

    terminal.say(forget(where, parsed.corpus, dry_run=parsed.dry_run, agreed=parsed.yes))
    return DONE


def _ui(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.ui import ui

    return ui(where, _address(parsed))


def _serve(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli.serve import serve

    return serve(where, _address(parsed))


def _address(parsed: argparse.Namespace) -> Address:
    from spanbench_pipeline.cli.address import Address

    names = tuple(parsed.allow_host or ())
    return Address(parsed.host, parsed.port, names, parsed.allow_reports)


def _alerts(where: Project, parsed: argparse.Namespace) -> int:
    from spanbench_pipeline.cli import alerts

    try:
        terminal.say(alerts.test(where))
    except alerts.NotArrived as not_arrived:
        terminal.say(not_arrived)
        return CHECK_FAILED
    return DONE


class _Parser(argparse.ArgumentParser):
    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """As argparse does; what was typed is repeated without its control characters."""
        super().exit(status, terminal.visible(message) if message else None)


def _path(typed: str) -> Path:
    """A path option's value; an empty one would be the folder that one stands in."""
    if not typed:
        raise argparse.ArgumentTypeError("the name is empty")
    return Path(typed)


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        "spanbench",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"spanbench {__version__}")
    _add_home(parser, None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_status(commands)
    _add_sql(commands)
    _add_report(commands)
    _add_fetch(commands)
    _add_adapt(commands)
    _add_accept(commands)
    _add_gate(commands)
    _add_export(commands)
    _add_score(commands)
    _add_calibrate(commands)
    _add_tune(commands)
    _add_forget(commands)
    _add_ui(commands)
    _add_serve(commands)
    _add_alerts(commands)
    return parser


def _add_home(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="where warehouse, cache and Dagster's state go (default: SPANBENCH_HOME, else the "
        "checkout's warehouse/)",
    )


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    does: Callable[[Project, argparse.Namespace], int],
    summary: str,
    examples: str = "",
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # --home may stand before the command or after it; absent after it, the one before it holds.
    _add_home(parser, argparse.SUPPRESS)
    parser.set_defaults(command=does)
    return parser


Commands = argparse._SubParsersAction


def _add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "run",
        _run,
        "materialize what is missing or changed, and print the results",
        "  spanbench run                     the bundled sample\n"
        "  spanbench run cuad -v             with a line for every asset\n"
        "  spanbench run cuad --dry-run      what would run, and what might then\n"
        "  spanbench run cuad --dense-engine qdrant",
    )
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="default: sample")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every asset")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the waves that would run; change nothing"
    )
    parser.add_argument(
        "--dense-engine",
        choices=("exact", "qdrant"),
        help="instead of what the experiment says; qdrant runs in memory unless QDRANT_URL names "
        "a server (http://...) or a folder; the rankings are the same",
    )


def _add_status(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "status",
        _status,
        "say what is stale, and why",
        "  spanbench status cuad\n"
        "  spanbench status --why cuad/chunks/clause\n"
        "  spanbench status --format json",
    )
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="default: all corpora")
    parser.add_argument(
        "--why", metavar="ASSET", help="explain one asset: its code, its inputs and its checks"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _add_sql(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "sql",
        _sql,
        "query the warehouse and print the answer",
        '  spanbench sql "SELECT corpus, config, state FROM configs"\n'
        "  spanbench sql --file warehouse/sql/worst_clause_types.sql\n"
        '  spanbench sql "SELECT * FROM chunks" --format parquet --output chunks.parquet',
    )
    parser.add_argument("query", nargs="?", help="one SELECT; the views are named as the tables")
    parser.add_argument("--file", type=_path, help="read the query from a file")
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json", "parquet"),
        help="default: the ending of --output where it is .csv, .json or .parquet, else table",
    )
    parser.add_argument("--output", metavar="FILE", help="write there, not to stdout")
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="with --format csv: no text begins as a spreadsheet's formula does",
    )
    parser.add_argument(
        "--allow-files",
        action="store_true",
        help="let the query read any file of this machine (read_csv and its like), not the "
        "network; without it, the views alone",
    )


def _add_report(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "report",
        _report,
        "say where a corpus's reports are, or make them anew for another baseline",
        '  spanbench report cuad --baseline "clause + hybrid"',
    )
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument("--baseline", metavar="CONFIG", help="start from this configuration")


def _add_fetch(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "fetch",
        _fetch,
        "bring a corpus's archive or the models' weights here, verified",
        "  spanbench fetch cuad\n"
        "  spanbench fetch cuad --archive data.zip --sha256 HEX   a local bundle\n"
        "  spanbench fetch legalbenchrag --archive PATH           a zip or folder, given: its\n"
        "      download is a link in the README of github.com/zeroentropy-ai/legalbenchrag\n"
        "  spanbench fetch models                                 weights from the model hub",
    )
    parser.add_argument("what", choices=("cuad", "legalbenchrag", "models"))
    parser.add_argument("--archive", type=_path, metavar="PATH", help="a local bundle")
    parser.add_argument(
        "--sha256",
        metavar="HEX",
        help="what must hash to this: cuad, the archive's member; legalbenchrag, the zip",
    )


def _add_adapt(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "adapt",
        _adapt,
        "register your own documents and queries as an experiment (docs/your-own-corpus.md)",
        "  spanbench adapt --docs contracts/ --queries queries.jsonl --name my_contracts\n"
        "  spanbench run my_contracts",
    )
    parser.add_argument("--docs", type=_path, required=True, metavar="DIR", help=".txt, .md, .pdf")
    parser.add_argument("--queries", type=_path, required=True, metavar="FILE", help="JSON lines")
    parser.add_argument("--metadata", type=_path, metavar="FILE", help="JSON: doc_id -> fields")
    parser.add_argument("--name", required=True, help="lower-case words joined by one _")
    parser.add_argument("--max-documents", type=int, metavar="N", help="default: 250")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="default: 2 GB")


def _add_accept(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "accept",
        _accept,
        "make the stored run the one that later runs are compared with",
        "  spanbench accept cuad; spanbench run cuad; spanbench gate cuad\n"
        "  spanbench accept cuad --show",
    )
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument("--show", action="store_true", help="only say what is accepted")


def _add_gate(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "gate",
        _gate,
        "judge the stored run by the accepted one: exits with 0 pass, 1 regression, 2 incomparable",
        "  spanbench run cuad; spanbench gate cuad --format json > gate.json",
    )
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def _add_export(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "export",
        _export,
        "write a corpus's stored results in the formats of other tools (docs/scoring.md)",
        "  spanbench export cuad --to exported\n"
        "  spanbench export cuad --to runs --format trec jsonl",
    )
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument("--to", type=_path, required=True, metavar="DIR", help="new or empty")
    parser.add_argument(
        "--format",
        nargs="+",
        choices=("trec", "beir", "legalbenchrag", "parquet", "jsonl", "directory"),
        help="default: all but directory, which is the eval set as adapt takes it",
    )


def _add_score(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "score",
        _score,
        "measure anybody's rankings as our own are (docs/scoring.md)",
        "  spanbench score --rankings mine.jsonl --corpus cuad\n"
        "  spanbench score --rankings mine.run --corpus cuad --chunker clause --name mine\n"
        "  spanbench score --rankings results.json --corpus legalbench_mini --format json",
    )
    parser.add_argument(
        "--rankings", type=_path, required=True, metavar="FILE", help="or /dev/stdin, a pipe"
    )
    parser.add_argument("--corpus", required=True, metavar="NAME", help="whose gold counts")
    parser.add_argument(
        "--chunks", type=_path, metavar="FILE", help="every chunk: JSON lines or Parquet"
    )
    parser.add_argument("--chunker", metavar="NAME", help="or a chunker of the corpus")
    parser.add_argument("--name", metavar="CONFIG", help="default: the file's name")
    parser.add_argument("--subset", nargs="+", metavar="PART", help="of a pooled corpus, these")
    parser.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="where the lists were cut, and so how deep they are looked at; a shorter list ended "
        "by itself (default: the corpus's depth, or where the file's lists end alike before it)",
    )
    parser.add_argument(
        "--order",
        choices=("given", "score"),
        help="what orders a list whose scores rise; without it such a list is refused",
    )
    parser.add_argument(
        "--rankings-format",
        choices=("jsonl", "trec", "legalbenchrag", "parquet"),
        help="default: told by the content",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def _add_calibrate(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "calibrate",
        _calibrate,
        "hold the measures to hand-made cases, brute force, formulas and another library; exits "
        "with 1 where they disagree (docs/calibration.md)",
        "  spanbench calibrate\n  spanbench calibrate --cases 20000 --seed 7",
    )
    parser.add_argument("--cases", type=int, default=3000, metavar="N", help="default: 3000")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def _add_tune(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "tune",
        _tune,
        "choose fusion constants and routing on a part of the queries, and report them on the rest",
        "  spanbench tune cuad\n"
        '  spanbench tune legalbench_mini --config "recursive + CC" --metric char_recall_union@8',
    )
    parser.add_argument("corpus", nargs="?", default="sample", help="default: sample")
    parser.add_argument(
        "--config", action="append", metavar="NAME", help="default: each that can be tuned"
    )
    parser.add_argument("--metric", metavar="NAME@K", help="default: complete_grounding@5")
    parser.add_argument(
        "--share",
        type=float,
        default=0.5,
        metavar="PART",
        help="of the queries that are tuned on, by document (default: 0.5)",
    )
    parser.add_argument("--seed", type=int, default=42, help="of the split (default: 42)")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _add_forget(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "forget",
        _forget,
        "remove a corpus from the home, with all that was made of its texts "
        "(docs/your-own-corpus.md)",
        "  spanbench forget my_contracts --dry-run    what would be removed, and what cannot be\n"
        "  spanbench forget my_contracts",
    )
    parser.add_argument("corpus", metavar="CORPUS")
    parser.add_argument("--dry-run", action="store_true", help="only say what there is")
    parser.add_argument("--yes", action="store_true", help="remove it without a question")


def _add_ui(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "ui", _ui, "open Dagster's web UI on this project")
    _add_address(parser)


def _add_serve(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "serve",
        _serve,
        "keep web UI, nightly schedule, freshness and alerts running (docs/operating.md)",
    )
    _add_address(parser)


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; default: 127.0.0.1")
    parser.add_argument("--port", type=int, default=3000, help="default: 3000")
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="answer to this name as well, as browsers write it: NAME or NAME:PORT; for a proxy "
        "in front, and for other machines (may be given several times)",
    )
    parser.add_argument(
        "--allow-reports",
        action="store_true",
        help="let other tools report to Dagster that an asset was made or checked",
    )


def _add_alerts(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "alerts",
        _alerts,
        "try the channels that operations.toml configures",
        "  spanbench alerts test            sends a test alert and says where it arrived",
    )
    parser.add_argument("what", choices=("test",))


if __name__ == "__main__":
    sys.exit(main())
