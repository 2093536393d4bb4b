"""spanbench alerts test, against sinks of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline_tests.end_to_end.test_serve import SETTINGS
from spanbench_pipeline_tests.support import sinks
from spanbench_pipeline_tests.support.sinks import MailSink, WebhookSink


def test_alerts_test_says_what_arrived_and_what_did_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    arguments = ["--home", str(tmp_path), "alerts", "test"]
    (tmp_path / "operations.toml").write_text("")
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "arrived" in printed
    assert "not configured" in printed
    with sinks.running(MailSink()) as mail, sinks.running(WebhookSink()) as hook:
        settings = SETTINGS.format(minute=0, hour=3, port=3000, mail=mail.port)
        (tmp_path / "operations.toml").write_text(settings)
        monkeypatch.setenv("SPANBENCH_TEST_WEBHOOK", hook.url)
        assert cli.main(arguments) == 0
        assert capsys.readouterr().out.count("arrived") == 3
        hook.status = 500
        assert cli.main(arguments) == 1
        printed = capsys.readouterr().out
        assert printed.count("arrived") == 2
        assert "HTTP status 500" in printed
        assert hook.url not in printed
        assert "SPANBENCH_TEST_WEBHOOK" not in printed
        # Sent each time that it is asked for: the ledger is for faults.
        assert len(mail.messages) == 2
