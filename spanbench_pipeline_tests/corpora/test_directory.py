from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.codepoints import is_blank
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.corpora import directory, files, manifest, queryfile, source
from spanbench_pipeline_tests.corpora import builders
from spanbench_pipeline_tests.corpora.builders import Corpus
from spanbench_pipeline_tests.corpora.pdfs import filled, pdf

LAW = "Preamble.\nGoverning Law: Delaware\nTerm: one year.\n"
ASK = {"query": "Which law?", "doc_id": "a", "gold_texts": ["Governing Law: Delaware"]}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """One document ``a`` and one query about it."""
    return Corpus(tmp_path / "corpus").document("a.txt", LAW).lines(ASK)


def load(corpus: Corpus, **settings: Any) -> EvalSet:
    experiment = builders.experiment(corpus.settings(**settings))
    return source.load(experiment, builders.project(corpus.folder.parent / "home"))


def refused(corpus: Corpus, *parts: str, **settings: Any) -> None:
    """The corpus is refused by one message with these parts, and its files stay as they are."""
    before = builders.listing(corpus.folder.parent)
    with pytest.raises(InputError) as caught:
        load(corpus, **settings)
    for part in parts:
        assert part in str(caught.value)
    assert builders.listing(corpus.folder.parent) == before


def gold(found: EvalSet) -> list[tuple[str, str, int, int]]:
    return [
        (s["query_id"], s["doc_id"], s["start_char"], s["end_char"])
        for s in found.gold_spans.to_pylist()
    ]


# What is read


def test_documents_queries_and_gold_as_they_stand(corpus: Corpus) -> None:
    corpus.document("b.v1.md", "\ufeff# B\r\n\r\nIt lasts \U0001f44d one year.\r")
    corpus.lines(
        ASK,
        "  \t",
        {
            "query_id": "mine",
            "query": "How long?",
            "doc_id": "b.v1",
            "clause_type": "Term",
            "gold_spans": [[19, 27], {"start": 17, "end": 18, "text": "\U0001f44d"}],
            "filters": {"version": 1},
        },
        end="\r\n",
    ).declare('{"b.v1": {"version": 1, "entity": "\\u00c9toile"}}')
    found = load(corpus)
    documents = found.documents.to_pylist()
    assert [d["doc_id"] for d in documents] == ["a", "b.v1"]
    assert documents[0]["text"] == LAW
    assert documents[1]["text"] == "\ufeff# B\r\n\r\nIt lasts \U0001f44d one year.\r"
    assert documents[1]["n_chars"] == 29
    assert {d["title"] for d in documents} == {"a", "b.v1"}
    assert [d["source_file"] for d in documents] == ["a.txt", "b.v1.md"]
    assert {d["extractor"] for d in documents} == {"utf-8"}
    assert documents[1]["metadata"] == [("entity", "\u00c9toile"), ("version", "1")]
    assert found.queries.to_pylist()[0] == {
        "corpus": "own",
        "query_id": "mine",
        "query": "How long?",
        "clause_type": "Term",
        "subset": None,
        "doc_id": "b.v1",
        "filters": [("version", "1")],
    }
    assert gold(found) == [
        ("mine", "b.v1", 17, 18),
        ("mine", "b.v1", 19, 27),
        ("q001", "a", 10, 33),
    ]


def test_files_are_listed_with_role_size_and_hash(corpus: Corpus) -> None:
    corpus.document("queries.md", "a document by the name of another file").declare("{}")
    corpus.queries = corpus.queries.rename(corpus.folder / "queries.md")
    experiment = builders.experiment(corpus.settings())
    found = source.open_source(experiment, builders.project(corpus.folder)).files()
    assert [(f.file, f.role) for f in found] == [
        ("a.txt", "document"),
        ("queries.md", "document"),
        ("queries: queries.md", "queries"),
        ("metadata.json", "metadata"),
    ]
    assert found[0].n_bytes == len(LAW)
    assert found[0].sha256 == builders.sha256(LAW.encode())
    assert {f.note for f in found} == {None}


def test_relative_paths_start_at_the_projects_root(corpus: Corpus) -> None:
    relative = {
        "kind": "directory",
        "documents": "corpus/documents",
        "queries": "corpus/queries.jsonl",
    }
    project = builders.Project(corpus.folder.parent, corpus.folder.parent / "home")
    assert source.load(builders.experiment(relative), project) == load(corpus)


