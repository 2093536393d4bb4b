"""Small cases worked out by hand, as data, with the reason beside each.

``A0-100`` is characters 0 to 99 of document A. The tables of the specification stand here row by
row; the others cover what they leave out, so that every metric, label, state, stage and bound has
a case of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spanbench_pipeline.calibration.tally import Tallies, Tally
from spanbench_pipeline.calibration.world import Place, World
from spanbench_pipeline.metrics.metric import metric_label

AGAINST = "golden vectors, by hand"
TOLERANCE = 1e-12
LENGTH = 2000
"""Characters of each document."""
Expected = float | str | None

U = "char_precision_union", "char_recall_union"
P = "char_precision_paper", "char_recall_paper"


@dataclass(frozen=True)
class WorkedCase:
    """One query: its list, its gold, what must come out, and why.

    ``tiles`` cuts A into chunks of so many characters; the ranked places are chunks as well, and
    so are ``more``. Names of what is expected: ``metric@k``, ``label@k``, ``excess@k``,
    ``state@k``, ``stage@k`` and ``covered@k`` of the last gold span, ``bound NAME@k``,
    ``failure label``.
    """

    why: str
    ranked: str
    gold: str
    expected: Mapping[str, Expected]
    tiles: int = 0
    more: str = ""

    def world(self) -> World:
        """The case as a corpus of one query."""
        ranked = places(self.ranked)
        cut = [("A", s, s + self.tiles) for s in range(0, 600, self.tiles)] if self.tiles else []
        chunks = sorted({*ranked, *cut, *places(self.more)}) or [("B", 0, 10)]
        lengths = dict.fromkeys("AB", LENGTH)
        return World(lengths, chunks, {"q": places(self.gold)}, {"q": ranked}, {"q": None})


def places(text: str) -> list[Place]:
    """``A0-100 B5-7`` as places."""
    return [(d, int(s), int(e)) for d, s, e in re.findall(r"([AB])(\d+)-(\d+)", text)]


def _both(names: tuple[str, str], k: int, precision: float, recall: float) -> dict[str, Expected]:
    return {f"{names[0]}@{k}": precision, f"{names[1]}@{k}": recall}


SEVEN_OF_B = " ".join(f"B{n * 250}-{n * 250 + 250}" for n in range(7))
FIVE_TENS = "A20-30 A30-40 A40-50 A50-60 A60-70"
GROUNDED: dict[str, Expected] = {"span_coverage@5": 1, "complete_grounding@5": 1}
UNGROUNDED: dict[str, Expected] = {"complete_grounding@5": 0}
NOTHING = UNGROUNDED | {"precision@5": 0, "mrr": 0, "span_coverage@5": 0}
FIVE_OF_A = "A0-100 A100-200 A200-300 A300-400 A400-500"

CASES = (
    # Characters: the specification's examples.
    WorkedCase(
        "[0, 150) holds the 100 gold ones; the paper counts 100 + 50 shared of 100 + 100",
        "A0-100 A50-150",
        "A0-100",
        _both(U, 2, 100 / 150, 1) | _both(P, 2, 150 / 200, 1.5) | {"chars_retrieved@2": 150},
    ),
    WorkedCase(
        "half of what was retrieved is another document's",
        "A0-100 B0-100",
        "A0-100",
        _both(U, 2, 0.5, 1) | _both(P, 2, 0.5, 1),
    ),
    WorkedCase(
        "half of the gold is in a document that was not reached",
        "A0-100",
        "A0-100 B0-100",
        _both(U, 1, 1, 0.5) | _both(P, 1, 1, 0.5),
    ),
    WorkedCase(
        "equal offsets in another document are worth nothing: the document-blind trap",
        "B0-100 A0-100",
        "A0-100",
        _both(U, 1, 0, 0) | _both(U, 2, 0.5, 1) | {"label@1": "DRM", "label@2": "OK"},
    ),
    WorkedCase(
        "a repeated place counts once in union; the paper takes a foreign list as it stands",
        "A0-10 A0-10 A10-40",
        "A0-20",
        _both(U, 4, 20 / 40, 1) | _both(P, 4, 30 / 50, 30 / 20),
    ),
    WorkedCase(
        "nothing retrieved",
        "",
        "A0-10",
        _both(U, 1, 0, 0)
        | _both(P, 1, 0, 0)
        | {"chars_retrieved@64": 0, "precision@5": 0, "mrr": 0, "span_coverage@5": 0},
    ),
    # Forensic labels: the specification's table.
    WorkedCase("nothing was retrieved", "", "A0-10", {"label@8": "DRM", "excess@8": None}),
    WorkedCase("only another document", "B0-10", "A0-10", {"label@8": "DRM"}),
    WorkedCase(
        "touching shares no character",
        "A100-200",
        "A0-100",
        {"label@8": "ICR", "state@8": "missed", "excess@8": None},
    ),
    WorkedCase("one span of two", "A0-100", "A0-100 A500-600", {"label@8": "SGP"}),
    WorkedCase("one span of two, in two documents", "A0-100", "A0-100 B0-100", {"label@8": "SGP"}),
    WorkedCase(
        "49 of 100, and no chunk holds the span",
        "A0-49",
        "A0-100",
        {"label@8": "CBF", "state@8": "partial", "covered@8": 49, "excess@8": 0.49},
        tiles=49,
    ),
    WorkedCase(
        "exactly half is enough",
        "A50-100",
        "A0-100",
        {"label@8": "OK", "state@8": "covered", "span_recall@5": 1, "complete_grounding@5": 1},
        tiles=50,
    ),
    WorkedCase(
        "299 of 100: under 3 times", "A0-299", "A0-100", {"label@8": "OK", "excess@8": 2.99}
    ),
    WorkedCase("300 of 100: 3 times", "A0-300", "A0-100", {"label@8": "OVR", "excess@8": 3.0}),
    WorkedCase(
        "long chunks of another document are no excess; they are in the precision",
        f"A0-100 {SEVEN_OF_B}",
        "A0-100",
        _both(U, 8, 100 / 1850, 1) | {"label@8": "OK", "excess@8": 1.0},
    ),
    WorkedCase(
        "some of it, and a chunk holds the whole span",
        "A0-49",
        "A0-100",
        {"label@8": "ICR", "state@8": "partial"},
        more="A0-100",
    ),
    # Metrics of chunks.
    WorkedCase(
        "A100-200, A400-500 and A500-600 are relevant: at ranks 2, 4 and 7",
        "A700-800 A100-200 A0-100 A400-500 A900-1000 A200-300 A500-600 A300-400",
        "A120-180 A480-540",
        {
            "precision@5": 2 / 5,
            "recall@10": 1,
            "mrr": 1 / 2,
            "span_coverage@5": 80 / 120,
            "span_recall@5": 1 / 2,
            "complete_grounding@5": 0,
            # (1 / log2(3) + 1 / log2(5) + 1 / log2(8)) / (1 + 1 / log2(3) + 1 / log2(4))
            "ndcg@10": 0.6546154994739983,
            "failure label": "chunk-severance",
            "label@5": "CBF",
        },
    ),
    WorkedCase(
        "the best order: every relevant chunk first",
        "A0-100 A100-200 B0-10",
        "A50-150",
        {"ndcg@10": 1, "mrr": 1, "recall@10": 1, "precision@5": 0.4},
        tiles=100,
    ),
    WorkedCase(
        "one of three relevant chunks, first: 1 / (1 + 1 / log2(3) + 1 / 2)",
        "A0-100",
        "A0-300",
        {"ndcg@10": 0.46927872602275644, "recall@10": 1 / 3, "mrr": 1},
        tiles=100,
    ),
    WorkedCase(
        "no chunk is relevant: recall and ndcg are undefined, precision and mrr are 0",
        "A0-10",
        "A10-20",
        {"recall@10": None, "ndcg@10": None, "precision@5": 0, "mrr": 0},
    ),
    WorkedCase(
        "a repeated chunk counts once and the rest close up",
        "B0-10 B0-10 A0-100",
        "A0-100",
        {"mrr": 1 / 2, "precision@5": 1 / 5},
    ),
    # Failure labels.
    WorkedCase(
        "the only relevant chunk is first and has 20 of 120 characters",
        "A0-100 A300-400",
        "A80-200",
        {"failure label": "ceiling-bound", "span_coverage@5": 20 / 120},
    ),
    WorkedCase(
        "two chunks touch the span, and the one retrieved has 20 of 60 characters",
        "A400-500 A0-100",
        "A480-540",
        {"failure label": "chunk-severance"},
        tiles=100,
    ),
    WorkedCase(
        "the chunk that holds the span is not in the list",
        "A0-100 A200-300",
        "A120-180",
        {"failure label": "retrieval-miss", "stage@8": "candidates"},
        tiles=100,
    ),
    WorkedCase(
        "it is at rank 6",
        "A0-100 A200-300 A300-400 A400-500 A500-600 A100-200",
        "A120-180",
        {"failure label": "rank-miss", "stage@5": "cut", "stage@8": None},
        tiles=100,
    ),
    WorkedCase(
        "no chunk touches the span, so no other label can hold",
        "A0-10",
        "A10-20",
        {"failure label": "partial-grounding", "stage@8": "corpus"},
    ),
    WorkedCase("a query that does not fail has none", "A0-10", "A0-10", {"failure label": None}),
    # What counts as relevant, retrieved and grounded.
    WorkedCase(
        "a chunk ranked twice is one chunk",
        "A0-100 A0-100",
        "A0-100",
        GROUNDED | {"precision@5": 0.2, "recall@10": 1, "mrr": 1},
    ),
    WorkedCase(
        "gold that overlaps is merged: 150 characters, not 200",
        "A0-200",
        "A0-100 A50-150",
        GROUNDED | {"span_recall@5": 1},
    ),
    WorkedCase(
        "75 of the 150 characters of merged gold: half, which grounds it",
        "A0-75",
        "A0-100 A50-150",
        {"span_coverage@5": 0.5, "span_recall@5": 1, "complete_grounding@5": 1},
    ),
    WorkedCase(
        "74 of 150, and the only relevant chunk is first",
        "A0-74",
        "A0-150",
        UNGROUNDED
        | {"span_coverage@5": 74 / 150, "span_recall@5": 0, "failure label": "ceiling-bound"},
    ),
    WorkedCase(
        "the same words elsewhere are not relevant",
        "A2-12 A0-2 A12-14 A14-24",
        "A14-23",
        {"mrr": 0.25, "precision@5": 0.2, "recall@10": 1, "span_coverage@5": 1},
    ),
    WorkedCase(
        "neighbours that only touch are not relevant",
        "A0-10 A20-30 A10-20",
        "A10-20",
        {"mrr": 1 / 3, "precision@5": 0.2, "recall@10": 1},
    ),
    WorkedCase(
        "equal offsets in another document are not relevant",
        "B0-10",
        "A0-10",
        NOTHING | {"recall@10": 0, "failure label": "retrieval-miss"},
        more="A0-10",
    ),
    WorkedCase(
        "an empty list is worth nothing, and its query still counts",
        "",
        "A0-10",
        NOTHING | {"recall@10": 0, "span_recall@5": 0, "failure label": "retrieval-miss"},
        more="A0-10",
    ),
    WorkedCase(
        "no chunk is relevant: recall is undefined, the others are 0",
        "A0-5",
        "A5-10",
        NOTHING | {"recall@10": None, "failure label": "partial-grounding"},
    ),
    WorkedCase(
        "the first of four relevant chunks, and two that are not",
        "A0-10 A50-60 A60-70",
        "A0-40",
        {"recall@10": 0.25, "precision@5": 0.2, "span_coverage@5": 0.25}
        | {"failure label": "chunk-severance"},
        tiles=10,
    ),
    WorkedCase(
        "900 of 910 gold characters, one of two spans",
        "A0-900",
        "A0-900 A950-960",
        UNGROUNDED
        | {"span_coverage@5": 900 / 910, "span_recall@5": 0.5, "recall@10": 0.5}
        | {"failure label": "retrieval-miss"},
        more="A900-1000",
    ),
    WorkedCase(
        "196 of 726 gold characters, one of two spans",
        "A0-197",
        "A0-196 A197-727",
        UNGROUNDED | {"span_coverage@5": 196 / 726, "span_recall@5": 0.5},
        more="A197-727",
    ),
    WorkedCase(
        "530 of 726 gold characters, one of two spans",
        "A197-727",
        "A0-196 A197-727",
        UNGROUNDED | {"span_coverage@5": 530 / 726, "span_recall@5": 0.5},
        more="A0-197",
    ),
    WorkedCase(
        "[0, 60) and [40, 90) hold 90 of 100 characters, not 110",
        "A0-60 A40-90",
        "A0-100",
        {"span_coverage@5": 0.9, "recall@10": 2 / 3, "precision@5": 0.4},
        more="A80-100",
    ),
    WorkedCase(
        "relevant chunks at ranks 6 and 11: below the first 5, one of two in the first 10",
        f"{FIVE_TENS} A0-10 A70-80 A80-90 A90-100 A100-110 A10-20",
        "A0-20",
        {"precision@5": 0, "recall@10": 0.5, "mrr": 1 / 6, "span_coverage@5": 0}
        | {"failure label": "chunk-severance"},
        tiles=10,
    ),
    WorkedCase(
        "10 of 30 gold characters, in the first of two documents",
        "A0-10",
        "A0-10 B0-20",
        {"span_coverage@5": 1 / 3, "span_recall@5": 0.5, "recall@10": 0.5}
        | {"failure label": "retrieval-miss"},
        more="B0-20",
    ),
    # Failure labels: which of two comes first, and what is none.
    WorkedCase(
        "both chunks of the span are retrieved, 15 of 40: ceiling-bound before chunk-severance",
        "A30-40 A0-5",
        "A0-40",
        {"span_coverage@5": 0.375, "failure label": "ceiling-bound"},
    ),
    WorkedCase(
        "five relevant chunks of one character are not under the ceiling",
        "A0-1 A10-11 A20-21 A30-31 A40-41",
        "A0-50",
        {"precision@5": 1, "span_coverage@5": 0.1, "failure label": "chunk-severance"},
    ),
    WorkedCase(
        "two chunks of the span, neither retrieved: chunk-severance before retrieval-miss",
        "A20-30 A30-40 A40-50 A50-60",
        "A4-16",
        {"failure label": "chunk-severance"},
        tiles=10,
    ),
    WorkedCase(
        "a severed span that is covered severs nothing; the other's chunk is missing",
        "A0-10 A10-20",
        "A0-20 A30-40",
        {"span_recall@5": 0.5, "failure label": "retrieval-miss"},
        tiles=10,
    ),
    WorkedCase(
        "one span's chunk at rank 6, one's nowhere: retrieval-miss before rank-miss",
        f"{FIVE_TENS} A0-10",
        "A2-8 A12-18",
        {"mrr": 1 / 6, "failure label": "retrieval-miss"},
        tiles=10,
    ),
    WorkedCase(
        "a missing chunk of a covered span is no miss; the other's is at rank 6",
        "A0-10 A40-50 A50-60 A60-70 A70-80 A30-40",
        "A0-20 A32-38",
        {"span_recall@5": 0.5, "failure label": "rank-miss"},
        tiles=10,
    ),
    WorkedCase(
        "[50, 60) has one character in its only chunk; the chunk missing of four is of [41, 49)",
        "A0-10 A39-50 A50-51",
        "A2-8 A41-49 A50-60",
        {"recall@10": 0.75, "span_recall@5": 2 / 3, "failure label": "partial-grounding"},
        more="A40-50",
    ),
    # Stages and headroom.
    WorkedCase(
        "half of the span takes three chunks: two cannot do it, four can",
        FIVE_OF_A,
        "A0-500",
        {"stage@2": "chunking", "bound chunks@2": 0, "bound chunks@4": 1, "bound actual@4": 1},
        tiles=100,
    ),
    WorkedCase(
        "the longest first takes three; the other two alone hold half",
        "B0-10",
        "A0-100",
        {"bound chunks@2": 1, "bound chunks@1": 0, "stage@2": "candidates"},
        more="A36-64 A20-45 A55-80",
    ),
    WorkedCase(
        "second in the list: the best order of it has it first",
        "B0-10 A0-100",
        "A0-100",
        {"bound actual@1": 0, "bound candidates@1": 1, "bound perfect@1": 1, "stage@1": "cut"},
    ),
)


def compare() -> list[Tally]:
    """Every expected value of every case, by the kind of value."""
    tallies = Tallies(AGAINST, TOLERANCE)
    for case in CASES:
        found = facts(case)
        for name, expected in case.expected.items():
            kind = name.partition("@")[0].partition(" ")[0]
            kind = "failure label" if name == "failure label" else kind
            where = f"{case.ranked or 'nothing'} for {case.gold}, {name}"
            tallies.add(kind, where, found[name], expected)
    return tallies.all()


def facts(case: WorkedCase) -> dict[str, Expected]:
    """Everything measured of a case, by the names that ``WorkedCase`` says."""
    tables = case.world().measured().tables
    found: dict[str, Expected] = {"failure label": None}
    for row in tables["query_metrics"].to_pylist():
        name = metric_label(row["metric"], row["k"])
        found[name] = row["value"]
    for row in tables["forensic_labels"].to_pylist():
        found[f"label@{row['k']}"] = row["label"]
        found[f"excess@{row['k']}"] = row["excess"]
    for row in tables["span_states"].to_pylist():  # the last span of each k stays
        found[f"state@{row['k']}"] = row["state"]
        found[f"covered@{row['k']}"] = row["covered_chars"]
        found[f"stage@{row['k']}"] = row["lost_stage"]
    for row in tables["headroom"].to_pylist():
        found[f"bound {row['bound']}@{row['k']}"] = row["value"]
    for row in tables["failure_labels"].to_pylist():
        found["failure label"] = row["label"]
    return found
