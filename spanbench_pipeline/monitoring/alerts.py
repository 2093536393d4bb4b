"""Alerts: what goes wrong reaches people, once a fault, through every channel configured.

The channels are a JSONL file in the home, which needs nothing but the disk, e-mail, and a
Slack-compatible webhook. Each works in a thread of its own under a deadline, so one that cannot be
reached delays neither a run nor another channel; that it could not is an alert too. A ledger in the
home holds the faults that were sent: a retry that fails again sends nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import smtplib
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from http.client import HTTPException
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.operations import Alerts, Email, Webhook
from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.storage import locks

log = logging.getLogger("spanbench")
LEDGER = "alerts.ledger.jsonl"
FILE, EMAIL, WEBHOOK = "file", "e-mail", "webhook"
TIMEOUT_SECONDS = 5.0
"""How long one answer of a mail server or webhook may take."""
DEADLINE_SECONDS = 15.0
"""How long a channel may take for everything that it is given at once."""
SHOWN_CHARS = 3000
SUBJECT_CHARS = 150
_LOCK = threading.Lock()
_UNWRITTEN: dict[str, str] = {}
"""Faults sent by this process that the ledger could not take (fault -> about): a full disk must
not make an alert a tick of one fault."""


@dataclass(frozen=True)
class Alert:
    """One fault as people read it.

    Either ``check`` (a check that failed) or ``error`` (what was raised) is given. ``details``
    holds the first offending rows, or the error's message. ``fault`` is the same for the same
    thing going wrong again: one fault is sent once.
    """

    corpus: str
    asset: str
    severity: str
    details: str
    fault: str
    check: str = ""
    error: str = ""
    run_id: str = ""
    link: str = ""

    @property
    def about(self) -> str:
        """What must be well again for the fault to be mended."""
        return about(self.asset or self.corpus, self.check)

    @property
    def title(self) -> str:
        """One line: where, and what."""
        what = f"check {self.check} failed" if self.check else self.error
        return " ".join(
            without_halves(f"{self.asset or self.corpus}: {what} ({self.severity})").split()
        )

    @property
    def text(self) -> str:
        """The whole alert, as mail and webhook show it."""
        named = (("corpus", self.corpus), ("asset", self.asset), ("check", self.check))
        head = ", ".join(f"{kind} {name}" for kind, name in named if name)
        cut = len(self.details) > SHOWN_CHARS
        details = self.details[:SHOWN_CHARS] + " …" if cut else self.details
        run = f"run: {self.link or self.run_id}" if self.run_id else ""
        parts = (f"spanbench: {self.title}", head, details, run)
        return without_halves("\n".join(part for part in parts if part))


@dataclass(frozen=True)
class Delivery:
    """What became of alerts on one channel; ``error`` is empty where all arrived.

    ``missing`` are those that did not, or not at all of the recipients.
    """

    channel: str
    error: str = ""
    missing: tuple[Alert, ...] = field(default=(), compare=False)


def about(asset: str, check: str = "") -> str:
    """What a fault is about: a check of an asset, or running it."""
    return f"{asset} {check or 'run'}"


def fault(*parts: str) -> str:
    """A short id of what makes two faults the same."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def file_path(settings: Alerts, home: Path) -> Path:
    """The alerts' file; InputError where it would lie outside the home or be another's file."""
    path = (home / settings.file).resolve()
    if not path.is_relative_to(home.resolve()) or path == home.resolve():
        raise InputError(f"alerts: file must name a file in the home, {home}")
    if path.suffix != ".jsonl" or path == (home / LEDGER).resolve():
        raise InputError(
            f"alerts: file must end in .jsonl and not be {LEDGER}: alerts are added to it, and "
            "would spoil a file that is read as something else"
        )
    return path


