"""A model hub on this machine: as much of the public one's interface as its library asks for."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What the server has (model -> file -> bytes), what it was asked for, and how it fails.

    ``breaks_off`` is a file of which it sends half, and then answers nothing any more.
    """

    models: Mapping[str, Mapping[str, bytes]]
    breaks_off: str | None = None
    asked: list[str] = field(default_factory=list)
    dead: bool = False
    url: str = ""


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """The hub behind an address of its own, until the block ends."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0])
        self.hub.asked.append(path)
        if self.hub.dead:
            self.close_connection = True
            return
        file = re.fullmatch(r"/(.+)/resolve/[^/]+/(.+)", path)
        api = re.fullmatch(r"/api/models/(.+?)(/revision/[^/]+|/tree/[^/]+)?", path)
        if file:
            self.file(*file.groups())
        elif api and api[1] in self.hub.models:
            self.listing(api[1], tree=(api[2] or "").startswith("/tree"))
        else:
            self.missing("RepoNotFound")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass

    def listing(self, model: str, *, tree: bool) -> None:
        files = self.hub.models[model]
        if tree:
            self.json(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": _etag(data)}
                    for name, data in files.items()
                ]
            )
        else:
            siblings = [{"rfilename": name} for name in files]
            self.json({"id": model, "modelId": model, "sha": COMMIT, "siblings": siblings})

    def file(self, model: str, name: str) -> None:
        data = self.hub.models.get(model, {}).get(name)
        if data is None:
            self.missing("EntryNotFound")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{_etag(data)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "HEAD":
            return
        if name == self.hub.breaks_off:
            self.hub.dead = True
            self.close_connection = True
            data = data[: len(data) // 2]
        self.wfile.write(data)

    def json(self, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def missing(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
