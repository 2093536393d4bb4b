"""Lay marked-up text out as a contract looks on file, and record where every mark ends up.

Headers, indentation, hard line breaks and page footers differ from contract to contract; a
:class:`Style` says which. Offsets of marks are noted while the text is written: nothing is ever
searched for, so a gold span cannot land on a second occurrence of its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

CHOICE = re.compile(r"\[([^\[\]<>]*\|[^\[\]<>]*)\]")
OPENING = re.compile(r"<(?:(\w+)\|)?")
STRAIGHT = str.maketrans("“”’‘", "\"\"''")
ROMAN = (("L", 50), ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))


@dataclass(frozen=True)
class Style:
    """How one contract is typed.

    ``article`` and ``section`` are headings with the fields n, roman, m, letter, title and TITLE;
    a section's text follows its heading on the same line. ``between`` stands before a section;
    ``wrap`` is a line length in characters (None: a paragraph is one line), ``footer`` a page's
    last line, ``page`` its length in characters.
    """

    article: str
    section: str
    between: str = "\n\n"
    indent: str = ""
    wrap: int | None = None
    footer: str = "\n{page}\n"
    page: int = 2900
    straight: bool = False


STYLES: tuple[Style, ...] = (
    Style("\n\n{pad}ARTICLE {roman}\n{pad}{TITLE}", "    {n}.{m} {title}. ", indent="    "),
    Style("\n\nSECTION {n}. {TITLE}", "Section {n}.{m} {title}. ", wrap=92,
          footer="\n\n{page}\n\n"),
    Style("\n\n{n}. {TITLE}.", "{n}.{m} {title}. ", between="   ", footer="\n{page}\n"),
    Style("\n\n{TITLE}", "{title}. ", footer="\n{page}\n"),
    Style("\n\n   {roman}. {TITLE}", "({letter}) {title}. ", wrap=88, footer="\n\n- {page} -\n\n"),
    Style("\n\n{n}.\t{TITLE}", "{n}.{m}\t{title}. ", indent="\t", straight=True),
    Style("\n\nArticle {n} – {title}", "\t{n}.{m}. “{title}”. ", footer="\n\nPage {page}\n"),
    Style("\n\n{roman}.  {TITLE}:", "{n}.{m}  {title}. ", between="  ", wrap=100),
    Style("\n\n{pad}ARTICLE {n}. {TITLE}", "  {n}.{m}. {title}. ", indent="  ", wrap=84,
          straight=True, footer="\n\n{page}\n\n"),
)  # fmt: skip
"""One agreement takes the first style, the next the second, and so on. The fourth has no header
that a machine could tell from text."""


@dataclass(frozen=True)
class Mark:
    """Characters ``[start, end)`` that answer questions about clause ``key`` in ``place``."""

    key: str
    place: str
    start: int
    end: int


class Builder:
    """A contract being typed: text so far, marks so far, and the page it is on."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.length = 0
        self.marks: list[Mark] = []
        self._parts: list[str] = []
        self._page, self._page_start, self._line_start = 1, 0, 0
        self._article = self._section = 0
        self._opened: tuple[str, int] | None = None

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._parts)

    def raw(self, text: str) -> None:
        """Append text as it stands."""
        text = text.translate(STRAIGHT) if self.style.straight else text
        self._parts.append(text)
        self.length += len(text)
        if "\n" in text:
            self._line_start = self.length - (len(text) - text.rindex("\n") - 1)

    def article(self, title: str) -> None:
        """Open an article: its heading on a line of its own."""
        self._article, self._section = self._article + 1, 0
        self.raw(self.style.article.format_map(self._heading(title)))

    def section(self, title: str) -> None:
        """Open a section of the running article: its heading, text to follow."""
        self._section += 1
        self.raw(self.style.between if self._section > 1 else "\n\n")
        self.raw(self.style.section.format_map(self._heading(title)))

    def paragraphs(self, texts: Sequence[str], key: str = "", place: str = "own") -> None:
        """Paragraphs of markup; the first goes on where the text stands."""
        for i, text in enumerate(texts):
            if i:
                # In running style a clause stays on its line whatever its paragraphs.
                self.raw("\n\n" + self.style.indent if "\n" in self.style.between else " ")
            self._words(text.split(), key, place)
        if self._opened is not None:
            raise ValueError(f"a mark of {self._opened[0]!r} is never closed")

    def _heading(self, title: str) -> dict[str, object]:
        n, m = self._article, self._section
        return {
            "n": n,
            "m": m,
            "roman": roman(n),
            "letter": "abcdefghijklmnopqrstuvwxyz"[(m - 1) % 26],
            "title": title,
            "TITLE": title.upper(),
            "pad": " " * max(0, 30 - len(title) // 2),
        }

    def _words(self, words: Sequence[str], key: str, place: str) -> None:
        for i, word in enumerate(words):
            bare = OPENING.sub("", word).replace(">", "")
            if i:
                self.raw(self._gap(bare))
            if found := OPENING.search(word):
                self._opened = (found.group(1) or key, self.length + found.start())
            if ">" in word:
                self._close(self.length + OPENING.sub("", word).index(">"), place)
            self.raw(bare)

    def _close(self, end: int, place: str) -> None:
        if self._opened is None:
            raise ValueError(f"a mark is closed at {end} that was never opened")
        key, start = self._opened
        self.marks.append(Mark(key, place, start, end))
        self._opened = None

    def _gap(self, word: str) -> str:
        """Return what separates the next word from the text: a space, a line break or a page
        break.
        """
        full = self.length - self._page_start - self.style.page
        # Odd pages end where a sentence does, so that a footer meets a capital letter.
        if full > 0 and (self._page % 2 == 0 or self._parts[-1].endswith(".") or full > 400):
            footer = self.style.footer.format(page=self._page)
            self._page, self._page_start = self._page + 1, self.length
            return footer
        wrap = self.style.wrap
        if wrap and self.length - self._line_start + len(word) >= wrap:
            return "\n" + self.style.indent
        return " "


def paragraphs(template: str) -> list[str]:
    """Return a template's paragraphs, which blank lines separate."""
    return [p for p in re.split(r"\n\s*\n", template) if p.strip()]


def roman(number: int) -> str:
    """Return a Roman numeral, for numbers from 1 to 89."""
    numeral = ""
    for letters, value in ROMAN:
        count, number = divmod(number, value)
        numeral += letters * count
    return numeral
