"""The fonts of a PDF's page: where they say too little for their text to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject

MEND = "print the PDF to a new PDF and run OCR on it"
NO_MAP = (
    "text in a font without a map to Unicode, so that glyph numbers stand in place of its letters: "
    f"{MEND}"
)
NO_LETTERS = (
    "text in a font without a map to Unicode for some of its glyphs, so that their names, such as "
    f"/f_i, stand in place of letters: {MEND}"
)
GAPS = (
    "text in a font whose map to Unicode has gaps, so that glyph numbers may stand in place of "
    f"letters: {MEND}"
)
CHARSETS = ("UCS2", "UTF16", "GB-EUC", "GBpc-EUC", "GBK", "ETen", "90ms-RKSJ")
"""Parts of the names of predefined encodings from which pypdf knows the characters."""
SYMBOLIC = 1 << 2
"""Flag of a font whose codes are its own."""
Tell = Callable[[str], bool]


def faults(page: PageObject) -> set[str]:
    """Return what is wrong with a page's text by the fonts that it is in.

    A font that is only within its reach is no fault.
    """
    found: set[str] = set()
    if not any(map(_doubts, within(page.get("/Resources")))):
        return found
    doubts: dict[int, dict[str, Tell]] = {}

    def visit(text: str, _cm: Any, _tm: Any, font: Mapping[str, Any] | None, _size: Any) -> None:
        if id(font) not in doubts:
            doubts[id(font)] = _doubts(font)
        found.update(fault for fault, tell in doubts[id(font)].items() if tell(text))

    page.extract_text(visitor_text=visit)
    return found


def within(resources: Any, seen: set[int] | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the fonts of a page's resources and of the forms (XObjects) that it draws."""
    seen = set() if seen is None else seen
    found = resources.get_object() if resources else None
    if not found or id(found) in seen:
        return
    seen.add(id(found))
    for font in (found.get("/Font") or {}).values():
        yield font.get_object()
    for drawn in (found.get("/XObject") or {}).values():
        yield from within(drawn.get_object().get("/Resources"), seen)


def _doubts(font: Mapping[str, Any] | None) -> dict[str, Tell]:
    """Return what may be wrong with text in a font, and how the text tells that it is."""
    from pypdf._cmap import get_encoding  # what pypdf reads a font by: no other place has it

    if not font:
        return {}
    found: dict[str, Tell] = {}
    if _unmapped(font):
        found[NO_MAP] = lambda text: bool(text.strip())
    encoding, characters = get_encoding(font)  # type: ignore[arg-type]
    if isinstance(encoding, dict):
        names = [name for name in encoding.values() if len(name) > 1 and name.startswith("/")]
        if names:
            found[NO_LETTERS] = lambda text: any(name in text for name in names)
    if _needs_its_map(font, characters):
        known = set("".join(characters.values()))
        found[GAPS] = lambda text: any(c not in known and not c.isspace() for c in text)
    return found


def _unmapped(font: Mapping[str, Any]) -> bool:
    """Return whether pypdf can know a font's glyphs by their numbers alone."""
    return "/ToUnicode" not in font and _numbered(font)


def _numbered(font: Mapping[str, Any]) -> bool:
    """Return whether a font's codes are the numbers of glyphs, not of characters."""
    encoding = as_object(font.get("/Encoding"))
    if font.get("/Subtype") == "/Type0":
        return not (isinstance(encoding, str) and any(part in encoding for part in CHARSETS))
    flags = (as_object(font.get("/FontDescriptor")) or {}).get("/Flags", 0)
    return font.get("/Subtype") == "/TrueType" and not encoding and bool(flags & SYMBOLIC)


def _needs_its_map(font: Mapping[str, Any], characters: Mapping[str, str]) -> bool:
    """Return whether a code that is absent from a font's map to Unicode says nothing by itself.

    It does where the codes are characters; not where the map makes others of these.
    """
    from pypdf._cmap import get_encoding
    from pypdf.generic import DictionaryObject, StreamObject

    if not isinstance(as_object(font.get("/ToUnicode")), StreamObject):
        return False
    if font.get("/Subtype") == "/Type0" or _numbered(font):
        return _numbered(font)
    rest = {key: value for key, value in font.items() if key != "/ToUnicode"}
    plain, own = get_encoding(DictionaryObject(rest))
    if not isinstance(plain, dict):
        return False
    pairs = (
        (own.get(code, plain.get(ord(code), "")), to)
        for code, to in characters.items()
        if len(code) == 1
    )
    return any(a != b and f"{a}{b}".isascii() and a.isalnum() and b.isalnum() for a, b in pairs)


def as_object(value: Any) -> Any:
    """Return what an indirect object stands for; anything else, None included, is itself."""
    return value.get_object() if value is not None else None
