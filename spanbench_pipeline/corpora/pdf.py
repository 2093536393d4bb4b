"""From a PDF to its text: its pages, then the values of its form, and what of it cannot be read."""

from __future__ import annotations

import io
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from spanbench_pipeline.codepoints import NO_CHARACTER, is_blank, join_surrogates
from spanbench_pipeline.corpora import filetypes
from spanbench_pipeline.corpora import pdf_forms as forms
from spanbench_pipeline.errors import InputError

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MEND = "print the PDF to a new PDF and run OCR on it"
NO_TEXT = "no text: a scan, which needs OCR, or empty pages"
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
PRIVATE = (
    "characters for private use (U+E000 and the like), whose meaning only their font knows: "
    f"bullets, or letters that are lost. If letters: {MEND}"
)
NO_CHARACTERS = (
    "characters that no text holds, such as NUL, where a font's map to Unicode is wrong or absent: "
    f"{MEND}"
)
ANNOTATIONS = "typed onto the page as annotations, which are not read: print the PDF to a new PDF"
NOT_EXAMINED = "damaged fonts or annotations: whether all of the text was read is not known"
CHARSETS = ("UCS2", "UTF16", "GB-EUC", "GBpc-EUC", "GBK", "ETen", "90ms-RKSJ")
"""Parts of the names of predefined encodings from which pypdf knows the characters."""
PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
NO_LINE_END = re.compile("[\x0b\x0c\x85]")
"""What a text file may hold and a page's text cannot: pypdf ends lines with newlines alone."""
SYMBOLIC = 1 << 2
"""Flag of a font whose codes are its own."""
TYPED = ("/Contents", "/RC")
"""Where an annotation has the text that somebody typed, plain and rich."""
UNSHOWN = ("/Popup", "/Widget")
"""Annotations that show no text of their own, or a field's, which is read."""
Tell = Callable[[str], bool]


@dataclass(frozen=True)
class PdfText:
    """A PDF's text with ``n_values`` lines of form values at its end; ``notes``: see ``read``."""

    text: str
    n_values: int
    notes: tuple[str, ...]


def read(data: bytes, where: str) -> PdfText:
    """Return a PDF's text: its pages joined by one newline, then its form's values, one a line.

    ``notes`` say which pages cannot be read as a person reads them, and why, one sentence each.
    Raises InputError, opening with ``where``, for a PDF that is damaged or locked, and for half a
    surrogate pair, naming its page.
    """
    # What pypdf makes of a damaged file is said once, by the error below.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with _damage(where, data):
        reader = _opened(data, where)
        pages = []
        faults = defaultdict[str, list[int]](list)
        for number, page in enumerate(reader.pages, 1):
            text = _joined(page.extract_text(), f"{where}, page {number}")
            pages.append(text)
            for fault in _faults(page, text):
                faults[fault].append(number)
    notes = [f"{_numbers(found)}: {fault}" for fault, found in sorted(faults.items())]
    form = forms.read(reader, where)
    notes += form.notes
    return PdfText("\n".join([*pages, *form.lines]), len(form.lines), tuple(notes))


@contextmanager
def _damage(where: str, data: bytes) -> Iterator[None]:
    """What is raised inside becomes an InputError: a damaged PDF makes pypdf raise almost anything.

    What is no PDF at all is told as what it seems to be.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        seems = "" if data.startswith(b"%PDF-") else filetypes.seems(data)
        hint = f". {seems}" if seems else ""
        raise InputError(
            f"{where}: cannot be read as PDF: {str(error) or type(error).__name__}{hint}"
        ) from error


def _opened(data: bytes, where: str) -> PdfReader:
    """The reader of the file, unlocked where it opens without a password."""
    import pypdf
    from pypdf import PasswordType

    reader = pypdf.PdfReader(io.BytesIO(data))
    # Many PDFs carry only an owner's password: they open for everyone, with the empty one.
    if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
        raise InputError(f"{where}: a PDF with a password. Save a copy without one.")
    return reader


def _joined(text: str, where: str) -> str:
    try:
        return join_surrogates(text, where)
    except InputError as error:
        raise InputError(f"{error}. A font's map to Unicode is wrong: {MEND}") from error


def _faults(page: PageObject, text: str) -> Iterator[str]:
    """What of a page with this text a person reads and spanbench does not."""
    if is_blank(text):
        yield NO_TEXT
    if NO_CHARACTER.search(text) or NO_LINE_END.search(text):
        yield NO_CHARACTERS
    if PRIVATE_USE.search(text):
        yield PRIVATE
    try:
        fonts = _fonts(page.get("/Resources"), set())
        shown = _shown_faults(page) if any(map(_doubts, fonts)) else set()
        written = any(_is_written(annotation) for annotation in page.get("/Annots") or ())
    except Exception:  # as for the whole file; the text was read, so that is no reason to refuse it
        yield NOT_EXAMINED
        return
    yield from shown
    if written:
        yield ANNOTATIONS


def _fonts(resources: Any, seen: set[int]) -> Iterator[Mapping[str, Any]]:
    """The fonts of a page's resources and of the forms (XObjects) that it draws."""
    found = resources.get_object() if resources else None
    if not found or id(found) in seen:
        return
    seen.add(id(found))
    for font in (found.get("/Font") or {}).values():
        yield font.get_object()
    for drawn in (found.get("/XObject") or {}).values():
        yield from _fonts(drawn.get_object().get("/Resources"), seen)


