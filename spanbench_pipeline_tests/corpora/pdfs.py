"""Small PDFs for tests: by fpdf2, and written object by object where no library makes them."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import fpdf

CMAP = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /X def /CMapType 2 def 1 begincodespacerange <0000> <ffff> endcodespacerange
%d beginbfchar %s endbfchar endcmap end end"""


def pdf(*pages: str, saved: int = 2024, **encryption: Any) -> bytes:
    """One page a text; an empty text is a page without any."""
    made = fpdf.FPDF()
    made.set_creation_date(datetime(saved, 1, 1, tzinfo=UTC))
    if encryption:
        made.set_encryption(**encryption)
    for text in pages:
        made.add_page()
        if text:
            made.set_font("helvetica", size=12)
            made.multi_cell(0, 10, text)
    return bytes(made.output())


def written(objects: dict[int, bytes]) -> bytes:
    """A PDF of these objects, number -> body; object 1 is the catalog."""
    out, offsets = io.BytesIO(b"%PDF-1.7\n"), {}
    out.seek(0, io.SEEK_END)
    for number, body in objects.items():
        offsets[number] = out.tell()
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    size, start = max(objects) + 1, out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % size)
    for number in range(1, size):
        kind = b"n" if number in offsets else b"f"
        out.write(b"%010d 00000 %s \n" % (offsets.get(number, 0), kind))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start))
    return out.getvalue()


def stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def mapped(
    *characters: str,
    font: bytes | None = None,
    shown: bytes | None = None,
    more: dict[int, bytes] | None = None,
) -> bytes:
    """A page ``Due in <glyphs> days.`` whose glyphs 1, 2, ... the font maps to ``characters``.

    Without characters the font has no map; ``font`` is another font than the usual one, and
    ``shown`` what is shown in it in place of one glyph a character. ``more`` is added to the
    objects.
    """
    pairs = [
        b"<%04x> <%s>" % (number, text.encode("utf-16-be", "surrogatepass").hex().encode())
        for number, text in enumerate(characters, 1)
    ]
    glyphs = shown or b"<%s>" % b"".join(b"%04x" % (n + 1) for n in range(len(characters) or 2))
    to_unicode = b"/ToUnicode 7 0 R" if characters else b""
    page = b"BT /F1 12 Tf 72 700 Td (Due in ) Tj /F2 12 Tf %s Tj /F1 12 Tf ( days.) Tj ET" % glyphs
    return written(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
            4: stream(page),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            6: font
            or b"<< /Type /Font /Subtype /Type0 /BaseFont /A+Foo /Encoding /Identity-H "
            b"/DescendantFonts [8 0 R] %s >>"
            % to_unicode,
            7: stream(CMAP % (len(pairs), b" ".join(pairs))),
            8: b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A+Foo /DW 1000 /CIDSystemInfo "
            b"<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        }
        | (more or {})
    )


def filled(*fields: bytes, form: bytes = b"", more: dict[int, bytes] | None = None) -> bytes:
    """A page ``Page one.`` with a form of these field dictionaries, objects 11, 12, ...

    ``form`` is added to the form's dictionary, ``more`` to the objects.
    """
    numbered = dict(enumerate(fields, 11))
    kids = b" ".join(b"%d 0 R" % number for number in numbered)
    return written(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [%s] %s >> >>" % (kids, form),
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>",
            4: stream(b"BT /F1 12 Tf 72 700 Td (Page one.) Tj ET"),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        }
        | numbered
        | (more or {})
    )