def test_links_to_documents_are_followed(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("Linked text.")
    (corpus.documents / "b.txt").symlink_to(tmp_path / "elsewhere")
    assert load(corpus).documents["text"].to_pylist() == [LAW, "Linked text."]


def test_names_of_files_are_taken_verbatim(corpus: Corpus) -> None:
    for name in (" .txt", "A b, Inc. & Co \u2013 v1.0.md"):
        corpus.document(name, LAW)
    corpus.lines(ASK | {"doc_id": " "}, ASK | {"doc_id": "A b, Inc. & Co \u2013 v1.0"})
    assert [row[:2] for row in gold(load(corpus))] == [
        ("q001", " "),
        ("q002", "A b, Inc. & Co \u2013 v1.0"),
    ]


@pytest.mark.parametrize(("n", "first", "last"), [(3, "q001", "q003"), (1000, "q0001", "q1000")])
def test_ids_by_place_are_padded_to_the_width_of_the_count(
    corpus: Corpus, n: int, first: str, last: str
) -> None:
    corpus.lines(*[ASK] * n)
    ids = load(corpus).queries["query_id"].to_pylist()
    assert (len(ids), ids[0], ids[-1]) == (n, first, last)


def test_an_id_by_place_counts_every_query(corpus: Corpus) -> None:
    corpus.lines(ASK, ASK | {"query_id": "x"}, ASK | {"query_id": None})
    assert load(corpus).queries["query_id"].to_pylist() == ["q001", "q003", "x"]


def test_queries_may_hold_other_line_separators_and_open_with_a_bom(corpus: Corpus) -> None:
    line = json.dumps(ASK | {"query": "a\u2028b\u0085c\x0cd"}, ensure_ascii=False)
    corpus.lines("\ufeff" + line)
    assert load(corpus).queries["query"].to_pylist() == ["a\u2028b\u0085c\x0cd"]


def test_touching_spans_are_merged(corpus: Corpus) -> None:
    corpus.lines({"query": "q", "doc_id": "a", "gold_spans": [[3, 5], [0, 3], [7, 9], [8, 12]]})
    assert gold(load(corpus)) == [("q001", "a", 0, 5), ("q001", "a", 7, 12)]


# Values with known answers


def test_crlf_bytes_keep_their_offsets(corpus: Corpus) -> None:
    corpus.document("a.txt", b"A\r\nGoverning Law: Delaware\r\n")
    assert gold(load(corpus)) == [("q001", "a", 3, 26)]


def test_offsets_of_the_lf_version_of_a_crlf_file_come_to_light(corpus: Corpus) -> None:
    corpus.document("a.txt", b"A\r\nGoverning Law: Delaware\r\n")
    span = {"start": 2, "end": 25, "text": "Governing Law: Delaware"}
    corpus.lines({"query": "q", "doc_id": "a", "gold_spans": [span]})
    refused(
        corpus,
        "queries.jsonl line 1",
        "document 'a'",
        "[2, 25)",
        repr("\nGoverning Law: Delawar"),
        repr("Governing Law: Delaware"),
    )


def test_a_ligature_is_not_its_letters(corpus: Corpus) -> None:
    corpus.document("a.txt", "The o\ufb03ce is in Bonn.")
    corpus.lines(ASK | {"gold_texts": ["office"]})
    refused(corpus, "queries.jsonl line 1", "'office'", "is not in document 'a'")
    corpus.lines(ASK | {"gold_texts": ["o\ufb03ce"]})
    assert gold(load(corpus)) == [("q001", "a", 4, 8)]


@pytest.mark.parametrize(
    ("declared", "asked", "text"),
    [
        ("7", '"7"', "7"),
        ('"7"', "7", "7"),
        ("7.0", "7.0", "7.0"),
        ("1e3", '"1e3"', "1e3"),
        ("-0", "-0", "-0"),
        ("12345678901234567890.10", '"12345678901234567890.10"', "12345678901234567890.10"),
        ("true", "true", "true"),
        ("false", '"false"', "false"),
        ('"2024-01-31"', '"2024-01-31"', "2024-01-31"),
    ],
)
def test_a_value_is_its_json_text_in_metadata_and_filters(
    corpus: Corpus, declared: str, asked: str, text: str
) -> None:
    corpus.declare(f'{{"a": {{"version": {declared}}}}}')
    line = json.dumps(ASK)[:-1] + f', "filters": {{"version": {asked}}}}}'
    found = load(corpus.lines(line))
    assert found.documents["metadata"].to_pylist() == [[("version", text)]]
    assert found.queries["filters"].to_pylist() == [[("version", text)]]


# PDF


def test_a_pdf_is_its_pages_joined_by_one_newline(corpus: Corpus) -> None:
    import pypdf

    corpus.document("p.PDF", pdf("Page one.", "Governing Law: Delaware", "Page three."))
    corpus.lines(ASK | {"doc_id": "p"})
    found = load(corpus)
    document = found.documents.to_pylist()[1]
    assert document["text"] == "Page one.\nGoverning Law: Delaware\nPage three."
    assert document["extractor"] == f"pypdf {pypdf.__version__}"
    assert gold(found) == [("q001", "p", 10, 33)]


def test_a_pdf_with_a_password(corpus: Corpus) -> None:
    corpus.document("p.pdf", pdf("Secret.", owner_password="o", user_password="u"))
    refused(corpus, "p.pdf", "a PDF with a password")


def test_a_pdf_with_a_password_of_a_kind_that_pypdf_alone_cannot_check(corpus: Corpus) -> None:
    aes = b"/V 5 /CF <</StdCF <</CFM /AESV3 /Length 32>>>> /Perms <%s> /OE <%s> /UE <%s>" % (
        b"00" * 16,
        b"00" * 32,
        b"00" * 32,
    )
    made = pdf("Secret.", owner_password="o", user_password="u").replace(b"/V 2", aes)
    made = made.replace(b"/R 3", b"/R 6").replace(b"/Length 128", b"/Length 256")
    where = b"startxref\n%d" % made.index(b"xref\n0 ")
    corpus.document("p.pdf", re.sub(rb"startxref\n\d+", where, made))
    refused(corpus, "p.pdf", "password")


def test_a_pdf_that_opens_for_everyone_is_read(corpus: Corpus) -> None:
    corpus.document("p.pdf", pdf("Open to all.", owner_password="o"))
    assert load(corpus).documents["text"].to_pylist()[1] == "Open to all."


def test_a_pdf_without_text(corpus: Corpus) -> None:
    refused(corpus.document("p.pdf", pdf("", "")), "p.pdf", "no text", "OCR")


@pytest.mark.parametrize(
    "data", [b"%PDF-1.7\n", b"no PDF at all", pdf("Page.")[:-300], pdf("Page.")[:200]]
)
def test_a_broken_pdf(corpus: Corpus, data: bytes) -> None:
    refused(corpus.document("p.pdf", data), "p.pdf", "cannot be read as PDF")


def test_real_contracts_as_pdf_extract_to_text_the_same_each_time(
    shared: Path, tmp_path: Path
) -> None:
    corpus = Corpus(tmp_path / "corpus")
    for path in (shared / "data" / "cuad" / "pdf").glob("*.pdf"):
        corpus.document(path.name, path.read_bytes())
    found = directory.DirectorySource(corpus.documents, corpus.queries)
    documents, entries = found.extracted()
    assert len(documents) == 6
    assert min(len(d.text) for d in documents) > 10_000
    assert all(
        "agreement" in d.text.lower() and d.extractor.startswith("pypdf ") for d in documents
    )
    assert found.extracted() == (documents, entries)


# The folder of documents


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("notes.docx", ["notes.docx", "not a document", ".txt, .md, .pdf"]),
        ("README", ["README", "not a document"]),
        ("page.txt~", ["page.txt~", "not a document"]),
        (".DS_Store", [".DS_Store", "hidden file"]),
        (".a.txt", [".a.txt", "hidden file"]),
    ],
)
def test_anything_that_is_no_document_is_refused_by_name(
    corpus: Corpus, name: str, parts: list[str]
) -> None:
    refused(corpus.document(name, "text"), *parts)


