"""Channels against servers on this machine, the ledger, and what an alert must never do."""

from __future__ import annotations

import json
import logging
import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spanbench_pipeline.config.operations import Alerts, Email, Webhook
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.monitoring import alerts, channels, ledger
from spanbench_pipeline.monitoring.alert import SHOWN_CHARS, Alert, fault
from spanbench_pipeline.monitoring.alerts import Delivery, report, resolve, send
from spanbench_pipeline.monitoring.channels.email import SUBJECT_CHARS
from spanbench_pipeline.monitoring.channels.file import file_path
from spanbench_pipeline.monitoring.ledger import LEDGER, append
from spanbench_pipeline_tests.support import sinks
from spanbench_pipeline_tests.support.sinks import MailSink, WebhookSink, running

PASSWORD = "hunter2-is-secret"


def alert(check: str = "no_gaps", fault: str = "f1") -> Alert:
    return Alert(
        corpus="small",
        asset="small/chunks/naive",
        severity="ERROR",
        details="| chunk_id |\n| --- |\n| alpha:naive:0 |",
        fault=fault,
        check=check,
        run_id="r1",
        link="http://ui.example/runs/r1",
    )


@pytest.fixture
def mail() -> Iterator[MailSink]:
    with running(MailSink()) as sink:
        yield sink


@pytest.fixture
def hook() -> Iterator[WebhookSink]:
    with running(WebhookSink()) as sink:
        yield sink


