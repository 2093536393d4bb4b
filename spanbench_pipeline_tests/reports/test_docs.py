"""The documentation's worked examples, tables and messages, against the code they speak of."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spanbench_pipeline import chunkers
from spanbench_pipeline.analysis.config_stats import config_stats
from spanbench_pipeline.analysis.headroom import COSTS, costs
from spanbench_pipeline.chunkers import naive
from spanbench_pipeline.config import experiment
from spanbench_pipeline.config.experiment import ChunkerSettings, Configuration
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document, EvalSet, GoldSpan, Query, assemble
from spanbench_pipeline.corpora import pdf, pdf_fonts, pdf_forms
from spanbench_pipeline.corpora.directory import DirectorySource
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.forensic_labels import LABELS, STATES
from spanbench_pipeline.metrics.stages import STAGES
from spanbench_pipeline.reports import explanations
from spanbench_pipeline.tuning import objective
from spanbench_pipeline_tests.corpora import pdfs
from spanbench_pipeline_tests.metrics.measure import (
    character_metrics,
    chunk_stats,
    failure_labels,
    forensic_labels,
    headroom,
    lost_stages,
    query_metrics,
    span_states,
)

ROOT = Path(__file__).resolve().parents[2]
METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
OWN = (ROOT / "docs" / "your-own-corpus.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LEVERS = (ROOT / "docs" / "levers.md").read_text(encoding="utf-8")
DEVELOPING = (ROOT / "docs" / "developing.md").read_text(encoding="utf-8")

TENS = [(start, start + 100) for start in range(0, 1000, 100)]
GAP = [piece for piece in TENS if piece[0] not in (100, 200)]
WINDOWS = naive.chunk("x" * 1000, size=100, step=50)
GOLD = [(120, 180), (480, 540)]
RANKING = [700, 100, 0, 400, 900, 200, 500, 300]


def rows_below(text: str, head: str) -> list[list[str]]:
    """The cells of the table whose first line starts with ``head``."""
    lines = text[text.index(f"\n| {head}") + 1 :].split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def eval_set(gold: list[tuple[int, int]]) -> EvalSet:
    spans = [GoldSpan("d", start, end) for start, end in gold]
    documents = [Document("d", "d", "x" * 1000, "d.txt", "utf-8")]
    return assemble("docs", documents, [Query("q1", "asked", spans, "d")])


def chunk_table(pieces: list[tuple[int, int]]) -> pa.Table:
    return tables.from_rows(
        "chunks",
        [
            {"corpus": "docs", "chunker": "c", "chunk_id": f"d:c:{n}", "doc_id": "d"}
            | {"chunk_no": n, "start_char": start, "end_char": end}
            for n, (start, end) in enumerate(pieces)
        ],
    )


def ranking_table(starts: list[int], chunks: pa.Table) -> pa.Table:
    by_start = {row["start_char"]: row for row in chunks.to_pylist()}
    kept = ("chunk_id", "doc_id", "start_char", "end_char")
    return tables.from_rows(
        "rankings",
        [
            {"corpus": "docs", "config": "c", "query_id": "q1", "rank": rank, "score": 1 / rank}
            | {key: by_start[start][key] for key in kept}
            for rank, start in enumerate(starts, 1)
        ],
    )


def measured(
    measure: Callable[..., pa.Table],
    gold: list[tuple[int, int]],
    pieces: list[tuple[int, int]],
    starts: list[int],
) -> list[dict[str, Any]]:
    made, chunks = eval_set(gold), chunk_table(pieces)
    table = measure(
        ranking_table(starts, chunks),
        made.gold_spans,
        chunks,
        made.queries,
        corpus="docs",
        config="c",
    )
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_metrics_of_the_example() -> None:
    stated = {row[0].strip("`"): row[3] for row in rows_below(METRICS, "metric |")}
    found = {
        r["metric"] + (f"@{r['k']}" if r["k"] else ""): f"{r['value']:.3f}"
        for r in measured(query_metrics, GOLD, TENS, RANKING)
    }
    assert stated == found


def test_chunk_statistics_of_the_example() -> None:
    stated = {row[0].strip("`"): row[1:3] for row in rows_below(METRICS, "stat | every 100")}
    for column, pieces in enumerate((TENS, WINDOWS)):
        made = eval_set(GOLD)
        table = chunk_stats(
            chunk_table(pieces), made.gold_spans, made.queries, corpus="docs", chunker="c"
        )
        found = {row["stat"]: row["value"] for row in table.to_pylist()}
        for stat, value in found.items():
            text = stated[stat][column]
            assert (float(text) if text else None) == value, stat
    assert set(stated) == {*found, "documents_without_header"}


def test_statistics_of_the_examples_configuration() -> None:
    made, chunks = eval_set(GOLD), chunk_table(TENS)
    ranked = ranking_table(RANKING, chunks)
    metrics = query_metrics(
        ranked, made.gold_spans, chunks, made.queries, corpus="docs", config="c"
    )
    stats = chunk_stats(chunks, made.gold_spans, made.queries, corpus="docs", chunker="c")
    table = config_stats(
        [Configuration("c", "c")], metrics, stats, ranked, made.gold_spans, corpus="docs"
    )
    found = {row["stat"]: row["value"] for row in table.to_pylist()}
    stated = {r[0].strip("`"): r[2] for r in rows_below(METRICS, "stat | definition")}
    assert set(found) == set(stated)
    for stat, text in stated.items():
        assert float(text.split("= ")[-1]) == pytest.approx(found[stat], abs=0.0005)


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def test_the_example_is_labelled_as_stated() -> None:
    (row,) = measured(failure_labels, GOLD, TENS, RANKING)
    assert row["label"] == "chunk-severance"


@pytest.mark.parametrize("row", rows_below(METRICS, "gold spans |"), ids=lambda row: row[3][:24])
def test_labels_of_the_examples(row: list[str]) -> None:
    offsets = numbers(row[0])
    gold = list(zip(offsets[::2], offsets[1::2], strict=True))
    pieces = {"gap": GAP, "every 100": TENS}[row[1]]
    (found,) = measured(failure_labels, gold, pieces, numbers(row[2]))
    assert row[3].startswith(f"`{found['label']}`")


def test_recall_is_undefined_where_a_gap_holds_the_answer() -> None:
    found = {r["metric"]: r["value"] for r in measured(query_metrics, [(120, 180)], GAP, [0, 300])}
    assert found["recall"] is None
    assert found["precision"] == 0


STAGE_ROWS = rows_below(METRICS, "gold span | chunks | k |")


@pytest.mark.parametrize("row", STAGE_ROWS, ids=lambda row: row[7][:12])
def test_stages_of_the_examples(row: list[str]) -> None:
    (gold,) = [tuple(numbers(row[0]))]
    made, chunks = eval_set([gold]), chunk_table({"gap": GAP, "every 100": TENS}[row[1]])
    channels = [ranking_table(numbers(starts), chunks) for starts in row[4].split(";")]
    candidates = pa.concat_tables(
        [c.append_column("source", pa.repeat(str(n), len(c))) for n, c in enumerate(channels)]
    )
    kept = {"another document": "e", "its document": "d"}.get(row[3])
    named = {"corpus": "docs", "config": "c", "query_id": "q1", "rank": 1, "score": 1.0}
    (found,) = lost_stages(
        ranking_table(numbers(row[6] or row[5]), chunks) if row[6] or row[5] else channels[0],
        candidates,
        pa.Table.from_pylist([named | {"doc_id": kept}]) if kept else None,
        made.gold_spans,
        chunks,
        made.queries,
        has_fusion=bool(row[5]),
        has_reranker=bool(row[6]),
        ks=[int(row[2])],
    ).to_pylist()
    stage = found["lost_stage"]
    assert row[7].split(":")[0] == ("none" if stage is None else f"`{stage}`")


def test_every_stage_is_explained_and_has_its_example() -> None:
    assert tuple(row[0].strip("`") for row in rows_below(METRICS, "stage |")) == STAGES
    shown = [row[7].split(":")[0].strip("`") for row in STAGE_ROWS]
    assert shown == [*STAGES, "none"]


@pytest.mark.parametrize("row", rows_below(METRICS, "ranking, by chunk starts |"))
def test_headroom_of_the_examples(row: list[str]) -> None:
    made, chunks = eval_set(GOLD), chunk_table(TENS)
    ranked = ranking_table(numbers(row[0]), chunks)
    tables_of = (ranked, ranked, made.gold_spans, chunks, made.queries)
    found = headroom(*tables_of, corpus="docs", config="c", ks=[int(row[1])]).to_pylist()
    bounds = {r["bound"]: r["value"] for r in found}
    heads = ["actual", "candidates", "chunks", "perfect"]
    assert [bounds[name] for name in heads] == [float(value) for value in row[2:6]]
    costly = [cost for cost in COSTS if costs(bounds)[cost]]
    assert costly == ([] if row[6] == "nothing" else [row[6]])


Place = tuple[str, int, int]


def placed_table(ranked: list[Place]) -> pa.Table:
    return tables.from_rows(
        "rankings",
        [
            {"corpus": "docs", "config": "c", "query_id": "q1", "rank": rank, "score": 1 / rank}
            | {"chunk_id": f"{doc_id}:{start}:{end}", "doc_id": doc_id}
            | {"start_char": start, "end_char": end}
            for rank, (doc_id, start, end) in enumerate(ranked, 1)
        ],
    )


def forensic(ranked: pa.Table, made: EvalSet, chunks: pa.Table) -> dict[int, dict[str, Any]]:
    """k -> the row of the one query."""
    table = forensic_labels(
        ranked, made.gold_spans, chunks, made.queries, corpus="docs", config="c", depth=64
    )
    return {row["k"]: row for row in table.to_pylist()}


def character_values(ranked: pa.Table, made: EvalSet, *, foreign: bool = False) -> dict[str, str]:
    """``metric@k`` -> its value as the page writes it."""
    table = character_metrics(
        ranked, made.gold_spans, made.queries, corpus="docs", config="c", depth=64, foreign=foreign
    )
    return {
        f"{r['metric']}@{r['k']}": f"{r['value']:.{0 if r['metric'] == 'chars_retrieved' else 3}f}"
        for r in table.to_pylist()
    }


def test_character_metrics_of_the_examples() -> None:
    windows: list[Place] = [("d", 100, 200), ("d", 50, 150), ("d", 150, 250)]
    lists = (ranking_table(RANKING, chunk_table(TENS)), placed_table(windows))
    rows = {r[0].strip("`"): r[2:4] for r in rows_below(METRICS, "metric at k = 4 |")}
    assert set(rows) == set(registry.characters())
    for column, ranked in enumerate(lists):
        found = character_values(ranked, eval_set(GOLD))
        assert {m: r[column] for m, r in rows.items()} == {m: found[f"{m}@4"] for m in rows}


def test_a_ranking_from_elsewhere_that_repeats_a_place() -> None:
    twice: list[Place] = [("d", 0, 10), ("d", 0, 10), ("d", 10, 40)]
    found = character_values(placed_table(twice), eval_set([(0, 20)]), foreign=True)
    assert "precision 30 / 50 and recall 30 / 20, union 20 / 40 and 20 / 20" in METRICS
    names = ("precision_paper", "recall_paper", "precision_union", "recall_union")
    assert [found[f"char_{n}@4"] for n in names] == ["0.600", "1.500", "0.500", "1.000"]


def test_states_and_labels_of_the_example() -> None:
    made, chunks = eval_set(GOLD), chunk_table(TENS)
    ranked = ranking_table(RANKING, chunks)
    labels = forensic(ranked, made, chunks)
    states: dict[int, list[str]] = {}
    table = span_states(
        ranked, made.gold_spans, chunks, made.queries, corpus="docs", config="c", depth=64
    )
    for row in table.to_pylist():
        states.setdefault(row["k"], []).append(f"`{row['state']}` {row['covered_chars']}")
        assert row["severed"] == (row["span_no"] == 1)
    stated = rows_below(METRICS, "k | A | B | label")
    assert [int(row[0]) for row in stated] == [1, 2, 4, 5, 8]
    for row in stated:
        found = labels[int(row[0])]
        excess = "" if found["excess"] is None else f"{found['excess']:.3f}"
        assert row[1:5] == [*states[int(row[0])], f"`{found['label']}`", excess]
    stability = {k: json.loads(labels[k]["stability"]) for k in (4, 8)}
    assert {s for s, label in stability[8].items() if label == "OVR"} == {"factor 2"}
    assert {s for s, label in stability[8].items() if label == "OK"} == {
        *stability[8].keys() - {"factor 2"}
    }
    assert {s for s, label in stability[4].items() if label == "OK"} == {"covered 0.3"}
    assert {s for s, label in stability[4].items() if label == "CBF"} == {
        *stability[4].keys() - {"covered 0.3"}
    }


def read_places(text: str) -> list[Place]:
    return [(d, int(s), int(e)) for d, s, e in re.findall(r"`([AB])\[(\d+), (\d+)\)`", text)]


@pytest.mark.parametrize("row", rows_below(METRICS, "ranked | gold of the query"), ids="-".join)
def test_forensic_labels_of_the_examples(row: list[str]) -> None:
    ranked, gold = read_places(row[0]), read_places(row[1])
    assert bool(row[0]) == bool(ranked)
    documents = [Document(d, d, "x" * 2000, f"{d}.txt", "utf-8") for d in "AB"]
    made = assemble(
        "docs", documents, [Query("q1", "asked", [GoldSpan(*place) for place in gold], None)]
    )
    size = numbers(row[2])
    pieces = [("A", n, n + size[0]) for n in range(0, 600, size[0])] if size else []
    pieces += [place for place in ranked if place not in pieces]
    chunks = tables.from_rows(
        "chunks",
        [
            {"corpus": "docs", "chunker": "c", "chunk_id": f"{d}:{start}:{end}", "doc_id": d}
            | {"chunk_no": n, "start_char": start, "end_char": end}
            for n, (d, start, end) in enumerate(pieces)
        ],
    )
    label = forensic(placed_table(ranked), made, chunks)[64]["label"]
    assert row[3].startswith(f"`{label}`")


def test_the_names_of_labels_and_states_are_those_of_the_page() -> None:
    named = {row[0].strip("`"): row[1] for row in rows_below(METRICS, "code | name")}
    assert named == LABELS
    assert set(LABELS) == set(explanations.FORENSIC_LABELS)
    stated = tuple(row[0].strip("`") for row in rows_below(METRICS, "state | holds when"))
    assert stated == STATES == tuple(explanations.STATES)


def test_every_table_and_column_is_in_the_architecture() -> None:
    stated = {
        row[0].strip("`"): (tuple(row[1].split(", ")), tuple(row[2].split(", ")))
        for row in rows_below(ARCHITECTURE, "table |")
    }
    declared = {
        name: (spec.key, tuple(c.name for c in spec.columns if c.name not in spec.key))
        for name, spec in tables.TABLES.items()
    }
    assert stated == declared


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_linked_or_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w./-]+)\)", text)
    named = re.findall(r"warehouse/sql/\w+\.sql", text)
    for path in linked:
        assert (page.parent / path).exists(), path
    for path in named:
        assert (ROOT / path).is_file(), path


def plain(value: object) -> str:
    """A default as the page writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_setting_of_a_configuration_is_in_the_levers() -> None:
    stated = {row[0].strip("`"): row[1:3] for row in rows_below(LEVERS, "key of a conf")}
    defaults = {f.name: f.default for f in dataclasses.fields(Configuration)}
    assert set(stated) == set(defaults) - {"name"}
    words = {"chunker": "required", "reranker": "none", "encoder": "the only one"}
    words["stemming"] = "none"
    assert {key: row[0].strip("`") for key, row in stated.items()} == {
        key: words.get(key, plain(defaults[key])) for key in stated
    }
    used = {"rrf_k": "fusion_used", "alpha": "fusion_used", "fusion": "fusion_used"}
    used |= {"routing": "routing_used", "routing_alpha": "routing_used"}
    used |= dict.fromkeys(experiment.BM25_SETTINGS, "bm25_used")
    for key, (_, lever) in stated.items():
        assert used.get(key, key) in experiment.LEVERS[lever], key