@pytest.mark.parametrize("name", ["sub", "sub.txt"])
def test_a_folder_among_the_documents(corpus: Corpus, name: str) -> None:
    (corpus.documents / name).mkdir()
    refused(corpus, f"{name}: a folder")


def test_a_link_to_nothing(corpus: Corpus) -> None:
    (corpus.documents / "b.txt").symlink_to("nowhere")
    refused(corpus, "b.txt", "a link to one that is not there")


@pytest.mark.parametrize("name", ["b.txt", "b.pdf", "b.MD"])
def test_a_pipe_is_refused_and_not_waited_for(corpus: Corpus, name: str) -> None:
    os.mkfifo(corpus.documents / name)
    refused_now(corpus, name, "a pipe, socket or device")


def test_a_link_to_a_device(corpus: Corpus) -> None:
    (corpus.documents / "b.txt").symlink_to("/dev/zero")
    refused_now(corpus, "b.txt", "a pipe, socket or device")


def test_a_link_to_itself(corpus: Corpus) -> None:
    (corpus.documents / "b.txt").symlink_to("b.txt")
    refused_now(corpus, "b.txt", "cannot be read")


@pytest.mark.parametrize("which", ["queries", "metadata", "manifest"])
def test_a_pipe_in_place_of_another_file(corpus: Corpus, which: str) -> None:
    os.mkfifo(corpus.folder / "pipe")
    refused_now(corpus, "pipe", "not a regular file", **{which: str(corpus.folder / "pipe")})


def refused_now(corpus: Corpus, *parts: str, **settings: Any) -> None:
    """Refused as ``refused`` says, without reading the files: they may be pipes."""
    with pytest.raises(InputError) as caught:
        load(corpus, **settings)
    for part in parts:
        assert part in str(caught.value)


def test_a_file_in_place_of_the_folder(corpus: Corpus) -> None:
    refused(corpus, "queries.jsonl", "cannot be read", documents=str(corpus.queries))


@pytest.mark.parametrize("path", ["/x\0y", "/" + "x" * 300, "/" + "x/" * 5000])
@pytest.mark.parametrize("which", ["documents", "queries", "metadata", "manifest"])
def test_a_path_that_no_file_can_have(corpus: Corpus, which: str, path: str) -> None:
    refused(corpus, "cannot be read", **{which: path})


def test_a_home_folder_that_nobody_has(corpus: Corpus) -> None:
    refused(
        corpus, "own.toml", "documents", "~nobody_of_that_name", documents="~nobody_of_that_name"
    )


@pytest.mark.parametrize("name", ["b\n.txt", "b\r.txt", "\x1b[31m.txt", "b\x7f.txt", "b\u2028.txt"])
def test_a_name_that_breaks_lines(corpus: Corpus, name: str) -> None:
    refused(corpus.document(name, "text"), repr(name)[1:-1], "line break or control character")


