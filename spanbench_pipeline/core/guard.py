"""Keeps other people's pages away from the web UI: an ASGI middleware around Dagster's webserver.

The UI has no login, and whoever reaches it may launch runs and wipe what is recorded. It listens on
the user's own machine, and so does every page that the user's browser has open: a page may send
requests to any address, though it may not read the answers. Four rules, in this order:

1. **Hosts.** A request names the host that it was meant for. A page can point a name of its own at
   127.0.0.1 (DNS rebinding) and would then count as ours, but the Host header still has its name.
2. **Origin.** What is not a plain GET must come from a page of ours. Today's browsers send Origin
   with every POST, whatever its content type, and with every WebSocket handshake; a page cannot
   leave it out or change it. So a request without Origin and without Sec-Fetch-Site is no
   browser's: curl, Dagster's client, a monitoring tool. It passes, since whoever can run those on
   this network has no need of anybody's browser. ``null`` (a sandboxed frame, a file) is foreign.
3. **Sec-Fetch-Site**, where a browser sends it: other sites may link to the UI (a link in an
   alert), and neither embed it nor fetch anything of it.
4. **Endpoints.** No GraphQL in a GET: an image's address would be a mutation. GraphQL in a POST
   must be JSON: a page of another site cannot send that without a CORS preflight, which is refused.
   Reporting to Dagster that an asset was made or checked is closed unless it was asked for.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from spanbench_pipeline.core.errors import InputError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

Authority = tuple[str, int | None]
"""A host as browsers write it, in lower case, and its port: None for that of http or https."""

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
DEFAULT_PORTS = (80, 443)
REPORTS = (
    "report_asset_materialization",
    "report_asset_check",
    "report_asset_observation",
)
"""First parts of the paths by which a tool may tell Dagster that something was made."""
HEADERS = (
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Added to every answer. A second policy narrows the first: Dagster's own keeps holding."""
_AUTHORITY = re.compile(
    r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)(?::([0-9]{1,5}))?"
)
_ORIGIN = re.compile(r"https?://(.+)")
_SHOWN = 100
_POLICY_VIOLATION = 1008


@dataclass(frozen=True)
class Guard:
    """What is let through: requests to ``hosts``, and reports of assets if ``reports``."""

    hosts: frozenset[Authority]
    reports: bool = False

    def refusal(self, asked: Asked) -> Refusal | None:
        """Return why a request is not answered; None where it is."""
        return next(filter(None, (rule(self, asked) for rule in _RULES)), None)


@dataclass(frozen=True)
class Refusal:
    """An HTTP status and what to say."""

    status: int
    reason: str


