"""What a terminal shows: tables that line up, and log lines on stderr."""

from __future__ import annotations

import io
import logging
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Sequence

from spanbench_pipeline.core.codepoints import (
    CONTROL_CODES,
    DIRECTION_CONTROLS,
    DIRECTION_MARKS,
    LINE_SEPARATORS,
)

_CONTROLS = re.compile(f"[{CONTROL_CODES}{LINE_SEPARATORS}{DIRECTION_MARKS}{DIRECTION_CONTROLS}]")
"""What a terminal obeys rather than shows, or shows in another order than it is written; not the
tab and the line feed."""


def visible(text: str) -> str:
    """Return ``text`` with its control characters as escapes: ``\x1b``, ``\u202e``.

    What JSON leaves unescaped becomes an escape of JSON, so a JSON document keeps its values.
    """
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def say(text: object, *, error: bool = False) -> None:
    """Print to stdout, or to stderr; what data has put into it cannot steer the terminal."""
    print(visible(str(text)), file=sys.stderr if error else sys.stdout)


def settle(*, json: bool) -> None:
    """Let stdout and stderr take every character whatever the locale: as an escape, else UTF-8.

    JSON is UTF-8 always.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            utf8 = json and stream is sys.stdout
            stream.reconfigure(encoding="utf-8" if utf8 else None, errors="backslashreplace")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return rows under a header, columns aligned; ``right`` are the columns that align right.

    A row shorter than the header keeps its last cell unpadded: a sentence may stand in place of
    figures.
    """
    lines = [[_cell(cell) for cell in line] for line in (header, *rows)]
    full = [line for line in lines if len(line) == len(header)]
    widths = [max(_width(line[i]) for line in full) for i in range(len(header))]
    short = [line for line in lines if len(line) < len(header)]
    for line in short:
        for i, cell in enumerate(line[:-1]):
            widths[i] = max(widths[i], _width(cell))
    on_right = set(right)
    shown = []
    for line in lines:
        padded = [
            cell
            if len(line) < len(header) and i == len(line) - 1
            else _pad(cell, widths[i], i in on_right)
            for i, cell in enumerate(line)
        ]
        shown.append("  ".join(padded).rstrip())
    rule = "  ".join("-" * w for w in widths)
    return "\n".join([shown[0], rule, *shown[1:]])


def log_to_stderr(verbose: bool) -> None:
    """Progress lines go to stderr: all with ``verbose`` or on a terminal, else only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter())
    log = logging.getLogger("spanbench")
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.INFO if verbose or sys.stderr.isatty() else logging.WARNING)
    # Our own warnings are for the person; what libraries say of their own future is not.
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="spanbench_pipeline")
    warnings.showwarning = lambda message, *_: log.warning("%s", message)


def _cell(text: str) -> str:
    """Return a cell on its line: breaks and tabs are spaces, other controls escapes."""
    return visible(re.sub("[\t\n\r]", " ", text))


class _Formatter(logging.Formatter):
    """A message as it is; a warning says that it is one."""

    def format(self, record: logging.LogRecord) -> str:
        text = visible(record.getMessage())
        return text if record.levelno < logging.WARNING else f"{record.levelname.lower()}: {text}"


def _width(text: str) -> int:
    """Return columns a text takes: wide characters two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
