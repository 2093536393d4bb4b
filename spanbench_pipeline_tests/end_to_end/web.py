"""A running web UI and a browser to look at it with."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, sync_playwright

from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT
from spanbench_pipeline_tests.support import sinks

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP foreign.test 127.0.0.1",
)
FOREIGN = "foreign.test"
"""A name that the browser takes to this machine, as a page's own could be made to."""
START, RUN, LOOK = 180.0, 180_000.0, 45_000.0
"""Seconds to start; milliseconds that a run and that a page may take on a busy machine."""

LOADED = """{ workspaceOrError { ... on Workspace {
  locationEntries { locationOrLoadError { __typename } } } } }"""


def browser_path() -> str:
    """The system's Chromium; the test is skipped without one."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    return found


@contextmanager
def open_page(width: int = 1400, height: int = 1000) -> Iterator[Page]:
    """A page of the system's Chromium."""
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(LOOK)
        yield page
        browser.close()


@contextmanager
def another_page(html: str) -> Iterator[str]:
    """Another program of this machine that serves one page; yields its address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    with sinks.running(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


@contextmanager
def serve(home: Path, log: Path) -> Iterator[str]:
    """``spanbench ui`` on a free port; yields its address, and ends all that it started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "spanbench_pipeline.cli.main", "--home", str(home)]
    with log.open("w") as written:
        process = subprocess.Popen(
            [*command, "ui", "--port", str(port)],
            stdout=written,
            stderr=subprocess.STDOUT,
            cwd=CHECKOUT,
            start_new_session=True,
        )
    try:
        _wait(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(process)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the webserver answers and has loaded the project's definitions."""
    until = time.monotonic() + START
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            if '"RepositoryLocation"' in _ask(address, LOADED):
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"no definitions at {address}\n{log.read_text()}")


def _ask(address: str, query: str) -> str:
    request = urllib.request.Request(
        f"{address}/graphql",
        data=json.dumps({"query": query}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupts the UI and its children, and kills those that stay."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            continue
    process.wait(15)


@dataclass(frozen=True)
class Ui:
    """A page on a running UI, and the folder for what it looked like."""

    page: Page
    address: str
    output: Path

    def open(self, path: str) -> None:
        """Opens a path of the UI."""
        self.page.goto(self.address + path)

    def asset(self, *key: str, view: str = "overview") -> None:
        """Opens the page of an asset."""
        self.open(f"/assets/{'/'.join(key)}?view={view}")

    def see(self, text: str, *, exact: bool = False) -> Locator:
        """Waits until ``text`` is to be seen, and returns where."""
        found = self.page.get_by_text(text, exact=exact).locator("visible=true").first
        found.wait_for()
        return found

    def metadata(self, title: str) -> Locator:
        """The row of the metadata table with that title."""
        row = self.page.locator("tr", has=self.page.get_by_text(title, exact=True)).last
        row.wait_for()
        return row

    def press(self, label: str) -> None:
        """Clicks the button of that label, once it can be clicked."""
        self.page.locator("button:enabled", has_text=label).locator("visible=true").first.click()

    def succeeds(self, runs: int) -> None:
        """Waits on the page of runs until so many have succeeded."""
        self.open("/runs")
        self.page.get_by_text("Success", exact=True).nth(runs - 1).wait_for(timeout=RUN)

    def dialog(self, title: str) -> Locator:
        """Opens what the metadata row of that title holds behind a link."""
        self.metadata(title).get_by_text("[Show Markdown]").click()
        found = self.page.get_by_role("dialog")
        found.get_by_text("Close").wait_for()
        return found

    def drawn_width(self, where: Locator) -> int:
        """The width of the picture there as it came from its data; fails where it did not load."""
        picture = where.locator("img").first
        picture.wait_for()
        assert picture.evaluate("image => image.decode().then(() => image.complete)")
        width: int = picture.evaluate("image => image.naturalWidth")
        return width

    def launchpad(self, config: str, name: str) -> None:
        """Opens the launchpad of the asset on the page, gives ``config`` and launches it."""
        arrow = self.page.locator("button", has_text="Materialize").first
        arrow.locator("xpath=following::button[1]").click()
        self.page.get_by_role("menuitem").filter(has_text="Open launchpad").click()
        editor = self.page.get_by_role("dialog").locator(".CodeMirror").first
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(config)
        self.see("No errors")
        self.keep(name)
        dialog = self.page.get_by_role("dialog")
        dialog.locator("button:enabled", has_text="Materialize").click()
        self.page.wait_for_timeout(2_000)  # until it is launched: in which tab, Dagster decides

    def keep(self, name: str) -> None:
        """Keeps what the page looks like."""
        self.page.wait_for_timeout(700)  # until what slides and fades stands still
        self.page.screenshot(path=self.output / f"{name}.png")


def output_folder() -> Path:
    """Where pictures are kept: SPANBENCH_TEST_OUTPUT, else test-output/ of the checkout."""
    folder = Path(os.environ.get("SPANBENCH_TEST_OUTPUT") or CHECKOUT / "test-output") / "web-ui"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
