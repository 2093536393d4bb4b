"""Where a web UI is to be served, and under which names: refused before anything starts."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass, replace

from spanbench_pipeline.config.operations import Web
from spanbench_pipeline.core import guard
from spanbench_pipeline.core.errors import InputError

MAX_PORT = 65535


@dataclass(frozen=True)
class Address:
    """Where the web server listens, and what its guard lets through beyond that (see ``guard``)."""

    host: str
    port: int
    allowed: tuple[str, ...] = ()
    reports: bool = False

    @property
    def url(self) -> str:
        """Return what to type into a browser on this machine."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def arguments(self) -> list[str]:
        """Return the same for ``spanbench_pipeline.pipeline.ui.webserver``."""
        names = [f"--allow-host={name}" for name in self.allowed]
        reports = ["--allow-reports"] if self.reports else []
        return [f"--host={self.host}", f"--port={self.port}", *names, *reports]


def checked(address: Address, settings: Web) -> Address:
    """Return the address with what operations.toml lets through as well.

    Raises InputError where nothing can listen there, or a name is none of a host.
    """
    require_free(address.host, address.port)
    whole = replace(
        address,
        allowed=(*address.allowed, *settings.allow_hosts),
        reports=address.reports or settings.allow_reports,
    )
    guard.guard(whole.host, whole.port, whole.allowed)
    return whole


def require_free(host: str, port: int) -> None:
    """Raise InputError where nothing can listen on ``host``:``port``."""
    if not 0 <= port <= MAX_PORT:
        raise InputError(f"--port {port} must be in [0, {MAX_PORT}]")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except (OSError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise InputError(
            f"{host}:{port} cannot be served: {told}; give another --host or --port"
        ) from error


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where to listen and what to let through."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, default=3000, help="port to listen on (default: 3000)")
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="accept this host name as well, as in the browser's address: NAME or NAME:PORT; for "
        "a proxy "
        "in front, and for other machines (may be given several times)",
    )
    parser.add_argument(
        "--allow-reports",
        action="store_true",
        help="allow other tools to report to Dagster that an asset was made or checked",
    )


def address_of(parsed: argparse.Namespace) -> Address:
    """Return the address that these arguments give."""
    names = tuple(parsed.allow_host or ())
    return Address(parsed.host, parsed.port, names, parsed.allow_reports)
