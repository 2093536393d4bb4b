"""A mail server and a webhook on this machine that keep what they are sent, for tests."""

from __future__ import annotations

import base64
import email
import email.policy
import http.server
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

CERTIFICATE = Path(__file__).with_name("sink_certificate.pem")
"""Signed by itself, for 127.0.0.1, with its key: of no use but to these tests."""


class MailSink(socketserver.ThreadingTCPServer):
    """Speaks enough SMTP to be sent mail: EHLO, STARTTLS, AUTH PLAIN, MAIL, RCPT, DATA."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, security: str = "none", login: tuple[str, str] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _MailSession)
        self.security = security
        self.login = login
        self.refused: set[str] = set()
        self.refused_texts: dict[str, str] = {}
        """A text in a message -> the answer to it; "" closes the connection."""
        self.messages: list[EmailMessage] = []
        self.encrypted: list[bool] = []

    @property
    def port(self) -> int:
        return self.server_address[1]


class _MailSession(socketserver.StreamRequestHandler):
    server: MailSink

    def setup(self) -> None:
        if self.server.security == "tls":
            self.request = _tls(self.request)
        super().setup()

    def say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self) -> None:
        self.secure = self.server.security == "tls"
        self.known = self.server.login is None
        self.say("220 sink")
        while line := self.rfile.readline().decode().strip():
            verb, _, rest = line.partition(" ")
            answer = getattr(self, f"do_{verb.lower()}", None)
            if answer is None:
                self.say("502 unknown")
            elif answer(rest) is False:
                return

    def do_ehlo(self, _: str) -> None:
        self.say("250-sink")
        if self.server.security == "starttls" and not self.secure:
            self.say("250-STARTTLS")
        self.say("250 AUTH PLAIN")

    def do_starttls(self, _: str) -> None:
        self.say("220 go ahead")
        self.request = _tls(self.request)
        self.secure = True
        super().setup()

    def do_auth(self, rest: str) -> None:
        _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
        self.known = (user, password) == self.server.login
        # A real server may repeat what it was given.
        self.say("235 welcome" if self.known else f"535 wrong: {user} {password}")

    def do_mail(self, _: str) -> None:
        self.say("250 ok" if self.known else "530 log in first")

    def do_rcpt(self, rest: str) -> None:
        self.say("550 nobody" if any(r in rest for r in self.server.refused) else "250 ok")

    def do_data(self, _: str) -> bool:
        self.say("354 go ahead")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        text = b"".join(lines).decode()
        for answer in (a for part, a in self.server.refused_texts.items() if part in text):
            if answer:
                self.say(answer)
            return bool(answer)
        parsed = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.server.messages.append(parsed)
        self.server.encrypted.append(self.secure)
        self.say("250 taken")
        return True

    def do_rset(self, _: str) -> None:
        self.say("250 ok")

    def do_quit(self, _: str) -> bool:
        self.say("221 bye")
        return False


def _tls(connection: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context.wrap_socket(connection, server_side=True)


class WebhookSink(http.server.ThreadingHTTPServer):
    """Takes POSTed JSON, or answers with ``status``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _WebhookSession)
        self.status = 200
        self.refused_texts: dict[str, int] = {}
        """A text in a message -> the status that answers it."""
        self.posts: list[Any] = []
        self.other_requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/T0KEN"


class _WebhookSession(http.server.BaseHTTPRequestHandler):
    server: WebhookSink

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = (s for part, s in self.server.refused_texts.items() if part in body["text"])
        status = next(refused, self.server.status)
        if status == 200 and self.headers["Content-Type"] == "application/json":
            self.server.posts.append(body)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.other_requests += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """Serves in a thread for as long as the block runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
