"""The section on losses, against figures worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.metrics.stages import STAGES
from spanbench_pipeline.reports.render import html, markdown, svg
from spanbench_pipeline.reports.render.blocks import Bar, Panel, Picture, Report, Table, paragraph
from spanbench_pipeline.reports.sections import losses
from spanbench_pipeline_tests.reports.pages import read

PLAIN = ("corpus", "chunking", "candidates", "cut")
HAVE = {"a": PLAIN, "b": STAGES, "absent": PLAIN}
"""The stages of three configurations; the last was not measured."""


def room(rows: list[tuple[str, str | None, int, list[float]]]) -> pa.Table:
    bounds = ("actual", "candidates", "chunks", "perfect")
    return tables.from_rows(
        "headroom",
        [
            {"corpus": "c", "config": config, "subset": subset, "k": k}
            | {"bound": bound, "value": value}
            for config, subset, k, values in rows
            for bound, value in zip(bounds, values, strict=True)
        ],
    )


HEADROOM = room(
    [
        ("a", None, 8, [0.25, 0.5, 0.875, 1]),
        ("a", None, 4, [0.125, 0.25, 0.25, 1]),
        ("a", "east", 8, [0.5, 0.5, 0.75, 1]),
        ("b", None, 8, [1, 1, 1, 1]),
    ]
)
STATES = pa.table(
    {
        "config": ["a"] * 5 + ["b"] * 3,
        "query_id": ["q"] * 8,
        "span_no": [0, 1, 2, 3, 0, 0, 1, 2],
        "k": [8, 8, 8, 8, 4, 8, 8, 8],
        "state": ["missed", "partial", "covered", "missed"] + ["missed"] * 2 + ["covered"] * 2,
        "lost_stage": ["cut", "candidates", None, "cut", "corpus", "fusion", None, None],
    }
)


def test_a_waterfall_starts_each_cost_where_the_last_one_ended() -> None:
    assert losses.waterfall_panels(HEADROOM, 8, ["b", "absent", "a"], "a") == [
        Panel(
            "b",
            (
                Bar("grounded", 1.0),
                Bar("lost to ranking", 0.0, start=1.0),
                Bar("lost to candidate generation", 0.0, start=1.0),
                Bar("lost to chunking", 0.0, start=1.0),
            ),
            1.0,
        ),
        Panel(
            "a",
            (
                Bar("grounded", 0.25, marked=True),
                Bar("lost to ranking", 0.25, start=0.25),
                Bar("lost to candidate generation", 0.375, start=0.5),
                Bar("lost to chunking", 0.125, start=0.875),
            ),
            1.0,
        ),
    ]


def test_the_table_of_costs() -> None:
    found = losses.headroom_table(HEADROOM, 8, list(HAVE), "b")
    assert found.rows == (
        ("a", 0.25, 0.25, 0.375, 0.125),
        ("b", 1.0, 0.0, 0.0, 0.0),
        ("absent", None, None, None, None),
    )
    assert found.marked == {1}
    assert [c.title for c in found.columns] == [
        "configuration",
        "complete_grounding@8",
        "lost to ranking",
        "lost to candidate generation",
        "lost to chunking",
    ]
    assert losses.headroom_table(HEADROOM, 4, ["a"]).rows == (("a", 0.125, 0.125, 0.0, 0.75),)
    east = losses.headroom_table(HEADROOM, 8, ["a"], subset="east")
    assert east.rows == (("a", 0.5, 0.0, 0.25, 0.25),)


def test_the_table_of_stages_has_a_dash_where_there_is_no_such_stage() -> None:
    found = losses.stage_table(STATES, 8, HAVE, "a")
    assert found.rows == (
        ("a", 3, 0, 0, None, 1, None, None, 2),
        ("b", 1, 0, 0, 0, 0, 1, 0, 0),
        ("absent", *[None] * 8),
    )
    assert [c.title for c in found.columns] == ["configuration", "lost spans", *STAGES]
    assert found.marked == {0}


def test_a_span_lost_nobody_knows_where_is_counted_as_lost_and_not_measured() -> None:
    at = STATES.schema.get_field_index("lost_stage")
    blind = STATES.set_column(at, "lost_stage", pa.nulls(STATES.num_rows, pa.string()))
    found = losses.stage_table(blind, 8, HAVE)
    assert found.rows[0] == ("a", 3, 0, 0, None, 0, None, None, 0, 3)
    assert found.columns[-1].title == "not measured: no chunk table"


def test_each_part_of_a_pooled_corpus_has_its_costs() -> None:
    found = losses.parts_table(HEADROOM, 8, list(HAVE), ["east"], "a")
    assert found.rows == (("a", "east", 0.5, 0.0, 0.25, 0.25),)
    assert found.marked == {0}
    blocks = losses.losses(STATES, HEADROOM, 8, HAVE, parts=["east"], note="k is small.")
    assert blocks[-1] == losses.parts_table(HEADROOM, 8, list(HAVE), ["east"])
    assert blocks[1] == paragraph("k is small.")


def test_stages_as_bars_on_one_scale() -> None:
    first, second = losses.stage_panels(STATES, 8, HAVE, "b")
    assert [(b.name, b.value, b.marked) for b in first.bars] == [
        ("corpus", 0, False),
        ("chunking", 0, False),
        ("candidates", 1, False),
        ("cut", 2, False),
    ]
    assert [b.name for b in second.bars] == list(STAGES)
    assert {b.marked for b in second.bars} == {True}
    assert (first.maximum, second.maximum) == (2, 2)


def test_nothing_lost_still_draws_a_scale() -> None:
    none = STATES.filter(pa.compute.is_null(STATES["lost_stage"]))
    panels = losses.stage_panels(none, 8, HAVE)
    assert [(p.title, p.maximum) for p in panels] == [("a", 1), ("b", 1)]


def test_a_bar_of_a_waterfall_is_drawn_from_its_start() -> None:
    (panel,) = losses.waterfall_panels(HEADROOM, 8, ["a"], "a")
    drawn = [
        f'class="{kind}" x="{x}"' for kind, x in (("bar marked", 0), ("bar", 80), ("bar", 160))
    ]
    picture = svg.panels([panel])
    assert all(bar in picture for bar in drawn)
    assert 'class="bar" x="280" y="143" width="40.0"' in picture  # 0.875 and 0.125 of 320
    text = markdown.render(Report("t", (Picture("c", (panel,)),)))
    # Forty cells from 0 to 1.
    assert f"  grounded                      {'█' * 10} 0.250\n" in text
    assert f"  lost to candidate generation  {'·' * 20}{'▒' * 15} 0.375\n" in text
    assert f"  lost to chunking              {'·' * 35}{'▒' * 5} 0.125\n" in text


def test_the_section_says_all_of_it() -> None:
    blocks = losses.losses(STATES, HEADROOM, 8, HAVE, "a")
    page = read(html.render(Report("r", tuple(blocks), contents=True)))
    assert page.of("h2") == ["Where spans were lost", "What each stage costs"]
    assert page.tables[0][1] == ["a", "3", "0", "0", "–", "1", "–", "–", "2"]
    assert page.tables[1][1] == ["a", "0.250", "0.250", "0.375", "0.125"]
    assert len([b for b in blocks if isinstance(b, Picture)]) == 2
    assert set(losses.STAGE_MEANING) == set(STAGES)
    assert all(any(name in item for item in page.of("li")) for name in STAGES)


def test_a_section_of_nothing_measured_has_dashes_and_no_picture() -> None:
    blocks = losses.losses(STATES.slice(0, 0), HEADROOM.slice(0, 0), 8, HAVE, "a")
    assert not [b for b in blocks if isinstance(b, Picture)]
    cells = [row[1:] for b in blocks if isinstance(b, Table) for row in b.rows]
    assert {value for row in cells for value in row} == {None}


@pytest.mark.parametrize("name", ["<b>a|b</b>", "`a` & *b*"])
def test_a_name_stays_a_name(name: str) -> None:
    found = room([(name, None, 8, [0, 0, 0, 1])])
    blocks = losses.losses(STATES.slice(0, 0), found, 8, {name: PLAIN}, name)
    page = read(html.render(Report("r", tuple(blocks))))
    assert page.tables[1][1][0] == name
    assert "b" not in page.tags
