from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings

from spanbench_pipeline.calibration import oracle
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics.stages import LOST, STAGES, stages_of
from spanbench_pipeline_tests.metrics.cases import Case, Place, beside_another, tiles
from spanbench_pipeline_tests.metrics.flows import Flow, Lists, flows
from spanbench_pipeline_tests.metrics.measure import lost_stages

KS = (1, 2, 4)
Stages = dict[tuple[str, int, int], str | None]


def table(flow: Flow, ks: Collection[int] = KS) -> pa.Table:
    known = flow.case.eval_set()
    return lost_stages(
        flow.ranking_table(),
        flow.candidate_table(),
        flow.routed_table(),
        known.gold_spans,
        flow.case.chunk_table(),
        known.queries,
        has_fusion=flow.fused is not None,
        has_reranker=flow.reranker,
        ks=ks,
    )


def stages(flow: Flow, ks: Collection[int] = KS) -> Stages:
    return {tuple(row.values())[:3]: row["lost_stage"] for row in table(flow, ks).to_pylist()}


def flow(
    gold: list[Place],
    chunks: dict[str, Place],
    *channels: list[str],
    fused: list[str] | None = None,
    reranked: list[str] | None = None,
    routed: list[str] | None = None,
) -> Flow:
    """One query, ``q``, over documents A and B of 100 characters."""
    final = reranked or (channels[0] if fused is None else fused)
    case = Case({"A": "x" * 100, "B": "y" * 100}, chunks, {"q": gold}, {"q": final})
    lists: list[Lists] = [{"q": channel} for channel in channels]
    return Flow(
        case,
        dict(zip(("dense", "bm25"), lists, strict=False)),
        None if fused is None else {"q": fused},
        None if routed is None else {"q": routed},
        reranked is not None,
    )


def of_q(flow: Flow, *ks: int) -> list[str | None]:
    return list(stages(flow, ks).values())


TEN = tiles("A", 100, 10) | tiles("B", 100, 10)
SPAN = [("A", 20, 30)]  # whole in A2


def test_corpus_no_chunk_holds_half() -> None:
    # [20,24) is 4 of 10 characters; the same offsets of B are another document's.
    assert of_q(flow(SPAN, {"c": ("A", 20, 24), "d": ("B", 20, 30)}, ["c", "d"]), 1, 2) == [
        "corpus",
        "corpus",
    ]


def test_chunking_more_than_k_chunks_are_needed() -> None:
    # [0,60) needs three tiles of ten: 30 of 60 characters are exactly half.
    found = flow([("A", 0, 60)], TEN, ["A0", "A1", "B0", "A2"])
    assert of_q(found, 1, 2, 3, 4) == ["chunking", "chunking", "cut", None]


def test_chunking_asks_for_the_best_k_not_for_the_longest_first() -> None:
    # [20,45) and [55,80) hold half of [0,100); [36,64) holds more than either, and spoils it.
    chunks = {"m": ("A", 36, 64), "l": ("A", 20, 45), "r": ("A", 55, 80)}
    assert of_q(flow([("A", 0, 100)], chunks, ["m", "l", "r"]), 1, 2, 3) == [
        "chunking",
        "cut",
        None,
    ]


def test_routing_the_document_was_not_kept() -> None:
    assert of_q(flow(SPAN, TEN, ["B2"], routed=["B"]), 1) == ["routing"]
    assert of_q(flow(SPAN, TEN, ["B2"], routed=["B", "A"]), 1) == ["candidates"]
    assert of_q(flow(SPAN, TEN, [], routed=[]), 1) == ["routing"]


def test_candidates_no_channel_lists_it() -> None:
    assert of_q(flow(SPAN, TEN, ["A1", "B2"], ["A3"], fused=["A1", "A3"]), 1) == ["candidates"]
    # Two channels keep together what neither keeps alone: 5 of [15,35)'s 20 characters each.
    halves = flow([("A", 15, 35)], TEN, ["A1"], ["A3"], fused=["A1"])
    assert of_q(halves, 1, 2) == ["fusion", "fusion"]


