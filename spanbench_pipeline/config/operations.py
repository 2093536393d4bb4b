"""The one file that says how the pipeline is operated: schedule, regression, alerts, web UI.

``<home>/operations.toml`` where it is there, else the checkout's ``data/operations.toml``: one of
the two, never a mixture. What the file leaves out has the defaults below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spanbench_pipeline.config import settings
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import guard
from spanbench_pipeline.core.plugins import installed

_URL = re.compile(r"https?://[^\s/]+\S*")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_HOST = re.compile(r"[^\s/@]+")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*,/#-]+")
MAX_ROUNDS = 1_000_000
MAX_SEED = 2**63 - 1
SECURITY = ("none", "starttls", "tls")


@dataclass(frozen=True)
class Nightly:
    """Which corpora the schedule brings up to date, and when; no corpora: no schedule."""

    corpora: tuple[str, ...] = ()
    cron: str = "0 3 * * *"
    timezone: str = "UTC"


@dataclass(frozen=True)
class Regression:
    """What makes a fall of a metric a regression: a p below ``level`` and a fall that matters.

    ``minimum_effect`` is the smallest fall of a mean that counts, as a share of 1. ``rounds`` and
    ``seed`` are the randomization test's.
    """

    level: float = 0.05
    minimum_effect: float = 0.02
    rounds: int = 10_000
    seed: int = 42


@dataclass(frozen=True)
class Email:
    """A mail server and who is written to; the password stands in an environment variable."""

    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 25
    security: str = "none"
    username: str | None = None
    password_env: str | None = None


@dataclass(frozen=True)
class Webhook:
    """Where ``{"text": ...}`` is posted: a URL, or the environment variable that holds it."""

    url: str | None = None
    url_env: str | None = None


@dataclass(frozen=True)
class Alerts:
    """The channels. ``file`` is relative to the home; ``link`` is where the web UI is reached."""

    file: str = "alerts.jsonl"
    link: str = "http://127.0.0.1:3000"
    email: Email | None = None
    webhook: Webhook | None = None
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables of channels that other packages add, by name."""


@dataclass(frozen=True)
class Web:
    """What the web UI answers beyond its own address: see ``guard``."""

    allow_hosts: tuple[str, ...] = ()
    allow_reports: bool = False


@dataclass(frozen=True)
class Operations:
    """The whole file. ``path`` is None where there is none, and all is default."""

    nightly: Nightly = field(default_factory=Nightly)
    regression: Regression = field(default_factory=Regression)
    alerts: Alerts = field(default_factory=Alerts)
    path: Path | None = None
    web: Web = field(default_factory=Web)


def load(project: Project) -> Operations:
    """The operations of a project; InputError names file, key and the nearest valid name."""
    path = _path(project)
    return Operations() if path is None else _Reader(path).operations(settings.parse(path))


def regression(project: Project) -> Regression:
    """The rule of the regression check; what is wrong elsewhere in the file does not concern it."""
    path = _path(project)
    if path is None:
        return Regression()
    reader = _Reader(path)
    return reader.regression(reader.section(settings.parse(path), "regression"))


def web(project: Project) -> Web:
    """What the web UI answers; what is wrong elsewhere in the file does not concern it."""
    path = _path(project)
    if path is None:
        return Web()
    reader = _Reader(path)
    return reader.web(reader.section(settings.parse(path), "web"))


def _path(project: Project) -> Path | None:
    """The one file that counts, where there is one."""
    both = (project.home / "operations.toml", project.root / "data" / "operations.toml")
    return next((path for path in both if path.is_file()), None)


