"""From a document's bytes to its text. Nothing is normalised: every offset counts in this text."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from spanbench_pipeline.corpora import strict_json
from spanbench_pipeline.errors import InputError


@dataclass(frozen=True)
class Extracted:
    """A document's text and what made it of the bytes, with its version."""

    text: str
    extractor: str


def extract(name: str, data: bytes, where: str) -> Extracted:
    """The text of a file's bytes, by the extension of its ``name``: one of EXTRACTORS, any case.

    Raises InputError, opening with ``where``, for a file that cannot be decoded or has no text.
    """
    extension = PurePath(name).suffix.lower()
    if not data:
        raise InputError(f"{where}: the file is empty (0 bytes)")
    extracted = EXTRACTORS[extension](data, where)
    # A BOM is a character of the text, but no text: a file of nothing else is empty to a reader.
    if not extracted.text.replace(strict_json.BOM, "").strip():
        hint = " A scanned PDF needs OCR first." if extension == ".pdf" else ""
        raise InputError(f"{where}: no text but white space.{hint}")
    return extracted


def _utf8(data: bytes, where: str) -> Extracted:
    return Extracted(strict_json.decode(data, where), "utf-8")


def _pdf(data: bytes, where: str) -> Extracted:
    """Text of a PDF: its pages joined by one newline."""
    import pypdf
    from pypdf import PasswordType

    # What it makes of a damaged file is said once, by the error below.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        # Many PDFs carry only an owner's password: they open for everyone, with the empty one.
        locked = reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED
        text = None if locked else "\n".join(page.extract_text() for page in reader.pages)
    except pypdf.errors.DependencyError as error:
        raise InputError(f"{where}: an encrypted PDF. Save a copy without a password.") from error
    except Exception as error:  # a damaged PDF makes pypdf raise almost anything
        raise InputError(
            f"{where}: cannot be read as PDF: {str(error) or type(error).__name__}"
        ) from error
    if text is None:
        raise InputError(f"{where}: a PDF with a password. Save a copy without one.")
    return Extracted(text, f"pypdf {pypdf.__version__}")


EXTRACTORS: Mapping[str, Callable[[bytes, str], Extracted]] = {
    ".txt": _utf8,
    ".md": _utf8,
    ".pdf": _pdf,
}
"""Each extension that is a document, and what makes text of it."""
