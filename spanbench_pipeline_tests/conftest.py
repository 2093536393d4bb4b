"""What all tests share: where the optional data lies, and that CI skips nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# Deadlines would measure the machine; in CI the cases are the same every time.
settings.register_profile("spanbench", deadline=None, derandomize=bool(os.environ.get("CI")))
# A mutant must meet the same cases each time, and that one fails is enough: none is made smaller.
settings.register_profile(
    "mutation",
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile("spanbench")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data that SPANBENCH_SHARED names; the test is skipped without it."""
    found = os.environ.get("SPANBENCH_SHARED")
    if not found:
        pytest.skip("SPANBENCH_SHARED is not set: it names the folder with the real CUAD data")
    return Path(found)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure: what was not run has not passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped:
        reporter.write_line(f"{len(skipped)} tests were skipped, and CI skips none", red=True)
        session.exitstatus = 1