class _Reader(settings.Reader):
    """Turns the parsed file into typed objects, with messages that say where.

    Messages are logged, printed and recorded with runs. A webhook's URL or a password may stand
    under any key of ``alerts`` by mistake, so they name the key and never repeat what it holds.
    """

    def assigned(self, where: str, key: str, found: object) -> str:
        if (where.split(".")[0] if where != "top level" else key) == "alerts":
            return key
        return super().assigned(where, key, found)

    def known(self, where: str, data: Mapping[str, Any], valid: set[str]) -> None:
        for key in data:
            if not _VARIABLE.fullmatch(key):  # a URL in the place of a key
                raise self.error(where, f"a key is no name (valid: {', '.join(sorted(valid))})")
        super().known(where, data, valid)

    def operations(self, data: Mapping[str, Any]) -> Operations:
        self.known("top level", data, {"nightly", "regression", "alerts", "web"})
        return Operations(
            self.nightly(self.section(data, "nightly")),
            self.regression(self.section(data, "regression")),
            self.alerts(self.section(data, "alerts")),
            self.path,
            self.web(self.section(data, "web")),
        )

    def section(self, data: Mapping[str, Any], name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.value("top level", data, name, dict, {})
        return found

    def require(self, where: str, holds: bool, problem: str) -> None:
        if not holds:
            raise self.error(where, problem)

    def nightly(self, data: Mapping[str, Any]) -> Nightly:
        found: Nightly = self.filled("nightly", data, Nightly)
        parts = found.cron.split()
        sound = len(parts) == 5 and all(_CRON_FIELD.fullmatch(part) for part in parts)
        self.require(
            "nightly", sound, f"cron = {found.cron!r} is not minute, hour, day, month, weekday"
        )
        try:
            ZoneInfo(found.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            problem = f"timezone = {found.timezone!r} is unknown; write it as Europe/Prague or UTC"
            raise self.error("nightly", problem) from error
        repeated = sorted({c for c in found.corpora if found.corpora.count(c) > 1})
        self.require("nightly", not repeated, f"corpora names {', '.join(repeated)} twice")
        return found

    def regression(self, data: Mapping[str, Any]) -> Regression:
        found: Regression = self.filled("regression", data, Regression)
        for key, value, holds, wanted in (
            ("level", found.level, 0 < found.level < 0.5, "between 0 and 0.5"),
            ("minimum_effect", found.minimum_effect, 0 <= found.minimum_effect <= 1, "in [0, 1]"),
            ("rounds", found.rounds, 1 <= found.rounds <= MAX_ROUNDS, f"in [1, {MAX_ROUNDS}]"),
            ("seed", found.seed, 0 <= found.seed <= MAX_SEED, f"in [0, {MAX_SEED}]"),
        ):
            self.require("regression", holds, f"{key} = {value} must be {wanted}")
        # An estimate over n rounds is never below 1 / (n + 1).
        reached = 1 / (found.rounds + 1) < found.level
        self.require(
            "regression",
            reached,
            f"rounds = {found.rounds} is too few: no p could be below level = {found.level}",
        )
        return found

    def alerts(self, data: Mapping[str, Any]) -> Alerts:
        valid = {"file", "link", "email", "webhook"}
        others = data.keys() - valid
        plugins = {e.name for e in installed("spanbench.channels")} - valid if others else set()
        self.known("alerts", data, valid | plugins)
        plain = {key: data[key] for key in ("file", "link") if key in data}
        found: Alerts = self.filled("alerts", plain, Alerts)
        self.require("alerts", bool(found.file), "file is empty")
        self.url("alerts", "link", found.link)
        email = self.value("alerts", data, "email", dict, None)
        webhook = self.value("alerts", data, "webhook", dict, None)
        return Alerts(
            found.file,
            found.link,
            None if email is None else self.email(email),
            None if webhook is None else self.webhook(webhook),
            {key: self.value("alerts", data, key, dict) for key in data if key in plugins},
        )

    def web(self, data: Mapping[str, Any]) -> Web:
        found: Web = self.filled("web", data, Web)
        for name in found.allow_hosts:
            self.require("web", guard.allowed(name) is not None, guard.no_name(name))
        return found

    def url(self, where: str, key: str, text: str) -> None:
        sound = _URL.fullmatch(text) is not None
        # A webhook's URL is its password: the message does not repeat it.
        self.require(where, sound, f"{key} must begin with http:// or https:// and name a host")

    def email(self, data: Mapping[str, Any]) -> Email:
        where = "alerts.email"
        found: Email = self.filled(where, data, Email)
        self.one_of(where, "security", found.security, SECURITY)
        self.require(where, 1 <= found.port <= 65535, "port must be in [1, 65535]")
        self.require(where, bool(_HOST.fullmatch(found.host)), "host is no name of a host")
        self.require(where, bool(found.recipients), "recipients names nobody")
        for key, addresses in (("sender", (found.sender,)), ("recipients", found.recipients)):
            plain = all("@" in a and not any(c.isspace() for c in a) for a in addresses)
            self.require(where, plain, f"{key}: no address, such as who@example.com")
        self.variable(where, "password_env", found.password_env)
        both = (found.username is None) == (found.password_env is None)
        self.require(where, both, "give username and password_env together, or neither")
        return found

    def variable(self, where: str, key: str, text: str | None) -> None:
        sound = text is None or _VARIABLE.fullmatch(text) is not None
        self.require(where, sound, f"{key} must be the name of an environment variable")

    def webhook(self, data: Mapping[str, Any]) -> Webhook:
        where = "alerts.webhook"
        found: Webhook = self.filled(where, data, Webhook)
        one = (found.url is None) != (found.url_env is None)
        self.require(where, one, "give exactly one of url and url_env")
        self.variable(where, "url_env", found.url_env)
        if found.url is not None:
            self.url(where, "url", found.url)
        return found