def test_fusion_a_channel_lists_it_the_fused_list_does_not() -> None:
    found = flow(SPAN, TEN, ["A1"], ["A3", "A2"], fused=["A1", "A3"])
    assert of_q(found, 1, 2) == ["fusion", "fusion"]


def test_reranking_it_was_in_the_top_k_before() -> None:
    found = flow(
        SPAN, TEN, ["A2", "A1"], ["A3"], fused=["A2", "A1", "A3"], reranked=["A1", "A2", "A3"]
    )
    assert of_q(found, 1, 2) == ["reranking", None]
    # The order before is the fused one, not a channel's: A2 was second.
    found = flow(SPAN, TEN, ["A2"], ["A1"], fused=["A1", "A2"], reranked=["A1", "A2"])
    assert of_q(found, 1, 2) == ["cut", None]


def test_reranking_of_one_channel() -> None:
    found = flow(SPAN, TEN, ["A2", "A1", "A3"], reranked=["A1", "A3", "A2"])
    assert of_q(found, 1, 2, 3) == ["reranking", "reranking", None]


def test_without_fusion_nothing_is_lost_to_it() -> None:
    # The reranker drops A2 for good: lost there where it was in the top k, else cut off.
    found = flow(SPAN, TEN, ["A1", "A2"], reranked=["A1"])
    assert of_q(found, 1, 2) == ["cut", "reranking"]


def test_cut_it_is_in_the_list_below_k() -> None:
    assert of_q(flow(SPAN, TEN, ["A1", "A3", "A2"]), 1, 2, 3, 4) == ["cut", "cut", None, None]


def test_a_span_lost_twice_is_lost_at_the_first_stage() -> None:
    # Needs three chunks, its document was not kept, nothing was listed.
    assert of_q(flow([("A", 0, 60)], TEN, [], routed=["B"]), 2, 4) == ["chunking", "routing"]


def test_rows_and_types() -> None:
    found = table(flow([("A", 0, 10), ("B", 0, 10)], TEN, ["B0"]), (2, 1, 2))
    assert found.schema == LOST
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("q", 0, 1, "candidates"),
        ("q", 0, 2, "candidates"),
        ("q", 1, 1, None),
        ("q", 1, 2, None),
    ]


def test_stages_of_a_configuration() -> None:
    assert stages_of(routing=True, fusion=True, reranker=True) == STAGES
    plain = ("corpus", "chunking", "candidates", "cut")
    assert stages_of(routing=False, fusion=False, reranker=False) == plain


def test_a_ranking_of_unknown_channels_is_its_own_candidates() -> None:
    case = Case({"A": "x" * 100}, tiles("A", 100, 10), {"q": SPAN}, {"q": ["A1", "A2"]})
    known, ranked = case.eval_set(), case.ranking_table()
    found = lost_stages(
        ranked,
        ranked,
        None,
        known.gold_spans,
        case.chunk_table(),
        known.queries,
        has_fusion=False,
        has_reranker=False,
        ks=(1, 2),
    )
    assert found["lost_stage"].to_pylist() == ["cut", None]


def test_without_an_order_before_the_reranker_nothing_is_said() -> None:
    two = flow(SPAN, TEN, ["A1"], ["A2"], reranked=["A2", "A1"])
    with pytest.raises(ValueError, match="one source at a time"):
        table(two)
    fused = dataclasses.replace(two, fused={"q": ["A1", "A2"]})
    none = fused.ranking_table().drop_columns(["fused_rank"])
    none = none.append_column("fused_rank", pa.nulls(2, pa.int64()))
    known = two.case.eval_set()
    message = "^a fused ranking with a chunk that has no fused_rank: no order before$"
    with pytest.raises(ValueError, match=message):
        lost_stages(
            none,
            two.candidate_table(),
            None,
            known.gold_spans,
            two.case.chunk_table(),
            known.queries,
            has_fusion=True,
            has_reranker=True,
            ks=(1,),
        )


