"""Reading reports back with parsers that are not ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta"}


@dataclass
class Page(HTMLParser):
    """An HTML page as texts by tag, tables as rows of cells, and every attribute.

    Raises AssertionError where tags are not closed in the order they were opened.
    """

    texts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    _open: list[tuple[str, list[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        if tag not in VOID:
            self._open.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        for _, parts in self._open:
            parts.append(data)

    def handle_endtag(self, tag: str) -> None:
        opened, parts = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"
        text = "".join(parts)
        self.texts.append((tag, text))
        if tag in ("td", "th"):
            self.tables[-1][-1].append(text)

    def of(self, tag: str) -> list[str]:
        """The texts of every element of one tag, in the order in which they close."""
        return [text for found, text in self.texts if found == tag]


def read(html: str) -> Page:
    """The page, wholly parsed."""
    page = Page()
    page.feed(html)
    page.close()
    assert not page._open
    return page
