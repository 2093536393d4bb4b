"""The two errors a person meets, and what each one means for the exit code."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 20
"""The most problems that one message lists; the others are counted."""


class InputError(Exception):
    """Wrong input or configuration (exit code 2).

    The message is the whole of what the person sees: it names the file, line, document or query
    that is wrong and says what to do about it. No traceback is printed.
    """


class NotMeasured(Exception):
    """Something a configuration needs is absent, such as model weights.

    Never a failure of the run and never a zero: the configuration reads
    ``not measured: <message>`` wherever its figures would stand.
    """


def refuse_all(problems: Sequence[str], where: str) -> None:
    """Raise one InputError about every problem in the order given; return where there is none.

    A problem is a whole message that names its own place. A single one is the error's message as it
    is. Of more, the message opens with ``where`` and their number, and has the first SHOWN of them,
    one a line.
    """
    if not problems:
        return
    if len(problems) == 1:
        raise InputError(problems[0])
    lines = [f"{where}: {len(problems):,} problems, to be mended together:", *problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"and {len(problems) - SHOWN:,} more like these")
    raise InputError("\n  ".join(lines))