def test_the_grid_of_tuning_is_in_the_levers() -> None:
    stated = {row[0].strip("`"): row[1:] for row in rows_below(LEVERS, "key | values")}
    assert [*stated] == [*objective.GRID]
    for key, (values, untuned) in stated.items():
        assert [float(value) for value in values.split(", ")] == [*objective.GRID[key]]
        assert float(untuned) == objective.UNTUNED[key]


def test_every_parameter_of_a_chunker_is_in_the_levers() -> None:
    stated = rows_below(LEVERS, "strategy |")
    own = [module.name for module in pkgutil.iter_modules(chunkers.__path__)]
    loaded = {name: chunkers.load(ChunkerSettings(name, name), "docs.toml") for name in own}
    assert {(r[0].strip("`"), r[1].strip("`"), r[2], r[3] == "yes") for r in stated} == {
        (name, key, str(value), chunker.overlaps)
        for name, chunker in loaded.items()
        for key, value in chunker.params.items()
    }
    assert all(chunker.tiles for chunker in loaded.values())


LINE = {"query": "q", "doc_id": "d", "gold_texts": ["law"]}
Case = tuple[dict[str, bytes], str]


def case(line: str = "", **documents: bytes) -> Case:
    """Documents by name (``__`` for a dot), beside one that holds a law, and a query's line."""
    named = {name.replace("__", "."): data for name, data in documents.items()}
    return ({"d.txt": b"the law is law"} | named, line)


