"""Downloads from a real server on this machine that misbehaves as it is told."""

from __future__ import annotations

import http.server
import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import fetch
from spanbench_pipeline.corpora.archive import Provenance
from spanbench_pipeline.corpora.download import Download, download
from spanbench_pipeline_tests.corpora import builders

BODY = bytes(range(256)) * 4096  # 1 MiB
MEMBER = b'{"data": [' + b" " * 600_000 + b"]}"


@dataclass
class Behaviour:
    """What the server does with requests for /file; every request's headers are kept."""

    body: bytes = BODY
    break_after: list[int] = field(default_factory=list)
    """Bytes of the body that the first, second, ... request gets before the line is cut."""
    claim: int | None = None
    """A Content-Length that is not the body's."""
    no_length: bool = False
    status: list[int] = field(default_factory=list)
    """Error statuses that the first requests get."""
    seen: list[dict[str, str]] = field(default_factory=list)


class Handler(http.server.BaseHTTPRequestHandler):
    behaviour: Behaviour

    def do_GET(self) -> None:
        told = self.behaviour
        told.seen.append(dict(self.headers) | {"path": self.path})
        if self.path == "/moved":
            self.answer(302, {"Location": "/file"})
        elif self.path == "/elsewhere":
            self.answer(302, {"Location": "file:///etc/hostname"})
        elif self.path not in ("/file", "/data.zip"):
            self.answer(404, {})
        elif told.status:
            self.answer(told.status.pop(0), {})
        else:
            self.file(told)

    def file(self, told: Behaviour) -> None:
        headers = {} if told.no_length else {"Content-Length": str(told.claim or len(told.body))}
        self.answer(200, headers)
        self.wfile.write(told.body[: told.break_after.pop(0)] if told.break_after else told.body)

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@dataclass
class Server:
    url: str
    told: Behaviour


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    behaviour = Behaviour()
    handler = type("Told", (Handler,), {"behaviour": behaviour})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Server(f"http://127.0.0.1:{running.server_port}", behaviour)
        running.shutdown()
        thread.join()


@pytest.fixture
def job(server: Server, tmp_path: Path) -> Callable[..., Download]:
    def make(path: str = "/file", **more: Any) -> Download:
        settings = {"max_bytes": 2 << 20, "attempts": 3, "pause": 0.0, "timeout": 5.0} | more
        return Download(server.url + path, tmp_path / "file.zip", **settings)

    return make


def only(folder: Path, *names: str) -> bool:
    return sorted(p.name for p in folder.iterdir()) == sorted(names)


Job = Callable[..., Download]


def test_a_whole_file(server: Server, job: Job, tmp_path: Path) -> None:
    download(job())
    assert (tmp_path / "file.zip").read_bytes() == BODY
    assert only(tmp_path, "file.zip")


def test_a_redirect_is_followed(server: Server, job: Job, tmp_path: Path) -> None:
    download(job("/moved"))
    assert (tmp_path / "file.zip").read_bytes() == BODY
    assert [s["path"] for s in server.told.seen] == ["/moved", "/file"]


