"""One file over HTTP: with progress, resumed where it broke off, or begun anew where it must be.

What is there of an unfinished file lies beside the target as ``<name>.part``, with a record
``<name>.part.json`` of what the server said of it. It is continued only if the server confirms
that the file is still the same one (If-Range); in every other case it is begun anew.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from spanbench_pipeline.core.errors import InputError

BLOCK = 1 << 18
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Broken(Exception):
    """The transfer broke off, or never began; another attempt may succeed."""


class _Changed(Exception):
    """The server no longer has the file that the part is of; it must be begun anew."""


@dataclass(frozen=True)
class Download:
    """What to bring, and how patiently.

    ``attempts`` in all, the pause before each further one doubling from ``pause`` seconds;
    ``timeout`` in seconds without a byte; at most ``max_bytes`` are taken. ``progress`` shows a
    bar on stderr if that is a terminal.
    """

    url: str
    target: Path
    max_bytes: int
    progress: bool = True
    attempts: int = 5
    pause: float = 0.5
    timeout: float = 30.0

    @property
    def part(self) -> Path:
        """Return what there is of the file so far."""
        return self.target.with_name(self.target.name + ".part")

    @property
    def record(self) -> Path:
        """Return what the server said of the file that the part is of."""
        return self.target.with_name(self.target.name + ".part.json")

    def discard(self) -> None:
        """Remove the unfinished file and its record."""
        self.part.unlink(missing_ok=True)
        self.record.unlink(missing_ok=True)


def download(job: Download) -> None:
    """Bring ``job.url`` to ``job.target``; the target appears only when the file is complete.

    Raises InputError for another scheme than http and https, for a status that says the file is
    not to be had, for a file longer than ``max_bytes``, and when every attempt broke off; what
    came until then is kept, and the next call continues it.
    """
    if urlsplit(job.url).scheme not in ("http", "https"):
        raise InputError(f"{job.url}: only http and https addresses can be downloaded")
    pause = job.pause
    for attempt in range(1, job.attempts + 1):
        try:
            _attempt(job)
            break
        except _Changed:
            job.discard()
        except _Broken as error:
            if attempt == job.attempts:
                raise _given_up(job, error) from error
            time.sleep(pause)
            pause *= 2
    else:
        raise InputError(f"{job.url}: the file keeps changing while it is downloaded; try later")
    job.part.replace(job.target)
    job.record.unlink(missing_ok=True)


def _attempt(job: Download) -> None:
    """Send one request, and append its body to the partial file, or replace that file."""
    have, known = _so_far(job)
    try:
        with _opener().open(_request(job, have, known), timeout=job.timeout) as response:
            total = _begin(job, response, have, known)
            _receive(job, response, total)
    except urllib.error.HTTPError as error:
        with error:
            raise _status_error(job, error) from error
    except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
        raise _Broken(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _opener() -> urllib.request.OpenerDirector:
    """HTTP and HTTPS only: a redirect must lead to no file and no other protocol."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _so_far(job: Download) -> tuple[int, Mapping[str, Any]]:
    """Return the bytes that can be continued, and the record of their file; 0 where there are
    none.
    """
    try:
        known = json.loads(job.record.read_bytes())
        if known["url"] == job.url:
            return job.part.stat().st_size, known
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no part, or one that nothing is known of: begin anew
    return 0, {}


def _request(job: Download, have: int, known: Mapping[str, Any]) -> urllib.request.Request:
    headers = {"User-Agent": "spanbench", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": known["validator"]}
    return urllib.request.Request(job.url, headers=headers)


def _begin(job: Download, response: Any, have: int, known: Mapping[str, Any]) -> int | None:
    """Make the part ready for the response's body; the whole file's size, None if not told."""
    if response.status == 206:
        expected = f"bytes {have}-", f"/{known.get('total')}"
        given = response.headers.get("Content-Range", "")
        if not have or not (given.startswith(expected[0]) and given.endswith(expected[1])):
            raise _Changed
        return int(known["total"])
    job.discard()
    total = response.length  # Content-Length, None where it is absent or no number
    validator = _validator(response.headers)
    if validator and total is not None:  # else it could not be continued
        record = {"url": job.url, "validator": validator, "total": total}
        job.record.write_text(json.dumps(record), encoding="utf-8")
    return None if total is None else int(total)


def _validator(headers: Mapping[str, str]) -> str | None:
    """Return what If-Range may be given: a strong ETag, else the time of the last change."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _receive(job: Download, response: Any, total: int | None) -> None:
    """Append the body to the part; _Broken where it ends before ``total``."""
    with (
        job.part.open("ab") as out,
        tqdm(
            desc=job.target.name,
            total=total,
            initial=out.tell(),
            unit="B",
            unit_scale=True,
            disable=None if job.progress else True,
        ) as bar,
    ):
        while block := response.read(BLOCK):
            if out.tell() + len(block) > job.max_bytes:
                break
            out.write(block)
            bar.update(len(block))
        have = out.tell()
    if block:
        job.discard()
        raise InputError(f"{job.url}: longer than {job.max_bytes:,} bytes: refused, nothing kept")
    if total is not None and have != total:
        raise _Broken(f"it broke off at {have:,} of {total:,} bytes")


def _status_error(job: Download, error: urllib.error.HTTPError) -> Exception:
    if error.code == 416:  # the part is longer than the file that the server has now
        return _Changed()
    if error.code in RETRIED_STATUS:
        return _Broken(f"the server answers {error.code} {error.reason}")
    return InputError(
        f"{job.url}: cannot be downloaded: the server answers {error.code} {error.reason}"
    )


def _given_up(job: Download, error: Exception) -> InputError:
    have, _ = _so_far(job)
    if not have:
        job.discard()
    kept = f" {have:,} bytes are kept; run the same command again to continue." if have else ""
    return InputError(
        f"{job.url}: cannot be downloaded, {job.attempts} attempts failed, the last one: "
        f"{error}.{kept}"
    )
