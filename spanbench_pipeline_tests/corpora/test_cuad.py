from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.corpora import cuad, fetch, source
from spanbench_pipeline.corpora.archive import Provenance
from spanbench_pipeline.corpora.cuad import Contract, CuadSource, Question, Sampling
from spanbench_pipeline_tests.corpora import builders

REBUILT = "6170e713db6211f556c6ae3d921912ef8948d479ec6507f408f9ba73a2788f2b"


@pytest.fixture(scope="module")
def fetched(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the shared archive's member."""
    home = tmp_path_factory.mktemp("home")
    archive = shared / "data" / "cuad" / "data.zip"
    fetch.fetch_cuad(builders.project(home), archive=archive, sha256=REBUILT)
    return home


@pytest.fixture(scope="module")
def raw(fetched: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (fetched / "downloads" / "cuad" / "CUADv1.json").read_bytes()
    )
    return found


def opened(home: Path, **settings: Any) -> source.Source:
    return source.open_source(
        builders.experiment({"kind": "cuad"} | settings, "cuad"), builders.project(home)
    )


def published(evalset_: evalset.EvalSet, origins: dict[str, str]) -> dict[str, Any]:
    """An eval set in the shape of the published file."""
    gold: dict[str, list[list[int]]] = {}
    for span in evalset_.gold_spans.to_pylist():
        gold.setdefault(span["query_id"], []).append([span["start_char"], span["end_char"]])
    return {
        "documents": [
            {key: d[key] for key in ("doc_id", "title", "n_chars")}
            for d in evalset_.documents.sort_by("title").to_pylist()
        ],
        "queries": [
            {
                "query_id": q["query_id"],
                "doc_id": q["doc_id"],
                "cuad_id": origins[q["query_id"]],
                "clause_type": q["clause_type"],
                "query": q["query"],
                "gold_spans": gold[q["query_id"]],
                "n_gold_chars": sum(end - start for start, end in gold[q["query_id"]]),
            }
            for q in evalset_.queries.to_pylist()
        ],
    }


def test_the_sample_equals_the_published_one_field_by_field(fetched: Path, shared: Path) -> None:
    documents, queries = opened(fetched, sample=True).read()
    found = evalset.assemble("cuad", documents, queries)
    expected = json.loads((shared / "data" / "cuad" / "published_eval_set.json").read_bytes())
    assert published(found, {q.query_id: q.origin for q in queries}) == expected
    assert found.gold_spans.num_rows == 114
    assert len(set(found.queries["clause_type"].to_pylist())) == 21
    assert set(found.documents["source_file"].to_pylist()) == {"CUADv1.json"}
    assert evalset.text_violations(found.documents) + evalset.gold_violations(found) == []


def test_the_archives_order_of_contracts_questions_and_answers_means_nothing(
    fetched: Path, raw: dict[str, Any]
) -> None:
    turned = {"data": []}
    for entry in reversed(raw["data"]):
        (paragraph,) = entry["paragraphs"]
        qas = [qa | {"answers": qa["answers"][::-1]} for qa in reversed(paragraph["qas"])]
        turned["data"].append(entry | {"paragraphs": [paragraph | {"qas": qas}]})
    folder = fetched.parent / "turned"
    folder.mkdir()
    stored(folder, json.dumps(turned).encode())
    straight = evalset.assemble("cuad", *opened(fetched).read())
    assert evalset.assemble("cuad", *CuadSource(folder).read()) == straight


def test_the_whole_corpus_holds_every_contract_and_every_eligible_question(
    fetched: Path, raw: dict[str, Any]
) -> None:
    documents, queries = opened(fetched, sample=False).read()
    answered = [qa["id"] for e in raw["data"] for qa in e["paragraphs"][0]["qas"] if qa["answers"]]
    left_out = cuad.HEADER_TYPES | cuad.REFERRING_TYPES
    expected = sorted(i for i in answered if i.rpartition("__")[2] not in left_out)
    assert len(answered) == 6702
    assert sorted(q.origin for q in queries) == expected
    assert [q.query_id for q in queries[:2]] == ["q0001", "q0002"]
    assert len({d.doc_id for d in documents}) == len(documents) == 510
    assert all(len(d.doc_id) <= 62 and d.doc_id.isascii() for d in documents)
    titles = [d.title for d in documents]
    assert titles == sorted(e["title"] for e in raw["data"])
    assert "leclanche-s-a-joint-development-and-marketing-agreement" in {
        d.doc_id for d in documents
    }
    again = {d.doc_id: d.title for d in documents}
    twice = [i for i in again if i.endswith("-2") and i[:-2] in again]
    assert twice
    assert all(again[i[:-2]] < again[i] for i in twice)


def test_metadata_clauses_come_back_on_request_and_the_referring_type_never(
    fetched: Path, raw: dict[str, Any]
) -> None:
    _, queries = opened(fetched, sample=False, include_metadata_clauses=True).read()
    answered = [qa["id"] for e in raw["data"] for qa in e["paragraphs"][0]["qas"] if qa["answers"]]
    found = Counter(q.clause_type for q in queries)
    assert sum(found.values()) == sum(
        not i.endswith("__Competitive Restriction Exception") for i in answered
    )
    assert found["Parties"] == sum(i.endswith("__Parties") for i in answered) > 400


def test_source_files_name_both_hashes_of_a_bundle_of_another_making(fetched: Path) -> None:
    archive, member = opened(fetched).files()
    assert (archive.file, archive.role, archive.n_bytes) == ("data.zip", "archive", 9009595)
    assert archive.sha256 == "b8244103a4059e766e975aea82183be7ad37235297d15cbedafaad5a6955b210"
    assert archive.note == "local archive"
    assert (member.file, member.role, member.n_bytes) == ("CUADv1.json", "member", 40128638)
    assert member.sha256 == REBUILT
    assert member.note
    assert REBUILT in member.note
    assert fetch.CUAD.official_sha256 in member.note


# Small archives made by hand


def stored(folder: Path, data: bytes) -> CuadSource:
    """A folder as ``fetch`` leaves it."""
    folder.mkdir(exist_ok=True)
    (folder / "CUADv1.json").write_bytes(data)
    record = Provenance(
        archive="data.zip",
        archive_bytes=1,
        archive_sha256="0" * 64,
        member="CUADv1.json",
        member_bytes=len(data),
        member_sha256=builders.sha256(data),
        official_member_sha256=builders.sha256(data),
        origin="https://example.org/data.zip",
    )
    (folder / "provenance.json").write_bytes(record.to_bytes())
    return CuadSource(folder, cuad.WHOLE)


def small() -> dict[str, Any]:
    """One contract with one answered question."""
    answer = {"text": "Delaware", "answer_start": 13}
    question = {
        "id": "T__Governing Law",
        "question": "Highlight it. Details: Which\u00a0 state's\n law?",
        "answers": [answer],
    }
    context = "The law is of Delaware."[:11] + "  " + "Delaware rules."
    return {"data": [{"title": "T", "paragraphs": [{"context": context, "qas": [question]}]}]}


def test_a_small_archive_by_hand(tmp_path: Path) -> None:
    documents, queries = stored(tmp_path, json.dumps(small()).encode()).read()
    assert [(d.doc_id, d.title, d.text) for d in documents] == [
        ("t", "T", "The law is   Delaware rules.")
    ]
    (query,) = queries
    assert (query.query_id, query.doc_id, query.clause_type) == ("q001", "t", "Governing Law")
    assert query.text == "Which state's law?"
    assert query.origin == "T__Governing Law"
    (gold,) = query.gold
    assert documents[0].text[gold.start : gold.end] == "Delaware"


def test_an_answer_of_white_space_is_refused_by_question(tmp_path: Path) -> None:
    data = small()
    entry_of(data)["qas"][0]["answers"].append({"text": "  ", "answer_start": 11})
    read = stored(tmp_path, json.dumps(data).encode()).read()
    with pytest.raises(InputError, match=r"T__Governing Law.*\[11, 13\).*white space"):
        evalset.assemble("cuad", *read)


def entry_of(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["data"][0]["paragraphs"][0]
    return found


BAD: list[tuple[str, Any, list[str]]] = [
    ("no data", lambda d: d.pop("data"), ["CUADv1.json", "'data' is missing"]),
    ("no object", lambda d: d.update(data=[7]), ["contract number 1", "must be an object"]),
    ("no title", lambda d: d["data"][0].pop("title"), ["contract number 1", "'title'"]),
    ("no context", lambda d: entry_of(d).pop("context"), ["contract 'T'", "'context'"]),
    ("no qas", lambda d: entry_of(d).pop("qas"), ["contract 'T'", "'qas'"]),
    (
        "no answers",
        lambda d: entry_of(d)["qas"][0].pop("answers"),
        ["contract 'T'", "question 'T__Governing Law'", "'answers' is missing"],
    ),
    (
        "no answer_start",
        lambda d: entry_of(d)["qas"][0]["answers"][0].pop("answer_start"),
        ["question 'T__Governing Law'", "'answer_start' is missing"],
    ),
    (
        "offset as bool",
        lambda d: entry_of(d)["qas"][0]["answers"][0].update(answer_start=True),
        ["question 'T__Governing Law'", "answer_start must be a whole number, not a bool"],
    ),
    (
        "past the end",
        lambda d: entry_of(d)["qas"][0]["answers"][0].update(answer_start=21),
        ["question 'T__Governing Law'", "[21, 29)", "28 characters"],
    ),
    (
        "negative",
        lambda d: entry_of(d)["qas"][0]["answers"][0].update(answer_start=-15),
        ["question 'T__Governing Law'", "[-15, -7)"],
    ),
    (
        "empty answer",
        lambda d: entry_of(d)["qas"][0]["answers"][0].update(text=""),
        ["question 'T__Governing Law'", "[13, 13)", "without characters"],
    ),
    (
        "one off",
        lambda d: entry_of(d)["qas"][0]["answers"][0].update(answer_start=12),
        ["question 'T__Governing Law'", "' Delawar'", "'Delaware'"],
    ),
    (
        "foreign id",
        lambda d: entry_of(d)["qas"][0].update(id="U__Governing Law"),
        ["question 'U__Governing Law'", "<title>__<clause type>"],
    ),
    (
        "no details",
        lambda d: entry_of(d)["qas"][0].update(question="Which law?"),
        ["question 'T__Governing Law'", "Details:"],
    ),
    ("two titles", lambda d: d["data"].append(d["data"][0]), ["title 'T' is given 2 times"]),
    (
        "question twice",
        lambda d: entry_of(d)["qas"].append(entry_of(d)["qas"][0]),
        ["question 'T__Governing Law' is given 2 times"],
    ),
    (
        "NUL in the text",
        lambda d: entry_of(d).update(context="ab\0" + entry_of(d)["context"]),
        ["contract 'T'", "character 2 is NUL"],
    ),
    (
        "half a character",
        lambda d: entry_of(d).update(context="ab\ud83d" + entry_of(d)["context"]),
        ["contract 'T'", "character 2 is U+D83D"],
    ),
    (
        "two paragraphs",
        lambda d: d["data"][0]["paragraphs"].append(entry_of(d)),
        ["contract 'T'", "2 paragraphs"],
    ),
]


@pytest.mark.parametrize(("change", "parts"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_json_that_is_not_cuads_is_refused_by_place(
    tmp_path: Path, change: Any, parts: list[str]
) -> None:
    data = small()
    change(data)
    with pytest.raises(InputError) as caught:
        stored(tmp_path, json.dumps(data).encode()).read()
    for part in [*parts, "CUADv1.json"]:
        assert part in str(caught.value)


@pytest.mark.parametrize("data", [b"", b'{"data": [', b"\xff\xfe{}", b"[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match=r"CUADv1\.json: not valid JSON"):
        stored(tmp_path, data).read()


@pytest.mark.parametrize("name", ["CUADv1.json", "provenance.json"])
def test_an_absent_archive_names_the_command_that_brings_it(tmp_path: Path, name: str) -> None:
    found = stored(tmp_path, json.dumps(small()).encode())
    (tmp_path / name).unlink()
    for look in (found.files, found.read):
        with pytest.raises(InputError, match=f"{name}: not here yet; run: spanbench fetch cuad"):
            look()


def test_a_member_that_is_not_the_recorded_one_is_refused(tmp_path: Path) -> None:
    data = json.dumps(small()).encode()
    found = stored(tmp_path, data)
    (tmp_path / "CUADv1.json").write_bytes(data + b"\n")
    for look in (found.files, found.read):
        with pytest.raises(InputError) as caught:
            look()
        assert builders.sha256(data) in str(caught.value)
        assert builders.sha256(data + b"\n") in str(caught.value)


@pytest.mark.parametrize("record", [b"", b"[]", b"{}", b'{"archive": 1}'])
def test_a_damaged_record_is_refused(tmp_path: Path, record: bytes) -> None:
    found = stored(tmp_path, json.dumps(small()).encode())
    (tmp_path / "provenance.json").write_bytes(record)
    with pytest.raises(InputError, match=r"provenance\.json: not a record.*spanbench fetch cuad"):
        found.files()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampel": True}, "own.toml: source: unknown key 'sampel'; did you mean 'sample'?"),
        ({"sample": 1}, "own.toml: source: sample = 1 must be a valid boolean"),
        ({"kind": "caud"}, "own.toml: source: kind = 'caud' is unknown; did you mean 'cuad'?"),
        ({"kind": None}, "own.toml: source: key 'kind' is missing"),
    ],
)
def test_wrong_settings_name_file_key_and_nearest_valid(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        source.open_source(
            builders.experiment({"kind": "cuad"} | settings), builders.project(tmp_path)
        )
    assert message in str(caught.value)


def test_too_few_eligible_documents(tmp_path: Path) -> None:
    stored(tmp_path, json.dumps(small()).encode())
    with pytest.raises(InputError, match="0 documents are eligible, 20 are wanted"):
        CuadSource(tmp_path).read()


# Ids and drawing


def test_document_ids_by_hand() -> None:
    long = "A" * 59 + " - Agreement"
    assert cuad.document_ids(
        [long, long + " 2", long + " 3", "Caf\u00e9, S.A.", "Cafe\u0301 S.A.", "x_1--", "\u00a73 y"]
    ) == ["a" * 59, "a" * 59 + "-2", "a" * 59 + "-3", "cafe-s-a", "cafe-s-a-2", "x-1", "3-y"]


def test_a_numbered_id_that_a_title_has_already_is_passed_over() -> None:
    assert cuad.document_ids(["a", "a 2", "a."]) == ["a", "a-2", "a-3"]


def contracts(sizes: list[list[str]]) -> list[Contract]:
    """Contracts whose questions are of these clause types; type and number make the id."""
    return [
        Contract(
            f"T{n:02d}",
            "text",
            tuple(
                Question(f"T{n:02d}__{kind}{i}", kind, "q", ((0, "t"),))
                for i, kind in enumerate(kinds)
            ),
        )
        for n, kinds in enumerate(sizes)
    ]


KINDS = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=6)


@settings(deadline=None)
@given(KINDS, st.integers(1, 8), st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
def test_no_limit_is_passed_and_the_drawing_stops_only_at_one(
    sizes: list[list[str]], n_queries: int, per_document: int, per_type: int, seed: int
) -> None:
    sampling = Sampling(None, n_queries, per_document, per_type, 0, None, 0, seed)
    documents, turn = cuad.draw_documents(contracts(sizes), sampling)
    taken = cuad.draw_questions(turn, sampling)
    assert sorted(c.title for c in turn) == [c.title for c in documents]
    ids = [q.question_id for _, q in taken]
    assert ids == sorted(set(ids))
    by_document = Counter(c.title for c, _ in taken)
    by_type = Counter(q.clause_type for _, q in taken)
    assert len(taken) <= n_queries
    assert max(by_document.values(), default=0) <= per_document
    assert max(by_type.values(), default=0) <= per_type
    if len(taken) < n_queries:
        for contract in documents:
            for question in contract.questions:
                assert (
                    question.question_id in ids
                    or by_document[contract.title] == per_document
                    or by_type[question.clause_type] == per_type
                )


@settings(deadline=None)
@given(KINDS, st.integers(0, 9))
def test_without_limits_everything_is_taken(sizes: list[list[str]], seed: int) -> None:
    found = contracts(sizes)
    sampling = Sampling(None, None, None, None, 0, None, 0, seed)
    taken = cuad.draw_questions(cuad.draw_documents(found, sampling)[1], sampling)
    assert [q for _, q in taken] == sorted(
        (q for c in found for q in c.questions), key=lambda q: q.question_id
    )


@pytest.mark.parametrize(("n_chars", "n_questions", "eligible"), [
    (15_000, 5, True), (80_000, 5, True), (14_999, 5, False), (80_001, 5, False), (20_000, 4, False)
])  # fmt: skip
def test_the_published_bounds_are_inclusive(n_chars: int, n_questions: int, eligible: bool) -> None:
    questions = contracts([["a"] * n_questions])[0].questions
    sampling = Sampling(None, 50, 3, 4, *(cuad.PUBLISHED.min_chars, cuad.PUBLISHED.max_chars), 5)
    found, _ = cuad.draw_documents([Contract("T", "x" * n_chars, questions)], sampling)
    assert bool(found) is eligible
