"""The two errors a person meets, and what each one means for the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

LISTED_PROBLEMS = 20
"""The most problems that one message lists; the others are counted."""


class Code(StrEnum):
    """The kinds of wrong input, for programs and tests that tell errors apart."""

    MISSING = "missing"
    """A file, folder, key, column or field that is needed is not there."""
    UNKNOWN = "unknown"
    """A name that nothing declares: a corpus, document, query, setting, metric."""
    DUPLICATE = "duplicate"
    """A name or a place that may be given once is given twice."""
    TYPE = "type"
    """A value of the wrong kind, such as a text where a number is needed."""
    RANGE = "range"
    """A value outside what is permitted, such as an offset past the document's end."""
    FORMAT = "format"
    """Bytes that cannot be read as the format they are said to be in."""
    CONFLICT = "conflict"
    """Two values, each permitted, that cannot hold together."""
    MISMATCH = "mismatch"
    """A text or a hash that differs from the one it must equal."""
    EMPTY = "empty"
    """Nothing is left to read or to measure."""
    STALE = "stale"
    """Stored results that are absent, out of date, or changed while they were read."""
    LOCKED = "locked"
    """Another run holds what is needed."""
    UNSAFE = "unsafe"
    """A path or a link that leads outside its folder, or a secret in the open."""
    LIMIT = "limit"
    """Input larger or nested deeper than can be taken."""
    UNAVAILABLE = "unavailable"
    """A package, a server, weights or a system call that cannot be had."""
    NOT_COMPARABLE = "not-comparable"
    """Two results that do not measure the same thing."""
    INVALID = "invalid"
    """Any other wrong input."""


class InputError(Exception):
    """Wrong input or configuration (exit code 2).

    Its text is the whole of what the person sees, ``<place>: <problem>; <hint>``; a part that is
    empty is left out with its punctuation. No traceback is printed.

    code: the kind of error.
    place: the file, line, key, document or query that is wrong.
    problem: what is wrong with it.
    hint: what to do about it.
    """

    def __init__(
        self, problem: str, *, code: Code = Code.INVALID, place: object = "", hint: str = ""
    ) -> None:
        """Store the parts and compose the message; place may be a path."""
        self.code, self.place, self.problem, self.hint = code, str(place), problem, hint
        located = f"{self.place}: {problem}" if self.place else problem
        super().__init__(f"{located}; {hint}" if hint else located)


class NotMeasured(Exception):
    """Something a configuration needs is absent, such as model weights.

    Never a failure of the run and never a zero: the configuration reads
    ``not measured: <message>`` wherever its figures would stand.
    """


def refuse_all(problems: Sequence[str], where: str, code: Code = Code.INVALID) -> None:
    """Raise one InputError about every problem in the order given; return where there is none.

    A problem is a whole message that names its own place. A single one is the error's message as it
    is. Of more, the message opens with ``where`` and their number, and has the first
    LISTED_PROBLEMS of them, one a line.
    """
    if not problems:
        return
    if len(problems) == 1:
        raise InputError(problems[0], code=code)
    lines = [f"{len(problems):,} problems:", *problems[:LISTED_PROBLEMS]]
    if len(problems) > LISTED_PROBLEMS:
        lines.append(f"and {len(problems) - LISTED_PROBLEMS:,} more like these")
    raise InputError("\n  ".join(lines), code=code, place=where)
