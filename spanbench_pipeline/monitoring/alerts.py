"""Alerts: what goes wrong reaches people, once a fault, through every channel configured.

Each channel works in a thread of its own under a deadline, so one that cannot be reached delays
neither a run nor another channel; that it could not is an alert too. A ledger in the home holds the
faults that were sent: a retry that fails again sends nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanbench_pipeline.config.operations import Alerts
from spanbench_pipeline.monitoring import channels
from spanbench_pipeline.monitoring.alert import Alert, fault
from spanbench_pipeline.monitoring.channels import FILE, reason
from spanbench_pipeline.monitoring.ledger import LEDGER, Ledger

log = logging.getLogger("spanbench")
DEADLINE_SECONDS = 15.0
"""How long a channel may take for everything that it is given at once."""
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Delivery:
    """What became of alerts on one channel; ``error`` is empty where all arrived.

    ``missing`` are those that did not, or not at all of the recipients.
    """

    channel: str
    error: str = ""
    missing: tuple[Alert, ...] = field(default=(), compare=False)


def send(
    alerts: Sequence[Alert], settings: Alerts, home: Path, skip: Iterable[str] = ()
) -> list[Delivery]:
    """Send all ``alerts`` through every channel but those in ``skip``; never raise.

    Returns one delivery a channel, the file's first. A channel is given up after
    ``DEADLINE_SECONDS``.
    """
    keys = [key for key in channels.configured(settings) if channels.name(key) not in set(skip)]
    jobs = [_Job(channels.name(key), alerts, _work(key, alerts, settings, home)) for key in keys]
    deadline = time.monotonic() + DEADLINE_SECONDS
    deliveries = [job.finished(deadline) for job in jobs]
    for delivery in deliveries:
        if delivery.error:
            log.error("alerts by %s could not be sent: %s", delivery.channel, delivery.error)
    return deliveries


def _work(
    key: str, alerts: Sequence[Alert], settings: Alerts, home: Path
) -> Callable[[], Iterator[str]]:
    return lambda: channels.open_channel(key, settings, home).send(alerts)


def report(alerts: Sequence[Alert], settings: Alerts, home: Path) -> list[Delivery]:
    """Send each of ``alerts`` whose fault was not sent before, and remember that it was.

    A channel that failed is an alert of its own: written to the file each time, and sent to the
    other channels once, until it works again.
    """
    with _LOCK:
        ledger = Ledger(home / LEDGER)
        new = list({a.fault: a for a in alerts if a.fault not in ledger}.values())
        if not new:
            return []
        deliveries = send(new, settings, home)
        ledger.add(new)
        _report_outages(deliveries, ledger, settings, home)
        return deliveries


def resolve(abouts: Iterable[str], home: Path) -> None:
    """Forget the faults about what works again: if it fails later, that is a new fault."""
    with _LOCK:
        Ledger(home / LEDGER).resolve(set(abouts))


def _report_outages(
    deliveries: Iterable[Delivery],
    ledger: Ledger,
    settings: Alerts,
    home: Path,
) -> None:
    """Say which channels did not work: in the file always, elsewhere once an outage."""
    ledger.resolve({_outage(d).about for d in deliveries if not d.error})
    outages = [_outage(d) for d in deliveries if d.error]
    failed = {d.channel for d in deliveries if d.error}
    first = [alert for alert in outages if alert.fault not in ledger]
    known = [alert for alert in outages if alert.fault in ledger]
    if first:
        send(first, settings, home, skip=failed)
        ledger.add(first)
    if known:
        others = {channels.name(key) for key in channels.configured(settings)} - {FILE}
        send(known, settings, home, skip=failed | others)


def _outage(delivery: Delivery) -> Alert:
    return Alert(
        corpus=f"alerts by {delivery.channel}",
        asset="",
        severity="ERROR",
        details="\n".join(f"not sent there: {alert.title}" for alert in delivery.missing),
        fault=fault("channel", delivery.channel),
        error=f"could not be sent: {delivery.error}",
    )


@dataclass
class _Job:
    """A channel at work in a thread that nothing waits for beyond its deadline."""

    channel: str
    alerts: Sequence[Alert]
    work: Callable[[], Iterator[str]]
    answers: list[str] = field(default_factory=list)
    """What became of each alert so far."""
    ended_by: str = ""
    given_up: bool = False

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for answer in self.work():
                self.answers.append(answer)
                if self.given_up:  # what was told not to have arrived should not arrive later
                    return
        except Exception as error:
            self.ended_by = reason(error)

    def finished(self, deadline: float) -> Delivery:
        """Return what became of it by ``deadline`` (of the monotonic clock)."""
        self.thread.join(max(0.0, deadline - time.monotonic()))
        self.given_up = self.thread.is_alive()
        rest = f"not done within {DEADLINE_SECONDS:.0f} s" if self.given_up else self.ended_by
        # Padded with what ended the work: those are the alerts that it did not come to.
        answers = [*self.answers, *len(self.alerts) * [rest]][: len(self.alerts)]
        missing = tuple(a for a, answer in zip(self.alerts, answers, strict=True) if answer)
        return Delivery(self.channel, "; ".join(dict.fromkeys(filter(None, answers))), missing)
