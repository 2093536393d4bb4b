"""``spanbench alerts test``: does each configured channel work?"""

from __future__ import annotations

import argparse

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import CHECK_FAILED, DONE
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.monitoring import alerts, channels
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.monitoring.alerts import Delivery
from spanbench_pipeline.monitoring.channels import CHANNELS


class NotArrived(Exception):
    """A test alert did not arrive everywhere (exit code 1); the message is what to print."""


def test(project: Project) -> str:
    """Send a test alert through every channel; return what to print.

    Raises NotArrived where a channel did not take it, InputError where the settings are wrong.
    """
    found = operations.load(project)
    alert = Alert(
        corpus="test",
        asset="",
        severity="WARN",
        details="sent by spanbench alerts test; nothing is wrong",
        fault="test",
        error="test alert",
        link=found.alerts.link,
    )
    places = {
        channels.name(key): channels.open_channel(key, found.alerts, project.home).place
        for key in channels.configured(found.alerts)
    }
    deliveries = alerts.send([alert], found.alerts, project.home)
    text = _table(deliveries, places)
    if any(delivery.error for delivery in deliveries):
        raise NotArrived(text)
    unset = [name for key in CHANNELS.ours if (name := channels.name(key)) not in places]
    where = found.path or project.home / "operations.toml"
    return text + (f"\nnot configured in {where}: {', '.join(unset)}" if unset else "")


def _table(deliveries: list[Delivery], places: dict[str, str]) -> str:
    # A webhook's URL is a password: the table shows neither it nor what should name its variable.
    rows = [[d.channel, places[d.channel], d.error or "arrived"] for d in deliveries]
    return terminal.table(["channel", "to", "test alert"], rows)


EXAMPLES = """\
  spanbench alerts test            sends a test alert and says where it arrived"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench alerts``."""
    parser.add_argument("what", choices=("test",))


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench alerts``; return the exit code."""
    try:
        terminal.say(test(project))
    except NotArrived as not_arrived:
        terminal.say(not_arrived)
        return CHECK_FAILED
    return DONE
