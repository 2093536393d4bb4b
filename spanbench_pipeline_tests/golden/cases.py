"""Small corpora whose every figure was worked out by hand, with the reason beside it.

``metrics`` and ``labels`` hold what is asserted, by query; what a case is not about is left out.
Values are exact or rounded to three decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spanbench_pipeline_tests.metrics.cases import Case, Place, tiles


@dataclass(frozen=True)
class Golden:
    """A case and what it must give: (query, metric) -> value, query -> label."""

    name: str
    case: Case
    metrics: Mapping[tuple[str, str], float | None] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def one(
    chunks: Mapping[str, Place], gold: list[Place], ranking: list[str], **texts: int | str
) -> Case:
    """A corpus of one query, ``q``; a text given as a number is so many letters."""
    return Case(
        texts={d: "x" * t if isinstance(t, int) else t for d, t in texts.items()},
        chunks=chunks,
        gold={"q": gold},
        rankings={"q": ranking},
    )


def of_q(**values: float | None) -> dict[tuple[str, str], float | None]:
    return {("q", metric): value for metric, value in values.items()}


SURVIVAL = "A\nSurvival.\nB\nSurvival.\n"

METRICS = [
    Golden(
        "a chunk ranked twice counts once",
        one({"c": ("A", 0, 100)}, [("A", 0, 100)], ["c", "c"], A=100),
        of_q(span_coverage=1, recall=1, precision=0.2, mrr=1, complete_grounding=1),
    ),
    Golden(
        "gold spans that overlap are merged",
        # [0,100) and [50,150) are [0,150): 150 characters, not 200.
        one({"c": ("A", 0, 200)}, [("A", 0, 100), ("A", 50, 150)], ["c"], A=200),
        of_q(span_coverage=1, span_recall=1, complete_grounding=1),
    ),
    Golden(
        "only half of merged gold is retrieved",
        # 75 of the 150 characters of the one merged span: exactly half, which is enough.
        one({"c": ("A", 0, 75)}, [("A", 0, 100), ("A", 50, 150)], ["c"], A=200),
        of_q(span_coverage=0.5, span_recall=1, complete_grounding=1),
    ),
    Golden(
        "one character under half is a failure",
        # 74 of 150; the only relevant chunk is in the top 5.
        one({"c": ("A", 0, 74)}, [("A", 0, 150)], ["c"], A=200),
        of_q(span_coverage=74 / 150, span_recall=0, complete_grounding=0),
        {"q": "ceiling-bound"},
    ),
    Golden(
        "the same words elsewhere are not relevant",
        # One chunk a line. The second line reads like the fourth, which alone holds the gold.
        one(
            {"1": ("A", 0, 2), "2": ("A", 2, 12), "3": ("A", 12, 14), "4": ("A", 14, 24)},
            [("A", 14, 23)],
            ["2", "1", "3", "4"],
            A=SURVIVAL,
        ),
        of_q(mrr=0.25, precision=0.2, recall=1, span_coverage=1),
    ),
    Golden(
        "neighbours that only touch are not relevant",
        # [0,10) and [20,30) touch the gold [10,20) without sharing a character.
        one(tiles("A", 30, 10), [("A", 10, 20)], ["A0", "A2", "A1"], A=30),
        of_q(mrr=1 / 3, precision=0.2, recall=1),
    ),
    Golden(
        "equal offsets in another document are not relevant",
        one({"a": ("A", 0, 10), "b": ("B", 0, 10)}, [("A", 0, 10)], ["b"], A=10, B=10),
        of_q(mrr=0, precision=0, recall=0, span_coverage=0, complete_grounding=0),
        {"q": "retrieval-miss"},
    ),
    Golden(
        "an empty ranking is worth nothing and stays",
        one({"c": ("A", 0, 10)}, [("A", 0, 10)], [], A=10),
        of_q(precision=0, recall=0, mrr=0, span_coverage=0, span_recall=0, complete_grounding=0),
        {"q": "retrieval-miss"},
    ),
    Golden(
        "recall is undefined where no chunk is relevant",
        one({"c": ("A", 0, 5)}, [("A", 5, 10)], ["c"], A=10),
        of_q(precision=0, recall=None, mrr=0, span_coverage=0, complete_grounding=0),
        {"q": "partial-grounding"},
    ),
    Golden(
        "four relevant chunks, three retrieved, only the first relevant",
        # Gold [0,40) meets A0 to A3; of A0, A5, A6 only A0 is relevant: 1 of 4 and 1 of 5.
        one(tiles("A", 70, 10), [("A", 0, 40)], ["A0", "A5", "A6"], A=70),
        of_q(recall=0.25, precision=0.2, span_coverage=0.25),
        {"q": "chunk-severance"},
    ),
    Golden(
        "gold of 900 and 10 characters, only the first retrieved",
        # 900 of 910 characters, one of two spans.
        one(
            {"c": ("A", 0, 900), "d": ("A", 900, 1000)},
            [("A", 0, 900), ("A", 950, 960)],
            ["c"],
            A=1000,
        ),
        of_q(span_coverage=0.989, span_recall=0.5, complete_grounding=0, recall=0.5),
        {"q": "retrieval-miss"},
    ),
    Golden(
        "gold of 196 and 530 characters, only the first retrieved",
        # 196 / 726.
        one(
            {"c": ("A", 0, 197), "d": ("A", 197, 727)},
            [("A", 0, 196), ("A", 197, 727)],
            ["c"],
            A=727,
        ),
        of_q(span_coverage=0.270, span_recall=0.5, complete_grounding=0),
    ),
    Golden(
        "gold of 196 and 530 characters, only the second retrieved",
        # 530 / 726.
        one(
            {"c": ("A", 0, 197), "d": ("A", 197, 727)},
            [("A", 0, 196), ("A", 197, 727)],
            ["d"],
            A=727,
        ),
        of_q(span_coverage=0.730, span_recall=0.5, complete_grounding=0),
    ),
    Golden(
        "overlapping chunks cover a character once",
        # [0,60) and [40,90) hold 90 of 100 characters, not 110.
        one(
            {"c": ("A", 0, 60), "d": ("A", 40, 90), "e": ("A", 80, 100)},
            [("A", 0, 100)],
            ["c", "d"],
            A=100,
        ),
        of_q(span_coverage=0.9, recall=0.667, precision=0.4),
    ),
    Golden(
        "depths: five for precision and spans, ten for recall, none for mrr",
        # Gold [0,20) meets A0 and A1, at ranks 6 and 11.
        one(
            tiles("A", 110, 10),
            [("A", 0, 20)],
            ["A2", "A3", "A4", "A5", "A6", "A0", "A7", "A8", "A9", "A10", "A1"],
            A=110,
        ),
        of_q(precision=0, recall=0.5, mrr=1 / 6, span_coverage=0),
        {"q": "chunk-severance"},
    ),
    Golden(
        "gold in two documents",
        # A0 holds the whole of the first span, nothing of the second: 10 of 30 characters.
        one(
            {**tiles("A", 10, 10), **tiles("B", 20, 20)},
            [("A", 0, 10), ("B", 0, 20)],
            ["A0"],
            A=10,
            B=20,
        ),
        of_q(span_coverage=0.333, span_recall=0.5, recall=0.5),
        {"q": "retrieval-miss"},
    ),
]

SIX = tiles("A", 60, 10)

LABELS = [
    Golden(
        "ceiling-bound comes before chunk-severance",
        # Two chunks meet the gold [0,40) at its ends, both retrieved: 15 of 40 characters.
        one(
            {"c": ("A", 0, 5), "d": ("A", 30, 40)},
            [("A", 0, 40)],
            ["d", "c"],
            A=40,
        ),
        of_q(span_coverage=0.375),
        {"q": "ceiling-bound"},
    ),
    Golden(
        "five relevant chunks are not under the ceiling",
        # Five chunks of one character each, all in the top 5, of a gold span of 50.
        one(
            {f"c{i}": ("A", 10 * i, 10 * i + 1) for i in range(5)},
            [("A", 0, 50)],
            ["c0", "c1", "c2", "c3", "c4"],
            A=50,
        ),
        of_q(precision=1, span_coverage=0.1),
        {"q": "chunk-severance"},
    ),
    Golden(
        "chunk-severance comes before retrieval-miss",
        # The failed span lies in A0 and A1, neither of which is in the ranking.
        one(SIX, [("A", 4, 16)], ["A2", "A3", "A4", "A5"], A=60),
        labels={"q": "chunk-severance"},
    ),
    Golden(
        "a severed span that was reached severs nothing",
        # [0,20) lies in A0 and A1 and is whole; [30,40) lies in A3 alone, which is missing.
        one(SIX, [("A", 0, 20), ("A", 30, 40)], ["A0", "A1"], A=60),
        of_q(span_recall=0.5),
        {"q": "retrieval-miss"},
    ),
    Golden(
        "retrieval-miss comes before rank-miss",
        # Two failed spans: A0's chunk is at rank 6, A1's [12,18) is nowhere.
        one(
            tiles("A", 80, 10),
            [("A", 2, 8), ("A", 12, 18)],
            ["A2", "A3", "A4", "A5", "A6", "A0"],
            A=80,
        ),
        of_q(mrr=1 / 6),
        {"q": "retrieval-miss"},
    ),
    Golden(
        "rank-miss",
        one(
            tiles("A", 80, 10),
            [("A", 2, 8)],
            ["A2", "A3", "A4", "A5", "A6", "A0"],
            A=80,
        ),
        labels={"q": "rank-miss"},
    ),
    Golden(
        "a missing chunk of a span that was reached is no miss",
        # [0,20): A0 and A1, the first alone is half, so reached. [30,40): A3 at rank 6.
        one(
            tiles("A", 90, 10),
            [("A", 0, 20), ("A", 32, 38)],
            ["A0", "A4", "A5", "A6", "A7", "A3"],
            A=90,
        ),
        of_q(span_recall=0.5),
        {"q": "rank-miss"},
    ),
    Golden(
        "partial-grounding",
        # [50,60) is met by 'f' alone, in the top 5 with one of the ten characters. No ceiling: of
        # the four relevant chunks A4 is missing, though its span [41,49) is whole in 'w'.
        one(
            {
                "A0": ("A", 0, 10),
                "A4": ("A", 40, 50),
                "w": ("A", 39, 50),
                "f": ("A", 50, 51),
            },
            [("A", 2, 8), ("A", 41, 49), ("A", 50, 60)],
            ["A0", "w", "f"],
            A=60,
        ),
        of_q(recall=0.75, span_recall=0.667),
        {"q": "partial-grounding"},
    ),
]

GOLDEN = METRICS + LABELS
