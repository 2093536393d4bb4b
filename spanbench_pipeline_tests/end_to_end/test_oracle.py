"""The resolver against Dagster's own, on random graphs, edits and histories.

Dagster's internal resolver (``CachingStaleStatusResolver``, what its web UI shows) is the oracle.
Its answer is an asset's own staleness, as ours is: neither says that a descendant is stale because
an ancestor is. They correspond so:

===================================================  ========================================
Dagster                                              here
===================================================  ========================================
status MISSING                                       ``never materialized``
cause CODE                                           ``its code, parameters or models changed``
cause DATA on an input                               ``input changed: <input>``
cause DEPENDENCIES, an input is new or gone          ``its code, ... changed``, since inputs count
                                                     as parameters; a new one that was ever
                                                     materialized is also ``input changed``
===================================================  ========================================

They differ, on purpose, in two points:

1. *An input is missing* (wiped, or never materialized). Dagster calls every user of a wiped asset
   stale. Here the users wait: the input is made again first, and where it comes out as it was,
   nothing below it runs. ``test_a_wiped_input_that_comes_back_the_same_costs_one_asset`` shows it.
2. *The file and the checks.* Dagster knows neither that a stored file was damaged nor that a
   blocking check failed. Those reasons are added here, and take none away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
from dagster._core.definitions.data_version import (
    CachingStaleStatusResolver,
    StaleCauseCategory,
    StaleStatus,
)
from dagster._core.loader import LoadingContextForTest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tables
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.dagster import assets
from spanbench_pipeline.pipeline.dagster.instance import records
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.stage import Check, Outcome, Stage
from spanbench_pipeline.pipeline.staleness import Key, name

SIZE = 5
KEYS: list[Key] = [("g", f"s{i}") for i in range(SIZE)]
MISSING = "never materialized"
CODE = "its code, parameters or models changed"
OURS_ALONE = ("its file", "blocking check failed", "check never evaluated")


@dataclass(frozen=True)
class Spec:
    """An asset of the random graph: its code, how many outputs it can have, and its inputs."""

    code: int = 0
    outputs: int = 2
    deps: tuple[int, ...] = ()
    fails: bool = False
    sound: bool = True


@dataclass
class World:
    """A graph as it is defined now, with a home and an instance where its past is recorded."""

    project: Project
    instance: dg.DagsterInstance
    specs: list[Spec] = field(default_factory=list)

    def stages(self) -> list[Stage]:
        return [self.stage(i) for i in range(len(self.specs))]

    def stage(self, i: int) -> Stage:
        spec = self.specs[i]

        def compute(reader) -> Outcome:
            if spec.fails:
                raise ValueError("planted")
            read = [reader.stored(KEYS[d]).table["n_files"].to_pylist() for d in spec.deps]
            # Few outputs, so that other code and other inputs often give the same.
            value = (spec.code + sum(map(sum, read))) % spec.outputs
            row = {"view": f"s{i}", "n_files": value, "definition": None}
            return Outcome(tables.from_rows("warehouse_views", [row]))

        return Stage(
            key=KEYS[i],
            table="warehouse_views",
            description="",
            compute=compute,
            deps=tuple(KEYS[d] for d in spec.deps),
            params={"code": spec.code},
            checks=(Check("sound", "", lambda _: [] if spec.sound else [{"bad": 1}]),),
        )

    def materialize(self, chosen: list[int]) -> None:
        """Materializes just these, stale or not; where an input has no file, it fails."""
        runner = Runner(self.project, self.instance, self.stages())
        runner.materialize([KEYS[i] for i in chosen], {})

    def run(self) -> set[Key]:
        """Materializes what is stale, as the command line does."""
        runner = Runner(self.project, self.instance, self.stages())
        return set(runner.run().materialized)

    def ours(self) -> dict[Key, set[str]]:
        stages = self.stages()
        known = records(self.instance, stages, self.project)
        found = staleness.stale([s.node() for s in stages], known)
        return {key: set(why) for key, why in found.items()}

    def dagsters(self) -> dict[Key, set[str]]:
        """What Dagster says, in our words; what it says of missing inputs apart."""
        stages = self.stages()
        definitions = dg.Definitions(
            list(assets.definitions(stages, self.project)),
            resources=assets.resources(stages, self.project),
        )
        resolver = CachingStaleStatusResolver(
            self.instance,
            definitions.resolve_asset_graph(),
            LoadingContextForTest(self.instance),
        )
        found: dict[Key, set[str]] = {}
        for stage in stages:
            key = dg.AssetKey(list(stage.key))
            if resolver.get_status(key) == StaleStatus.MISSING:
                found[stage.key] = {MISSING}
            else:
                found[stage.key] = {said(cause) for cause in resolver.get_stale_causes(key)}
        return {key: why for key, why in found.items() if why}


def said(cause) -> str:
    if cause.category == StaleCauseCategory.CODE:
        return CODE
    dep = "/".join(cause.dependency.asset_key.path)
    if cause.category == StaleCauseCategory.DEPENDENCIES:
        return f"{'new' if 'new dependency' in cause.reason else 'gone'}: {dep}"
    return f"input changed: {dep}"


def translated(dagsters: dict[Key, set[str]], missing: set[Key]) -> dict[Key, set[str]]:
    """Dagster's answer with the two documented differences applied: what ours must be."""
    found: dict[Key, set[str]] = {}
    absent = {name(key) for key in missing}
    for key, why in dagsters.items():
        kept = set()
        for reason in why:
            kind, _, dep = reason.partition(": ")
            if kind in ("new", "gone"):
                assert CODE in why  # Dagster sees our code version change as well
                if kind == "new" and dep not in absent:
                    kept.add(f"input changed: {dep}")
            elif kind != "input changed" or dep not in absent:
                kept.add(reason)
        found[key] = kept
    return {key: why for key, why in found.items() if why}