@pytest.fixture
def log() -> Iterator[list[str]]:
    """What is logged, however the command line has set the logger up."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("spanbench")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def email(port: int, **settings: str) -> Email:
    return Email("127.0.0.1", "spanbench@example.com", ("team@example.com",), port, **settings)


def everything(mail: MailSink, hook: WebhookSink) -> Alerts:
    return Alerts(email=email(mail.port), webhook=Webhook(url=hook.url))


def lines(home: Path, name: str = "alerts.jsonl") -> list[dict]:
    return [json.loads(line) for line in (home / name).read_text().splitlines()]


def test_all_channels_carry_corpus_asset_check_rows_and_link(
    tmp_path: Path, mail: MailSink, hook: WebhookSink
):
    deliveries = send([alert()], everything(mail, hook), tmp_path)
    assert deliveries == [Delivery("file"), Delivery("e-mail"), Delivery("webhook")]
    text = (
        "spanbench: small/chunks/naive: check no_gaps failed (ERROR)\n"
        "corpus small, asset small/chunks/naive, check no_gaps\n"
        "| chunk_id |\n| --- |\n| alpha:naive:0 |\n"
        "run: http://ui.example/runs/r1"
    )
    assert hook.posts == [{"text": text}]
    [message] = mail.messages
    assert message["Subject"] == "[spanbench] small/chunks/naive: check no_gaps failed (ERROR)"
    assert message["To"] == "team@example.com"
    assert message.get_content().splitlines() == text.splitlines()
    [line] = lines(tmp_path)
    assert {k: line[k] for k in ("corpus", "asset", "check", "run_id", "fault", "severity")} == {
        "corpus": "small",
        "asset": "small/chunks/naive",
        "check": "no_gaps",
        "run_id": "r1",
        "fault": "f1",
        "severity": "ERROR",
    }
    assert line["details"] == alert().details
    assert line["link"] == "http://ui.example/runs/r1"


def test_what_alerts_say_cannot_break_a_header_or_grow_without_end(tmp_path: Path, mail: MailSink):
    evil = Alert(
        corpus="small",
        asset="",
        severity="ERROR",
        details=".\n.leading dots\n" + "ž" * 10_000,
        fault="f",
        error="Boom\r\nBcc: everybody@example.com\r\n" + "x" * 500,
    )
    assert not send([evil], Alerts(email=email(mail.port)), tmp_path)[1].error
    [message] = mail.messages
    assert message["Bcc"] is None
    assert message["Subject"].startswith("[spanbench] small: Boom Bcc: ")
    assert len(message["Subject"]) <= SUBJECT_CHARS
    body = message.get_content().replace("\r\n", "\n")
    assert ".\n.leading dots\nžž" in body
    assert len(body) < 4 * SHOWN_CHARS
    # The file keeps all of it.
    assert lines(tmp_path)[0]["details"] == evil.details


def test_what_alerts_say_is_no_markup_and_no_bytes(
    tmp_path: Path, hook: WebhookSink, mail: MailSink
):
    evil = Alert(
        corpus="small",
        asset="",
        severity="ERROR",
        details="<!channel> <@U1> <http://evil.example|see> a && b &lt; \udcff",
        fault="f",
        error="<!here>",
    )
    assert not any(d.error for d in send([evil], everything(mail, hook), tmp_path))
    [post] = hook.posts
    assert "<" not in post["text"]
    assert ">" not in post["text"]
    assert "&lt;!channel&gt; &lt;@U1&gt;" in post["text"]
    assert "a &amp;&amp; b &amp;lt; \\udcff" in post["text"]
    [message] = mail.messages  # no markup there: as it is
    assert "<!channel> <@U1> <http://evil.example|see> a && b" in message.get_content()
    assert lines(tmp_path)[0]["details"] == evil.details


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_encryption_and_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str):
    monkeypatch.setenv("SMTP_SECRET", PASSWORD)
    with running(MailSink(security, ("spanbench", PASSWORD))) as sink:
        settings = email(
            sink.port, security=security, username="spanbench", password_env="SMTP_SECRET"
        )
        # A certificate that nobody vouches for is not talked to.
        untrusted = send([alert()], Alerts(email=settings), tmp_path)
        assert untrusted[1].error.startswith("the certificate is not trusted")
        assert sink.messages == []
        monkeypatch.setenv("SSL_CERT_FILE", str(sinks.CERTIFICATE))
        assert send([alert()], Alerts(email=settings), tmp_path)[1] == Delivery("e-mail")
        assert sink.encrypted == [True]


def test_no_secret_is_logged_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], hook: WebhookSink
):
    monkeypatch.setenv("SMTP_SECRET", PASSWORD)
    hook.status = 404
    monkeypatch.setenv("HOOK", hook.url)
    with running(MailSink(login=("spanbench", "another"))) as sink:
        channel = email(sink.port, username="spanbench", password_env="SMTP_SECRET")
        settings = Alerts(email=channel, webhook=Webhook(url_env="HOOK"))
        deliveries = report([alert()], settings, tmp_path)
    assert deliveries == [
        Delivery("file"),
        Delivery("e-mail", "the mail server answered 535 (SMTPAuthenticationError)"),
        Delivery("webhook", "HTTP status 404"),
    ]
    told = "\n".join([*log, *(p.read_text() for p in tmp_path.iterdir())])
    assert "535" in told
    for secret in (PASSWORD, "T0KEN"):
        assert secret not in told


def test_an_unset_variable_and_a_malformed_url_are_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HOOK", raising=False)
    settings = Alerts(webhook=Webhook(url_env="HOOK"))
    assert send([alert()], settings, tmp_path)[1].error == (
        "the environment variable that url_env names is not set"
    )
    monkeypatch.setenv("HOOK", "file:///etc/passwd")
    error = send([alert()], settings, tmp_path)[1].error
    assert "http" in error
    assert "passwd" not in error


def test_a_redirect_is_not_taken_for_an_arrival(tmp_path: Path, hook: WebhookSink):
    hook.status = 302
    [_, webhook] = send([alert()], Alerts(webhook=Webhook(url=hook.url)), tmp_path)
    assert webhook == Delivery("webhook", "HTTP status 302")
    assert hook.other_requests == 0


def test_a_refused_recipient_is_told(tmp_path: Path, mail: MailSink):
    mail.refused = {"gone@example.com"}
    both = Email("127.0.0.1", "s@example.com", ("team@example.com", "gone@example.com"), mail.port)
    [_, delivery] = send([alert()], Alerts(email=both), tmp_path)
    assert delivery.error == "the mail server refused 1 of the recipients"
    assert len(mail.messages) == 1


def test_what_cannot_be_reached_delays_nothing_and_is_told_once_elsewhere(
    tmp_path: Path, hook: WebhookSink, log: list[str]
):
    settings = Alerts(email=email(sinks.free_port()), webhook=Webhook(url=hook.url))
    began = time.monotonic()
    for n in range(3):
        report([alert(fault=f"f{n}")], settings, tmp_path)
    assert time.monotonic() - began < 5
    titles = [post["text"].splitlines()[0] for post in hook.posts]
    fault_title = "spanbench: small/chunks/naive: check no_gaps failed (ERROR)"
    outage = "spanbench: alerts by e-mail: could not be sent: Connection refused (ERROR)"
    assert titles == [fault_title, outage, fault_title, fault_title]
    # The file holds every one: what did not arrive can be looked up there.
    written = [line["title"] for line in lines(tmp_path)]
    assert written == [title.removeprefix("spanbench: ") for title in (fault_title, outage) * 3]
    assert "alerts by e-mail could not be sent: Connection refused" in log


def test_an_outage_is_told_again_after_the_channel_worked(tmp_path: Path, hook: WebhookSink):
    with running(MailSink()) as sink:
        working = Alerts(email=email(sink.port), webhook=Webhook(url=hook.url))
        broken = Alerts(email=email(sinks.free_port()), webhook=Webhook(url=hook.url))
        for n, settings in enumerate((broken, working, broken)):
            report([alert(fault=f"f{n}")], settings, tmp_path)
    outages = [post for post in hook.posts if "could not be sent" in post["text"]]
    assert len(outages) == 2


def test_a_channel_that_says_nothing_is_given_up(
    tmp_path: Path, hook: WebhookSink, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(channels, "TIMEOUT_SECONDS", 2.0)
    with sinks.silent_port() as port:
        settings = Alerts(email=email(port), webhook=Webhook(url=f"http://127.0.0.1:{port}/silent"))
        began = time.monotonic()
        deliveries = send([alert()], settings, tmp_path)
        # Both at the same time, not one after the other.
        assert time.monotonic() - began < 3.8
    assert [d.error for d in deliveries] == [
        "",
        "the mail server did not answer, or closed the connection",
        "no answer within 2 s",
    ]
    assert len(lines(tmp_path)) == 1


def test_a_channel_that_drips_is_given_up_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each answer comes in time; all of them together do not."""
    monkeypatch.setattr(alerts, "DEADLINE_SECONDS", 1.0)

    class Slow(MailSink):
        def verify_request(self, *_: object) -> bool:
            time.sleep(3)
            return True

    with running(Slow()) as sink:
        began = time.monotonic()
        [file, mail] = send([alert()], Alerts(email=email(sink.port)), tmp_path)
        assert time.monotonic() - began < 2
    assert file == Delivery("file")
    assert mail.error == "not done within 1 s"


