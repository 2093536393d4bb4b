"""The web UI's guard: what it lets through and what not, at the level of ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from spanbench_pipeline.core import guard as guards
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.guard import Guarded, authority

PORT = 3000
HOST = f"127.0.0.1:{PORT}"
JSON = ("content-type", "application/json")
MUTATION = b"query=mutation%7BwipeAssets%7D"
Headers = Iterable[tuple[str, str]]


class Application:
    """Answers everything with its path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(dict(scope))
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        elif scope["type"] == "http":
            headers = [(b"content-security-policy", b"base-uri 'none'")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": scope["path"].encode()})


def ask(
    method: str = "GET",
    path: str = "/",
    headers: Headers = (),
    *,
    host: str | None = HOST,
    query: bytes = b"",
    server: tuple[str, int] | None = ("127.0.0.1", PORT),
    extensions: dict[str, Any] | None = None,
    guard: guards.Guard | None = None,
) -> tuple[int | str, list[dict[str, Any]], list[dict[str, Any]]]:
    """The status or kind of the first message, all messages, and what reached the application."""
    application = Application()
    sent: list[dict[str, Any]] = []
    named = [("host", host)] if host is not None else []
    scope: dict[str, Any] = {
        "type": "websocket" if method == "WEBSOCKET" else "http",
        "path": path,
        "query_string": query,
        "server": server,
        "headers": [(k.encode(), v.encode("latin-1")) for k, v in (*named, *headers)],
    }
    if method != "WEBSOCKET":
        scope["method"] = method
    if extensions is not None:
        scope["extensions"] = extensions

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    guarded = Guarded(application, guard or guards.guard("127.0.0.1", PORT))
    asyncio.run(guarded(scope, receive, send))
    return sent[0].get("status", sent[0]["type"]), sent, application.asked


def status(*arguments: Any, **named: Any) -> int | str:
    first, sent, asked = ask(*arguments, **named)
    refused = first not in (200, "websocket.accept")
    assert refused == (asked == []), "what is refused must not reach the application"
    if isinstance(first, int) and refused and arguments[:1] != ("HEAD",):
        assert sent[1]["body"].startswith(b"spanbench: ")
    return first


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        (HOST, 200),
        ("localhost:3000", 200),
        ("LOCALHOST:3000", 200),
        ("[::1]:3000", 200),
        ("[0:0:0:0:0:0:0:1]:3000", 200),
        ("evil.com", 421),
        ("evil.com:3000", 421),
        ("localhost", 421),
        ("localhost:8000", 421),
        ("localhost.evil.com:3000", 421),
        ("evil-localhost:3000", 421),
        ("127.0.0.1.evil.com:3000", 421),
        ("127.1:3000", 421),
        ("2130706433:3000", 421),
        ("0x7f000001:3000", 421),
        ("10.0.0.5:3000", 421),
        ("localhost.:3000", 400),
        ("localhost:3000@evil.com", 400),
        ("evil.com, localhost:3000", 400),
        ("localhost:3000/", 400),
        ("localhost:3000 ", 400),
        ("localhost:", 400),
        ("localhost:-3000", 400),
        ("localhost:3000:3000", 400),
        ("localhost:٣٠٠٠".encode().decode("latin-1"), 400),
        ("[::1", 400),
        ("[::g]:3000", 400),
        ("", 400),
        (None, 400),
    ],
)
def test_it_answers_to_its_own_hosts_alone(host: str | None, wanted: int):
    for method, path in (("GET", "/"), ("HEAD", "/logs/x.out"), ("POST", "/graphql")):
        assert status(method, path, [JSON], host=host) == wanted
    if wanted != 200:
        assert status("WEBSOCKET", "/graphql", host=host) == "websocket.close"


def test_two_hosts_are_no_host():
    for second in ("evil.com", HOST):
        assert status("GET", "/", [("host", second)]) == 400
        assert status("GET", "/", [("Host", second)]) == 400


