from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, GoldSpan, Query
from tools.sample import generate as sample
from tools.sample.texts import CLAUSES

ROOT = Path(__file__).parents[3]
BUNDLED = ROOT / "data" / "sample"
DOCUMENTS = {
    path.stem: path.read_bytes().decode("utf-8")
    for path in sorted((BUNDLED / "documents").glob("*.txt"))
}
QUERIES = [json.loads(line) for line in (BUNDLED / "queries.jsonl").read_bytes().splitlines()]
METADATA = json.loads((BUNDLED / "metadata.json").read_bytes())

# Headers as the specification words them, written down here a second time on purpose.
DOTTED = r"\d+(?:\.\d+)*"
ROMAN = "[IVXLC]{1,6}"
FORMS = {
    "article": rf"(?:ARTICLE|Article)[ \t]+(?:{ROMAN}|\d+)\b",
    "section": rf"(?:SECTION|Section)[ \t]+{DOTTED}\b",
    "dotted": rf'{DOTTED}[ \t]*\.?[ \t]*["“(]?[A-Z]',
    "roman": rf"{ROMAN}\.[ \t]+[A-Z]",
}
ANY_FORM = "|".join(FORMS.values())
AT_LINE_START = r"(?:\A|(?<=\n))[ \t]*"
MID_LINE = r"(?<=[.;:\]])[ \t]{2,}"
HEADER = re.compile(rf"(?:{AT_LINE_START}|{MID_LINE})(?:{ANY_FORM})")


def documents_with(pattern: str) -> list[str]:
    return [doc_id for doc_id, text in DOCUMENTS.items() if re.search(pattern, text)]


def golds() -> list[str]:
    return [span["text"] for query in QUERIES for span in query["gold_spans"]]


@functools.cache
def sentences(text: str) -> set[str]:
    return {" ".join(s.split()) for s in re.split(r"(?<=\.)\s", text)}


def near_identical(a: str, b: str) -> bool:
    """Whether two texts share four of five sentences but not all."""
    one, other = sentences(a), sentences(b)
    return 0.8 < len(one & other) / len(one | other) < 1


def matching(filters: dict[str, str]) -> list[str]:
    return [d for d in DOCUMENTS if filters.items() <= METADATA[d].items()]


def assembled(documents: dict[str, str], queries: list[dict], metadata: dict) -> evalset.EvalSet:
    return evalset.assemble(
        "sample",
        [Document(d, d, text, f"{d}.txt", "text", metadata[d]) for d, text in documents.items()],
        [
            Query(
                q["query_id"],
                q["query"],
                [GoldSpan(q["doc_id"], g["start"], g["end"], g["text"]) for g in q["gold_spans"]],
                doc_id=q["doc_id"],
                clause_type=q["clause_type"],
                filters=q.get("filters", {}),
            )
            for q in queries
        ],
    )