def test_names_that_differ_in_case_alone_are_two_documents(corpus: Corpus) -> None:
    corpus.document("A.TXT", "Upper.").document("B.PDF", pdf("Page."))
    assert load(corpus).documents["text"].to_pylist() == ["Upper.", "Page.", LAW]


def test_a_file_that_changes_while_it_is_read(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = corpus.documents / "a.txt"
    digest = hashlib.file_digest

    def grow(file: Any, name: str) -> Any:
        path.write_text("Another text.")
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", grow)
    with pytest.raises(InputError, match=r"a\.txt: the file was changed while it was read"):
        files.hash_file(path)


def test_every_bad_document_is_named_at_once(corpus: Corpus) -> None:
    corpus.document("b.txt", b"\xff\xfe").document("c.docx", "x").document("d.pdf", b"").document(
        "a.md", "twice"
    )
    (corpus.documents / "e").mkdir()
    names = [
        "b.txt: not UTF-8",
        "c.docx: not a document",
        "d.pdf: the file is empty",
        "e: a folder",
    ]
    refused(corpus, "documents: 5 problems", "'a.md' and 'a.txt' would both be", *names)


def test_of_many_bad_documents_twenty_are_named_and_the_others_counted(corpus: Corpus) -> None:
    for number in range(25):
        corpus.document(f"d{number:02}.txt", b"\0")
    refused(corpus, "25 problems", "d00.txt", "d19.txt", "5 more")
    with pytest.raises(InputError) as caught:
        load(corpus)
    assert "d20.txt" not in str(caught.value)


def test_a_name_that_is_not_utf8(corpus: Corpus) -> None:
    name = b"caf\xe9.txt"
    (Path(str(corpus.documents)) / name.decode("utf-8", "surrogateescape")).write_text("x")
    refused(corpus, "caf", "not UTF-8")


@pytest.mark.parametrize("other", ["a.md", "a.pdf", "a.TXT"])
def test_two_files_with_one_stem(corpus: Corpus, other: str) -> None:
    refused(corpus.document(other, "text"), "'a.txt'", f"'{other}'", "document 'a'")


def test_an_empty_folder_of_documents(corpus: Corpus) -> None:
    (corpus.documents / "a.txt").unlink()
    refused(corpus, "documents", "holds no documents")


@pytest.mark.parametrize("absent", ["documents", "queries", "metadata"])
def test_what_is_not_there_is_named(corpus: Corpus, absent: str) -> None:
    refused(corpus, "nowhere", "cannot be read", **{absent: "/nowhere"})
    with pytest.raises(InputError, match="nowhere"):
        source.open_source(
            builders.experiment(corpus.settings(**{absent: "/nowhere"})),
            builders.project(corpus.folder),
        ).files()


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", ["b.txt", "empty (0 bytes)"]),
        (b" \t\r\n\xc2\xa0\x0c", ["b.txt", "no text but white space"]),
        ("\u200b\u00ad\u2060\u200e\u3164\x01\n".encode(), ["b.txt", "no text but white space"]),
        ("One.\n".encode("utf-16-le"), ["b.txt", "UTF-16", "without a byte order mark"]),
        (pdf("One."), ["b.txt", "a PDF", ".pdf"]),
        (b"\xef\xbb\xbf\n", ["b.txt", "no text but white space"]),
        (b"one\ntw\xe9 three", ["b.txt", "not UTF-8", "byte 6 (0xe9, line 2)"]),
        ("text".encode("utf-16"), ["b.txt", "not UTF-8", "byte 0 (0xff"]),
        (b"half \xed\xa0\x80 pair", ["b.txt", "not UTF-8", "byte 5"]),
    ],
)
def test_a_document_without_readable_text(corpus: Corpus, data: bytes, parts: list[str]) -> None:
    refused(corpus.document("b.txt", data), *parts)


def test_caps_are_enforced_with_the_actual_counts(corpus: Corpus) -> None:
    for number in range(250):
        corpus.document(f"d{number}.txt", "text")
    refused(corpus, "251 documents", "the cap is 250", "--max-documents")
    assert load(corpus, max_documents=251).documents.num_rows == 251
    n_bytes = len(LAW) + 1000
    refused(corpus, f"{n_bytes:,} bytes", "--max-bytes", max_documents=251, max_bytes=n_bytes - 1)
    assert load(corpus, max_documents=251, max_bytes=n_bytes).documents.num_rows == 251


def test_the_cap_on_bytes_is_two_gigabytes(corpus: Corpus) -> None:
    with (corpus.documents / "big.txt").open("wb") as big:
        big.truncate(2_000_000_000)  # sparse: takes no room
    with pytest.raises(InputError, match=r"2,000,000,050 bytes .* the cap is 2,000,000,000"):
        load(corpus)


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"document": "x"}, "unknown key 'document'; did you mean 'documents'?"),
        ({"max_documents": True}, "max_documents = True must be a valid integer"),
        ({"max_documents": 0}, "max_documents = 0 must be greater than or equal to 1"),
        ({"queries": 7}, "queries = 7 must be a valid string"),
    ],
)
def test_wrong_settings(corpus: Corpus, settings: dict[str, Any], message: str) -> None:
    refused(corpus, f"own.toml: source: {message}", **settings)