def test_one_fault_is_sent_once_until_it_was_mended(
    tmp_path: Path, mail: MailSink, hook: WebhookSink
):
    settings = everything(mail, hook)
    assert len(report([alert(), alert()], settings, tmp_path)) == 3
    assert report([alert()], settings, tmp_path) == []
    # Another check of the asset that passes mends nothing of this one.
    resolve([alert("other").about, "small/chunks/naive run"], tmp_path)
    assert report([alert()], settings, tmp_path) == []
    resolve([alert().about], tmp_path)
    report([alert()], settings, tmp_path)
    report([alert(fault="f2")], settings, tmp_path)
    for arrived in (mail.messages, hook.posts, lines(tmp_path)):
        assert len(arrived) == 3


def test_a_ledger_that_a_crash_cut_short_keeps_what_is_whole(tmp_path: Path):
    report([alert()], Alerts(), tmp_path)
    with (tmp_path / LEDGER).open("a") as stream:
        stream.write('{"fault": "f2", "ab')
    report([alert(), alert(fault="f3")], Alerts(), tmp_path)
    assert [line["fault"] for line in lines(tmp_path)] == ["f1", "f3"]
    assert report([alert(), alert(fault="f3")], Alerts(), tmp_path) == []


def test_a_full_disk_does_not_repeat_an_alert(
    tmp_path: Path, hook: WebhookSink, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    settings = Alerts(webhook=Webhook(url=hook.url))
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "append", full)
        deliveries = report([alert(fault="full")], settings, tmp_path)
        assert deliveries[0] == Delivery("file", "No space left on device")
        assert report([alert(fault="full")], settings, tmp_path) == []
    texts = [post["text"].splitlines()[0] for post in hook.posts]
    assert texts == [
        "spanbench: small/chunks/naive: check no_gaps failed (ERROR)",
        "spanbench: alerts by file: could not be sent: No space left on device (ERROR)",
    ]
    resolve([alert().about, "alerts by file run"], tmp_path)


def _append_many(path: Path, writer: int) -> None:
    for n in range(200):
        append(path, {"writer": writer, "n": n, "text": "x" * 300})


def test_lines_of_writers_at_once_never_mix(tmp_path: Path):
    path = tmp_path / "alerts.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(path, w)) for w in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for w in range(3):
        assert [line["n"] for line in found if line["writer"] == w] == list(range(200))


