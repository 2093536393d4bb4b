"""Records which faults were sent and are still open, as lines of JSON added to a file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.storage import locks

log = logging.getLogger("spanbench")
LEDGER = "alerts.ledger.jsonl"
_UNWRITTEN: dict[str, str] = {}
"""Faults sent by this process that the ledger could not take (fault -> about): a full disk must
not make an alert a tick of one fault."""


class Ledger:
    """The faults that were sent and are still open, in a file that lines are added to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent: dict[str, str] = {}
        """fault -> what it is about"""
        for entry in _entries(path):
            if "mended" in entry:
                self._forget(entry["mended"])
            elif "fault" in entry:
                self.sent[entry["fault"]] = entry.get("about", "")
        self.sent |= _UNWRITTEN

    def __contains__(self, fault: str) -> bool:
        return fault in self.sent

    def add(self, alerts: Iterable[Alert]) -> None:
        """Record that these alerts were sent."""
        for alert in alerts:
            self.sent[alert.fault] = alert.about
            try:
                append(self.path, {"at": now(), "fault": alert.fault, "about": alert.about})
            except OSError as error:
                _UNWRITTEN[alert.fault] = alert.about
                log.error("%s: cannot be written: %s", self.path, error.strerror)

    def resolve(self, abouts: set[str]) -> None:
        """Forget every fault about one of ``abouts``."""
        for well in sorted(abouts & set(self.sent.values())):
            self._forget(well)
            append(self.path, {"at": now(), "mended": well})

    def _forget(self, well: str) -> None:
        for fault in [fault for fault, what in self.sent.items() if what == well]:
            del self.sent[fault]
            _UNWRITTEN.pop(fault, None)


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add one line of JSON to a file, one writer at a time, so that lines never mix.

    A line that a crash cut short is closed first: only under the lock is a last line without its
    end one that nobody is at work on.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = without_halves(json.dumps(entry, ensure_ascii=False)).encode() + b"\n"
    with path.open("ab+", buffering=0) as stream:
        locks.lock(stream)  # until it is closed
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            line = line if stream.read(1) == b"\n" else b"\n" + line
        if stream.write(line) != len(line):
            raise OSError(f"{path}: the line was cut short")


def _entries(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSONL file that are whole; [] where there is no file."""
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # cut short by a crash
    return [entry for entry in found if isinstance(entry, dict)]


def now() -> str:
    """Return the time as lines of the ledger and of the alerts' file state it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
