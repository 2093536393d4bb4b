"""How deep a file's lists are looked at, and what that leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from spanbench_pipeline.calibration import oracle, world
from spanbench_pipeline.calibration.world import World
from spanbench_pipeline.checks import invariants
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.scoring import text
from spanbench_pipeline.scoring.depths import Depth, depth_of
from spanbench_pipeline.scoring.measured import FAILURE_LABELS, measure

TENS = [("A", n, n + 10) for n in range(0, 1000, 10)]


def world_of(lengths: list[int], *, of_document: bool = False, depth: int = 30) -> World:
    """A query a list, the first entries of one order; gold is the second chunk."""
    queries = {f"q{n}": length for n, length in enumerate(lengths)}
    chunks = TENS[: max(lengths)] if of_document else TENS
    return World(
        {"A": 1000},
        chunks,
        {q: [("A", 12, 18)] for q in queries},
        {q: TENS[:length] for q, length in queries.items()},
        depth=depth,
    )


def found(
    given: World,
    *,
    stated: int | None = None,
    with_chunks: bool = True,
    in_file: int | None = None,
    context: int = 5,
) -> Depth:
    return depth_of(
        given.rankings(),
        given.evalset(),
        given.chunk_table() if with_chunks else None,
        corpus_depth=given.depth,
        metrics=registry.of_results(context),
        stated=stated,
        in_file=in_file,
    )


@pytest.mark.parametrize(
    ("lengths", "depth", "value"),
    [
        ([30, 30, 30, 30], 30, 30),  # as our own are
        ([30, 12, 12, 12, 1], 30, 30),  # one list reaches the depth
        ([64, 64, 64], 30, 30),  # cut where our own are
        ([5, 5, 5], 30, 5),  # all end alike
        ([5, 5, 5, 4, 2, 1], 30, 5),  # half of them do
        ([5, 5, 5, 4, 3, 2, 1], 30, 30),  # fewer do: they end one by one
        ([5, 5], 30, 30),  # two may be as long by chance
        ([1, 1, 1, 1], 30, 30),  # a place each is no list that was cut
        ([2], 30, 30),
        ([2, 1, 1], 1, 1),  # the corpus's own shallow depth
    ],
)
def test_the_depth_of_a_file(lengths: list[int], depth: int, value: int) -> None:
    for with_chunks in (True, False):
        assert found(world_of(lengths, depth=depth), with_chunks=with_chunks).value == value


def test_lists_of_all_there_is_show_no_cut() -> None:
    whole = world_of([5, 5, 5], of_document=True)
    assert found(whole).value == 30
    assert found(whole, with_chunks=False).value == 5  # nobody knows how many chunks there are


def test_lists_of_all_of_their_own_document_show_no_cut() -> None:
    given = world_of([5, 5, 5])
    chunks = [*TENS[:5], ("B", 0, 10)]
    both = replace(given, lengths={"A": 1000, "B": 10}, chunks=chunks)
    evalset = both.evalset()
    at = evalset.queries.schema.get_field_index("doc_id")
    for document, value in (("A", 30), ("B", 5)):
        asked = evalset.queries.set_column(at, "doc_id", [[document] * 3])
        made = depth_of(
            both.rankings(),
            replace(evalset, queries=asked),
            both.chunk_table(),
            corpus_depth=30,
            metrics=registry.of_results(),
        )
        assert made.value == value


def test_a_depth_that_hides_metrics_of_the_context_is_named() -> None:
    # Cut at 30, lists of up to 35 say nothing of the first 32.
    assert found(world_of([35, 3, 2]), context=5).note == ""
    assert "--depth 35 " in found(world_of([35, 3, 2]), context=32).note


def test_what_is_stated_settles_it() -> None:
    for lengths in ([5, 5, 5], [64, 64], [2, 1]):
        for stated in (1, 5, 30, 100):
            made = found(world_of(lengths), stated=stated)
            assert (made.value, made.note) == (stated, "")
    for wrong in (0, -1, 10_001):
        with pytest.raises(InputError, match=f"--depth {wrong} is not within 1 and 10000"):
            found(world_of([5]), stated=wrong)


@pytest.mark.parametrize(
    ("lengths", "in_file", "value"),
    [([5, 5, 5], 30, 30), ([5, 4, 3], 5, 5), ([5, 5, 5], 5, 5), ([1], 20, 20), ([64, 2], 64, 30)],
)
def test_a_file_that_says_its_depth_needs_no_guess(
    lengths: list[int], in_file: int, value: int
) -> None:
    made = found(world_of(lengths), in_file=in_file)
    assert made.value == value
    # An export whose lists were cut by hand still says so.
    assert ("--depth 5 says so" in made.note) == (lengths == [5, 5, 5] and in_file == 30)
    assert found(world_of(lengths), stated=7, in_file=in_file).value == 7


def test_a_file_that_goes_on_below_the_depth_it_says_is_refused() -> None:
    with pytest.raises(InputError, match="cut at 4, but one has 5 places"):
        found(world_of([5, 1]), in_file=4)


def test_what_is_taken_to_be_so_is_said() -> None:
    assert "taken as cut" in found(world_of([5, 5, 5])).note
    assert "--depth 30" in found(world_of([5, 5, 5])).note
    assert "taken as ended" in found(world_of([5, 4, 3])).note
    assert "--depth 5" in found(world_of([5, 4, 3])).note
    assert "--depth 2" in found(world_of([2, 1, 1], depth=1)).note
    # No value is hidden between the longest list and the depth, or behind the corpus's depth.
    assert found(world_of([20, 4, 3])).note == ""
    assert found(world_of([64, 64], depth=30)).note == ""


def test_a_longer_list_does_not_silence_what_most_lists_show() -> None:
    for lengths in ([30, 5, 5, 5, 5, 5], [64, 5, 5, 5, 5, 5], [12, 5, 5, 5, 5, 5]):
        made = found(world_of(lengths))
        assert made.value == 30
        assert "--depth 5 says so" in made.note
    assert found(world_of([30, 5, 5, 5, 30, 4, 3])).note == ""  # fewer than half
    assert found(world_of([40, 30, 30, 30])).note == ""  # no value is hidden
    deeper = found(world_of([12, 3, 3, 3], depth=5)).note
    assert "--depth 12 looks" in deeper
    assert "--depth 3 says so" in deeper


def test_repeats_make_no_list_deeper() -> None:
    """Each list has its places twice over: ten entries of five places."""
    given = world_of([5, 5, 5])
    twice = replace(given, ranked={q: [*TENS[:5], *TENS[:5]] for q in given.ranked})
    made = found(twice)
    assert (made.value, "5 places" in made.note) == (5, True)
    assert {"recall@10", "ndcg@10"} <= measured(twice, made).not_measured.keys()


@pytest.mark.parametrize("stated", [None, 5])
def test_each_list_says_for_itself_what_stands_below_five(stated: int | None) -> None:
    """The gold's chunk is in no list; five places say nothing of the sixth, six and four do."""
    given = world_of([6, 5, 5, 5, 4], depth=30 if stated else 5)
    missed = replace(given, gold={q: [("A", 902, 908)] for q in given.gold})
    # A repeat at the end of a list is no sixth place.
    ranked = missed.ranked | {"q1": [*TENS[:5], TENS[4]]}
    missed = replace(missed, ranked=ranked)
    made = measured(missed, found(missed, stated=stated)).tables["failure_labels"].to_pylist()
    assert {row["query_id"]: row["label"] for row in made} == {
        "q0": "retrieval-miss",
        "q1": "depth-bound",
        "q2": "depth-bound",
        "q3": "depth-bound",
        "q4": "retrieval-miss",
    }
    assert {json.loads(row["evidence"]).get("cut_at") for row in made} == {None, 5}


