from __future__ import annotations

import contextlib
import io
import random

import pypdf
import pytest
from pypdf.annotations import FreeText

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora.extract import Extracted, extract
from spanbench_pipeline_tests.corpora.pdfs import CMAP, filled, mapped, pdf, stream

VERSION = f"pypdf {pypdf.__version__}"


def read(data: bytes) -> Extracted:
    return extract("p.pdf", data, "p.pdf")


# Pages


def test_pages_without_text_are_noted_by_their_numbers() -> None:
    found = read(pdf("One.", "", "Three.", "", "", ""))
    assert found.text == "One.\n\nThree.\n\n\n"
    assert found.extractor == VERSION
    (note,) = found.notes
    assert note.startswith("pages 2, 4-6: no text")
    assert "OCR" in note


def test_a_pdf_that_is_read_whole_has_no_notes() -> None:
    assert read(pdf("One.", "Two.")) == Extracted("One.\nTwo.", VERSION)


def test_a_font_without_a_map_is_noted() -> None:
    found = read(mapped())
    assert [note.partition(":")[0] for note in found.notes] == ["page 1", "page 1"]
    assert any("without a map to Unicode" in note for note in found.notes)


@pytest.mark.parametrize(
    ("font", "shown", "noted"),
    [
        (b"/Type0 /Encoding /UniGB-UCS2-H /DescendantFonts [8 0 R]", b"<542f7528>", False),
        (b"/Type0 /Encoding 7 0 R /DescendantFonts [8 0 R]", b"<00410042>", True),
        (b"/Type0 /Encoding /Identity-H /DescendantFonts [8 0 R]", b"<00200020>", False),
        (b"/Type1 /Encoding /WinAnsiEncoding", b"(ten)", False),
        (b"/TrueType", b"(ten)", False),
        (b"/Type3 /Encoding << /Differences [1 /g12 /g13] >>", b"<0102>", True),
        (b"/Type1 /Encoding << /Differences [1 /t /e /n] >>", b"<010203>", False),
        (b"/Type1 /Encoding << /Differences [1 /f_i /l] >>", b"<0102>", True),
        (b"/Type1 /Encoding << /Differences [1 /A.sc /one.oldstyle] >>", b"<02>", True),
        (b"/Type1 /Encoding << /Differences [1 /x41 /C0_1 /H123] >>", b"<01>", True),
        (b"/Type1 /Encoding << /Differences [1 /f_i /s] >>", b"(and/or /s/ 1/2/24 /x)", False),
        (b"/Type1 /Encoding << /Differences [1 /A /N] >>", b"(N/A /NA)", False),
        (b"/Type1 /Encoding << /Differences [1 /uni0074] >>", b"<01>", False),
        (b"/TrueType /FontDescriptor << /Flags 4 >>", b"(ten)", True),
        (b"/TrueType /FontDescriptor << /Flags 32 >>", b"(ten)", False),
        (b"/TrueType /Encoding /WinAnsiEncoding /FontDescriptor << /Flags 4 >>", b"(ten)", False),
    ],
)
def test_fonts_are_noted_where_only_the_numbers_of_their_glyphs_are_known(
    font: bytes, shown: bytes, noted: bool
) -> None:
    data = mapped(font=b"<< /Type /Font /BaseFont /A+Foo /Subtype %s >>" % font, shown=shown)
    assert any("without a map" in note for note in read(data).notes) == noted


@pytest.mark.parametrize(
    ("font", "shown", "text", "noted"),
    [
        # The map has t, e, n for codes 1, 2, 3.
        (b"/Type0 /Encoding /Identity-H /DescendantFonts [8 0 R]", b"<000100020003>", "ten", False),
        (b"/Type0 /Encoding /Identity-H /DescendantFonts [8 0 R]", b"<000100410003>", "tAn", True),
        (b"/Type0 /Encoding /UniGB-UCS2-H /DescendantFonts [8 0 R]", b"<00010041>", "tA", False),
        (b"/TrueType /FontDescriptor << /Flags 4 >>", b"<014103>", "tAn", True),
        (b"/TrueType /Encoding /WinAnsiEncoding", b"<014103>", "tAn", False),
        (b"/Type3 /Encoding << /Differences [1 /a /b /c /g4] >>", b"<010203>", "ten", False),
    ],
)
def test_gaps_in_a_map_to_unicode_are_noted_where_codes_are_no_characters(
    font: bytes, shown: bytes, text: str, noted: bool
) -> None:
    whole = b"<< /Type /Font /BaseFont /A+Foo /ToUnicode 7 0 R /Subtype %s >>" % font
    size = 4 if b"Type0" in font else 2
    pairs = b" ".join(b"<%0*x> <%04x>" % (size, n, ord(c)) for n, c in enumerate("ten", 1))
    found = read(mapped(font=whole, shown=shown, more={7: stream(CMAP % (3, pairs))}))
    assert found.text == f"Due in {text} days."
    assert [note.partition(":")[0] for note in found.notes] == ["page 1"] * noted
    assert all("has gaps" in note for note in found.notes)