def test_it_answers_to_the_address_that_a_connection_arrived_at():
    everywhere = guards.guard("0.0.0.0", PORT)
    for arrived, host in (
        ("192.168.1.5", "192.168.1.5:3000"),
        ("::ffff:192.168.1.5", "192.168.1.5:3000"),
        ("fe80::1%eth0", "[fe80::1]:3000"),
    ):
        server = (arrived, PORT)
        assert status(host=host, server=server, guard=everywhere) == 200
        assert status(host=host.replace("3000", "3001"), server=server, guard=everywhere) == 421
        assert status(host="evil.com:3000", server=server, guard=everywhere) == 421
    assert status(host="192.168.1.6:3000", server=("192.168.1.5", PORT), guard=everywhere) == 421
    # A name, as a socket in the file system has one, is nobody's address.
    assert status(host="evil.com:3000", server=("evil.com", PORT), guard=everywhere) == 421
    assert status(host="evil.com:3000", server=None, guard=everywhere) == 421


def test_names_are_allowed_without_port_with_the_servers_and_with_their_own():
    guard = guards.guard("127.0.0.1", PORT, ["Bench.example.com", "tunnel:8080", "::2", "[::3]:99"])
    allowed = {
        "bench.example.com": 200,
        "BENCH.example.com:443": 200,
        "bench.example.com:3000": 200,
        "bench.example.com:8000": 421,
        "a.bench.example.com": 421,
        "tunnel:8080": 200,
        "tunnel": 421,
        "tunnel:3000": 421,
        "[::2]": 200,
        "[::3]:99": 200,
        "[::3]": 421,
    }
    assert {host: status(host=host, guard=guard) for host in allowed} == allowed
    assert status(host="localhost", guard=guards.guard("127.0.0.1", 80)) == 200


@pytest.mark.parametrize(
    "name", ["", "*", "*.example.com", "http://a", "a/b", "a b", "a:b", "münchen.de", "a.", "u@a"]
)
def test_what_is_no_name_of_a_host_is_refused(name: str):
    with pytest.raises(InputError, match="no name of a host"):
        guards.guard("127.0.0.1", PORT, [name])


FOREIGN = (
    "http://evil.com",
    "http://localhost:3000",  # ours, but not the host that was asked
    "http://127.0.0.1",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:3000.evil.com",
    "http://127.0.0.1:3000@evil.com",
    "http://evil.com/127.0.0.1:3000",
    "ftp://127.0.0.1:3000",
    "127.0.0.1:3000",
    "http://127.0.0.1:3000/",
    "http://127.0.0.1:3000 http://evil.com",
    "chrome-extension://abc",
    "null",
    "",
)


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_pages_writes_and_sockets_are_refused(origin: str):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "get", "X"):
        assert status(method, "/graphql", [JSON, ("origin", origin)]) == 403
    assert status("WEBSOCKET", "/graphql", [("origin", origin)]) == "websocket.close"
    assert status("POST", "/anything", [("origin", origin)]) == 403


def test_our_own_pages_and_tools_get_through():
    own = ("origin", f"http://{HOST}")
    assert status("POST", "/graphql", [JSON, own]) == 200
    assert status("POST", "/graphql", [JSON, ("origin", f"HTTP://{HOST}")]) == 200
    assert status("POST", "/graphql", [JSON, own, ("sec-fetch-site", "same-origin")]) == 200
    assert status("POST", "/graphql", [("content-type", "application/json; charset=utf-8")]) == 200
    assert status("WEBSOCKET", "/graphql", [own]) == "websocket.accept"
    assert status("WEBSOCKET", "/graphql") == "websocket.accept"
    assert status("POST", "/graphql", [JSON, own, ("origin", "http://evil.com")]) == 403
    assert status("POST", "/graphql", [JSON, own, own]) == 403
    # Behind a proxy that ends TLS and passes the host on.
    guard = guards.guard("127.0.0.1", PORT, ["bench.example.com"])
    proxied = [JSON, ("origin", "https://bench.example.com")]
    assert status("POST", "/graphql", proxied, host="bench.example.com", guard=guard) == 200
    assert status("POST", "/graphql", proxied, guard=guard) == 403