def send(
    alerts: Sequence[Alert], settings: Alerts, home: Path, skip: Iterable[str] = ()
) -> list[Delivery]:
    """Sends all ``alerts`` through every channel but those in ``skip``; never raises.

    Returns one delivery a channel, the file's first. A channel is given up after
    ``DEADLINE_SECONDS``.
    """
    channels = {k: v for k, v in _channels(alerts, settings, home).items() if k not in set(skip)}
    jobs = [_Job(name, alerts, work) for name, work in channels.items()]
    deadline = time.monotonic() + DEADLINE_SECONDS
    deliveries = [job.finished(deadline) for job in jobs]
    for delivery in deliveries:
        if delivery.error:
            log.error("alerts by %s could not be sent: %s", delivery.channel, delivery.error)
    return deliveries


def report(alerts: Sequence[Alert], settings: Alerts, home: Path) -> list[Delivery]:
    """Sends each of ``alerts`` whose fault was not sent before, and remembers that it was.

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


def mend(abouts: Iterable[str], home: Path) -> None:
    """Forgets the faults about what is well again: should it fail anew, that is a new fault."""
    with _LOCK:
        Ledger(home / LEDGER).mend(set(abouts))


class Ledger:
    """The faults that were sent and not mended since, in a file that lines are added to."""

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
        """Remembers that these were sent."""
        for alert in alerts:
            self.sent[alert.fault] = alert.about
            try:
                append(self.path, {"at": _now(), "fault": alert.fault, "about": alert.about})
            except OSError as error:
                _UNWRITTEN[alert.fault] = alert.about
                log.error("%s: cannot be written: %s", self.path, error.strerror)

    def mend(self, abouts: set[str]) -> None:
        """Forgets every fault about one of ``abouts``."""
        for well in sorted(abouts & set(self.sent.values())):
            self._forget(well)
            append(self.path, {"at": _now(), "mended": well})

    def _forget(self, well: str) -> None:
        for fault in [fault for fault, what in self.sent.items() if what == well]:
            del self.sent[fault]
            _UNWRITTEN.pop(fault, None)


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Adds one line of JSON to a file, one writer at a time, so that lines never mix.

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
    """The lines of a JSONL file that are whole; [] where there is no file."""
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # cut short by a crash
    return [entry for entry in found if isinstance(entry, dict)]


def _report_outages(
    deliveries: Iterable[Delivery],
    ledger: Ledger,
    settings: Alerts,
    home: Path,
) -> None:
    """Says which channels did not work: in the file always, elsewhere once an outage."""
    ledger.mend({_outage(d).about for d in deliveries if not d.error})
    outages = [_outage(d) for d in deliveries if d.error]
    failed = {d.channel for d in deliveries if d.error}
    first = [alert for alert in outages if alert.fault not in ledger]
    known = [alert for alert in outages if alert.fault in ledger]
    if first:
        send(first, settings, home, skip=failed)
        ledger.add(first)
    if known:
        send(known, settings, home, skip={*failed, EMAIL, WEBHOOK})


def _outage(delivery: Delivery) -> Alert:
    return Alert(
        corpus=f"alerts by {delivery.channel}",
        asset="",
        severity="ERROR",
        details="\n".join(f"not sent there: {alert.title}" for alert in delivery.missing),
        fault=fault("channel", delivery.channel),
        error=f"could not be sent: {delivery.error}",
    )


def _channels(
    alerts: Sequence[Alert], settings: Alerts, home: Path
) -> dict[str, Callable[[], Iterator[str]]]:
    """The configured channels, each as what it has to do.

    A channel yields for each alert, in order, what was wrong with it ("": it arrived), and raises
    what leaves no hope for the rest.
    """
    found: dict[str, Callable[[], Iterator[str]]] = {FILE: lambda: _write(alerts, settings, home)}
    if (email := settings.email) is not None:
        found[EMAIL] = lambda: _mail(alerts, email)
    if (webhook := settings.webhook) is not None:
        found[WEBHOOK] = lambda: _post(alerts, webhook)
    return found


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
            self.ended_by = _plain(error)

    def finished(self, deadline: float) -> Delivery:
        """What became of it by ``deadline`` (of the monotonic clock)."""
        self.thread.join(max(0.0, deadline - time.monotonic()))
        self.given_up = self.thread.is_alive()
        rest = f"not done within {DEADLINE_SECONDS:.0f} s" if self.given_up else self.ended_by
        # Padded with what ended the work: those are the alerts that it did not come to.
        answers = [*self.answers, *len(self.alerts) * [rest]][: len(self.alerts)]
        missing = tuple(a for a, answer in zip(self.alerts, answers, strict=True) if answer)
        return Delivery(self.channel, "; ".join(dict.fromkeys(filter(None, answers))), missing)


def _write(alerts: Iterable[Alert], settings: Alerts, home: Path) -> Iterator[str]:
    path = file_path(settings, home)
    for alert in alerts:
        try:
            append(path, {"at": _now(), "title": alert.title, **asdict(alert)})
            yield ""
        except OSError as error:
            yield _plain(error)


def _mail(alerts: Iterable[Alert], email: Email) -> Iterator[str]:
    """One message an alert, over one connection; over a new one where the server closed it."""
    with ExitStack() as connections:
        server = connections.enter_context(_connected(email))
        for alert in alerts:
            if server.sock is None:
                server = connections.enter_context(_connected(email))
            yield _mailed(server, _message(alert, email))


def _mailed(server: smtplib.SMTP, message: EmailMessage) -> str:
    try:
        refused: Mapping[str, Any] = server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        refused = error.recipients
    except (smtplib.SMTPException, OSError) as error:
        return _plain(error)
    return f"the mail server refused {len(refused)} of the recipients" if refused else ""


@contextmanager
def _connected(email: Email) -> Iterator[smtplib.SMTP]:
    """A connection that is logged in where that is wanted."""
    where = (email.host, email.port)
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if email.security == "tls":
        server = smtplib.SMTP_SSL(*where, timeout=TIMEOUT_SECONDS, context=context)
    else:
        server = smtplib.SMTP(*where, timeout=TIMEOUT_SECONDS)
    with server:
        if email.security == "starttls":
            server.starttls(context=context)
        if email.username is not None:
            server.login(email.username, _secret(email.password_env, "password_env"))
        yield server


def _message(alert: Alert, email: Email) -> EmailMessage:
    # A subject on one line: folded at the name of an asset, it would begin with a space.
    message = EmailMessage(policy=SMTP.clone(max_line_length=2 * SUBJECT_CHARS))
    message["Subject"] = f"[spanbench] {alert.title}"[:SUBJECT_CHARS]
    message["From"] = email.sender
    message["To"] = ", ".join(email.recipients)
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain=email.sender.rpartition("@")[2])
    message.set_content(alert.text + "\n")
    return message


def _post(alerts: Iterable[Alert], webhook: Webhook) -> Iterator[str]:
    url = webhook.url if webhook.url is not None else _secret(webhook.url_env, "url_env")
    if not url.startswith(("http://", "https://")):
        raise InputError("the webhook's URL must begin with http:// or https://")
    opener = urllib.request.build_opener(_NoRedirect)
    for alert in alerts:
        request = urllib.request.Request(
            url,
            data=json.dumps({"text": _slack(alert.text)}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            opener.open(request, timeout=TIMEOUT_SECONDS).close()
            yield ""
        except (OSError, HTTPException) as error:
            yield _plain(error)


def _slack(text: str) -> str:
    """``text`` so that nothing in it is a mention, a link or an entity to Slack and its like."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without the alert, and look delivered."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _secret(variable: str | None, key: str) -> str:
    value = os.environ.get(variable or "", "")
    if not value:
        # Not by its name: whoever took the key for the secret's own place wrote the secret there.
        raise InputError(f"the environment variable that {key} names is not set")
    return value


def _plain(error: BaseException) -> str:
    """What went wrong, without what the error might quote: URLs, addresses and passwords."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP status {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        return _plain(error.reason)
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server answered {error.smtp_code} ({type(error).__name__})"
    if isinstance(error, smtplib.SMTPServerDisconnected):  # so smtplib tells of silence, too
        return "the mail server did not answer, or closed the connection"
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:.0f} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