@pytest.mark.parametrize("key", ["documents", "queries"])
def test_settings_that_must_be_there(corpus: Corpus, key: str) -> None:
    settings = corpus.settings()
    del settings[key]
    with pytest.raises(InputError, match=f"source: key '{key}' is missing"):
        source.open_source(builders.experiment(settings), builders.project(corpus.folder))


# Lines of queries

SPANS = {"query": "q", "doc_id": "a"}
BAD_LINES: list[tuple[Any, list[str]]] = [
    ("{", ["not valid JSON", "column 2"]),
    ('{"query": "q" "doc_id": "a"}', ["not valid JSON", "column 15"]),
    ("[1]", ["must be an object, not an array"]),
    ("null", ["must be an object, not null"]),
    ('{"query": "q", "query": "r"}', ["key 'query' is given twice"]),
    ('{"query": NaN}', ["NaN is not valid JSON"]),
    ('{"query": "\\ud83d"}', ["half of a UTF-16 surrogate pair"]),
    ("[" * 100_000, ["nested too deep"]),
    (ASK | {"gold_text": ["x"]}, ["unknown key 'gold_text'", "did you mean 'gold_texts'?"]),
    ({"doc_id": "a", "gold_texts": ["x"]}, ["key 'query' is missing"]),
    (ASK | {"query": None}, ["key 'query' is missing"]),
    (ASK | {"query": 7}, ["query must be text, not a number"]),
    (ASK | {"query": " \n"}, ["query is empty"]),
    (ASK | {"query": "\u200b\u00ad"}, ["query is empty"]),
    (ASK | {"clause_type": "\u2800"}, ["clause_type is empty"]),
    ({"query": "q", "gold_texts": ["x"]}, ["key 'doc_id' is missing"]),
    (ASK | {"doc_id": "A1"}, ["unknown doc_id 'A1'", "(1 documents)"]),
    (ASK | {"doc_id": "a.txt"}, ["unknown doc_id 'a.txt'"]),
    (ASK | {"clause_type": ["x"]}, ["clause_type must be text, not an array"]),
    (ASK | {"query_id": 7}, ["query_id must be text, not a number"]),
    (ASK | {"query_id": ""}, ["query_id is empty"]),
    (SPANS, ["exactly one of gold_texts and gold_spans, not neither"]),
    (SPANS | {"gold_texts": None}, ["not neither"]),
    (ASK | {"gold_spans": [[0, 1]]}, ["exactly one of gold_texts and gold_spans, not both"]),
    (SPANS | {"gold_texts": []}, ["gold_texts is empty"]),
    (SPANS | {"gold_spans": []}, ["gold_spans is empty"]),
    (SPANS | {"gold_texts": "Term"}, ["gold_texts must be an array, not text"]),
    (SPANS | {"gold_texts": [""]}, ["gold_texts, number 1", "at least one character"]),
    (SPANS | {"gold_texts": [7]}, ["gold_texts, number 1", "must be text"]),
    (SPANS | {"gold_texts": ["Term", "Nowhere"]}, ["number 2", "'Nowhere'", "is not in", "'a'"]),
    (SPANS | {"gold_texts": ["Delaware", " \u200b"]}, ["gold_texts, number 2", "white space"]),
    (SPANS | {"gold_spans": [[0, 9], [9, 10]]}, ["gold_spans, number 2", "[9, 10)", "white space"]),
    (
        SPANS | {"gold_texts": ["re"]},
        ["number 1", "'re'", "stands 2 times in document 'a', at 1, 31"],
    ),
    (SPANS | {"gold_spans": {"start": 0}}, ["gold_spans must be an array, not an object"]),
    (SPANS | {"gold_spans": [0, 1]}, ["gold_spans, number 1", "must be [start, end]", "not 0"]),
    (SPANS | {"gold_spans": [[0]]}, ["must be [start, end]"]),
    (SPANS | {"gold_spans": [[0, 1, 2]]}, ["must be [start, end]"]),
    (SPANS | {"gold_spans": [{"start": 0}]}, ["start or end is missing"]),
    (
        SPANS | {"gold_spans": [{"start": 0, "stop": 2}]},
        ["unknown key 'stop'", "valid: start, end, text"],
    ),
    (SPANS | {"gold_spans": [{"start": 0, "end": 1, "text": 7}]}, ["text must be text"]),
    (SPANS | {"gold_spans": [[True, 5]]}, ["must be a whole number, not a bool"]),
    (SPANS | {"gold_spans": [[0.0, 5]]}, ["must be a whole number, not 0.0"]),
    (SPANS | {"gold_spans": [["0", 5]]}, ["must be a whole number, not '0'"]),
    (SPANS | {"gold_spans": [[None, 5]]}, ["must be a whole number, not null"]),
    (SPANS | {"gold_spans": [[-1, 5]]}, ["[-1, 5)", "0 <= start < end <= 50", "'a'"]),
    (SPANS | {"gold_spans": [[5, 5]]}, ["[5, 5)", "start < end"]),
    (SPANS | {"gold_spans": [[0, 1], [9, 5]]}, ["number 2", "[9, 5)", "start < end"]),
    (SPANS | {"gold_spans": [[0, 51]]}, ["[0, 51)", "<= 50"]),
    (
        '{"query": "q", "doc_id": "a", "gold_spans": [[0, 1' + "0" * 5000 + "]]}",
        ["beyond any text"],
    ),
    (
        SPANS | {"gold_spans": [{"start": 0, "end": 4, "text": "Prea "}]},
        ["[0, 4)", "'Prea'", "'Prea '", "gold text"],
    ),
    (ASK | {"filters": ["x"]}, ["filters must be an object of field and value, not an array"]),
    (ASK | {"filters": {"x": None}}, ["filters field 'x' is null"]),
    (ASK | {"filters": {"x": {}}}, ["filters field 'x' is an object"]),
    (ASK | {"filters": {"version": "2"}}, ["filter field 'version' is declared by no document"]),
]