def test_other_sites_may_link_and_nothing_else():
    for site in ("cross-site", "same-site", "same-origin, cross-site", "?"):
        foreign = ("sec-fetch-site", site)
        for mode, dest in (
            ("no-cors", "image"),
            ("no-cors", "script"),
            ("cors", "empty"),
            ("navigate", "iframe"),
            ("navigate", "object"),
            ("navigate", ""),
        ):
            fetched = [foreign, ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)]
            assert status("GET", "/download_debug/x", fetched) == 403
        link = [foreign, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]
        assert status("GET", "/runs/x", link) == 200
        assert status("POST", "/graphql", [JSON, *link]) == 403
        assert status("POST", "/graphql", [JSON, foreign]) == 403
    assert status("GET", "/", [("sec-fetch-site", "none")]) == 200
    assert status("GET", "/", [("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")]) == 403


@pytest.mark.parametrize("path", ["/graphql", "//graphql", "/graphql/", "/GraphQL", "/graphql/x"])
def test_no_query_is_answered_to_a_get(path: str):
    for accept in ([], [("accept", "*/*")], [("accept", "image/png"), ("accept", "text/html")]):
        assert status("GET", path, accept, query=MUTATION) == 405
        assert status("HEAD", path, accept, query=MUTATION) == 405
    # GraphiQL's page, and no query in it.
    code, _, asked = ask("GET", path, [("accept", "text/html,*/*")], query=MUTATION)
    assert code == 200
    assert [scope["query_string"] for scope in asked] == [b""]


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "text/plain; a=application/json", "multipart/form-data", ""]
)
def test_a_posted_query_is_json(kind: str | None):
    headers = [("content-type", kind)] if kind is not None else []
    assert status("POST", "/graphql", headers, query=MUTATION) == 415
    assert status("POST", "/graphql", [JSON, ("content-type", "text/plain")]) == 415


@pytest.mark.parametrize("report", guards.REPORTS)
def test_reports_of_assets_are_closed_unless_asked_for(report: str):
    opened = guards.guard("127.0.0.1", PORT, reports=True)
    for path in (
        f"/{report}/sample/documents",
        f"//{report}/x",
        f"/{report}",
        f"/{report.upper()}/",
    ):
        assert status("POST", path, [JSON]) == 403
        assert status("GET", path) == 403
        assert status("POST", path, [JSON], guard=opened) == 200
        assert status("POST", path, [JSON, ("origin", "http://evil.com")], guard=opened) == 403
    assert status("GET", f"/assets/{report}") == 200


def test_every_answer_says_that_it_may_not_be_framed_and_keeps_its_own_policy():
    for path, code in (("/", 200), ("/report_asset_check/x", 403)):
        first, sent, _ = ask("GET", path)
        assert first == code
        headers = sent[0]["headers"]
        policies = [value for name, value in headers if name == b"content-security-policy"]
        assert b"frame-ancestors 'self'" in policies
        assert (b"base-uri 'none'" in policies) == (code == 200)
        assert (b"x-frame-options", b"SAMEORIGIN") in headers


def test_a_refused_socket_says_why_where_its_server_can():
    evil = [("origin", "http://evil.com")]
    extension = {"websocket.http.response": {}}
    code, sent, asked = ask("WEBSOCKET", "/graphql", evil, extensions=extension)
    assert (code, asked) == (403, [])
    assert [message["type"] for message in sent] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    _, sent, _ = ask("WEBSOCKET", "/graphql", evil, extensions={})
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_the_server_starts_and_stops_through_the_guard():
    application = Application()
    asyncio.run(
        Guarded(application, guards.guard("127.0.0.1", PORT))({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
    )
    assert [scope["type"] for scope in application.asked] == ["lifespan"]


def test_what_a_refusal_repeats_is_short_and_plain():
    _, sent, _ = ask(host="a" * 5000)
    assert len(sent[1]["body"]) < 500
    _, sent, _ = ask("POST", "/", [("origin", "\x1b[31m<script>é\r")])
    assert sent[1]["body"].isascii()
    assert b"\x1b" not in sent[1]["body"]


def test_an_authority_is_a_host_and_its_port():
    assert authority("A.example:8080") == ("a.example", 8080)
    assert authority("a:443") == authority("a") == ("a", None)
    assert authority("[::ffff:1.2.3.4]:1") == ("[::ffff:102:304]", 1)
