"""Download one file over HTTP: several attempts, a progress bar, and never half a file.

pooch is not used: the hash that is known is that of the archive's member, not of the archive, and
``pooch.retrieve`` neither repeats an attempt nor limits what it takes.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
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


def download(job: Download) -> None:
    """Bring ``job.url`` to ``job.target``; the target appears only when the file is complete.

    Raise InputError for another scheme than http and https, for a status that says the file is
    not to be had, for a file longer than ``max_bytes``, and when every attempt broke off; nothing
    is kept then.
    """
    if urlsplit(job.url).scheme not in ("http", "https"):
        raise InputError(f"{job.url}: only http and https addresses can be downloaded")
    part = job.target.with_name(job.target.name + ".part")
    pause = job.pause
    try:
        for attempt in range(1, job.attempts + 1):
            try:
                _attempt(job, part)
                break
            except _Broken as error:
                if attempt == job.attempts:
                    raise _given_up(job, error) from error
            time.sleep(pause)
            pause *= 2
        part.replace(job.target)
    finally:
        part.unlink(missing_ok=True)


def _attempt(job: Download, part: Path) -> None:
    """Send one request, and write its body to ``part``."""
    headers = {"User-Agent": "spanbench", "Accept-Encoding": "identity"}
    request = urllib.request.Request(job.url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=job.timeout) as response:
            _receive(job, part, response)
    except urllib.error.HTTPError as error:
        with error:
            raise _status_error(job, error) from error
    except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
        raise _Broken(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _receive(job: Download, part: Path, response: Any) -> None:
    """Write the body to the part; _Broken where it ends before its stated length."""
    total = response.length  # Content-Length, None where it is absent or no number
    hidden = None if job.progress else True
    with (
        part.open("wb") as out,
        tqdm(
            desc=job.target.name, total=total, unit="B", unit_scale=True, disable=hidden
        ) as progress_bar,
    ):
        while block := response.read(BLOCK):
            if out.tell() + len(block) > job.max_bytes:
                raise InputError(
                    f"{job.url}: longer than {job.max_bytes:,} bytes: refused, nothing kept"
                )
            out.write(block)
            progress_bar.update(len(block))
        size = out.tell()
    if total is not None and size != total:
        raise _Broken(f"it broke off at {size:,} of {total:,} bytes")


def _status_error(job: Download, error: urllib.error.HTTPError) -> Exception:
    answer = f"the server answers {error.code} {error.reason}"
    if error.code in RETRIED_STATUS:
        return _Broken(answer)
    return InputError(f"{job.url}: cannot be downloaded: {answer}")


def _given_up(job: Download, error: Exception) -> InputError:
    return InputError(
        f"{job.url}: cannot be downloaded, {job.attempts} attempts failed, the last one: {error}. "
        "Run the command again, or give a local copy with --archive PATH."
    )
