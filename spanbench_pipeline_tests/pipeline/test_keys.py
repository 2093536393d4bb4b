"""Every name that a person may choose: no two assets, groups, jobs or files share a key."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanbench_pipeline.config import asset_keys, operations
from spanbench_pipeline.config.asset_keys import ListSource
from spanbench_pipeline.config.experiment import ChunkerSettings, Configuration, Encoder, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.keys import with_keys
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster import (
    automation,
    broken_experiments,
    code_location,
    run_lock,
)

PARTS = ("a", "b", "a_b", "b_a", "a_b_a", "dense", "unscoped", "filtered", "a_dense", "routed_a")
CHOSEN = ("a", "a b", "a-b", "a_b", "A", "ж", "条", "routed a", "a unscoped")
HEAD = """corpus = "{corpus}"
[source]
kind = "directory"
documents = "."
queries = "."
[chunkers]
clause = {{}}
"""
BM25 = '[[configurations]]\nname = "{}"\nchunker = "clause"\nretriever = "bm25"\n'


@st.composite
def adversarial(draw: st.DrawFn) -> Experiment:
    """An experiment whose chunkers, encoders and configurations have names made of one another."""
    chunkers = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3, unique=True))
    encoders = draw(
        st.lists(st.sampled_from((*PARTS, "a-b", "A b")), min_size=1, max_size=3, unique=True)
    )
    configured = draw(st.lists(st.sampled_from(CHOSEN), min_size=1, max_size=5, unique=True))
    called = with_keys(configured)
    return Experiment(
        "mine",
        Path("mine.toml"),
        "",
        {"kind": "directory", "documents": ".", "queries": "."},
        {name: ChunkerSettings(name, "clause") for name in chunkers},
        tuple(
            Configuration(
                called[name],
                draw(st.sampled_from(chunkers)),
                draw(st.sampled_from(("dense", "bm25", "hybrid"))),
                doc_scope=draw(st.booleans()),
                metadata_filters=draw(st.booleans()),
                encoder=draw(st.sampled_from(encoders)),
                routing=draw(st.sampled_from((0, 3))),
            )
            for name in configured
        ),
        {name: Encoder(name, model="./none") for name in encoders},
        baseline=configured[0],
    )


@settings(max_examples=60)
@given(adversarial())
def test_no_two_assets_of_an_experiment_share_a_key(found: Experiment):
    made = graphs.experiment_stages(found, Project(Path("none"), Path("none")))
    stage_of = {stage.key: stage for stage in made}
    assert len(stage_of) == len(made)
    assert all(dep in stage_of for stage in made for dep in stage.deps)
    for config in found.configurations:
        for source, key in asset_keys.keyed_sources(found, config):
            assert stage_of[key].params["routing"] == source.routing
            assert stage_of[key].owns == {
                "corpus": "mine",
                "source": key[2],
                "channel": source.channel,
            }
            if source.encoder is not None:
                vectors = stage_of[asset_keys.vectors_key(found, source.chunker, source.encoder)]
                assert vectors.key in stage_of[key].deps
                assert vectors.owns["chunker"] == source.chunker
                assert vectors.owns["encoder"] == source.encoder


@settings(max_examples=60)
@given(adversarial())
def test_what_no_configuration_uses_has_no_used_ones_key(found: Experiment):
    """``tune`` asks for lists that may not be stored: another's would be read in their place."""
    pairs = list(itertools.product(found.chunkers, found.encoders))
    of = {pair: asset_keys.vectors_key(found, *pair) for pair in pairs}
    used = {(c.chunker, c.encoder) for c in found.configurations if c.uses_dense}
    assert len({of[pair] for pair in used}) == len(used)
    assert not {of[pair] for pair in pairs if pair not in used} & {of[pair] for pair in used}
    stored = {key for config in found.configurations for key in asset_keys.list_keys(found, config)}
    sources = {s for config in found.configurations for s in asset_keys.sources(config)}
    for chunker, encoder in pairs:
        source = ListSource("dense", chunker, encoder, True, False)
        assert (asset_keys.list_key(found, source) in stored) == (source in sources)


def test_the_pair_that_was_held_back_and_those_that_never_were():
    """naive with b, and naive_b with a: both would be ``naive_b``."""

    def named(*pairs: tuple[str, str]) -> list[str]:
        configured = tuple(
            Configuration(f"{c} {e}", c, encoder=e, doc_scope=False) for c, e in pairs
        )
        made = Experiment(
            "mine",
            Path("mine.toml"),
            "",
            {},
            {c: ChunkerSettings(c, "naive") for c in ("naive", "naive_b")},
            configured,
            {e: Encoder(e, model="./none") for e in ("a", "b")},
        )
        return [asset_keys.vectors_key(made, *pair)[2] for pair in pairs]

    assert named(("naive", "a"), ("naive_b", "a")) == ["naive", "naive_b"]
    assert named(("naive", "b"), ("naive", "a")) == ["naive_b", "naive"]
    assert named(("naive_b", "b")) == ["naive_b_b"]
    first, second = named(("naive", "b"), ("naive_b", "a"))
    assert {first, second} > {"naive_b"}
    assert max(first, second, key=len).startswith("naive_b__")
    assert named(("naive_b", "a"), ("naive", "b")) == [second, first]


