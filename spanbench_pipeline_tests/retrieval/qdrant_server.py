"""A stand-in for a Qdrant server: the part of its REST interface that searches use, and faults.

It keeps points in plain dictionaries and shares no code with the client. Points of one score come
last id first, which no list may show.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


class Server(ThreadingHTTPServer):
    """Collections by name, what was asked of the server, and what it does wrong."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.collections: dict[str, dict[int, tuple[np.ndarray, dict]]] = {}
        self.asked: list[tuple[str, str, dict]] = []
        self.lose_points = False
        self.answer: tuple[int, str, bytes] | None = None
        """What it answers to everything, where that is not None: status, type, body."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, action: str) -> int:
        """How often an action was asked for, such as ``PUT points``."""
        return sum(f"{method} {what}" == action for method, what, _ in self.asked)

    def upload(self, name: str, body: dict) -> dict:
        batch = body["batch"]
        for number, vector, payload in zip(
            batch["ids"], batch["vectors"], batch["payloads"], strict=True
        ):
            unit = np.array(vector, np.float32)
            self.collections[name][number] = (unit / np.linalg.norm(unit), payload)
        if self.lose_points:
            self.collections[name].popitem()
        return {"operation_id": 0, "status": "completed"}

    def query(self, name: str, body: dict) -> dict:
        query = np.array(body["query"]["nearest"], np.float32)
        query /= np.linalg.norm(query)
        conditions = (body.get("filter") or {}).get("must", [])
        found = [
            {"id": number, "version": 0, "score": float(vector @ query)}
            for number, (vector, payload) in self.collections[name].items()
            if all(payload.get(c["key"]) == c["match"]["value"] for c in conditions)
        ]
        found.sort(key=lambda point: (-point["score"], -point["id"]))
        return {"points": found[: body["limit"]]}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def handle_any(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = re.fullmatch(r"/collections(?:/([^/?]+))?(?:/([a-z/]+))?(?:\?.*)?", self.path)
        assert path is not None, self.path
        name, what = path[1] or "", path[2] or ""
        self.server.asked.append((self.command, what, body))
        if self.server.answer is not None:
            self.reply(*self.server.answer)
            return
        result = self.result(name, f"{self.command} {what}", body)
        self.reply(200, "application/json", json.dumps({"result": result}).encode())

    do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

    def result(self, name: str, action: str, body: dict) -> object:
        collections = self.server.collections
        if action == "GET " and not name:
            return {"collections": [{"name": known} for known in collections]}
        if action == "GET exists":
            return {"exists": name in collections}
        if action == "PUT ":
            assert body["vectors"]["distance"] == "Cosine"
            collections[name] = {}
            return True
        if action == "DELETE ":
            return collections.pop(name, None) is not None
        if action == "PUT index":
            return {"operation_id": 0, "status": "completed"}
        if action == "PUT points":
            return self.server.upload(name, body)
        if action == "POST points/count":
            return {"count": len(collections[name])}
        assert action == "POST points/query", action
        return self.server.query(name, body)

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running() -> Iterator[Server]:
    """A server on a free port, stopped on leaving the block."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
