"""The texts and lists of ``wording.toml`` and ``facts.toml``, as typed objects."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question about a clause; ``place`` says where its gold is (None: anywhere)."""

    text: str
    place: str | None = None


@dataclass(frozen=True)
class Clause:
    """A clause type: its alternative texts, and the questions about it."""

    name: str
    article: str
    titles: Sequence[str]
    questions: Sequence[Question]
    texts: Sequence[str] = ()
    again: str | None = None
    again_title: str = ""


@dataclass(frozen=True)
class Article:
    """An article of a contract: its headings, its entry in the guide, its further sentences."""

    titles: Sequence[str]
    guide: str
    riders: Sequence[str]


@dataclass(frozen=True)
class Filler:
    """A section of boilerplate."""

    article: str
    title: str
    text: str


@dataclass(frozen=True)
class Industry:
    """A kind of agreement: roles of the parties and words for what passes between them."""

    kind: str
    provider: str
    customer: str
    goods: str
    thing: str
    provide: str
    field: str
    trade: str
    item: str


def _table(name: str) -> dict[str, Any]:
    """Return the content of a TOML file that lies beside this module."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _clause(table: dict[str, Any]) -> Clause:
    questions = [Question(**question) for question in table["questions"]]
    return Clause(**{**table, "questions": questions})


WORDING = _table("wording.toml")
CLAUSES = {key: _clause(table) for key, table in WORDING["clauses"].items()}
ARTICLES = {key: Article(**table) for key, table in WORDING["articles"].items()}
FILLERS = [Filler(**table) for table in WORDING["fillers"]]

FACTS = _table("facts.toml")
INDUSTRIES = [Industry(**table) for table in FACTS["industries"]]
