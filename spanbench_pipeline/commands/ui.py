"""``spanbench ui``: Dagster's web UI on this project."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from spanbench_pipeline import automation
from spanbench_pipeline.assets.instance import open_instance
from spanbench_pipeline.code_location import check_definitions
from spanbench_pipeline.commands.address import require_free
from spanbench_pipeline.project import Project


def ui(project: Project, host: str, port: int) -> int:
    """Runs webserver and daemon until interrupted; returns their exit code.

    Raises InputError where the port is taken: the page that answers there is somebody else's.
    """
    require_free(host, port)
    automation.require_ticks()
    check_definitions(project)
    with open_instance(project):
        pass  # writes dagster.yaml where it is missing
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(project.dagster),
        "SPANBENCH_HOME": str(project.home),
    }
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(project.root / "workspace.yaml")]
    sys.stderr.write(f"the web UI, in half a minute: http://{host}:{port}  (stop it with Ctrl-C)\n")
    process = subprocess.Popen(  # a fixed command; host and port are arguments
        [*command, "-h", host, "-p", str(port)], env=environment, cwd=project.root
    )
    # Dagster stops its own children on an interrupt, and leaves them behind on anything else.
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        return 0
