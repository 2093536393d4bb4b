"""Channels that alerts are sent through: one module a channel.

A channel is a module with ``open_channel(settings, home)``, which returns a ``Channel``: one of
this package, or a plug-in (entry points of the group ``spanbench.channels``), whose settings are
the table ``[alerts.NAME]`` of operations.toml as it stands there.
"""

from __future__ import annotations

import os
import smtplib
import ssl
import urllib.error
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from spanbench_pipeline.config.operations import Alerts
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline.monitoring.alert import Alert

FILE = "file"
CHANNELS = Registry(
    "spanbench.channels", {key: f"{__name__}.{key}" for key in (FILE, "email", "webhook")}
)
"""Each channel by its key in operations.toml."""
_NAMES = {"email": "e-mail"}
"""What messages and the ledger call a channel that they do not call by its key."""
TIMEOUT_SECONDS = 5.0
"""How long one answer of a mail server or webhook may take."""


class Channel(Protocol):
    """One way to reach people."""

    @property
    def place(self) -> str:
        """Return where alerts go, as a person may read it: no password, no URL that is one."""
        ...

    def send(self, alerts: Iterable[Alert]) -> Iterator[str]:
        """Yield what was wrong with each alert, in order ("": it arrived).

        Raise what leaves no hope for the rest.
        """
        ...


def configured(settings: Alerts) -> dict[str, Any]:
    """Return the settings of each channel that is configured, by key; the file's first."""
    ours = {key: getattr(settings, key) for key in CHANNELS.ours}
    return {key: found for key, found in (ours | {**settings.plugins}).items() if found is not None}


def open_channel(key: str, settings: Alerts, home: Path) -> Channel:
    """Return a channel that is configured; raise InputError where its settings are wrong."""
    module = CHANNELS.choose("alerts", "channel", key)
    try:
        channel: Channel = module.open_channel(configured(settings)[key], home)
    except InputError:
        raise
    except Exception as error:  # of a plug-in; it may quote a secret
        raise InputError(f"alerts: {key}: cannot be opened: {reason(error)}") from error
    return channel


def name(key: str) -> str:
    """Return what messages call a channel."""
    return _NAMES.get(key, key)


def secret(variable: str | None, key: str) -> str:
    """Return what an environment variable holds; raise InputError where it is not set."""
    value = os.environ.get(variable or "", "")
    if not value:
        # Not by its name: whoever took the key for the secret's own place wrote the secret there.
        raise InputError(f"the environment variable that {key} names is not set")
    return value


def reason(error: BaseException) -> str:
    """Return what went wrong, without what the error might quote: URLs, addresses and passwords."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP status {error.code}"
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, BaseException):
        return reason(error.reason)
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
