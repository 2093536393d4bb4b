"""What a file seems to be that is taken for UTF-8 text and is none.

A table of signatures rather than a library: only formats that people save contracts in, or mistake
for them, need a name; every other file that is no text is refused for its NULs or its bytes.
"""

from __future__ import annotations

AS_TEXT = "Save its text as UTF-8."
AS_PDF = "As a document it needs the ending .pdf."

PARQUET = b"PAR1"
DATA: tuple[tuple[bytes, str, str], ...] = (
    (PARQUET, "Parquet", "Give it where Parquet is read."),
    (b"ARROW1", "an Arrow file", "Write it as Parquet."),
    (b"SQLite format 3\0", "an SQLite database", "Export its rows."),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive", "Unpack it."),
    (b"\x93NUMPY", "a NumPy array", "Write it as JSON lines."),
    (b"\x80\x04\x95", "a Python pickle", "Write it as JSON lines."),
)
"""The signatures of files of data; rankings and chunks are held to these first."""
SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"\xff\xfe\0\0", "UTF-32", AS_TEXT),
    (b"\0\0\xfe\xff", "UTF-32", AS_TEXT),
    (b"\xff\xfe", "UTF-16", AS_TEXT),
    (b"\xfe\xff", "UTF-16", AS_TEXT),
    (b"%PDF-", "a PDF", AS_PDF),
    (b"{\\rtf", "a document in Rich Text Format (RTF)", AS_TEXT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Word or Office document (OLE)", AS_TEXT),
    (b"%!PS-Adobe", "PostScript", "Make a PDF of it."),
    (b"\x7fELF", "a program (ELF)", "Remove it."),
    (b"MZ\x90\0", "a program (Windows)", "Remove it."),
    (b"\x1f\x8b", "a gzip archive", "Unpack it."),
    (b"BZh91AY&SY", "a bzip2 archive", "Unpack it."),
    (b"\xfd7zXZ", "an xz archive", "Unpack it."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it."),
    (b"Rar!\x1a\x07", "a RAR archive", "Unpack it."),
    (b"\x89PNG", "an image (PNG)", "It needs OCR."),
    (b"\xff\xd8\xff", "an image (JPEG)", "It needs OCR."),
    (b"GIF87a", "an image (GIF)", "It needs OCR."),
    (b"GIF89a", "an image (GIF)", "It needs OCR."),
    (b"II*\0", "an image (TIFF)", "It needs OCR."),
    (b"MM\0*", "an image (TIFF)", "It needs OCR."),
    *DATA,
)
"""How a file opens, what it then seems to be, and what to do; the first that fits counts."""
ZIP = b"PK\x03\x04"
IN_ZIP: tuple[tuple[bytes, str, str], ...] = (
    (b"word/", "a Word document (zip)", AS_TEXT),
    (b"xl/", "an Excel workbook (zip)", AS_TEXT),
    (b"ppt/", "a PowerPoint presentation (zip)", AS_TEXT),
    (b"application/vnd.oasis.opendocument", "an OpenDocument file (zip)", AS_TEXT),
    (b"application/epub+zip", "an e-book (EPUB, zip)", AS_TEXT),
    (b"", "a zip archive", "Unpack it."),
)
"""What stands in the names of a zip's members, and so on; the first that fits counts."""
NEVER_TEXT = (ZIP, b"%PDF-", b"{\\rtf", b"%!PS-Adobe", b"\x7fELF", b"Rar!\x1a\x07")
"""Openings that no contract has, even where every byte behind them is valid UTF-8."""
MARKUP = (b"<!doctype html", b"<html")
SAMPLE = 1 << 16
"""How many bytes are looked at for an encoding without a mark."""
LEAST = 50
"""Of so many bytes of UTF-16, one at least is the NUL of a space, a line end or a Latin letter."""


def seems(data: bytes) -> str | None:
    """Return what the bytes seem to be and what to do: two sentences; None where nothing fits."""
    table = IN_ZIP if data.startswith(ZIP) else SIGNATURES
    for needle, what, do in table:
        if needle in data if table is IN_ZIP else data.startswith(needle):
            return f"It seems to be {what}. {do}"
    if encoding := _unmarked(data):
        return f"It seems to be {encoding} without a byte order mark. {AS_TEXT}"
    return None


def why_no_text(data: bytes) -> str | None:
    """Return why bytes that are valid UTF-8 are no text all the same; None where they are text."""
    opening = data.lstrip(b" \t\r\n\x0c") if not data.startswith(ZIP) else data
    if opening.startswith(NEVER_TEXT):
        return f"no text. {seems(opening)}"
    if b"\x1b$" in data:
        return f"no text in UTF-8. It seems to be ISO-2022 (Japanese, Korean, Chinese). {AS_TEXT}"
    at = data.find(b"\0")
    if at < 0:
        return None
    line = data.count(b"\n", 0, at) + 1
    do = seems(data) or "Remove it, or save the text again."
    return f"no text: byte {at} (line {line}) is NUL, which no text holds. {do}"


def is_markup(data: bytes) -> bool:
    """Return whether text opens as HTML does."""
    return data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(MARKUP)


def _unmarked(data: bytes) -> str | None:
    """UTF-16 or UTF-32 by where the NULs of their spaces, line ends and Latin letters stand."""
    sample = data[:SAMPLE]
    if len(data) % 2 or not sample.count(0):
        return None
    nulls = [sample[at::4].count(0) for at in range(4)]
    # Every character below U+10000 is two NULs and two other bytes in UTF-32.
    if 4 * nulls[3] >= len(sample) and nulls[2]:
        return "UTF-32 (little-endian)"
    if 4 * nulls[0] >= len(sample) and nulls[1]:
        return "UTF-32 (big-endian)"
    even, odd = nulls[0] + nulls[2], nulls[1] + nulls[3]
    if min(even, odd) or max(even, odd) * LEAST < len(sample):
        return None
    return "UTF-16 (little-endian)" if odd else "UTF-16 (big-endian)"
