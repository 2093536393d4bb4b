"""An alert channel as a plug-in: one file, and ``[alerts.outbox]`` in operations.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.config import operations
from spanbench_pipeline.config.operations import Alerts
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring.alert import Alert
from spanbench_pipeline.monitoring.alerts import Delivery, report
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.channels": {"outbox": "acme_outbox"}}
ALERT = Alert("small", "small/documents", "ERROR", "all gone", "f1", error="ValueError")
SETTINGS = '[alerts.outbox]\nfolder = "outbox"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    home = tmp_path / "home"
    home.mkdir()
    (home / "operations.toml").write_text(SETTINGS)
    return Project(tmp_path, home)


def settings(project: Project) -> Alerts:
    return operations.load(project).alerts


def test_it_carries_each_fault_once(acme, project: Project):
    acme({"acme_outbox.py": module_of(DEVELOPING, "Alerts as files")}, GROUP)
    delivered = report([ALERT], settings(project), project.home)
    assert delivered == [Delivery("file"), Delivery("outbox")]
    assert report([ALERT], settings(project), project.home) == []
    (arrived,) = (project.home / "outbox").iterdir()
    assert arrived.name == "f1.txt"
    assert "all gone" in arrived.read_text()


def test_the_command_tries_it(acme, project: Project, capsys: pytest.CaptureFixture[str]):
    acme({"acme_outbox.py": module_of(DEVELOPING, "Alerts as files")}, GROUP)
    assert cli.main(["--home", str(project.home), "alerts", "test"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "outbox" in line)
    assert row.split() == ["outbox", str(project.home / "outbox"), "arrived"]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import no_such_module", "acme 1.0"),
        ("def open_channel(settings, home):\n    raise ValueError('hunter2')", "outbox"),
    ],
)
def test_a_broken_one_is_an_outage_that_the_file_tells(
    acme, project: Project, capsys: pytest.CaptureFixture[str], code: str, told: str
):
    acme({"acme_outbox.py": code}, GROUP)
    first, second = report([ALERT], settings(project), project.home)
    assert (first, second.channel) == (Delivery("file"), "outbox")
    assert told in second.error
    assert "hunter2" not in second.error
    assert "alerts by outbox" in (project.home / "alerts.jsonl").read_text()
    assert cli.main(["--home", str(project.home), "alerts", "test"]) == 2
    assert told in capsys.readouterr().err


def test_a_table_that_is_no_channel_is_refused_with_the_names_of_all(acme, project: Project):
    acme({}, GROUP)
    (project.home / "operations.toml").write_text(SETTINGS.replace("outbox]", "outbx]"))
    with pytest.raises(InputError) as refused:
        settings(project)
    for told in ("operations.toml", "'outbx'", "'outbox'", "webhook"):
        assert told in str(refused.value)