def query(text: str) -> str:
    return f'{{"query": "q", "doc_id": "d", {text}}}'


def locked_pdf() -> bytes:
    import io

    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(72, 72)
    writer.encrypt("secret", algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


PROBLEMS: dict[str, Callable[[], Case]] = {
    "not a document": lambda: case(e__docx=b"x"),
    "would both be document": lambda: case(d__md=b"x"),
    "the file is empty (0 bytes)": lambda: case(e__txt=b""),
    "no text but white space": lambda: case(e__txt=b" \n"),
    "It seems to be": lambda: case(e__txt="Law.".encode("utf-16-le")),
    "is NUL, which no text holds": lambda: case(e__txt=b"the law\0"),
    "half of a UTF-16 surrogate pair": lambda: case(e__pdf=pdfs.mapped("\ud83d")),
    "cannot be read as PDF": lambda: case(e__pdf=b"the law"),
    "a line break or control character": lambda: ({"d.txt": b"law is", "e\n.txt": b"law"}, ""),
    "a PDF with a password": lambda: case(e__pdf=locked_pdf()),
    "not UTF-8": lambda: case(e__txt=b"caf\xe9"),
    "not valid JSON": lambda: case("{"),
    "key 'query' is missing": lambda: case('{"doc_id": "d", "gold_texts": ["is"]}'),
    "give exactly one of gold_texts and gold_spans": lambda: case('{"query": "q", "doc_id": "d"}'),
    "unknown doc_id": lambda: case('{"query": "q", "doc_id": "d.txt", "gold_texts": ["is"]}'),
    "stands 2 times in document": lambda: case(query('"gold_texts": ["law"]')),
    "white space or invisible characters alone": lambda: case(query('"gold_texts": [" "]')),
    "is not in document": lambda: case(query('"gold_texts": ["Law"]')),
    "but the gold text is": lambda: case(
        query('"gold_spans": [{"start": 0, "end": 3, "text": "law"}]')
    ),
    "must satisfy 0 <= start < end": lambda: case(query('"gold_spans": [[0, 99]]')),
    "is declared by no document": lambda: case(
        query('"gold_texts": ["is"], "filters": {"year": 1}')
    ),
    "but the cap is": lambda: case(**{f"e{n}__txt": b"x" for n in range(3)}),
}


def test_every_message_of_the_page_has_its_case() -> None:
    assert {row[0].strip("`") for row in rows_below(OWN, "message (in part)")} == set(PROBLEMS)


@pytest.mark.parametrize("message", PROBLEMS)
def test_messages_are_those_of_the_page(message: str, tmp_path: Path) -> None:
    documents, line = PROBLEMS[message]()
    (tmp_path / "documents").mkdir()
    for name, data in documents.items():
        (tmp_path / "documents" / name).write_bytes(data)
    queries = tmp_path / "queries.jsonl"
    queries.write_text(line or query('"gold_texts": ["is"]'), encoding="utf-8")
    source = DirectorySource(tmp_path / "documents", queries, max_documents=3)
    with pytest.raises(InputError, match=re.escape(message)):
        assemble("own", *source.read())


def test_the_notes_on_a_pdf_are_those_of_the_page() -> None:
    notes = [row[0].strip("`") for row in rows_below(OWN, "note (in part)")]
    said = "".join(map(inspect.getsource, (pdf, pdf_fonts, pdf_forms)))
    assert [note for note in notes if note not in said] == []


def test_the_formats_and_what_needs_chunks_are_those_of_the_page() -> None:
    from spanbench_pipeline.formats import FORMATS, READABLE

    page = (ROOT / "docs" / "scoring.md").read_text(encoding="utf-8")
    formats = [row[0].strip("`") for row in rows_below(page, "format | what it is")]
    assert tuple(formats) == READABLE
    folders = [row[0].strip("`").partition("/")[0] for row in rows_below(page, "folder | files")]
    assert folders == list(FORMATS.ours)
    assert len(rows_below(page, "needs every chunk |")) == 6


def module_of(text: str, first_words: str) -> str:
    """The code block of a page that starts with these words."""
    found = [m for m in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if first_words in m]
    assert len(found) == 1
    return found[0]


def test_the_chunker_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "documented_package").mkdir()
    path = tmp_path / "documented_package" / "paragraph.py"
    path.write_text(module_of(DEVELOPING, "One piece a paragraph"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = ChunkerSettings("own", "documented_package.paragraph", {"min_chars": 4})
    chunker = chunkers.load(settings, "docs.toml")
    text = "First one,\nits second line.\n\n  Second.\n \n\nno\n"
    made = assemble(
        "docs",
        [Document("d", "d", text, "d.txt", "utf-8")],
        [Query("q", "q", [GoldSpan("d", 0, 5)], "d")],
    )
    pieces = chunkers.chunk_documents("docs", made.documents, chunker).to_pylist()
    found = [text[p["start_char"] : p["end_char"]] for p in pieces]
    assert found == ["First one,\nits second line.\n", "  Second.\n"]
    sys.modules.pop("documented_package.paragraph", None)
