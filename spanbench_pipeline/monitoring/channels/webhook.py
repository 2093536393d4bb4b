"""Alerts through a Slack-compatible webhook."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.operations import Webhook
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring import channels
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.monitoring.channels import reason, secret


@dataclass(frozen=True)
class Hook:
    """Where ``{"text": ...}`` is posted."""

    webhook: Webhook

    @property
    def place(self) -> str:
        """Return which setting holds the URL: the URL itself is a password."""
        return f"its {'url' if self.webhook.url_env is None else 'url_env'}"

    def send(self, alerts: Iterable[Alert]) -> Iterator[str]:
        """Post each alert."""
        webhook = self.webhook
        url = webhook.url if webhook.url is not None else secret(webhook.url_env, "url_env")
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
                opener.open(request, timeout=channels.TIMEOUT_SECONDS).close()
                yield ""
            except (OSError, HTTPException) as error:
                yield reason(error)


def open_channel(settings: Webhook, _: Path) -> Hook:
    """Return the channel."""
    return Hook(settings)


def _slack(text: str) -> str:
    """Return ``text`` so that nothing in it is a mention, a link or an entity to Slack and its
    like.
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without the alert, and look delivered."""

    def redirect_request(self, *_: Any) -> None:
        return None
