"""The one file that says how the pipeline is operated: schedule, regression, alerts, web UI.

``<home>/operations.toml`` where it is there, else the checkout's ``data/operations.toml``: one of
the two, never a mixture. What the file leaves out has the defaults below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annotated_types import Interval

from spanbench_pipeline.config import settings
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.config.settings import Rule, matching, one_of
from spanbench_pipeline.core import guard
from spanbench_pipeline.core.plugins import installed

T = TypeVar("T")
MAX_ROUNDS = 1_000_000
MAX_SEED = 2**63 - 1
SECURITY = ("none", "starttls", "tls")


def _repeated(names: tuple[str, ...]) -> str:
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"names {', '.join(twice)} twice" if twice else ""


def _no_timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "is unknown; write it as Europe/Prague or UTC"
    return ""


_CRON = matching(r"\s*([0-9A-Za-z*,/#-]+(\s+|$)){5}", "is not minute, hour, day, month, weekday")
# A webhook's URL is its password: messages do not repeat it.
_Url = Annotated[
    str, matching(r"https?://[^\s/]+\S*", "must begin with http:// or https:// and name a host")
]
_Variable = Annotated[
    str, matching(r"(?a:[A-Za-z_]\w*)", "must be the name of an environment variable")
]
_Address = Annotated[str, matching(r"[^\s@]*@\S*", "is no address, such as who@example.com")]
_HostName = Annotated[
    str, Rule(lambda name: "" if guard.allowed(name) is not None else guard.no_name(name))
]


@dataclass(frozen=True)
class Nightly:
    """Which corpora the schedule brings up to date, and when; no corpora: no schedule."""

    corpora: Annotated[tuple[str, ...], Rule(_repeated)] = ()
    cron: Annotated[str, _CRON] = "0 3 * * *"
    timezone: Annotated[str, Rule(_no_timezone)] = "UTC"


@dataclass(frozen=True)
class Regression:
    """What makes a fall of a metric a regression: a p below ``level`` and a fall that matters.

    ``minimum_effect`` is the smallest fall of a mean that counts, as a share of 1. ``rounds`` and
    ``seed`` are the randomization test's.
    """

    level: Annotated[float, Interval(gt=0, lt=0.5)] = 0.05
    minimum_effect: Annotated[float, Interval(ge=0, le=1)] = 0.02
    rounds: Annotated[int, Interval(ge=1, le=MAX_ROUNDS)] = 10_000
    seed: Annotated[int, Interval(ge=0, le=MAX_SEED)] = 42

    def conflict(self) -> str:
        """Return what is wrong where so few rounds could never find a regression."""
        # An estimate over n rounds is never below 1 / (n + 1).
        if 1 / (self.rounds + 1) < self.level:
            return ""
        return f"rounds = {self.rounds} is too few: no p could be below level = {self.level}"


@dataclass(frozen=True)
class Email:
    """A mail server and who is written to; the password stands in an environment variable."""

    host: Annotated[str, matching(r"[^\s/@]+", "is no name of a host")]
    sender: _Address
    recipients: Annotated[
        tuple[_Address, ...], Rule(lambda people: "" if people else "names nobody")
    ]
    port: Annotated[int, Interval(ge=1, le=65535)] = 25
    security: Annotated[str, one_of(SECURITY)] = "none"
    username: str | None = None
    password_env: _Variable | None = None

    def conflict(self) -> str:
        """Return what is wrong where only one of user name and password is given."""
        both = (self.username is None) == (self.password_env is None)
        return "" if both else "give username and password_env together, or neither"


@dataclass(frozen=True)
class Webhook:
    """Where ``{"text": ...}`` is posted: a URL, or the environment variable that holds it."""

    url: _Url | None = None
    url_env: _Variable | None = None

    def conflict(self) -> str:
        """Return what is wrong where not exactly one of the two is given."""
        one = (self.url is None) != (self.url_env is None)
        return "" if one else "give exactly one of url and url_env"


@dataclass(frozen=True)
class Alerts:
    """The channels. ``file`` is relative to the home; ``link`` is where the web UI is reached."""

    file: Annotated[str, matching("(?s:.+)", "is empty")] = "alerts.jsonl"
    link: _Url = "http://127.0.0.1:3000"
    email: Email | None = None
    webhook: Webhook | None = None
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables of channels that other packages add, by name."""


@dataclass(frozen=True)
class Web:
    """What the web UI answers beyond its own address: see ``guard``."""

    allow_hosts: tuple[_HostName, ...] = ()
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
    """Return the operations of a project.

    Raise one InputError about everything that is wrong in the file: key, the nearest valid name.
    """
    path = _path(project)
    if path is None:
        return Operations()
    reader = _Reader(path)
    return reader.done(reader.read(settings.TOP, settings.parse(path), Operations, path=path))


def regression(project: Project) -> Regression:
    """Return the rule of the regression check, whatever is wrong elsewhere in the file."""
    path = _path(project)
    if path is None:
        return Regression()
    return _section(path, "regression", Regression)


def web(project: Project) -> Web:
    """Return what the web UI answers, whatever is wrong elsewhere in the file."""
    path = _path(project)
    if path is None:
        return Web()
    return _section(path, "web", Web)


def _section(path: Path, name: str, kind: type[T]) -> T:
    reader = _Reader(path)
    return reader.done(reader.read(name, settings.parse(path).get(name, {}), kind))


def _path(project: Project) -> Path | None:
    """Return the one file that counts, where there is one."""
    both = (project.home / "operations.toml", project.root / "data" / "operations.toml")
    return next((path for path in both if path.is_file()), None)


class _Reader(settings.TableReader):
    """Turns the parsed file into typed objects.

    Messages are logged, printed and recorded with runs. A webhook's URL or a password may stand
    under any key of ``alerts`` by mistake, so they name the key and never repeat what it holds.
    """

    def assigned(self, where: str, key: str, value: object) -> str:
        if (where.split(".")[0] if where != settings.TOP else key) == "alerts":
            return key
        return super().assigned(where, key, value)

    def known(self, where: str, table: Mapping[str, Any], valid: Collection[str]) -> None:
        names = {key: value for key, value in table.items() if key.isascii() and key.isidentifier()}
        proper = len(names) == len(table)  # else: a URL in the place of a key
        self.require(where, proper, f"a key is no name (valid: {', '.join(sorted(valid))})")
        super().known(where, names, valid)

    def read(
        self, where: str, table: object, kind: type[T], others: Collection[str] = (), **fixed: Any
    ) -> T | None:
        """Read a table; one of ``alerts`` that a plug-in's channel owns is left as it is."""
        if kind is Alerts and isinstance(table, dict):
            ours = settings.keys_of(Alerts, "plugins")
            if table.keys() - ours:
                others = {e.name for e in installed("spanbench.channels")} - ours
            fixed["plugins"] = {key: table[key] for key in table if key in others}
            for key, value in fixed["plugins"].items():
                self.require(where, isinstance(value, dict), f"{key} must be a table")
        return super().read(where, table, kind, others, **fixed)
