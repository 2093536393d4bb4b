"""Alerts by e-mail: one message an alert."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.operations import Email
from spanbench_pipeline.monitoring import channels
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.monitoring.channels import reason, secret

SUBJECT_CHARS = 150


@dataclass(frozen=True)
class Mail:
    """A mail server and who is written to."""

    email: Email

    @property
    def place(self) -> str:
        """Return the recipients and the server."""
        return f"{', '.join(self.email.recipients)} by {self.email.host}:{self.email.port}"

    def send(self, alerts: Iterable[Alert]) -> Iterator[str]:
        """Send over one connection; over a new one where the server closed it."""
        email = self.email
        with ExitStack() as connections:
            server = connections.enter_context(_connected(email))
            for alert in alerts:
                if server.sock is None:
                    server = connections.enter_context(_connected(email))
                yield _mailed(server, _message(alert, email))


def open_channel(settings: Email, _: Path) -> Mail:
    """Return the channel; it connects when it sends."""
    return Mail(settings)


def _mailed(server: smtplib.SMTP, message: EmailMessage) -> str:
    try:
        refused: Mapping[str, Any] = server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        refused = error.recipients
    except (smtplib.SMTPException, OSError) as error:
        return reason(error)
    return f"the mail server refused {len(refused)} of the recipients" if refused else ""


@contextmanager
def _connected(email: Email) -> Iterator[smtplib.SMTP]:
    """Yield a connection that is logged in where that is wanted."""
    where = (email.host, email.port)
    context = ssl.create_default_context()
    server: smtplib.SMTP
    if email.security == "tls":
        server = smtplib.SMTP_SSL(*where, timeout=channels.TIMEOUT_SECONDS, context=context)
    else:
        server = smtplib.SMTP(*where, timeout=channels.TIMEOUT_SECONDS)
    with server:
        if email.security == "starttls":
            server.starttls(context=context)
        if email.username is not None:
            server.login(email.username, secret(email.password_env, "password_env"))
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
