"""From a PDF to its text: its pages, then the values of its form, and what of it cannot be read."""

from __future__ import annotations

import io
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from spanbench_pipeline.core.codepoints import NO_CHARACTER, is_blank, join_surrogates
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import pdf_fonts as fonts
from spanbench_pipeline.corpora import pdf_forms as forms
from spanbench_pipeline.formats import filetypes

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

NO_TEXT = "no text: a scan, which needs OCR, or empty pages"
PRIVATE = (
    "characters for private use (U+E000 and the like), whose meaning only their font knows: "
    f"bullets, or letters that are lost. If letters: {fonts.MEND}"
)
NO_CHARACTERS = (
    "characters that no text holds, such as NUL, where a font's map to Unicode is wrong or absent: "
    f"{fonts.MEND}"
)
ANNOTATIONS = "typed onto the page as annotations, which are not read: print the PDF to a new PDF"
NOT_EXAMINED = "damaged fonts or annotations: whether all of the text was read is not known"
PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
NO_LINE_END = re.compile("[\x0b\x0c\x85]")
"""What a text file may hold and a page's text cannot: pypdf ends lines with newlines alone."""
TYPED = ("/Contents", "/RC")
"""Where an annotation has the text that somebody typed, plain and rich."""
UNSHOWN = ("/Popup", "/Widget")
"""Annotations that show no text of their own, or a field's, which is read."""


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
    """Yield what is raised inside becomes an InputError: a damaged PDF makes pypdf raise almost
    anything.

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
    """Return the reader of the file, unlocked where it opens without a password."""
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
        raise InputError(f"{error}. A font's map to Unicode is wrong: {fonts.MEND}") from error


def _faults(page: PageObject, text: str) -> Iterator[str]:
    """Yield what of a page with this text a person reads and spanbench does not."""
    if is_blank(text):
        yield NO_TEXT
    if NO_CHARACTER.search(text) or NO_LINE_END.search(text):
        yield NO_CHARACTERS
    if PRIVATE_USE.search(text):
        yield PRIVATE
    try:
        shown = fonts.faults(page)
        written = any(_is_written(annotation) for annotation in page.get("/Annots") or ())
    except Exception:  # as for the whole file; the text was read, so that is no reason to refuse it
        yield NOT_EXAMINED
        return
    yield from shown
    if written:
        yield ANNOTATIONS


def _is_written(annotation: Any) -> bool:
    """Return whether an annotation is text that somebody typed or stamped onto the page."""
    found = annotation.get_object()
    if found.get("/Subtype") in UNSHOWN:
        return False
    typed = TYPED if found.get("/Subtype") == "/FreeText" else ()
    if any(not is_blank(_typed(fonts.as_object(found.get(key)))) for key in typed):
        return True
    shown = fonts.as_object((fonts.as_object(found.get("/AP")) or {}).get("/N")) or {}
    return any(True for _ in fonts.within(shown.get("/Resources")))


def _typed(value: Any) -> str:
    from pypdf.generic import StreamObject

    rich = value.get_data().decode("utf-8", "replace") if isinstance(value, StreamObject) else value
    return re.sub("<[^>]*>", "", str(rich or ""))


def _numbers(pages: list[int]) -> str:
    """Return ``page 3`` or ``pages 2-4, 9``."""
    parts: list[str] = []
    for _, group in groupby(enumerate(pages), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ("page " if len(pages) == 1 else "pages ") + ", ".join(parts)
