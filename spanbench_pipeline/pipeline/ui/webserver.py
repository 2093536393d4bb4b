"""The web server's process: Dagster's webserver application behind our guard.

``python -m spanbench_pipeline.pipeline.ui.webserver``, which ``spanbench ui`` and ``spanbench
serve`` start in the place of ``dagster-webserver``. It is the only process that
listens for browsers, so there is no way around the guard; a proxy in front would leave Dagster's
own port open.

Dagster promises nothing of what is imported here beyond ``DagsterInstance``: its webserver's
command line is made of the same parts (``dagster_webserver.cli``), and a test holds that they are
as they were. Where an upgrade changes one, this fails to start rather than start unguarded.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from dagster._cli.utils import get_instance_for_cli
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.interrupts import setup_interrupt_handlers
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.cli import (
    DEFAULT_DB_STATEMENT_TIMEOUT,
    DEFAULT_POOL_MAX_OVERFLOW,
    DEFAULT_POOL_RECYCLE,
)
from dagster_webserver.version import __version__

from spanbench_pipeline.core import guard as guards

POLL_MILLISECONDS = 2000
"""How often a page asks for what is new, as dagster-webserver's own default."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until it is told to stop."""
    parsed = _parser().parse_args(arguments)
    guard = guards.guard(parsed.host, parsed.port, parsed.allow_host, reports=parsed.allow_reports)
    configure_loggers(formatter="colored", log_level="INFO")
    setup_interrupt_handlers()
    log = logging.getLogger("dagster-webserver")
    with get_instance_for_cli(logger=log) as instance:
        instance.optimize_for_webserver(
            DEFAULT_DB_STATEMENT_TIMEOUT, DEFAULT_POOL_RECYCLE, DEFAULT_POOL_MAX_OVERFLOW
        )
        with WorkspaceProcessContext(
            instance,
            version=__version__,
            workspace_load_target=WorkspaceFileTarget([parsed.workspace]),
        ) as context:
            application = create_app_from_workspace_process_context(
                context, "", POLL_MILLISECONDS, lifespan=_lifespan
            )
            uvicorn.run(
                guards.Guarded(application, guard),
                host=parsed.host,
                port=parsed.port,
                log_level="warning",
            )


@asynccontextmanager
async def _lifespan(_: Any) -> AsyncIterator[None]:
    """End without a traceback where the server is stopped: uvicorn cancels the lifespan then."""
    try:
        yield
    except asyncio.CancelledError:
        logging.getLogger("dagster-webserver").info("the web server was stopped")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("spanbench_pipeline.pipeline.ui.webserver")
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("--allow-reports", action="store_true")
    return parser


if __name__ == "__main__":
    main()
