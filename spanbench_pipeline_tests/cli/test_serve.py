"""What is refused, and told, before a server starts."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from spanbench_pipeline.cli import main as cli
from spanbench_pipeline.cli import serve
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.dagster import code_location
from spanbench_pipeline_tests.support import sinks


@pytest.mark.parametrize("command", ["serve", "ui"])
def test_what_cannot_be_served_is_refused_before_anything_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
):
    home = tmp_path / "home"

    def refused(*arguments: str) -> str:
        assert cli.main(["--home", str(home), command, *arguments]) == 2
        assert not (home / "dagster").exists()
        return capsys.readouterr().err

    with sinks.silent_port() as port:
        assert f"127.0.0.1:{port} cannot be served: Address already" in refused("--port", str(port))
    for port in (99999, -1, 65536):
        assert f"--port {port} must be in" in refused("--port", str(port))
    assert "cannot be served" in refused("--host", "no..such host", "--port", "0")
    assert "'http://a' is no name of a host" in refused("--port", "0", "--allow-host", "http://a")
    with monkeypatch.context() as patched:
        patched.setenv("SPANBENCH_TICK_SECONDS", "abc")
        assert "SPANBENCH_TICK_SECONDS = 'abc' must be a whole number" in refused("--port", "0")
    monkeypatch.setattr(code_location, "load", _not_loadable)
    assert "two jobs of one name" in refused("--port", "0")


def _not_loadable(where: Project) -> dg.Definitions:
    raise dg.DagsterInvalidDefinitionError("two jobs of one name")


def test_a_broken_experiment_keeps_serve_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.toml").write_text('corpus = "mine"\nx = 1\n')
    (tmp_path / "operations.toml").write_text('[nightly]\ncorpora = ["mine", "sample"]\n')
    monkeypatch.setattr(serve, "_commands", lambda *_: {"the daemon": ["platform"]})
    port = str(sinks.free_port())
    assert cli.main(["--home", str(tmp_path), "serve", "--port", port]) == 3  # platform ends
    told = capsys.readouterr().err
    assert "left out: " in told
    assert "unknown key 'x'" in told
    assert "the daemon ended (code 0)" in told


def test_wrong_operations_are_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for text, problem in (
        ('[nightly]\ncorpora = ["sampel"]', "did you mean 'sample'"),
        ('[nightly]\ncorpora = ["sample"]\ncron = "99 * * * *"', "nightly"),
        ('[alerts]\nfile = "../alerts.jsonl"', "must name a file in the home"),
        ('[web]\nallow_hosts = ["*"]', "allow_hosts[0] = '*'"),
    ):
        (tmp_path / "operations.toml").write_text(text)
        assert cli.main(["--home", str(tmp_path), "serve", "--port", "0"]) == 2
        assert problem in capsys.readouterr().err