def test_a_map_that_makes_other_letters_of_an_encoding_leaves_gaps() -> None:
    whole = (
        b"<< /Type /Font /BaseFont /A+Foo /ToUnicode 7 0 R /Subtype /TrueType "
        b"/Encoding /WinAnsiEncoding >>"
    )
    pairs = b"<41> <0074> <42> <0065>"
    found = read(mapped(font=whole, shown=b"(ABC)", more={7: stream(CMAP % (2, pairs))}))
    assert found.text == "Due in teC days."
    (note,) = found.notes
    assert "has gaps" in note


@pytest.mark.parametrize("character", ["\ue000", "\uf001", "\uf8ff", "\U000f0001", "\U0010fffd"])
def test_characters_for_private_use_are_noted(character: str) -> None:
    (note,) = read(mapped("t", character)).notes
    assert note.startswith("page 1: characters for private use")


def test_tex_names_of_glyphs_that_are_read_as_controls_are_noted() -> None:
    font = (
        b"<< /Type /Font /Subtype /Type1 /BaseFont /A /Encoding << /Differences [1 /a11 /a12] >> >>"
    )
    for shown in (b"<01>", b"<02>"):
        (note,) = read(mapped(font=font, shown=shown)).notes
        assert "characters that no text holds" in note


@pytest.mark.parametrize(
    ("annotation", "noted"),
    [
        (b"/Subtype /Stamp /AP << /N 7 0 R >>", True),
        (b"/Subtype /Stamp /AP << /N 4 0 R >>", False),
        (b"/Subtype /FreeText /RC (<body><p>ten days</p></body>)", True),
        (b"/Subtype /FreeText /RC (<body><p> </p></body>)", False),
        (b"/Subtype /Text /Contents (a comment)", False),
        (b"/Subtype /Popup /AP << /N 7 0 R >>", False),
    ],
)
def test_what_is_stamped_onto_a_page_is_noted(annotation: bytes, noted: bool) -> None:
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> /Annots [<< /Type /Annot %s >>] >>" % annotation
    )
    shows = b"<< /Length 0 /Resources << /Font << /F1 5 0 R >> >> >>\nstream\n\nendstream"
    found = read(filled(more={3: page, 7: shows}))
    assert found.text == "Page one."
    assert ["annotations" in note for note in found.notes] == [True] * noted


@pytest.mark.parametrize(
    "character", ["\0", "\x01", "\x9f", "\ufffd", "\uffff", "\x0b", "\f", "\x85"]
)
def test_characters_that_no_text_holds_are_noted(character: str) -> None:
    found = read(mapped("t", character))
    assert found.text == f"Due in t{character} days."
    (note,) = found.notes
    assert note.startswith("page 1: characters that no text holds")


def test_a_surrogate_pair_that_a_font_gives_in_halves_is_joined() -> None:
    assert read(mapped("\ud83d", "\ude00")) == Extracted("Due in \U0001f600 days.", VERSION)


@pytest.mark.parametrize("half", [0xD83D, 0xDE00])
def test_half_a_surrogate_pair_is_refused_by_its_page(half: int) -> None:
    with pytest.raises(InputError, match=rf"^p\.pdf, page 1: character 7 is U\+{half:04X}.*OCR"):
        read(mapped(chr(half), "t"))


def test_text_typed_onto_a_page_as_an_annotation_is_noted() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("One.", "Two.")))
    writer.add_annotation(1, FreeText(text="Agreed: ten days", rect=(50, 550, 200, 650)))
    out = io.BytesIO()
    writer.write(out)
    found = read(out.getvalue())
    assert found.text == "One.\nTwo."
    assert [note.partition(":")[0] for note in found.notes] == ["page 2"]
    assert "annotations" in found.notes[0]


# Encryption


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
@pytest.mark.filterwarnings("error")
def test_a_pdf_that_opens_for_everyone_is_read_however_it_is_encrypted(algorithm: str) -> None:
    assert read(encrypted(algorithm, user="")).text == "Open to all."


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_pdf_with_a_password_is_refused(algorithm: str) -> None:
    with pytest.raises(InputError, match="a PDF with a password"):
        read(encrypted(algorithm, user="u"))