def test_lists_that_all_end_with_a_repeat_are_cut_where_their_places_end() -> None:
    given = world_of([5, 5, 5])
    repeated = replace(
        given,
        gold={q: [("A", 902, 908)] for q in given.gold},
        ranked={q: [*TENS[:5], TENS[4]] for q in given.ranked},
    )
    made = measured(repeated, found(repeated))
    assert text.failure_counts(made) == {"depth-bound": 3}


def measured(given: World, depth: Depth):
    return measure(
        given.rankings(),
        given.evalset(),
        given.chunk_table(),
        corpus="c",
        config="m",
        depth=depth.value,
        label_depth=depth.labels,
    )


@pytest.mark.parametrize("depth", [1, 3, 5, 6, 7, 10])
def test_a_chunk_that_a_file_ranks_is_no_retrieval_miss(depth: int) -> None:
    """The gold's one chunk is eighth in a file of a corpus whose own lists are shallower."""
    given = replace(
        world_of([12], depth=depth), gold={"q0": [("A", 72, 78)]}, ranked={"q0": TENS[:12]}
    )
    made = measured(given, found(given))
    if depth < 5:
        assert "failure_labels" not in made.tables
        assert (
            made.not_measured[FAILURE_LABELS] == f"not measured: depth = {depth} does not reach 5"
        )
    else:
        assert text.failure_counts(made) == {"rank-miss": 1}
    named = {name for name in made.not_measured if "@" in name}
    values = text.means(made)[None]
    assert named == {f"{m}@{k}" for m, k in AT if k > depth}
    assert not named & values.keys()
    assert ("recall@10" in values) == (depth == 10)
    for name in ("query_metrics", "config_metrics", "headroom", "span_states", "forensic_labels"):
        assert invariants.past_depth(made.tables[name], depth) == []


AT = [("precision", 5), ("recall", 10), ("span_coverage", 5), ("span_recall", 5)]
AT += [("complete_grounding", 5), ("ndcg", 10)]


def test_labels_of_a_file_cut_at_five_are_those_of_brute_force() -> None:
    given = replace(world.small(Random(5), 60), depth=5)
    made = given.measured()
    rows = made.tables["failure_labels"].to_pylist()
    labels = {row["query_id"]: row["label"] for row in rows}
    gold = given.gold
    asked = {q: oracle.Asked(gold[q], given.ranked[q], given.chunks, 5) for q in gold}
    expected = {q: oracle.failure_label(query, context=5) for q, query in asked.items()}
    assert labels == {q: label for q, label in expected.items() if label}
    assert {"depth-bound", "retrieval-miss"} <= set(labels.values())