class TestBundledFiles:
    def test_the_defaults_reproduce_them_byte_for_byte(self, tmp_path):
        command = [sys.executable, "-m", "tools.sample.generate", "--out", tmp_path]
        subprocess.run(command, check=True, cwd=ROOT)
        made, kept = (
            {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
            for root in (tmp_path, BUNDLED)
        )
        assert sorted(made) == sorted(kept)
        assert [name for name in made if made[name] != kept[name]] == []

    def test_counts_and_lengths(self):
        assert len(DOCUMENTS) >= 12
        assert [d for d, text in DOCUMENTS.items() if not 10_000 <= len(text) <= 25_000] == []
        assert len(QUERIES) == 60
        assert len({q["clause_type"] for q in QUERIES}) >= 20

    def test_gold_text_is_what_stands_in_the_document(self):
        for query in QUERIES:
            text = DOCUMENTS[query["doc_id"]]
            for span in query["gold_spans"]:
                assert text[span["start"] : span["end"]] == span["text"], query["query_id"]

    def test_gold_is_whole_words_and_free_of_markup(self):
        for query in QUERIES:
            text = DOCUMENTS[query["doc_id"]]
            for span in query["gold_spans"]:
                assert not text[span["start"] - 1].isalnum(), query["query_id"]
                assert not text[span["end"]].isalnum(), query["query_id"]
                assert span["text"] == span["text"].strip()
        assert documents_with(r"[<>{}|]|\[") == []

    def test_they_make_an_eval_set(self):
        made = assembled(DOCUMENTS, QUERIES, METADATA)
        assert made.queries.num_rows == 60
        assert made.gold_spans.num_rows == len(golds())  # none touch: nothing was merged

    def test_every_document_declares_the_same_three_fields_as_text(self):
        assert sorted(METADATA) == sorted(DOCUMENTS)
        for fields in METADATA.values():
            assert sorted(fields) == ["effective_date", "entity", "version"]
            assert all(isinstance(value, str) for value in fields.values())

    def test_line_ends_are_newlines_and_no_file_has_a_byte_order_mark(self):
        for path in BUNDLED.rglob("*.*"):
            if path.is_file():
                data = path.read_bytes()
                assert b"\r" not in data
                assert not data.startswith(b"\xef\xbb\xbf")


class TestFeaturesOfRealContracts:
    @pytest.mark.parametrize(
        "pattern",
        [
            pytest.param("[\U0001f300-\U0001faff]", id="emoji"),
            pytest.param("[“”]", id="curly quotes"),
            pytest.param('"', id="straight quotes"),
            pytest.param("[À-ɏ]", id="accents"),
            pytest.param("\t", id="tabs"),
            pytest.param(rf"\n[ \t]+(?:{ANY_FORM})", id="indented header"),
            pytest.param(rf"(?m)^[^\n]*[^\s][^\n]*{MID_LINE}(?:{ANY_FORM})", id="mid-line header"),
            pytest.param(rf"{AT_LINE_START}{FORMS['article']}", id="ARTICLE"),
            pytest.param(rf"{AT_LINE_START}ARTICLE {ROMAN}\b", id="ARTICLE with Roman numeral"),
            pytest.param(rf"{AT_LINE_START}{FORMS['section']}", id="Section"),
            pytest.param(rf"{AT_LINE_START}\d+\.\d+[ \t][A-Z]", id="dotted number"),
            pytest.param(rf"{AT_LINE_START}{FORMS['roman']}", id="Roman numeral"),
            pytest.param(rf"{AT_LINE_START}{DOTTED}\.? “[A-Z]", id="quoted title"),
            pytest.param(r"\n\d+\n[A-Z]", id="footer before a capital"),
            pytest.param(r"[a-z]\n\n?\d+\n\n?[a-z]", id="footer inside a sentence"),
            pytest.param(r"\n- \d+ -\n", id="footer with dashes"),
            pytest.param(r"\nPage \d+\n", id="footer in words"),
            pytest.param(r"“[A-Z][^”]+” means", id="defined terms"),
        ],
    )
    def test_is_there(self, pattern):
        assert documents_with(pattern)

    def test_one_contract_has_no_recoverable_header_but_page_footers(self):
        without = [d for d, text in DOCUMENTS.items() if not HEADER.search(text)]
        assert len(without) == 1
        assert re.search(r"\n\d+\n[A-Z]", DOCUMENTS[without[0]])

    def test_every_other_contract_has_headers_enough_to_split_it(self):
        counts = sorted(len(HEADER.findall(text)) for text in DOCUMENTS.values())
        assert counts[1] >= 10

    def test_a_clause_spans_pages(self):
        assert [g for g in golds() if re.search(r"\n(?:- |Page )?\d+(?: -)?\n", g)]

    def test_gold_stands_behind_the_emoji(self):
        # Offsets in UTF-16 units or bytes would be off by then.
        spans = [(q["doc_id"], s["start"]) for q in QUERIES for s in q["gold_spans"]]
        assert [1 for d, start in spans if 0 <= DOCUMENTS[d].find("👍") < start]
        assert [g for g in golds() if "👍" in g]

    def test_answers_in_two_places_far_apart_and_near(self):
        gaps = [
            b["start"] - a["end"]
            for q in QUERIES
            for a, b in zip(q["gold_spans"], q["gold_spans"][1:], strict=False)
        ]
        assert len([g for g in gaps if 0 < g < 500]) >= 5
        assert len([g for g in gaps if g > 3000]) >= 5

    def test_pieces_between_headers_are_to_be_folded_and_to_be_split(self):
        lengths = []
        for text in DOCUMENTS.values():
            starts = [m.start() for m in HEADER.finditer(text)]
            if starts:
                lengths += [b - a for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
        assert min(lengths) < 200
        assert max(lengths) > 2000


class TestFilters:
    def test_about_a_third_of_the_queries_declare_them_and_the_document_meets_them(self):
        filtered = [q for q in QUERIES if "filters" in q]
        assert 15 <= len(filtered) <= 25
        assert all(q["doc_id"] in matching(q["filters"]) for q in filtered)
        assert {field for q in filtered for field in q["filters"]} == {
            "effective_date",
            "entity",
            "version",
        }

    def test_some_select_one_version_where_text_alone_cannot(self):
        decided = [
            q
            for q in QUERIES
            if matching(q.get("filters", {})) == [q["doc_id"]]
            and any(near_identical(DOCUMENTS[q["doc_id"]], text) for text in DOCUMENTS.values())
        ]
        assert len(decided) >= 5

    def test_some_leave_more_than_one_document(self):
        assert [q for q in QUERIES if "filters" in q and len(matching(q["filters"])) > 1]

    def test_versions_answer_one_question_differently(self):
        answers: dict[tuple[str, str], set[str]] = {}
        corpus = sample.generate(documents=14, queries=500, seed=sample.SEED)
        for q in corpus.queries:
            agreement = q["doc_id"].rsplit("-v", 1)[0]
            text = " ".join(" ".join(g["text"] for g in q["gold_spans"]).split())
            answers.setdefault((agreement, q["query"]), set()).add(text)
        assert len([key for key, texts in answers.items() if len(texts) > 1]) >= 20


class TestGenerator:
    def test_a_seed_repeats(self):
        once, again = (sample.generate(documents=5, queries=20, seed=7) for _ in range(2))
        assert [c.text for c in once.contracts] == [c.text for c in again.contracts]
        assert once.queries == again.queries

    def test_two_seeds_differ(self):
        one, other = (sample.generate(documents=5, queries=20, seed=seed) for seed in (7, 8))
        assert not {c.text for c in one.contracts} & {c.text for c in other.contracts}
        assert one.queries != other.queries

    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 20), st.integers(0, 2**32))
    def test_any_size_and_seed_is_sound(self, documents, seed):
        corpus = sample.generate(documents=documents, queries=4 * documents, seed=seed)
        texts = {c.deal.doc_id: c.text for c in corpus.contracts}
        metadata = {c.deal.doc_id: dict(c.deal.metadata) for c in corpus.contracts}
        assert len(texts) == documents
        assert all(10_000 <= len(text) <= 25_000 for text in texts.values())
        assert not any(re.search(r"[<>{}|]|\[", text) for text in texts.values())
        made = assembled(texts, list(corpus.queries), metadata)
        assert made.queries.num_rows == 4 * documents

    def test_a_corpus_of_hundreds_stays_varied(self):
        corpus = sample.generate(documents=300, queries=1500, seed=3)
        assert len({c.text for c in corpus.contracts}) == 300
        assert len({q["query"] for q in corpus.queries}) > 1500 / 4
        types = Counter(q["clause_type"] for q in corpus.queries)
        assert set(types) == {c.name for c in CLAUSES.values()} | {"Schedule Entry"}
        assert corpus.queries[-1]["query_id"] == "q1500"

    def test_more_documents_begin_with_the_same_agreements(self):
        few, many = (sample.generate(documents=n, queries=3, seed=7) for n in (3, 9))
        assert [c.text for c in few.contracts] == [c.text for c in many.contracts[:3]]