@pytest.mark.parametrize(("line", "parts"), BAD_LINES)
def test_a_wrong_line_is_named_by_file_and_number(
    corpus: Corpus, line: Any, parts: list[str]
) -> None:
    refused(corpus.lines(ASK, "", line), "queries.jsonl line 3", *parts)


def test_overlapping_occurrences_are_counted(corpus: Corpus) -> None:
    corpus.document("a.txt", "xx aaaa xx")
    refused(corpus.lines(SPANS | {"gold_texts": ["aaa"]}), "stands 2 times", "at 3, 4")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["x", "x"], "queries.jsonl line 2: query_id 'x' is taken by queries.jsonl line 1"),
        (["q002", None], "line 2: query_id 'q002' (made from its place in the file) is taken by"),
        ([None, "q001"], "line 2: query_id 'q001' is taken by queries.jsonl line 1"),
    ],
)
def test_ids_that_clash(corpus: Corpus, ids: list[str | None], message: str) -> None:
    refused(corpus.lines(*[ASK | {"query_id": i} for i in ids]), message)


def test_queries_that_are_not_utf8(corpus: Corpus) -> None:
    corpus.queries.write_bytes(b'{}\n{"query": "\xe9"}')
    refused(corpus, "queries.jsonl", "not UTF-8", "byte 14 (0xe9, line 2)")


def test_a_file_without_queries(corpus: Corpus) -> None:
    refused(corpus.lines(" ", ""), "corpus own: no queries")


def test_a_doc_id_in_other_code_points_than_the_files_name(corpus: Corpus) -> None:
    corpus.document("cafe\u0301.txt", "text")
    refused(
        corpus.lines(ASK | {"doc_id": "caf\u00e9"}), r"'cafe\u0301'", r"'caf\xe9'", "decomposed"
    )


def test_every_wrong_line_is_named_at_once(corpus: Corpus) -> None:
    wrong = [
        ASK | {"doc_id": "b"},
        "{",
        ASK | {"gold_texts": ["Delaware", "Ohio", " "], "filters": {"x": None}},
        ASK | {"query_id": "first"},
        SPANS | {"gold_spans": [[0, 99]]},
        ASK | {"query_id": "first"},
    ]
    refused(
        corpus.lines(ASK, *wrong, ASK),
        "queries.jsonl: 7 problems",
        "line 2: unknown doc_id 'b'",
        "line 3: not valid JSON",
        "line 4, gold_texts, number 2: gold text 'Ohio' is not in document 'a'",
        "line 4, gold_texts, number 3: the gold text ' '",
        "line 4: filters field 'x' is null",
        "line 6, gold_spans, number 1: [0, 99)",
        "line 7: query_id 'first' is taken by queries.jsonl line 5",
    )
    corpus.lines(*[ASK | {"doc_id": f"b{n}"} for n in range(30)])
    refused(corpus, "30 problems", "line 20: unknown doc_id 'b19'", "10 more")
    with pytest.raises(InputError) as caught:
        load(corpus)
    assert "line 21" not in str(caught.value)


def test_every_query_that_breaks_an_invariant_is_named_at_once(corpus: Corpus) -> None:
    corpus.lines(*[ASK | {"filters": {name: "x"}} for name in ("version", "edition")])
    refused(corpus, "2 problems", "queries.jsonl line 1", "'version'", "line 2", "'edition'")


HINTS = [
    ("Jos\u00e9 Sm\u00edth", "Jose\u0301 Smi\u0301th", "NFC", 3),
    ("the o\ufb03ce", "the office", "NFKC", 5),
    ("one\u00a0year", "one year", "space", 3),
    ("one\r\nyear", "one\nyear", "line ends", 3),
    ("one\nyear", "one year", "line breaks", 3),
    ("the \u201cTerm\u201d", 'the "Term"', "quotation marks", 4),
    ("2020\u20132021", "2020-2021", "dashes", 4),
    ("confi\u00addential", "confidential", "invisible", 5),
    ("zero\u200bwidth", "zerowidth", "invisible", 4),
    ("Seller", "S\u0435ller", "script", 1),
    ("THE SELLER", "The Seller", "capitals", 1),
]


