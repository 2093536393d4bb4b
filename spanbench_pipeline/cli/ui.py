"""``spanbench ui``: Dagster's web UI on this project."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from spanbench_pipeline.cli import processes
from spanbench_pipeline.cli.address import Address, add_address, address_of, checked
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.dagster import automation
from spanbench_pipeline.pipeline.dagster.code_location import check_definitions
from spanbench_pipeline.pipeline.dagster.instance import open_instance


def ui(project: Project, address: Address) -> int:
    """Run webserver and daemon until interrupted; return the exit code.

    Raises InputError where the port is taken: the page that answers there is somebody else's.
    """
    address = checked(address, operations.web(project))
    automation.require_ticks()
    check_definitions(project)
    with open_instance(project):
        pass  # writes dagster.yaml where it is missing

    def start() -> Mapping[str, processes.Process]:
        sys.stderr.write(f"the web UI, in half a minute: {address.url}  (stop it with Ctrl-C)\n")
        return {
            name: processes.start(project, command, {})
            for name, command in processes.commands(project, address).items()
        }

    return processes.keep(start)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench ui``."""
    add_address(parser)


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench ui``; return the exit code."""
    return ui(project, address_of(parsed))