def encrypted(algorithm: str, user: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Open to all.")))
    writer.encrypt(user_password=user, owner_password="o", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


# Forms


def test_values_of_a_form_stand_behind_the_pages_one_a_line_in_its_order() -> None:
    found = read(
        filled(
            b"<< /FT /Tx /T (term) /V (seven \\(7\\) years) >>",
            b"<< /FT /Tx /T (empty) /V () >>",
            b"<< /FT /Tx /T (none) /DV (a default) >>",
            b"<< /FT /Tx /T (blank) /V <FEFF200B0020> >>",
            b"<< /FT /Tx /T (address) /V (1 Main St\\rSalem\\r\\nOregon) >>",
            b"<< /FT /Btn /T (agreed) /V /Yes >>",
            b"<< /FT /Btn /T (refused) /V /Off >>",
            b"<< /FT /Ch /T (law) /V [(Oregon) (Ohio)] >>",
            b"<< /FT /Sig /T (signed) /V << /Type /Sig /Contents <00> >> >>",
            b"<< /FT /Tx /T <FEFF00E900740061> /V <FEFF010D65E5D83DDE00> >>",
            b"<< /FT /Tx /T (count) /V 7 >>",
        )
    )
    assert found.text == (
        "Page one.\nterm: seven (7) years\naddress: 1 Main St\nSalem\nOregon\nagreed: Yes\n"
        "law: Oregon, Ohio\n\u00e9ta: \u010d\u65e5\U0001f600\ncount: 7"
    )
    assert found.extractor == f"{VERSION} + form values"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        # ISO 32000-1, tables 227 and 231: an option is [what is exported, what is shown].
        (
            b"/FT /Ch /T (state) /Opt [[(DE) (Delaware)] [(NY) (New York)]] /V (DE)",
            "state: Delaware",
        ),
        (b"/FT /Ch /T (s) /Opt [[(a) (A)] [(b) (B)] (c)] /V [(b) (c) (a)]", "s: B, c, A"),
        (b"/FT /Ch /T (s) /Opt [[(a) (A)]] /V (typed)", "s: typed"),
        (b"/FT /Btn /Ff 49152 /T (term) /Opt [(One year) (Two years)] /V /1", "term: Two years"),
        (b"/FT /Btn /Ff 49152 /T (term) /Opt [(One year)] /V /7", "term: 7"),
        (b"/FT /Btn /T (agreed) /AS /Yes", "agreed: Yes"),
        (b"/FT /Btn /T (agreed) /AS /Off", ""),
        (b"/FT /Btn /T (agreed) /AS /Yes /V /Off", ""),
        (b"/FT /Btn /T (pay) /Kids [<< /AS /Off >> << /AS /Monthly >>]", "pay: Monthly"),
        (b"/FT /Btn /Ff 65536 /T (send) /AS /Yes", ""),
        (b"/FT /Btn /T (agreed) /V null /AS /Yes", "agreed: Yes"),
        (b"/FT /Btn /T (n) /V (x1) /Opt [(a) (b)]", "n: x1"),
        (b"/FT /Ch /T (odd) /Opt [[] [(a)] 7 [[(b)] (B)]] /V (a)", "odd: a"),
        (b"/FT /Ch /T (odd) /Opt 7 /V [[(a)] << >> (b)]", "odd: a, b"),
        (b"/FT /Tx /V (no name)", "no name"),
        (b"/Kids [<< /FT /Tx /T (kid) /V (x) >>]", "kid: x"),
    ],
)
def test_a_field_reads_as_the_page_shows_it(field: bytes, lines: str) -> None:
    found = read(filled(b"<< %s >>" % field))
    assert found.text == "\n".join(filter(None, ("Page one.", lines)))
    assert found.notes == ()


@pytest.mark.parametrize("kind", [b"/FT /Tx", b""])
def test_a_password_is_left_out_and_noted_by_its_field(kind: bytes) -> None:
    found = read(filled(b"<< %s /Ff 8192 /T (pin) /V (hunter2) >>" % kind))
    assert found.text == "Page one."
    (note,) = found.notes
    assert note.startswith("form field 'pin': a password")
    assert "hunter2" not in note


@pytest.mark.parametrize(
    "catalog", [b"", b"/AcroForm << /Fields [] >>", b"/AcroForm << /Fields [11 0 R] >>"]
)
def test_a_field_on_a_page_that_the_form_does_not_list_is_read(catalog: bytes) -> None:
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> /Annots [11 0 R 13 0 R 14 0 R] >>"
    )
    more = {
        1: b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        3: page,
        12: b"<< /FT /Tx /T (buyer) /V (Northwind) /Kids [13 0 R 14 0 R] >>",
        13: b"<< /Subtype /Widget /Parent 12 0 R >>",
        14: b"<< /Subtype /Widget /Parent 12 0 R >>",
    }
    found = read(filled(b"<< /Subtype /Widget /FT /Tx /T (rent) /V (5,000 USD) >>", more=more))
    assert found.text == "Page one.\nrent: 5,000 USD\nbuyer: Northwind"
    assert found.notes == ()


