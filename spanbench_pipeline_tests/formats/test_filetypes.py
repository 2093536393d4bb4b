from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import filetypes
from spanbench_pipeline.formats.strict_json import decode
from spanbench_pipeline_tests.corpora.pdfs import pdf

LATIN = "Governing Law: this Agreement is governed by the laws of Oregon.\r\n"
RUSSIAN = "Настоящий договор регулируется правом Чешской Республики.\n"
CHINESE = "本合同适用中华人民共和国法律。\n第 2 条 通知期限为 30 天。\n"
ARABIC = "تخضع هذه الاتفاقية لقوانين دولة الإمارات العربية المتحدة.\n"
CZECH = "Tato smlouva se řídí právem České republiky.\n"
THAI = "สัญญานี้อยู่ภายใต้กฎหมายไทย\n"
HINDI = "यह अनुबंध भारत के कानूनों के अधीन है।\n"
HEBREW = "הסכם זה כפוף לדיני מדינת ישראל.\n"
JAPANESE = "本契約は日本法に準拠する。\n"


def zipped(*names: str, first: bytes = b"") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        if first:
            made.writestr("mimetype", first)
        for name in names:
            made.writestr(name, "<x/>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        *((t.encode(f"utf-16-{end}"), "UTF-16") for t in (LATIN, RUSSIAN, ARABIC, HEBREW, CZECH)
          for end in ("le", "be")),
        *((t.encode(f"utf-32-{end}"), "UTF-32") for t in (LATIN, RUSSIAN, CHINESE, THAI)
          for end in ("le", "be")),
        *((t.encode(f"utf-{n}"), f"UTF-{n}") for t in (LATIN, CHINESE) for n in (16, 32)),
        (b"\xfe\xff" + LATIN.encode("utf-16-be"), "UTF-16"),
        (zipped("[Content_Types].xml", "word/document.xml"), "Word"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "Excel"),
        (zipped("ppt/presentation.xml"), "PowerPoint"),
        (zipped("content.xml", first=b"application/vnd.oasis.opendocument.text"), "OpenDocument"),
        (zipped("a.txt"), "zip"),
        (pdf("Text."), "PDF"),
        (b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "PDF"),
        (b"\n{\\rtf1\\ansi Agreement}", "RTF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "OLE"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "ELF"),
        (b"MZ\x90\0\x03\0\0\0", "program"),
        (gzip.compress(LATIN.encode(), mtime=0), "gzip"),
        (bz2.compress(LATIN.encode()), "bzip2"),
        (lzma.compress(LATIN.encode()), "xz"),
        (b"7z\xbc\xaf\x27\x1c\0\4", "7-Zip"),
        (b"Rar!\x1a\x07\x01\0", "RAR"),
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
        (b"GIF89a\x01\0\x01\0", "GIF"),
        (b"II*\0\x08\0\0\0", "TIFF"),
        (b"%!PS-Adobe-3.0\n", "PostScript"),
        (JAPANESE.encode("iso2022_jp"), "ISO-2022"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused_as_what_it_seems_to_be(data: bytes, what: str) -> None:
    with pytest.raises(InputError, match=r"^a\.txt: no.* seems to be") as caught:
        decode(data, "a.txt")
    assert what in str(caught.value)


@pytest.mark.parametrize("text", [RUSSIAN, CHINESE, ARABIC, CZECH, THAI, HINDI, HEBREW, JAPANESE])
@pytest.mark.parametrize("before", ["", "\ufeff", "\f", "MZ Holdings\n", "GIF8 Ltd.\n", "PK\n"])
def test_contracts_of_every_language_are_text(before: str, text: str) -> None:
    assert decode((before + text).encode(), "a.txt") == before + text


@pytest.mark.parametrize(
    "text",
    [
        "\t\n\v\f\r\x1a",
        "\x1b[1mBold\x1b[0m",
        "See {\\rtf and %PDF- and PK\x03\x04.",
        "BZh91, Rar! and 7z are names of formats.",
        "<html><body>A contract</body></html>",
        "\U0001f600 e\u0301 \u200b\u00ad \ue000 \ufffd \x85",
    ],
)
def test_text_may_hold_whatever_is_no_nul(text: str) -> None:
    assert decode(text.encode(), "a.txt") == text


def test_a_nul_in_few_other_bytes_is_no_sign_of_utf16() -> None:
    with pytest.raises(InputError, match="byte 2") as caught:
        decode(b"ab\0cd", "a.txt")
    assert "seems" not in str(caught.value)


@pytest.mark.parametrize(("at", "line"), [(0, 1), (5, 1), (150, 3)])
def test_a_nul_in_other_text_is_named_by_byte_and_line(at: int, line: int) -> None:
    data = (LATIN * 4).encode()
    with pytest.raises(InputError, match=rf"a\.txt: .*byte {at} \(line {line}\) is NUL") as caught:
        decode(data[:at] + b"\0" + data[at:], "a.txt")
    assert "seems" not in str(caught.value)


def test_text_of_another_code_page_is_not_taken_for_anything() -> None:
    with pytest.raises(InputError, match=r"not UTF-8.*Save the file as UTF-8") as caught:
        decode(("MZ " + CZECH).encode("cp1250"), "a.txt")
    assert "seems" not in str(caught.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\x1b"), max_size=60))
def test_text_is_refused_for_its_opening_alone(text: str) -> None:
    data = ("Agreement " + text).encode()
    assert filetypes.why_no_text(data) is None
    assert decode(data, "a.txt") == "Agreement " + text


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x24F), min_size=4, max_size=60))
def test_latin_text_in_utf16_without_a_mark_is_always_refused(text: str) -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        with pytest.raises(InputError):
            decode((text + " \n").encode(encoding), "a.txt")