def test_a_candidate_of_no_chunk_is_refused() -> None:
    found = flow(SPAN, TEN, ["A1"])
    fewer = {c: p for c, p in TEN.items() if c != "A1"}
    known = found.case.eval_set()
    with pytest.raises(InputError, match="unknown chunk 'A1'"):
        lost_stages(
            found.ranking_table().slice(0, 0),
            found.candidate_table(),
            None,
            known.gold_spans,
            dataclasses.replace(found.case, chunks=fewer).chunk_table(),
            known.queries,
            has_fusion=False,
            has_reranker=False,
            ks=(1,),
        )


def test_routed_documents_that_do_not_fit_are_refused() -> None:
    found = flow(SPAN, TEN, ["A2"], routed=["A"])
    known, routed = found.case.eval_set(), found.routed_table()
    assert routed is not None

    def with_routed(routed: pa.Table) -> None:
        lost_stages(
            found.ranking_table(),
            found.candidate_table(),
            routed,
            known.gold_spans,
            found.case.chunk_table(),
            known.queries,
            has_fusion=False,
            has_reranker=False,
            ks=(1,),
        )

    with_routed(routed)
    for column in ("corpus", "config"):
        with pytest.raises(ValueError, match=f"one {column} at a time, not .*other"):
            with_routed(beside_another(routed, column))
    with pytest.raises(InputError, match=r"^routed document of unknown query 'other'$"):
        with_routed(beside_another(routed, "query_id"))


def brute(flow: Flow, query: str, place: Place, k: int) -> str | None:
    """The specification, word by word, over sets of characters."""
    held = {chunk: oracle.characters(piece) for chunk, piece in flow.case.chunks.items()}

    def keeps(chunks: Iterable[str]) -> bool:
        together = frozenset().union(*(held[chunk] for chunk in chunks))
        wanted = oracle.characters(place)
        return 2 * len(wanted & together) >= len(wanted)

    final = list(flow.case.rankings[query])
    touching = [chunk for chunk, chars in held.items() if chars & oracle.characters(place)]
    listed = [lists[query] for lists in flow.channels.values()]
    before = flow.fused[query] if flow.fused is not None else listed[0]
    if keeps(final[:k]):
        return None
    if not keeps(held):
        return "corpus"
    if not any(keeps(some) for some in itertools.combinations(touching, min(k, len(touching)))):
        return "chunking"
    if flow.routed is not None and not keeps(
        c for c, piece in flow.case.chunks.items() if piece[0] in flow.routed[query]
    ):
        return "routing"
    if not keeps(chunk for chunks in listed for chunk in chunks):
        return "candidates"
    if flow.fused is not None and not keeps(flow.fused[query]):
        return "fusion"
    return "reranking" if flow.reranker and keeps(before[:k]) else "cut"


@settings(max_examples=300, deadline=None)
@given(flows())
def test_stages_equal_the_specification_by_brute_force(flow: Flow) -> None:
    expected = {
        (query, number, k): brute(flow, query, place, k)
        for query in flow.case.gold
        for number, place in enumerate(flow.case.asked(query).gold)
        for k in KS
    }
    assert stages(flow) == expected


@settings(max_examples=50, deadline=None)
@given(flows())
def test_the_order_of_the_tables_changes_nothing(flow: Flow) -> None:
    known = flow.case.eval_set()
    parts = [
        flow.ranking_table(),
        flow.candidate_table(),
        flow.routed_table(),
        known.gold_spans,
        flow.case.chunk_table(),
        known.queries,
    ]
    turned = [t and t.take(pa.array(range(t.num_rows))[::-1]) for t in parts]
    settled = {"has_fusion": flow.fused is not None, "has_reranker": flow.reranker, "ks": KS}
    assert lost_stages(*turned, **settled).equals(lost_stages(*parts, **settled))
