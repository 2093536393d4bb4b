"""The resolver against hand-made graphs, and against a simulation on random ones."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.pipeline.staleness import (
    NOT_EVALUATED,
    Key,
    Node,
    Record,
    ancestors,
    fails_as_it_is,
    forecast,
    next_wave,
    reasons,
    settled,
    stale,
    topological,
    waves,
)

A, B, C, D = ("a",), ("b",), ("c",), ("d",)


def chain() -> dict[Key, Node]:
    return {A: Node(A, "1"), B: Node(B, "1", (A,)), C: Node(C, "1", (B,))}


def fresh_records() -> dict[Key, Record]:
    return {
        A: Record("1", "va"),
        B: Record("1", "vb", {A: "va"}),
        C: Record("1", "vc", {B: "vb"}),
    }


def test_nothing_is_stale_when_everything_is_as_recorded():
    assert stale(chain().values(), fresh_records()) == {}
    assert next_wave(chain(), fresh_records()) == []


def test_ancestors_are_all_that_an_asset_is_made_from():
    nodes = chain() | {D: Node(D, "1", (A, ("elsewhere",)))}
    assert ancestors(nodes, [B]) == {A, B}
    assert ancestors(nodes, [C, D]) == {A, B, C, D}
    assert ancestors(nodes, [A, ("unknown",)]) == {A}


def test_missing_code_input_check_and_damage_are_each_named():
    records = fresh_records()
    assert reasons(Node(D, "1"), records) == ["never materialized"]
    assert reasons(Node(B, "2", (A,)), records) == ["its code, parameters or models changed"]
    records[A] = Record("1", "other")
    assert reasons(Node(B, "1", (A,)), records) == ["input changed: a"]
    broken = {A: Record("1", "va", failed_checks=("ids",), damage="its file is missing")}
    assert reasons(Node(A, "1"), broken) == [
        "its file is missing",
        "blocking check failed: ids",
    ]


def test_a_new_input_that_was_never_recorded_counts_as_changed():
    assert reasons(Node(C, "1", (A, B)), fresh_records()) == ["input changed: a"]


def test_what_waits_for_an_undecided_input_is_not_in_the_wave():
    nodes = chain() | {A: Node(A, "2"), C: Node(C, "2", (B,))}
    assert list(stale(nodes.values(), fresh_records())) == [A, C]
    # Whether B must run is known after A: C would run twice if it ran now.
    assert next_wave(nodes, fresh_records()) == [A]
    assert settled(nodes, [A]) == set()
    assert settled(nodes, [C]) == {A, B}


def test_what_must_run_anyway_runs_behind_its_inputs_in_one_wave():
    assert next_wave(chain(), {}) == [A, B, C]
    nodes = chain() | {A: Node(A, "2"), B: Node(B, "2", (A,))}
    assert next_wave(nodes, fresh_records()) == [A, B]


def test_what_is_stale_by_an_input_alone_waits_until_that_input_has_settled():
    records = fresh_records() | {A: Record("1", "va2")}  # B was made of va
    nodes = chain() | {A: Node(A, "2")}  # and A may yet become va again
    assert list(stale(nodes.values(), records)) == [A, B]
    assert next_wave(nodes, records) == [A]


def test_equal_output_stops_the_cascade():
    nodes = chain() | {A: Node(A, "2")}
    records = fresh_records()

    def run(wave: list[Key]) -> set[Key]:
        ran.extend(wave)
        records[A] = Record("2", "va")
        return set()

    ran: list[Key] = []
    assert waves(nodes, lambda: records, run) == set()
    assert ran == [A]


def test_what_lies_below_a_failure_is_held_back():
    nodes = {**chain(), D: Node(D, "1")}
    ran: list[Key] = []

    def run(wave: list[Key]) -> set[Key]:
        ran.extend(wave)
        for key in set(wave) - {A}:
            records[key] = Record("1", "v")
        return {A} & set(wave)

    records = {B: Record("1", "vb", {A: "va"}), C: Record("1", "vc", {B: "vb"})}
    assert waves(nodes, lambda: records, run) == {A}
    assert ran == [A, D]


def test_a_failed_blocking_check_holds_children_back_in_a_later_run_too():
    records = fresh_records() | {A: Record("1", "va2", failed_checks=("ids",))}
    ran: list[Key] = []

    def run(wave: list[Key]) -> set[Key]:
        ran.extend(wave)
        return set(wave)  # the check fails again

    assert waves(chain(), lambda: records, run) == {A}
    assert ran == [A]


def test_a_forecast_has_what_may_run_after_what_it_waits_for():
    nodes = chain() | {A: Node(A, "2")}
    assert forecast(nodes, fresh_records()) == [[A], [B], [C]]
    assert forecast(chain(), {}) == [[A, B, C]]
    assert forecast(chain(), fresh_records()) == []


def test_it_fails_as_it_is_only_where_nothing_but_a_check_is_wrong():
    node = Node(B, "1", (A,))

    def record(**settings: object) -> dict[Key, Record]:
        fields = {"code_version": "1", "data_version": "vb", "inputs": {A: "va"}, **settings}
        return {A: Record("1", "va"), B: Record(**fields)}

    failed = {"failed_checks": ("ids",)}
    assert fails_as_it_is(node, record(**failed))
    assert fails_as_it_is(node, record(failed_checks=("ids", f"x{NOT_EVALUATED}")))
    assert not fails_as_it_is(node, record())
    assert not fails_as_it_is(node, record(failed_checks=(f"ids{NOT_EVALUATED}",)))
    assert not fails_as_it_is(node, record(damage="its file is missing", **failed))
    assert not fails_as_it_is(node, record(**{**failed, "inputs": {A: "old"}}))
    assert not fails_as_it_is(Node(B, "2", (A,)), record(**failed))
    assert not fails_as_it_is(node, {})


@st.composite
def edited_graphs(draw: st.DrawFn) -> tuple[dict[Key, Node], dict[Key, int], dict[Key, str]]:
    """A random graph, each asset's true output as a function of inputs, and an edit of codes."""
    n = draw(st.integers(1, 8))
    keys = [(f"n{i}",) for i in range(n)]
    nodes = {}
    for i, key in enumerate(keys):
        deps = draw(st.lists(st.sampled_from(keys[:i]), unique=True, max_size=3)) if i else []
        nodes[key] = Node(key, "0", tuple(deps))
    modulus = {key: draw(st.integers(1, 3)) for key in keys}
    edits = draw(st.dictionaries(st.sampled_from(keys), st.sampled_from(["1", "2"])))
    return nodes, modulus, edits


