"""Golden vectors: small cases worked out by hand, as data, with the reason beside each.

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
class Vector:
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
FIVE_OF_A = "A0-100 A100-200 A200-300 A300-400 A400-500"

VECTORS = (
    # Characters: the specification's examples.
    Vector(
        "[0, 150) holds the 100 gold ones; the paper counts 100 + 50 shared of 100 + 100",
        "A0-100 A50-150",
        "A0-100",
        _both(U, 2, 100 / 150, 1) | _both(P, 2, 150 / 200, 1.5) | {"chars_retrieved@2": 150},
    ),
    Vector(
        "half of what was retrieved is another document's",
        "A0-100 B0-100",
        "A0-100",
        _both(U, 2, 0.5, 1) | _both(P, 2, 0.5, 1),
    ),
    Vector(
        "half of the gold is in a document that was not reached",
        "A0-100",
        "A0-100 B0-100",
        _both(U, 1, 1, 0.5) | _both(P, 1, 1, 0.5),
    ),
    Vector(
        "equal offsets in another document are worth nothing: the document-blind trap",
        "B0-100 A0-100",
        "A0-100",
        _both(U, 1, 0, 0) | _both(U, 2, 0.5, 1) | {"label@1": "DRM", "label@2": "OK"},
    ),
    Vector(
        "a repeated place counts once in union; the paper takes a foreign list as it stands",
        "A0-10 A0-10 A10-40",
        "A0-20",
        _both(U, 4, 20 / 40, 1) | _both(P, 4, 30 / 50, 30 / 20),
    ),
    Vector(
        "nothing retrieved",
        "",
        "A0-10",
        _both(U, 1, 0, 0)
        | _both(P, 1, 0, 0)
        | {"chars_retrieved@64": 0, "precision@5": 0, "mrr": 0, "span_coverage@5": 0},
    ),
    # Forensic labels: the specification's table.
    Vector("nothing was retrieved", "", "A0-10", {"label@8": "DRM", "excess@8": None}),
    Vector("only another document", "B0-10", "A0-10", {"label@8": "DRM"}),
    Vector(
        "touching shares no character",
        "A100-200",
        "A0-100",
        {"label@8": "ICR", "state@8": "missed", "excess@8": None},
    ),
    Vector("one span of two", "A0-100", "A0-100 A500-600", {"label@8": "SGP"}),
    Vector("one span of two, in two documents", "A0-100", "A0-100 B0-100", {"label@8": "SGP"}),
    Vector(
        "49 of 100, and no chunk holds the span",
        "A0-49",
        "A0-100",
        {"label@8": "CBF", "state@8": "partial", "covered@8": 49, "excess@8": 0.49},
        tiles=49,
    ),
    Vector(
        "exactly half is enough",
        "A50-100",
        "A0-100",
        {"label@8": "OK", "state@8": "covered", "span_recall@5": 1, "complete_grounding@5": 1},
        tiles=50,
    ),
    Vector("299 of 100: under 3 times", "A0-299", "A0-100", {"label@8": "OK", "excess@8": 2.99}),
    Vector("300 of 100: 3 times", "A0-300", "A0-100", {"label@8": "OVR", "excess@8": 3.0}),
    Vector(
        "long chunks of another document are no excess; they are in the precision",
        f"A0-100 {SEVEN_OF_B}",
        "A0-100",
        _both(U, 8, 100 / 1850, 1) | {"label@8": "OK", "excess@8": 1.0},
    ),
    Vector(
        "some of it, and a chunk holds the whole span",
        "A0-49",
        "A0-100",
        {"label@8": "ICR", "state@8": "partial"},
        more="A0-100",
    ),
    # Metrics of chunks.
    Vector(
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
    Vector(
        "the best order: every relevant chunk first",
        "A0-100 A100-200 B0-10",
        "A50-150",
        {"ndcg@10": 1, "mrr": 1, "recall@10": 1, "precision@5": 0.4},
        tiles=100,
    ),
    Vector(
        "one of three relevant chunks, first: 1 / (1 + 1 / log2(3) + 1 / 2)",
        "A0-100",
        "A0-300",
        {"ndcg@10": 0.46927872602275644, "recall@10": 1 / 3, "mrr": 1},
        tiles=100,
    ),
    Vector(
        "no chunk is relevant: recall and ndcg are undefined, precision and mrr are 0",
        "A0-10",
        "A10-20",
        {"recall@10": None, "ndcg@10": None, "precision@5": 0, "mrr": 0},
    ),
    Vector(
        "a repeated chunk counts once and the rest close up",
        "B0-10 B0-10 A0-100",
        "A0-100",
        {"mrr": 1 / 2, "precision@5": 1 / 5},
    ),
    # Failure labels.
    Vector(
        "the only relevant chunk is first and has 20 of 120 characters",
        "A0-100 A300-400",
        "A80-200",
        {"failure label": "ceiling-bound", "span_coverage@5": 20 / 120},
    ),
    Vector(
        "two chunks touch the span, and the one retrieved has 20 of 60 characters",
        "A400-500 A0-100",
        "A480-540",
        {"failure label": "chunk-severance"},
        tiles=100,
    ),
    Vector(
        "the chunk that holds the span is not in the list",
        "A0-100 A200-300",
        "A120-180",
        {"failure label": "retrieval-miss", "stage@8": "candidates"},
        tiles=100,
    ),
    Vector(
        "it is at rank 6",
        "A0-100 A200-300 A300-400 A400-500 A500-600 A100-200",
        "A120-180",
        {"failure label": "rank-miss", "stage@5": "cut", "stage@8": None},
        tiles=100,
    ),
    Vector(
        "no chunk touches the span, so no other label can hold",
        "A0-10",
        "A10-20",
        {"failure label": "partial-grounding", "stage@8": "corpus"},
    ),
    Vector("a query that does not fail has none", "A0-10", "A0-10", {"failure label": None}),
    # Stages and headroom.
    Vector(
        "half of the span takes three chunks: two cannot do it, four can",
        FIVE_OF_A,
        "A0-500",
        {"stage@2": "chunking", "bound chunks@2": 0, "bound chunks@4": 1, "bound actual@4": 1},
        tiles=100,
    ),
    Vector(
        "the longest first takes three; the other two alone hold half",
        "B0-10",
        "A0-100",
        {"bound chunks@2": 1, "bound chunks@1": 0, "stage@2": "candidates"},
        more="A36-64 A20-45 A55-80",
    ),
    Vector(
        "second in the list: the best order of it has it first",
        "B0-10 A0-100",
        "A0-100",
        {"bound actual@1": 0, "bound candidates@1": 1, "bound perfect@1": 1, "stage@1": "cut"},
    ),
)


def compare() -> list[Tally]:
    """Every expected value of every vector, by the kind of value."""
    tallies = Tallies(AGAINST, TOLERANCE)
    for vector in VECTORS:
        found = facts(vector)
        for name, expected in vector.expected.items():
            kind = name.partition("@")[0].partition(" ")[0]
            kind = "failure label" if name == "failure label" else kind
            where = f"{vector.ranked or 'nothing'} for {vector.gold}, {name}"
            tallies.add(kind, where, found[name], expected)
    return tallies.all()


def facts(vector: Vector) -> dict[str, Expected]:
    """Everything measured of a vector, by the names that ``Vector`` says."""
    tables = vector.world().measured().tables
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
