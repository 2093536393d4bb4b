"""The operations file: what is read, which of two files counts, what is refused and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanbench_pipeline.config import operations
from spanbench_pipeline.config import project as projects
from spanbench_pipeline.config.operations import (
    Alerts,
    Email,
    Nightly,
    Operations,
    Regression,
    Web,
    Webhook,
)
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError

GOOD = """
[nightly]
corpora = ["cuad", "sample"]
cron = "30 2 * * 1-5"
timezone = "Europe/Prague"
[regression]
level = 0.01
minimum_effect = 0
rounds = 500
seed = 7
[alerts]
file = "shouts.jsonl"
link = "https://bench.example.com/ui"
[alerts.email]
host = "smtp.example.com"
port = 587
security = "starttls"
username = "me"
password_env = "PASS"
sender = "a@example.com"
recipients = ["b@example.com", "c@example.com"]
[alerts.webhook]
url_env = "HOOK"
[web]
allow_hosts = ["bench.example.com", "localhost:8080"]
allow_reports = true
"""

EMAIL = """[alerts.email]
host = "smtp.example.com"
sender = "a@example.com"
recipients = ["b@example.com"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "data").mkdir()
    (tmp_path / "warehouse").mkdir()
    return Project(tmp_path, tmp_path / "warehouse")


def write(project: Project, text: str) -> Path:
    path = project.home / "operations.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_as_objects(project: Project):
    path = write(project, GOOD)
    assert operations.load(project) == Operations(
        Nightly(("cuad", "sample"), "30 2 * * 1-5", "Europe/Prague"),
        Regression(0.01, 0.0, 500, 7),
        Alerts(
            "shouts.jsonl",
            "https://bench.example.com/ui",
            Email(
                "smtp.example.com",
                "a@example.com",
                ("b@example.com", "c@example.com"),
                587,
                "starttls",
                "me",
                "PASS",
            ),
            Webhook(None, "HOOK"),
        ),
        path,
        Web(("bench.example.com", "localhost:8080"), True),
    )
    assert operations.web(project) == operations.load(project).web


def test_without_a_file_all_is_default(project: Project):
    assert operations.load(project) == Operations(Nightly(), Regression(), Alerts(), None, Web())
    assert operations.web(project) == Web()


def test_the_homes_file_takes_the_place_of_the_checkouts_as_a_whole(project: Project):
    given = project.root / "data" / "operations.toml"
    given.write_text("[regression]\nlevel = 0.2\n[nightly]\ncorpora = ['a']\n")
    assert operations.load(project).regression.level == 0.2
    own = write(project, "[regression]\nseed = 1\n")
    found = operations.load(project)
    assert (found.path, found.regression, found.nightly) == (own, Regression(seed=1), Nightly())


def test_the_bundled_file_states_the_defaults():
    checkout = Path(projects.__file__).parents[2]
    found = operations.load(Project(checkout, checkout / "absent"))
    assert found == Operations(path=checkout / "data" / "operations.toml")