def test_a_field_has_its_full_name_and_the_value_that_stands_above_it() -> None:
    data = filled(
        b"<< /T (buyer) /Kids [21 0 R 22 0 R] >>",
        b"<< /FT /Btn /T (pay) /V /Monthly /Kids [23 0 R 24 0 R] >>",
        b"<< /FT /Tx /T (both) /V (same) /Kids [25 0 R] >>",
        b"<< /FT /Tx /T (twice) /V (a) >>",
        b"<< /FT /Tx /T (twice) /V (a) >>",
        more={
            21: b"<< /FT /Tx /T (name) /V (Northwind) /Parent 11 0 R >>",
            22: b"<< /FT /Tx /T (a\\nb) /V 26 0 R /Parent 11 0 R >>",
            23: b"<< /Subtype /Widget /AS /Off /Parent 12 0 R >>",
            24: b"<< /Subtype /Widget /AS /Monthly /Parent 12 0 R >>",
            25: b"<< /FT /Tx /T (kid) /Parent 13 0 R >>",
            26: b"<< /Length 6 >>\nstream\na long\nendstream",
        },
    )
    assert read(data).text == (
        "Page one.\nbuyer.name: Northwind\nbuyer.a b: a long\npay: Monthly\nboth.kid: same\n"
        "twice: a"
    )


@pytest.mark.parametrize(
    "data", [filled(), filled(b"<< /FT /Tx /T (a) >>"), filled(b"<< /FT /Btn /T (a) /V /Off >>")]
)
def test_a_form_without_values_changes_nothing(data: bytes) -> None:
    assert read(data) == Extracted("Page one.", VERSION)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"<FEFFD83D0041>", "Page one."),  # half a surrogate pair
        (b"<FEFF00410001>", "Page one.\nx: A\x01"),
    ],
)
def test_a_value_that_is_no_text_is_noted_by_its_field(value: bytes, text: str) -> None:
    found = read(filled(b"<< /FT /Tx /T (x) /V %s >>" % value))
    assert found.text == text
    (note,) = found.notes
    assert note.startswith("form field 'x': ")


@pytest.mark.parametrize(
    ("fields", "more", "word"),
    [
        ([b"<< /T (a) /Kids [11 0 R] >>"], {}, "within themselves"),
        ([b"<< /T (a) /Kids [12 0 R] >>", b"<< /T (b) /Kids [11 0 R] >>"], {}, "themselves"),
        ([b"<< /T (a) /Kids 7 >>"], {}, "fields can be read"),
        ([b"<< /T (a) /V (x) >>"], {1: b"<< /Pages 2 0 R /AcroForm [1] >>"}, "can be read"),
    ],
)
def test_a_damaged_form_is_noted_and_the_pages_are_read(
    fields: list[bytes], more: dict[int, bytes], word: str
) -> None:
    found = read(filled(*fields, more=more))
    assert found.text == "Page one."
    (note,) = found.notes
    assert word in note


def test_a_form_whose_text_is_xml_is_noted() -> None:
    (note,) = read(
        filled(form=b"/XFA 6 0 R", more={6: b"<< /Length 0 >>\nstream\n\nendstream"})
    ).notes
    assert "XFA" in note


def test_a_field_that_many_ways_lead_to_is_read_once() -> None:
    twins = {21 + n: b"<< /T (k) /Kids [%d 0 R %d 0 R] >>" % (22 + n, 22 + n) for n in range(25)}
    last = {46: b"<< /T (z) /V (x) >>"}
    found = read(filled(b"<< /T (r) /Kids [21 0 R 21 0 R] >>", more=twins | last))
    assert found.text.startswith("Page one.\nr.k.k.")
    assert found.text.count("z: x") == 1


# Damage


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"PK\x03\x04....word/document.xml", "Word"),
        (b"{\\rtf1 Agreement}", "RTF"),
        (b"<html>Not found</html>", ""),
    ],
)
def test_what_is_no_pdf_is_refused_as_what_it_seems_to_be(data: bytes, what: str) -> None:
    with pytest.raises(InputError, match=f"^p.pdf: cannot be read as PDF.*{what}"):
        read(data)


def test_damage_is_refused_by_name_or_read_and_never_fails_otherwise() -> None:
    rng = random.Random(7)
    whole = filled(b"<< /FT /Tx /T (a) /V (b) /Kids [3 0 R] >>", b"<< /T (c) /V [(d)] >>")
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(9, len(data))] = rng.choice(b"0 /<>[]()R\0\xff")
        with contextlib.suppress(InputError):
            read(bytes(data)).text.encode("utf-8")