def output(node: Node, modulus: int, inputs: dict[Key, str]) -> str:
    """A small output space, so that different inputs often give the same output."""
    text = node.code_version + "".join(inputs[d] for d in node.deps)
    return str(sum(map(ord, text)) % modulus)


@settings(max_examples=300, deadline=None)
@given(edited_graphs())
def test_waves_give_what_running_everything_gives_and_run_only_what_changed(case):
    nodes, modulus, edits = case
    records: dict[Key, Record] = {}
    ran: list[Key] = []

    def run(wave: list[Key]) -> set[Key]:
        for key in wave:
            node = current[key]
            inputs = {d: records[d].data_version for d in node.deps}
            records[key] = Record(
                node.code_version, output(node, modulus[key], inputs), dict(inputs)
            )
            ran.append(key)
        return set()

    current = nodes
    waves(current, lambda: records, run)
    assert sorted(ran) == sorted(nodes)  # everything once
    before = dict(records)

    ran.clear()
    current = {k: Node(k, edits.get(k, n.code_version), n.deps) for k, n in nodes.items()}
    planned = forecast(current, records)
    assert records == before  # it only looked
    assert (planned or [[]])[0] == next_wave(current, records)
    waves(current, lambda: records, run)
    foreseen = [key for wave in planned for key in wave]
    assert set(ran) <= set(foreseen)
    assert len(foreseen) == len(set(foreseen))

    everything: dict[Key, str] = {}
    for key in topological(current):
        everything[key] = output(current[key], modulus[key], everything)
    assert {k: r.data_version for k, r in records.items()} == everything
    must_run = {
        key
        for key, node in current.items()
        if node.code_version != nodes[key].code_version
        or any(everything[d] != before[d].data_version for d in node.deps)
    }
    assert sorted(ran) == sorted(must_run)  # and nothing twice