def _doubts(font: Mapping[str, Any] | None) -> dict[str, Tell]:
    """What may be wrong with text in a font, and how the text tells that it is."""
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
    """Whether pypdf can know a font's glyphs by their numbers alone."""
    return "/ToUnicode" not in font and _numbered(font)


def _numbered(font: Mapping[str, Any]) -> bool:
    """Whether a font's codes are the numbers of glyphs, not of characters."""
    encoding = _object(font.get("/Encoding"))
    if font.get("/Subtype") == "/Type0":
        return not (isinstance(encoding, str) and any(part in encoding for part in CHARSETS))
    flags = (_object(font.get("/FontDescriptor")) or {}).get("/Flags", 0)
    return font.get("/Subtype") == "/TrueType" and not encoding and bool(flags & SYMBOLIC)


def _needs_its_map(font: Mapping[str, Any], characters: Mapping[str, str]) -> bool:
    """Whether a code that is absent from a font's map to Unicode says nothing by itself.

    It does where the codes are characters; not where the map makes others of these.
    """
    from pypdf._cmap import get_encoding
    from pypdf.generic import DictionaryObject, StreamObject

    if not isinstance(_object(font.get("/ToUnicode")), StreamObject):
        return False
    if font.get("/Subtype") == "/Type0" or _numbered(font):
        return _numbered(font)
    rest = {key: value for key, value in font.items() if key != "/ToUnicode"}
    plain, _ = get_encoding(DictionaryObject(rest))
    if not isinstance(plain, dict):
        return False
    pairs = ((plain.get(ord(code), ""), to) for code, to in characters.items() if len(code) == 1)
    return any(a != b and f"{a}{b}".isascii() and a.isalnum() and b.isalnum() for a, b in pairs)


def _shown_faults(page: PageObject) -> set[str]:
    """What is wrong with the page's text by the font that it is in.

    A font within its reach is no fault.
    """
    found: set[str] = set()
    doubts: dict[int, dict[str, Tell]] = {}

    def visit(text: str, _cm: Any, _tm: Any, font: Mapping[str, Any] | None, _size: Any) -> None:
        if id(font) not in doubts:
            doubts[id(font)] = _doubts(font)
        found.update(fault for fault, tell in doubts[id(font)].items() if tell(text))

    page.extract_text(visitor_text=visit)
    return found


def _is_written(annotation: Any) -> bool:
    """Whether an annotation is text that somebody typed or stamped onto the page."""
    found = annotation.get_object()
    if found.get("/Subtype") in UNSHOWN:
        return False
    typed = TYPED if found.get("/Subtype") == "/FreeText" else ()
    if any(not is_blank(_typed(_object(found.get(key)))) for key in typed):
        return True
    shown = _object((_object(found.get("/AP")) or {}).get("/N")) or {}
    return any(True for _ in _fonts(shown.get("/Resources"), set()))


def _typed(value: Any) -> str:
    from pypdf.generic import StreamObject

    rich = value.get_data().decode("utf-8", "replace") if isinstance(value, StreamObject) else value
    return re.sub("<[^>]*>", "", str(rich or ""))


def _object(value: Any) -> Any:
    return value.get_object() if value is not None else None


def _numbers(pages: list[int]) -> str:
    """``page 3`` or ``pages 2-4, 9``."""
    parts: list[str] = []
    for _, group in groupby(enumerate(pages), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ("page " if len(pages) == 1 else "pages ") + ", ".join(parts)