def test_the_bundled_files_examples_are_valid(project: Project):
    checkout = Path(projects.__file__).parents[2]
    text = (checkout / "data" / "operations.toml").read_text(encoding="utf-8")
    examples = text.split("# [alerts.email]")[1]
    write(project, "[alerts.email]" + examples.replace("\n# ", "\n"))
    found = operations.load(project).alerts
    assert found.email is not None
    assert found.email.security == "starttls"
    assert found.webhook == Webhook(url_env="SPANBENCH_WEBHOOK")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("[nightly]", "[nightl]", ["top level", "'nightl'", "did you mean 'nightly'"]),
        ("[nightly]", "[nightly", ["not valid TOML"]),
        ("[nightly]", "x = " + 3000 * "[", ["not valid TOML"]),
        ("cron =", "corn =", ["nightly", "unknown key 'corn'", "did you mean 'cron'"]),
        ("30 2 * * 1-5", "30 2 * *", ["nightly", "cron = '30 2 * *'"]),
        ("30 2 * * 1-5", "a night ; * *", ["cron"]),
        ("Europe/Prague", "Europe/Atlantis", ["timezone = 'Europe/Atlantis'"]),
        ("Europe/Prague", "../etc/passwd", ["timezone"]),
        ('["cuad", "sample"]', '"cuad"', ["nightly", "corpora = 'cuad'", "must be a valid list"]),
        ('["cuad", "sample"]', "[1]", ["corpora[0] = 1", "must be a valid string"]),
        ('["cuad", "sample"]', '["cuad", "cuad"]', ["corpora", "cuad twice"]),
        ("level = 0.01", "level = 0", ["regression", "level = 0", "greater than 0"]),
        ("level = 0.01", "level = nan", ["level = nan", "finite number"]),
        ("level = 0.01", "level = true", ["level = True", "must be a valid number"]),
        ("level = 0.01", 'level = "0.01"', ["level = '0.01'", "must be a valid number"]),
        (
            "minimum_effect = 0",
            "minimum_effect = 2",
            ["minimum_effect = 2", "less than or equal to 1"],
        ),
        ("rounds = 500", "rounds = 0", ["rounds = 0", "greater than or equal to 1"]),
        ("rounds = 500", "rounds = 1" + 30 * "0", ["less than or equal to 1000000"]),
        ("rounds = 500", "rounds = 99", ["rounds = 99 is too few", "level = 0.01"]),
        ("rounds = 500", "rounds = 1.5", ["rounds = 1.5", "must be a valid integer"]),
        ("seed = 7", "seed = -1", ["seed = -1", "greater than or equal to 0"]),
        ("seed = 7", "seed = 1" + 30 * "0", ["seed", "less than or equal to 9223372036854775807"]),
        ('"shouts.jsonl"', '""', ["alerts", "file is empty"]),
        ('"https://bench', '"bench', ["link must begin with http"]),
        ("[alerts.email]", "[alerts.mail]", ["'mail'", "did you mean 'email'"]),
        ('host = "smtp.example.com"', "", ["alerts.email", "'host' is missing"]),
        ("port = 587", "port = 0", ["port must be greater than or equal to 1"]),
        ('"starttls"', '"ssl"', ["security is unknown", "valid: none, starttls, tls"]),
        ('password_env = "PASS"', "", ["username and password_env together"]),
        ('"a@example.com"', '"nobody"', ["sender is no address"]),
        ('["b@example.com", "c@example.com"]', "[]", ["recipients names nobody"]),
        ('url_env = "HOOK"', "", ["alerts.webhook", "exactly one of url and url_env"]),
        ('url_env = "HOOK"', 'url = "ftp://secret"', ["alerts.webhook", "url must begin"]),
    ],
)
def test_what_is_wrong_is_named(project: Project, old: str, new: str, parts: list[str]):
    assert old in GOOD
    path = write(project, GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        operations.load(project)
    for part in [str(path), *parts]:
        assert part in str(error.value)


def test_a_webhooks_url_is_not_repeated(project: Project):
    write(project, '[alerts.webhook]\nurl = "hooks.example.com/T0/secret"\n')
    with pytest.raises(InputError) as error:
        operations.load(project)
    assert "secret" not in str(error.value)


SECRET = "https://hooks.example.com/T0PSECRET"


@pytest.mark.parametrize(
    "text",
    [
        'alerts = "{}"',
        '[alerts]\nwebhook = "{}"',
        '[alerts]\nemail = "{}"',
        '[alerts]\nfile = ["{}"]',
        '[alerts]\n"{}" = 1',
        '[alerts.webhook]\nurl = ["{}"]',
        '[alerts.webhook]\nurl = {{ a = "{}" }}',
        '[alerts.webhook]\nurl_env = "{}"',
        '[alerts.webhook]\n"{}" = ""',
        f"{EMAIL}port = '{{}}'",
        f"{EMAIL}security = '{{}}'",
        f"{EMAIL}username = 'me'\npassword_env = '{{}}'",
        EMAIL.replace("smtp.example.com", "{}"),
        EMAIL.replace("a@example.com", "{}"),
        EMAIL.replace("b@example.com", "{}"),
        EMAIL.replace('"b@example.com"', '"b@example.com", ["{}"]'),
    ],
)
def test_no_value_of_an_alert_setting_is_repeated(project: Project, text: str):
    """Wherever somebody put the secret by mistake: messages are logged and recorded."""
    write(project, text.format(SECRET))
    with pytest.raises(InputError, match="alerts") as error:
        operations.load(project)
    assert "T0PSECRET" not in str(error.value)
    # The rule of the regression check is another matter.
    if text.startswith("["):
        assert operations.regression(project) == Regression()


def test_a_wrong_rule_is_refused_where_it_is_read_alone(project: Project):
    write(project, "[regression]\nlevel = 0\n")
    with pytest.raises(InputError, match="level"):
        operations.regression(project)