class TestErrors:
    def test_too_many_queries(self):
        with pytest.raises(InputError, match=r"1 documents answer \d+ queries, not 5000"):
            sample.generate(documents=1, queries=5000, seed=1)

    @pytest.mark.parametrize(("documents", "queries"), [(0, 5), (5, 0), (-1, 5)])
    def test_nothing_to_make(self, documents, queries):
        with pytest.raises(InputError, match="must be at least 1"):
            sample.generate(documents=documents, queries=queries, seed=1)

    def test_a_folder_with_another_document_is_left_alone(self, tmp_path):
        (tmp_path / "documents").mkdir()
        (tmp_path / "documents" / "mine.txt").write_text("mine")
        with pytest.raises(InputError, match=r"mine\.txt is no document of this corpus"):
            sample.write(sample.generate(documents=1, queries=1, seed=1), tmp_path)
        assert sorted(p.name for p in tmp_path.rglob("*")) == ["documents", "mine.txt"]

    def test_the_command_says_so_and_ends_with_two(self, tmp_path, capsys):
        assert sample.main(["--documents", "0", "--out", str(tmp_path / "new")]) == 2
        assert "must be at least 1" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()

    def test_the_command_takes_any_size(self, tmp_path):
        arguments = ["--documents", "3", "--queries", "9", "--seed", "5", "--out", str(tmp_path)]
        assert sample.main(arguments) == 0
        assert len(list((tmp_path / "documents").iterdir())) == 3
        assert len((tmp_path / "queries.jsonl").read_bytes().splitlines()) == 9