@pytest.fixture
def hostile(tmp_path: Path) -> Project:
    """Corpora and files whose names are those of jobs, groups, assets and of one another."""
    (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    folder = tmp_path / "data" / "experiments"
    folder.mkdir(parents=True)
    given = {
        "everything": ("model v1", "model-v1", "модель", "条款", "Naive", "naive"),
        "x_span": ("z" * 70, "y" * 300),
        "c" * 95: ("a",),
        **dict.fromkeys(("warehouse", "broken_experiments", "run", "nightly", "x"), ("a",)),
    }
    for corpus, configured in given.items():
        text = HEAD.format(corpus=corpus) + "".join(BM25.format(name) for name in configured)
        (folder / f"{corpus}.toml").write_text(text)
    for stem in ("documents", "a b", "a-b", "модель", "条款", "n" * 240, "caf\udce9"):
        (folder / f"{stem}.toml").write_text("no TOML")
    (tmp_path / "warehouse").mkdir()
    text = '[nightly]\ncorpora = ["run", "nightly", "everything", "warehouse"]\n'
    (tmp_path / "warehouse" / "operations.toml").write_text(text)
    return Project(tmp_path, tmp_path / "warehouse")


def test_no_name_takes_down_the_rest(hostile: Project, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, "spanbench")
    loaded = code_location.load(hostile)
    dg.Definitions.validate_loadable(loaded)
    specs = list(loaded.resolve_all_asset_specs())
    assert len({spec.key for spec in specs}) == len(specs)
    graph = graphs.build(hostile)
    assert {tuple(spec.key.path) for spec in specs} >= {stage.key for stage in graph.stages}
    assert (
        len([s for s in specs if s.group_name == broken_experiments.GROUP])
        == len(graph.broken)
        == 7
    )
    assert len({spec.key.to_python_identifier() for spec in specs}) == len(specs)
    of_group: dict[str, set[str]] = {}
    for stage in graph.stages:
        spec = next(s for s in specs if tuple(s.key.path) == stage.key)
        of_group.setdefault(str(spec.group_name), set()).add(stage.corpus)
    assert all(len(corpora) == 1 for corpora in of_group.values())
    jobs = {job.name: job for job in loaded.get_repository_def().get_all_jobs()}
    everything = jobs["run_everything"].asset_layer.executable_asset_keys
    assert len(everything) == len(graph.stages)
    for corpus in graph.experiments:
        job = jobs[automation.corpus_job_name(corpus)]
        of = {stage.key for stage in graph.of([corpus])}
        assert {tuple(key.path) for key in job.asset_layer.executable_asset_keys} == of
    assert len(jobs["nightly_run"].graph.node_dict) == len(operations.load(hostile).nightly.corpora)


def test_a_corpus_that_dagster_refuses_is_one_broken_corpus(
    hostile: Project, monkeypatch: pytest.MonkeyPatch
):
    graph = graphs.build(hostile)
    real = code_location.assets.definitions

    def refuses(stages, *given, **named):
        if stages[0].corpus == "x":
            raise dg.DagsterInvalidDefinitionError("not such a name")
        return [] if stages[0].corpus else real(stages, *given, **named)

    monkeypatch.setattr(code_location.assets, "definitions", refuses)
    left, _ = code_location._made(hostile, graph)
    assert set(left.experiments) == set(graph.experiments) - {"x"}
    assert "not such a name" in str(left.broken["x"])
    assert not [stage for stage in left.stages if stage.corpus == "x"]
    assert not [dep for dep in left.stages[-1].deps if dep[0] == "x"]


def test_definitions_that_do_not_load_are_wrong_input(
    hostile: Project, monkeypatch: pytest.MonkeyPatch
):
    def refuses(where: Project) -> dg.Definitions:
        raise dg.DagsterInvalidDefinitionError("two of one name")

    monkeypatch.setattr(code_location, "load", refuses)
    with pytest.raises(InputError, match="two of one name"):
        code_location.check_definitions(hostile)


def test_a_run_of_all_corpora_s_asset_is_no_turn_of_a_corpus_of_its_name():
    class Run:
        asset_selection = frozenset({dg.AssetKey(["x", "documents"]), dg.AssetKey(["warehouse"])})
        asset_check_selection = None
        tags: dict[str, str] = {}

    assert run_lock.corpora_of(Run, ["warehouse", "x"]) == ["x"]
    Run.asset_selection = frozenset({dg.AssetKey(["warehouse"])})
    assert run_lock.corpora_of(Run, ["warehouse", "x"]) == []
    Run.asset_selection = frozenset()
    assert run_lock.corpora_of(Run, ["warehouse", "x"]) == ["warehouse", "x"]