@pytest.mark.parametrize(("there", "given", "what", "character"), HINTS)
def test_a_gold_text_that_only_looks_like_the_documents(
    corpus: Corpus, there: str, given: str, what: str, character: int
) -> None:
    before = "Preamble \U0001f44d: "
    corpus.document("a.txt", f"{before}{there}. End.")
    refused(
        corpus.lines(ASK | {"gold_texts": [given]}),
        "is not in document 'a'",
        what,
        f"[{len(before)}, {len(before) + len(there)})",
        f"character {character} is U+{ord(there[character]):04X}",
    )
    refused(corpus.lines(ASK | {"gold_texts": [there + "?"]}), "Copy it")


# Metadata


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[]", ["must be an object {doc_id: {field: value}}, not an array"]),
        ('{"a": 7}', ["document 'a'", "must be an object of field and value, not a number"]),
        ('{"b": {}}', ["unknown doc_id 'b'"]),
        ('{"a": {"x\\ud800": "y"}}', ["half of a UTF-16 surrogate pair"]),
        ('{"a": {"x": null}}', ["document 'a'", "metadata field 'x' is null"]),
        ('{"a": {"x": [1]}}', ["document 'a'", "metadata field 'x' is an array"]),
        ('{"a": {"x": {}}}', ["document 'a'", "metadata field 'x' is an object"]),
        ('{"a": {"x": 1, "x": 2}}', ["key 'x' is given twice"]),
        ('{"a": {}, "a": {}}', ["key 'a' is given twice"]),
        ('{"a": {"x": Infinity}}', ["Infinity is not valid JSON"]),
        ('{"a":\n {"x": 1,}}', ["not valid JSON", "line 2"]),
        (
            '{"b": {}, "a": {"x": null, "y": []}, "\u0430": 7}',
            ["5 problems", "'b'", "'x' is null", "'y' is an array", r"is '\u0430'", "not a number"],
        ),
    ],
)
def test_wrong_metadata(corpus: Corpus, text: str, parts: list[str]) -> None:
    refused(corpus.declare(text), "metadata.json", *parts)


@pytest.mark.parametrize("name", ["doc_id", "text", "start_char", "chunk_id"])
def test_metadata_may_not_shadow_a_chunks_own_fields(corpus: Corpus, name: str) -> None:
    refused(corpus.declare(json.dumps({"a": {name: "x"}})), "document a", f"'{name}'")


# Manifest


@pytest.fixture
def recorded(corpus: Corpus) -> Corpus:
    """The corpus with two documents and a manifest of them as they are."""
    corpus.document("b.pdf", pdf("Page one."))
    entries = directory.DirectorySource(corpus.documents, corpus.queries).extracted()[1]
    (corpus.folder / "m.json").write_bytes(manifest.to_bytes(entries))
    return corpus


def checked(corpus: Corpus) -> EvalSet:
    return load(corpus, manifest=str(corpus.folder / "m.json"))


def test_a_manifest_records_bytes_text_and_extractor(recorded: Corpus) -> None:
    entries = json.loads((recorded.folder / "m.json").read_bytes())
    assert entries["a"] == {
        "extractor": "utf-8",
        "source_bytes": 50,
        "source_sha256": builders.sha256(LAW.encode()),
        "n_chars": 50,
        "text_sha256": builders.sha256(LAW.encode()),
    }
    assert entries["b"]["source_sha256"] == builders.sha256(pdf("Page one."))
    assert entries["b"]["text_sha256"] == builders.sha256(b"Page one.")
    assert checked(recorded).documents.num_rows == 2


def test_a_changed_text_is_refused_with_both_hashes(recorded: Corpus) -> None:
    recorded.document("a.txt", LAW.replace("one", "two"))
    with pytest.raises(InputError) as caught:
        checked(recorded)
    for part in (
        "m.json: document 'a'",
        "the file was changed",
        builders.sha256(LAW.encode()),
        builders.sha256(LAW.replace("one", "two").encode()),
        "spanbench adapt",
    ):
        assert part in str(caught.value)


def test_another_extraction_of_the_same_file_is_refused(recorded: Corpus) -> None:
    entries = json.loads((recorded.folder / "m.json").read_bytes())
    entries["b"] |= {"extractor": "pypdf 1.0", "text_sha256": "0" * 64}
    (recorded.folder / "m.json").write_bytes(manifest.to_bytes(entries))
    with pytest.raises(InputError, match=r"'b' .*pypdf 1\.0 extracted it, pypdf \d.* does now"):
        checked(recorded)


def test_other_bytes_with_the_same_text_are_no_difference(recorded: Corpus) -> None:
    recorded.document("b.pdf", pdf("Page one.", saved=2025))
    assert checked(recorded).documents.num_rows == 2


def test_an_added_or_removed_document_is_refused(recorded: Corpus) -> None:
    recorded.document("c.txt", "text")
    with pytest.raises(InputError, match=r"'c' was added since.*spanbench adapt"):
        checked(recorded)
    (recorded.documents / "c.txt").unlink()
    (recorded.documents / "b.pdf").unlink()
    with pytest.raises(InputError, match=r"'b' is recorded, but its file is gone.*adapt"):
        checked(recorded)


def test_every_document_that_differs_is_named_at_once(recorded: Corpus) -> None:
    recorded.document("a.txt", "Another.").document("c.txt", "New.")
    (recorded.documents / "b.pdf").unlink()
    with pytest.raises(InputError) as caught:
        checked(recorded)
    for part in ("3 problems", "'a' extracts to another", "'b' is recorded", "'c' was added"):
        assert part in str(caught.value)