def test_a_redirect_to_a_local_file_is_not(job: Job, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be downloaded"):
        download(job("/elsewhere"))
    assert only(tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.org/a", "data:,x", "/a"])
def test_only_http_addresses(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="only http and https"):
        download(Download(url, tmp_path / "f", 10))
    assert only(tmp_path)


def test_a_transfer_that_breaks_off_is_begun_anew(server: Server, job: Job, tmp_path: Path) -> None:
    server.told.break_after = [len(BODY) // 2, 0]
    download(job())
    assert (tmp_path / "file.zip").read_bytes() == BODY
    assert only(tmp_path, "file.zip")
    assert len(server.told.seen) == 3


def test_nothing_is_kept_where_every_attempt_breaks_off(
    server: Server, job: Job, tmp_path: Path
) -> None:
    server.told.break_after = [300_000, 200_000, 100_000]
    with pytest.raises(InputError) as caught:
        download(job())
    for part in (job().url, "3 attempts failed", "100,000 of 1,048,576 bytes", "--archive"):
        assert part in str(caught.value)
    assert only(tmp_path)


def test_what_an_earlier_download_left_is_no_part_of_the_file(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file.zip.part").write_bytes(b"of unknown origin")
    download(job())
    assert (tmp_path / "file.zip").read_bytes() == BODY
    assert only(tmp_path, "file.zip")


def test_a_file_that_is_not_there(server: Server, job: Job, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/gone: cannot be downloaded: .* 404 Not Found"):
        download(job("/gone"))
    assert len(server.told.seen) == 1
    assert only(tmp_path)


def test_a_server_in_trouble_is_asked_again(server: Server, job: Job, tmp_path: Path) -> None:
    server.told.status = [503, 429]
    download(job())
    assert (tmp_path / "file.zip").read_bytes() == BODY


def test_a_server_that_stays_in_trouble(server: Server, job: Job, tmp_path: Path) -> None:
    server.told.status = [500] * 9
    with pytest.raises(InputError, match="3 attempts failed, the last one: the server answers 500"):
        download(job())
    assert len(server.told.seen) == 3
    assert only(tmp_path)


def test_a_server_that_is_not_there(job: Job, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/file"  # the discard port: nothing listens
    with pytest.raises(InputError, match=r"3 attempts failed.*refused"):
        download(Download(url, tmp_path / "f", 10, attempts=3, pause=0.0))
    assert only(tmp_path)


def test_a_length_that_the_body_never_reaches(server: Server, job: Job, tmp_path: Path) -> None:
    server.told.claim = len(BODY) + 5
    with pytest.raises(InputError, match="broke off at 1,048,576 of 1,048,581 bytes"):
        download(job())
    assert not (tmp_path / "file.zip").exists()


@pytest.mark.parametrize("no_length", [False, True])
def test_a_file_without_end(server: Server, job: Job, tmp_path: Path, no_length: bool) -> None:
    server.told.no_length = no_length
    with pytest.raises(InputError, match="longer than 1,000,000 bytes"):
        download(job(max_bytes=1_000_000))
    assert only(tmp_path)


def test_a_body_without_a_stated_length(server: Server, job: Job, tmp_path: Path) -> None:
    server.told.no_length = True
    download(job())
    assert (tmp_path / "file.zip").read_bytes() == BODY


def test_a_server_that_falls_silent(
    server: Server, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    straight = Handler.file

    def silent(self: Handler, told: Behaviour) -> None:
        if len(told.seen) == 1:
            self.answer(200, {"Content-Length": "10"})
            self.wfile.write(b"x")
            release.wait(10)
        else:
            straight(self, told)

    monkeypatch.setattr(Handler, "file", silent)
    try:
        download(job(timeout=0.2))
    finally:
        release.set()
    assert (tmp_path / "file.zip").read_bytes() == BODY


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "progress", "shown"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_the_bar_is_for_terminals_only(
    server: Server,
    job: Job,
    monkeypatch: pytest.MonkeyPatch,
    stderr: io.StringIO,
    progress: bool,
    shown: bool,
) -> None:
    monkeypatch.setattr("sys.stderr", stderr)
    download(job(progress=progress))
    assert ("file.zip: 100%" in stderr.getvalue()) is shown
    assert bool(stderr.getvalue()) is shown


# Fetching a bundle over the line


def bundle(tmp_path: Path) -> bytes:
    folder = tmp_path / "made"
    folder.mkdir()
    return builders.zipped(folder / "data.zip", CUADv1_json=MEMBER, other_json=b"x").read_bytes()


def fetched(url: str, folder: Path, sha256: str | None) -> Provenance:
    return fetch.fetch_bundle(
        fetch.CUAD,
        folder,
        "provenance.json",
        archive=None,
        sha256=sha256,
        url=url,
        progress=False,
        attempts=2,
        pause=0.0,
    )


def test_a_downloaded_bundle_leaves_member_and_record_only(server: Server, tmp_path: Path) -> None:
    server.told.body = bundle(tmp_path)
    server.told.break_after = [len(server.told.body) // 2]
    folder = tmp_path / "downloads" / "cuad"
    found = fetched(server.url + "/data.zip", folder, builders.sha256(MEMBER).upper())
    assert only(folder, "CUADv1.json", "provenance.json")
    assert (folder / "CUADv1.json").read_bytes() == MEMBER
    assert found == Provenance(
        archive="data.zip",
        archive_bytes=len(server.told.body),
        archive_sha256=builders.sha256(server.told.body),
        member="CUADv1.json",
        member_bytes=len(MEMBER),
        member_sha256=builders.sha256(MEMBER),
        official_member_sha256=fetch.CUAD.official_sha256,
        origin=server.url + "/data.zip",
    )
    assert found.to_bytes() == (folder / "provenance.json").read_bytes()


@pytest.mark.parametrize("sha256", [None, "0" * 64])
def test_a_downloaded_bundle_of_a_wrong_hash_leaves_nothing(
    server: Server, tmp_path: Path, sha256: str | None
) -> None:
    server.told.body = bundle(tmp_path)
    with pytest.raises(InputError) as caught:
        fetched(server.url + "/data.zip", tmp_path / "downloads" / "cuad", sha256)
    assert builders.sha256(MEMBER) in str(caught.value)
    assert (sha256 or fetch.CUAD.official_sha256) in str(caught.value)
    assert not (tmp_path / "downloads").exists()


def test_a_wrong_download_leaves_an_earlier_good_copy_untouched(
    server: Server, tmp_path: Path
) -> None:
    server.told.body = bundle(tmp_path)
    folder = tmp_path / "downloads" / "cuad"
    fetched(server.url + "/data.zip", folder, builders.sha256(MEMBER))
    before = builders.listing(folder)
    server.told.body = server.told.body[:-40]
    with pytest.raises(InputError, match="truncated"):
        fetched(server.url + "/data.zip", folder, builders.sha256(MEMBER))
    assert builders.listing(folder) == before


def test_a_length_short_of_the_file_gives_a_truncated_archive(
    server: Server, tmp_path: Path
) -> None:
    server.told.body = bundle(tmp_path)
    server.told.claim = len(server.told.body) - 40
    with pytest.raises(InputError, match="truncated"):
        fetched(server.url + "/data.zip", tmp_path / "downloads" / "cuad", builders.sha256(MEMBER))
    assert not (tmp_path / "downloads").exists()


def test_a_broken_download_leaves_nothing_and_the_next_fetch_succeeds(
    server: Server, tmp_path: Path
) -> None:
    server.told.body = bundle(tmp_path)
    size = len(server.told.body)
    server.told.break_after = [size // 3, size // 3]
    folder = tmp_path / "downloads" / "cuad"
    with pytest.raises(InputError, match="2 attempts failed"):
        fetched(server.url + "/data.zip", folder, builders.sha256(MEMBER))
    assert not folder.exists()
    fetched(server.url + "/data.zip", folder, builders.sha256(MEMBER))
    assert only(folder, "CUADv1.json", "provenance.json")
