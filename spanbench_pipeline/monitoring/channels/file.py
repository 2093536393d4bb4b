"""Alerts as lines of a file in the home, which needs nothing but the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring import ledger
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.monitoring.channels import reason
from spanbench_pipeline.monitoring.ledger import LEDGER


@dataclass(frozen=True)
class File:
    """The file."""

    path: Path

    @property
    def place(self) -> str:
        """Return the file's path."""
        return str(self.path)

    def send(self, alerts: Iterable[Alert]) -> Iterator[str]:
        """Add a line of JSON for each alert."""
        for alert in alerts:
            try:
                ledger.append(
                    self.path, {"at": ledger.now(), "title": alert.title, **asdict(alert)}
                )
                yield ""
            except OSError as error:
                yield reason(error)


def open_channel(file: str, home: Path) -> File:
    """Return the channel; raise InputError as ``file_path`` does."""
    return File(file_path(file, home))


def file_path(file: str, home: Path) -> Path:
    """Return the alerts' file.

    Raise InputError where it would lie outside the home or be another's file.
    """
    path = (home / file).resolve()
    if not path.is_relative_to(home.resolve()) or path == home.resolve():
        raise InputError(f"alerts: file must name a file in the home, {home}")
    if path.suffix != ".jsonl" or path == (home / LEDGER).resolve():
        raise InputError(
            f"alerts: file must end in .jsonl and not be {LEDGER}: alerts are added to it, and "
            "would spoil a file that is read as something else"
        )
    return path
