"""From a document's bytes to its text. Nothing is normalised: every offset counts in this text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from spanbench_pipeline.core.codepoints import NO_CHARACTER, is_blank
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import pdf
from spanbench_pipeline.formats import filetypes, strict_json

FORM_VALUES = " + form values"
"""What a PDF's extractor adds where the values of a form stand after the pages."""


@dataclass(frozen=True)
class Extracted:
    """A document's text and what made it of the bytes, with its version.

    ``notes`` say what of the document a person reads and the text has not, one sentence each.
    """

    text: str
    extractor: str
    notes: tuple[str, ...] = ()


def extract(name: str, data: bytes, where: str) -> Extracted:
    """Return the text of a file's bytes, by the extension of its ``name``: one of EXTRACTORS, any
    case.

    Raises InputError, opening with ``where``, for a file that cannot be decoded or has no text.
    """
    extension = PurePath(name).suffix.lower()
    if not data:
        raise InputError(f"{where}: the file is empty (0 bytes)")
    extracted = EXTRACTORS[extension](data, where)
    if is_blank(extracted.text):
        hint = " A scanned PDF needs OCR first." if extension == ".pdf" else ""
        raise InputError(
            f"{where}: no text but white space and characters that show nothing.{hint}"
        )
    return extracted


def _utf8(data: bytes, where: str) -> Extracted:
    text = strict_json.decode(data, where)
    notes = []
    if filetypes.is_markup(data):
        notes.append("seems to be HTML, whose tags count as text: save it as plain text")
    if strange := list(NO_CHARACTER.finditer(text)):
        line = text.count("\n", 0, strange[0].start()) + 1
        notes.append(
            f"{len(strange):,} characters that no text holds, such as a wrong conversion leaves; "
            f"the first is U+{ord(strange[0][0]):04X} on line {line}"
        )
    return Extracted(text, "utf-8", tuple(notes))


def _pdf(data: bytes, where: str) -> Extracted:
    import pypdf

    made = pdf.read(data, where)
    extractor = f"pypdf {pypdf.__version__}" + (FORM_VALUES if made.n_values else "")
    return Extracted(made.text, extractor, made.notes)


EXTRACTORS: Mapping[str, Callable[[bytes, str], Extracted]] = {
    ".txt": _utf8,
    ".md": _utf8,
    ".pdf": _pdf,
}
"""Each extension that is a document, and what makes text of it."""