@dataclass(frozen=True)
class Asked:
    """A request or a WebSocket handshake (method ``WEBSOCKET``), as far as the rules look at it.

    ``headers`` are all values of each header by its name in lower case. ``server`` is the address
    at which the connection arrived.
    """

    method: str
    path: str
    headers: Mapping[str, list[str]]
    server: Authority | None

    @classmethod
    def of(cls, scope: Scope) -> Asked:
        """Return the request of an ASGI scope."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        method = scope["method"] if scope["type"] == "http" else "WEBSOCKET"
        return cls(method, scope["path"], headers, _arrived(scope.get("server")))

    def only(self, name: str) -> str | None:
        """Return the value of a header that is there exactly once."""
        values = self.headers.get(name, [])
        return values[0] if len(values) == 1 else None

    @property
    def reads(self) -> bool:
        """Return whether it is a request that asks for something and should change nothing."""
        return self.method in ("GET", "HEAD")

    @property
    def endpoint(self) -> str:
        """Return the first part of the path, however many slashes are before it."""
        return self.path.strip("/").partition("/")[0].lower()


def guard(host: str, port: int, names: Iterable[str] = (), *, reports: bool = False) -> Guard:
    """Return the guard of a UI that listens on ``host``:``port``.

    ``names`` are further ones, as ``NAME`` (with no port, or with ``port``) or ``NAME:PORT``.
    Raises InputError for one that is no name of a host.
    """
    found: set[Authority] = set()
    for own in filter(None, map(allowed, (*LOOPBACK, host))):
        found.add(_normal(own[0], port))
    for text in names:
        its = allowed(text)
        if its is None:
            raise InputError(no_name(text))
        ports = (port, None) if its[1] is None else (its[1],)
        found |= {_normal(its[0], each) for each in ports}
    return Guard(frozenset(found), reports)


def allowed(text: str) -> Authority | None:
    """Return a host as a person gives it: ``NAME``, ``NAME:PORT``, an IPv6 address in brackets or
    bare.
    """
    return authority(text) or authority(f"[{text}]")


def no_name(text: str) -> str:
    """Return what is wrong with a host that ``allowed`` does not know, and how to give one."""
    return (
        f"{text!r} is no name of a host: give NAME or NAME:PORT as it stands in the browser's "
        "address, such as spanbench.example.com (no http://, no path, no *; a name that is not "
        "ASCII as xn--...)"
    )


def authority(text: str) -> Authority | None:
    """Return a Host header's value, or the part of an Origin behind ``//``; None for anything
    else.
    """
    found = _AUTHORITY.fullmatch(text.lower())
    if found is None:
        return None
    name, port = found[1], None if found[2] is None else int(found[2])
    if name.startswith("["):
        try:
            name = f"[{ipaddress.IPv6Address(name[1:-1]).compressed}]"
        except ValueError:
            return None
    return _normal(name, port)


def _normal(name: str, port: int | None) -> Authority:
    return name, None if port in DEFAULT_PORTS else port


def _arrived(server: Any) -> Authority | None:
    """Return the address that a connection arrived at: an IP address, which nobody can rebind."""
    if not server or server[1] is None:
        return None
    name, port = str(server[0]).partition("%")[0], server[1]
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        name = str(mapped) if mapped else f"[{address.compressed}]"
    return _normal(name, port)


# The rules. Each says why a request is refused, or None.


def _wrong_host(guard: Guard, asked: Asked) -> Refusal | None:
    text = asked.only("host")
    host = None if text is None else authority(text)
    if host is None:
        return Refusal(400, "the request does not name one host, as a browser's does")
    if host in guard.hosts or host == asked.server:
        return None
    return Refusal(
        421,
        f"the web UI does not answer to the host {_shown(text)}; where that is a name of this "
        "machine or of a proxy in front of it, start spanbench with --allow-host NAME",
    )


def _foreign_origin(guard: Guard, asked: Asked) -> Refusal | None:
    if asked.reads or "origin" not in asked.headers:
        return None
    text = asked.only("origin") or ""
    origin = _ORIGIN.fullmatch(text.lower())
    # Its own host, not any allowed one: another program may listen there, on another port.
    if origin and authority(origin[1]) == authority(asked.only("host") or ""):
        return None
    return Refusal(
        403,
        f"the request comes from another page ({_shown(text)}) than those of the host that it "
        "was sent to; a proxy in front of the web UI must pass on the Host header as it is",
    )


def _foreign_site(guard: Guard, asked: Asked) -> Refusal | None:
    values = {value.strip().lower() for value in asked.headers.get("sec-fetch-site", ())}
    if values <= {"same-origin", "none"}:
        return None
    followed = asked.only("sec-fetch-mode") == "navigate"
    if asked.reads and followed and asked.only("sec-fetch-dest") == "document":
        return None  # a link, which a person followed
    return Refusal(403, "another site's page may link to the web UI, and not use or embed it")


def _closed_reports(guard: Guard, asked: Asked) -> Refusal | None:
    if guard.reports or asked.endpoint not in REPORTS:
        return None
    return Refusal(
        403,
        "reporting assets from outside is closed, since what is reported would count as made; "
        "spanbench --allow-reports opens it",
    )


def _query_by_get(guard: Guard, asked: Asked) -> Refusal | None:
    if asked.endpoint != "graphql" or not asked.reads:
        return None
    # As Dagster decides between its page and a query.
    if "text/html" in next(iter(asked.headers.get("accept", ())), ""):
        return None
    return Refusal(405, "GraphQL is answered to POST with Content-Type: application/json alone")


def _not_json(guard: Guard, asked: Asked) -> Refusal | None:
    if asked.endpoint != "graphql" or asked.method != "POST":
        return None
    kind = (asked.only("content-type") or "").partition(";")[0].strip().lower()
    if kind in ("application/json", "application/graphql"):
        return None
    return Refusal(415, "GraphQL is answered to POST with Content-Type: application/json alone")


_RULES = (
    _wrong_host,
    _foreign_origin,
    _foreign_site,
    _closed_reports,
    _query_by_get,
    _not_json,
)


def _shown(text: str | None) -> str:
    return ascii((text or "")[:_SHOWN])


class Guarded:
    """An ASGI application behind a guard."""

    def __init__(self, application: Application, guard: Guard) -> None:
        self.application = application
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, handshake or event of the server's life."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        asked = Asked.of(scope)
        refusal = self.guard.refusal(asked)
        if refusal is not None:
            await _refuse(scope, refusal, send)
            return
        if asked.reads and asked.endpoint == "graphql":
            # Its page reads the address by itself; whatever Dagster makes of the request, there is
            # no query in it.
            scope = {**scope, "query_string": b""}

        async def sending(message: Message) -> None:
            await send(_with_headers(message))

        await self.application(scope, receive, sending)


def _with_headers(message: Message) -> Message:
    if message["type"] != "http.response.start":
        return message
    return {**message, "headers": [*message.get("headers", ()), *HEADERS]}


async def _refuse(scope: Scope, refusal: Refusal, send: Send) -> None:
    """Say why not; a WebSocket is closed before it opens where its server can say no more."""
    http = scope["type"] == "http"
    if not http and "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        return
    kind = "http.response" if http else "websocket.http.response"
    body = f"spanbench: {refusal.reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *HEADERS,
    ]
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    sent = b"" if http and scope["method"] == "HEAD" else body
    await send({"type": f"{kind}.body", "body": sent})