def test_a_form_registered_before_its_values_were_read_is_refused_and_keeps_its_offsets(
    recorded: Corpus,
) -> None:
    recorded.document("b.pdf", filled(b"<< /FT /Tx /T (law) /V (Oregon) >>"))
    entries = directory.DirectorySource(recorded.documents, recorded.queries).extracted()[1]
    assert entries["b"]["extractor"].endswith(" + form values")
    entries["b"]["extractor"] = entries["b"]["extractor"].removesuffix(" + form values")
    entries["b"]["text_sha256"] = builders.sha256(b"Page one.")
    (recorded.folder / "m.json").write_bytes(manifest.to_bytes(entries))
    with pytest.raises(InputError, match=r"'b' .*form values.* offsets hold.*spanbench adapt"):
        checked(recorded)


@pytest.fixture
def partly(corpus: Corpus) -> Corpus:
    """A corpus with notes in its manifest: ``p`` has pages without text, ``h`` is HTML."""
    corpus.document("p.pdf", pdf("One.", "", "")).document("h.md", "<!DOCTYPE html>\ufffd")
    entries = directory.DirectorySource(corpus.documents, corpus.queries).extracted()[1]
    (corpus.folder / "m.json").write_bytes(manifest.to_bytes(entries))
    return corpus


def test_what_a_document_lacks_is_in_the_manifest_and_among_the_files(partly: Corpus) -> None:
    noted = manifest.notes(partly.folder / "m.json")
    assert list(noted) == ["h", "p"]
    assert noted["p"][0].startswith("pages 2-3: no text")
    assert "HTML" in noted["h"][0]
    assert "U+FFFD on line 1" in noted["h"][1]
    assert checked(partly).documents.num_rows == 3
    experiment = builders.experiment(partly.settings(manifest=str(partly.folder / "m.json")))
    rows = source.open_source(experiment, builders.project(partly.folder)).files()
    assert {row.file: row.note for row in rows if row.note} == {
        "h.md": "; ".join(noted["h"]),
        "p.pdf": noted["p"][0],
    }


def test_a_gold_text_that_is_not_there_tells_what_the_document_lacks(partly: Corpus) -> None:
    partly.lines(ASK | {"doc_id": "p"})
    refused(partly, "is not in document 'p'", "Of document 'p': pages 2-3: no text")
    partly.lines(ASK | {"gold_texts": ["nowhere"]})
    with pytest.raises(InputError) as caught:
        load(partly)
    assert "pages" not in str(caught.value)
    partly.lines(ASK | {"gold_texts": ["it is not in document 'p'"]})  # of another, in these words
    with pytest.raises(InputError) as caught:
        load(partly)
    assert "pages" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"a": 7}', b'{"a": {"n_chars": 1}}'])
def test_what_is_no_manifest(recorded: Corpus, data: bytes) -> None:
    (recorded.folder / "m.json").write_bytes(data)
    with pytest.raises(InputError, match=r"m\.json: not a manifest.*spanbench adapt"):
        checked(recorded)


# Against brute force


@settings(deadline=None)
@given(
    st.text("ab\r\n\ufeff\U0001f44d", min_size=1, max_size=30),
    st.text("ab\r", min_size=1, max_size=3),
)
def test_a_gold_text_is_found_exactly_where_it_stands_once(text: str, part: str) -> None:
    places = [i for i in range(len(text)) if text[i : i + len(part)] == part]
    line = json.dumps({"query": "q", "doc_id": "d", "gold_texts": [part]}).encode()
    if is_blank(part):
        with pytest.raises(InputError, match="white space"):
            queryfile.read(line, "f", {"d": text}, queryfile.Problems())
    elif len(places) == 1:
        (query,) = queryfile.read(line, "f", {"d": text}, queryfile.Problems())
        assert [(g.start, g.end) for g in query.gold] == [(places[0], places[0] + len(part))]
    else:
        with pytest.raises(InputError, match=f"stands {len(places)} times" if places else "not in"):
            queryfile.read(line, "f", {"d": text}, queryfile.Problems())


@settings(deadline=None)
@given(st.text("ab\U0001f44d", max_size=8), st.integers(-2, 10), st.integers(-2, 10))
def test_offsets_are_taken_exactly_where_they_hold_characters(
    text: str, start: int, end: int
) -> None:
    line = json.dumps({"query": "q", "doc_id": "d", "gold_spans": [[start, end]]}).encode()
    held = set(range(start, end))
    if held and held <= set(range(len(text))):
        (query,) = queryfile.read(line, "f", {"d": text}, queryfile.Problems())
        assert [(g.start, g.end) for g in query.gold] == [(start, end)]
    else:
        with pytest.raises(InputError, match="0 <= start < end"):
            queryfile.read(line, "f", {"d": text}, queryfile.Problems())


def test_what_is_read_holds_every_invariant(corpus: Corpus) -> None:
    found = load(corpus)
    assert evalset.text_violations(found.documents) + evalset.gold_violations(found) == []
