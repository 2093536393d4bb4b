"""Where a web UI is to be served: refused before anything starts where it cannot be."""

from __future__ import annotations

import socket

from spanbench_pipeline.errors import InputError

MAX_PORT = 65535


def require_free(host: str, port: int) -> None:
    """Raises InputError where nothing can listen on ``host``:``port``."""
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