def compare(world: World) -> None:
    dagsters = world.dagsters()
    missing = {key for key, why in dagsters.items() if MISSING in why}
    ours = world.ours()
    plain = {k: {r for r in why if not r.startswith(OURS_ALONE)} for k, why in ours.items()}
    assert {k: why for k, why in plain.items() if why} == translated(dagsters, missing)


@contextmanager
def world(specs: list[Spec]) -> Iterator[World]:
    with TemporaryDirectory() as folder, dg.DagsterInstance.ephemeral() as instance:
        yield World(Project(Path(folder), Path(folder) / "home"), instance, specs)


@st.composite
def graphs(draw: st.DrawFn) -> list[Spec]:
    specs = []
    for i in range(draw(st.integers(2, SIZE))):
        deps = draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set()
        specs.append(Spec(0, draw(st.integers(1, 3)), tuple(sorted(deps))))
    return specs


EDITS = st.tuples(
    st.sampled_from(
        ["code", "run", "run", "some", "wipe", "fails", "unsound", "deps", "damage", "delete"]
    ),
    st.integers(0, SIZE - 1),
    st.sets(st.integers(0, SIZE - 1), min_size=1, max_size=2),
)


def apply(world: World, kind: str, at: int, chosen: set[int]) -> None:
    at %= len(world.specs)
    some = sorted({i % len(world.specs) for i in chosen})
    spec, path = world.specs[at], world.stage(at).path(world.project)
    if kind == "code":
        world.specs[at] = replace(spec, code=spec.code + 1)
    elif kind == "deps":
        world.specs[at] = replace(spec, deps=tuple(i for i in some if i < at))
    elif kind == "fails":
        world.specs[at] = replace(spec, fails=not spec.fails)
    elif kind == "unsound":
        world.specs[at] = replace(spec, sound=not spec.sound)
    elif kind == "run":
        world.run()
    elif kind == "some":
        world.materialize(some)
    elif kind == "wipe":
        world.instance.wipe_assets([dg.AssetKey(list(KEYS[at]))])
    elif kind == "damage" and path.exists():
        path.write_bytes(path.read_bytes()[:-1])
    elif kind == "delete":
        path.unlink(missing_ok=True)


@settings(max_examples=10, deadline=None)
@given(graphs(), st.lists(EDITS, min_size=1, max_size=6))
def test_ours_is_what_dagster_says_but_for_the_documented_differences(specs, edits):
    with world(specs) as small:
        small.run()
        compare(small)
        for kind, at, chosen in edits:
            apply(small, kind, at, chosen)
            compare(small)
        # Whatever happened: with nothing that fails left, one run brings all up to date.
        small.specs = [replace(spec, fails=False, sound=True) for spec in small.specs]
        small.run()
        assert small.ours() == {}
        assert small.dagsters() == {}
        assert small.run() == set()


def test_a_wiped_input_that_comes_back_the_same_costs_one_asset():
    with world([Spec(), Spec(deps=(0,)), Spec(deps=(1,))]) as chain:
        chain.run()
        chain.instance.wipe_assets([dg.AssetKey(list(KEYS[0]))])
        assert chain.dagsters() == {KEYS[0]: {MISSING}, KEYS[1]: {"input changed: g/s0"}}
        assert chain.ours() == {KEYS[0]: {MISSING}}
        nodes = {s.key: s.node() for s in chain.stages()}
        assert staleness.settled(nodes, [KEYS[0]]) == set()  # both others wait
        assert chain.run() == {KEYS[0]}
        assert chain.dagsters() == chain.ours() == {}


def test_a_wiped_input_that_comes_back_changed_runs_its_users():
    with world([Spec(), Spec(deps=(0,)), Spec(deps=(1,))]) as chain:
        chain.run()
        chain.instance.wipe_assets([dg.AssetKey(list(KEYS[0]))])
        chain.specs[0] = Spec(code=1)
        assert chain.run() == set(KEYS[:3])
        assert chain.dagsters() == chain.ours() == {}


def test_damage_and_failed_checks_are_known_here_alone():
    with world([Spec(), Spec(deps=(0,)), Spec()]) as pair:
        pair.specs[2] = Spec(sound=False)
        pair.run()
        pair.stage(1).path(pair.project).unlink()
        assert pair.dagsters() == {}
        assert pair.ours() == {
            KEYS[1]: {"its file is missing"},
            KEYS[2]: {"blocking check failed: sound"},
        }


def test_an_attempt_that_failed_leaves_sound_what_it_would_have_replaced():
    """Its checks were to be evaluated again and were not; they still hold of what is there."""
    with world([Spec(), Spec(deps=(0,))]) as pair:
        pair.run()
        before, pair.specs[0] = pair.specs[0], Spec(code=1, fails=True)
        pair.run()
        assert pair.ours() == {KEYS[0]: {CODE}}
        pair.specs[0] = before
        assert pair.ours() == pair.dagsters() == {}