@pytest.mark.parametrize("name", ["../alerts.jsonl", "/tmp/alerts.jsonl", "."])
def test_the_file_lies_in_the_home(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="must name a file in the home"):
        file_path(name, tmp_path / "home")
    assert file_path("logs/a.jsonl", tmp_path).parent == tmp_path / "logs"


def test_a_fault_is_its_parts_and_nothing_else():
    assert fault("a", "b") == fault("a", "b")
    assert len({fault("a", "b"), fault("ab"), fault("b", "a"), fault("a", "b", "")}) == 4


def test_a_refused_message_keeps_no_other_from_arriving(
    tmp_path: Path, mail: MailSink, hook: WebhookSink
):
    """And the outage names exactly what did not arrive there."""
    hook.refused_texts = {"two": 400}
    mail.refused_texts = {"one": "554 no", "three": ""}  # refused; the connection closed
    sent = [alert(check, fault=check) for check in ("one", "two", "three", "four")]
    deliveries = report(sent, everything(mail, hook), tmp_path)
    assert [[a.check for a in d.missing] for d in deliveries] == [[], ["one", "three"], ["two"]]
    closed = "the mail server did not answer, or closed the connection"
    assert deliveries == [
        Delivery("file"),
        Delivery("e-mail", f"the mail server answered 554 (SMTPDataError); {closed}"),
        Delivery("webhook", "HTTP status 400"),
    ]
    posted = [next(c for c in CHECKS if c in p["text"]) for p in hook.posts[:3]]
    assert posted == ["one", "three", "four"]
    mailed = [next(c for c in CHECKS if c in m["Subject"]) for m in mail.messages[:2]]
    assert mailed == ["two", "four"]
    outages = {e["corpus"]: e["details"] for e in lines(tmp_path) if "alerts by" in e["corpus"]}
    title = "not sent there: small/chunks/naive: check {} failed (ERROR)"
    assert outages == {
        "alerts by e-mail": "\n".join(title.format(c) for c in ("one", "three")),
        "alerts by webhook": title.format("two"),
    }


CHECKS = ("one", "two", "three", "four")


def test_one_refused_recipient_keeps_no_message_from_the_others(tmp_path: Path, mail: MailSink):
    mail.refused = {"gone@example.com"}
    both = Email("127.0.0.1", "s@example.com", ("gone@example.com", "team@example.com"), mail.port)
    sent = [alert(check) for check in CHECKS]
    [_, delivery] = send(sent, Alerts(email=both), tmp_path)
    assert len(mail.messages) == 4
    assert delivery == Delivery("e-mail", "the mail server refused 1 of the recipients")
    nobody = Email("127.0.0.1", "s@example.com", ("gone@example.com",), mail.port)
    [_, delivery] = send(sent, Alerts(email=nobody), tmp_path)
    assert delivery.missing == tuple(sent)
    assert delivery.error == "the mail server refused 1 of the recipients"


def test_what_the_deadline_cuts_off_is_missing_and_does_not_arrive_later(
    tmp_path: Path, hook: WebhookSink, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(alerts, "DEADLINE_SECONDS", 1.0)
    taken = hook.finish_request

    def slow(*given: object) -> None:
        time.sleep(0.7)
        taken(*given)

    monkeypatch.setattr(hook, "finish_request", slow)
    [_, delivery] = send(
        [alert(check) for check in CHECKS], Alerts(webhook=Webhook(url=hook.url)), tmp_path
    )
    assert delivery.error == "not done within 1 s"
    assert [a.check for a in delivery.missing] == ["two", "three", "four"]
    time.sleep(1.5)
    assert len(hook.posts) <= 2  # the one that was on its way may have arrived


@pytest.mark.parametrize(
    "name", ["operations.toml", "spanbench.duckdb", "dagster/dagster.yaml", LEDGER]
)
def test_the_file_is_no_other_file_of_the_home(tmp_path: Path, name: str):
    with pytest.raises(InputError, match=r"must end in \.jsonl"):
        file_path(name, tmp_path)


def test_what_stands_for_a_variable_is_never_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: list[str], mail: MailSink
):
    """A password may look like a name."""
    monkeypatch.delenv("hunter2", raising=False)
    channel = email(mail.port, username="me", password_env="hunter2")
    report([alert()], Alerts(email=channel, webhook=Webhook(url_env="hunter2")), tmp_path)
    told = "\n".join([*log, *(p.read_text() for p in tmp_path.iterdir())])
    assert "the environment variable that password_env names is not set" in told
    assert "the environment variable that url_env names is not set" in told
    assert "hunter2" not in told
