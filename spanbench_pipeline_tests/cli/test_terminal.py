"""Tables line up, whatever the letters."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from spanbench_pipeline.cli import terminal


def test_columns_align_and_a_short_row_ends_in_a_sentence():
    shown = terminal.table(
        ["name", "n", "x"],
        [["a", "1", "0.500"], ["longer", "1,000", "0.250"], ["b", "2", "0.1"], ["c", "why not"]],
        right=[1, 2],
    )
    assert shown.splitlines() == [
        "name        n      x",
        "------  -----  -----",
        "a           1  0.500",
        "longer  1,000  0.250",
        "b           2    0.1",
        "c       why not",
    ]


def test_wide_and_combining_characters_count_as_they_show():
    shown = terminal.table(["t", "n"], [["漢字", "1"], ["e\u0301", "2"]])
    assert shown.splitlines()[2:] == ["漢字  1", "e\u0301     2"]


def test_controls_are_shown_and_never_sent():
    evil = "a\x1b]0;owned\x07\rb\x9b31m\u202ec\u2066d\x00\x7f"
    shown = terminal.visible(evil)
    assert shown == "a\\x1b]0;owned\\x07\\x0db\\u009b31m\\u202ec\\u2066d\\x00\\u007f"
    assert terminal.visible("plain ž 漢字 שלום\tand\nlines") == "plain ž 漢字 שלום\tand\nlines"
    table = terminal.table(["n\x1b"], [["two\nlines\tand\x1b[2J"]])
    assert table.splitlines() == ["n\\x1b", "-" * 20, "two lines and\\x1b[2J"]


def test_a_json_document_keeps_its_values():
    value = {"a": "\x00\x1b\x7f\x9b\u202e\u2028 \n", "b": ["\u2066"]}
    shown = terminal.visible(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert not set(shown) & set("\x1b\x7f\x9b\u202e\u2028\u2066")


def test_what_is_said_and_logged_is_visible(capsys: pytest.CaptureFixture[str]):
    terminal.say("a\x1b[31m")
    terminal.say("b\x9b", error=True)
    record = logging.LogRecord("spanbench", logging.WARNING, "", 0, "c\x1b%s", ("\u202e",), None)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a\\x1b[31m\n", "b\\u009b\n")
    assert terminal._Formatter().format(record) == "warning: c\\x1b\\u202e"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_takes_every_character(monkeypatch: pytest.MonkeyPatch, encoding: str):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding))
    terminal.settle(json=False)
    terminal.say("漢 \udcff")
    sys.stdout.flush()
    shown = "漢" if encoding == "utf-8" else "\\u6f22"
    assert written.getvalue().decode() == f"{shown} \\udcff\n"
    terminal.settle(json=True)
    terminal.say('"漢"')
    sys.stdout.flush()
    assert written.getvalue().decode().endswith('\n"漢"\n')
