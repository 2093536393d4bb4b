"""Experiment files: what is read, what is refused and how, and which levers differ."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path

import pytest

from spanbench_pipeline.config import experiment as experiments
from spanbench_pipeline.config.experiment import (
    LEXICAL,
    Configuration,
    Encoder,
    Experiment,
    Reranker,
    lever_differences,
    slug,
)
from spanbench_pipeline.core.errors import InputError

GOOD = """
corpus = "mine"
baseline = "clause"
depth = 12
[source]
kind = "directory"
[chunkers]
naive = { size = 10, step = 5 }
clause = {}
long = { strategy = "clause", max_chars = 4000 }
[encoders."Mini LM"]
model = "some/model"
[rerankers.cross]
model = "some/cross"
[[configurations]]
name = "naive"
chunker = "naive"
[[configurations]]
name = "clause"
chunker = "clause"
retriever = "bm25"
[[configurations]]
name = "long + hybrid + rerank"
chunker = "long"
retriever = "hybrid"
reranker = "cross"
doc_scope = false
metadata_filters = true
rrf_k = 10
"""


def load(tmp_path: Path, text: str) -> experiments.Experiment:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return experiments.load(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert str(tmp_path / "mine.toml") in str(error.value)
    return str(error.value)


def test_a_file_as_objects(tmp_path: Path):
    found = load(tmp_path, GOOD)
    assert (found.corpus, found.baseline, found.depth) == ("mine", "clause", 12)
    assert found.dense_engine == "exact"
    assert found.chunkers["long"].strategy == "clause"
    assert found.chunkers["long"].params == {"max_chars": 4000}
    naive, clause, long = found.configurations
    assert naive.encoder == "Mini LM"  # the only one there is
    assert clause.encoder is None  # nothing is encoded
    assert long == Configuration(
        "long + hybrid + rerank", "long", "hybrid", "cross", False, True, "Mini LM", 10
    )
    assert found.encoders["Mini LM"].max_length == 256
    assert found.configuration("clause") is clause


def test_a_byte_order_mark_is_none_of_the_content(tmp_path: Path):
    assert load(tmp_path, "\ufeff" + GOOD) == load(tmp_path, GOOD)
    refused(tmp_path, "\ufeff\ufeff" + GOOD)


def test_the_first_configuration_is_the_baseline_unless_told(tmp_path: Path):
    assert load(tmp_path, GOOD.replace('baseline = "clause"\n', "")).baseline == "naive"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("depth = 12", "dept = 12", ["unknown key 'dept'", "did you mean 'depth'"]),
        ("depth = 12", 'depth = "12"', ["depth = ", "must be a valid integer"]),
        ("depth = 12", "depth = true", ["depth = ", "must be a valid integer"]),
        ("depth = 12", "depth = 0", ["depth = 0", "greater than or equal to 1"]),
        ("depth = 12", "depth = 1" + 30 * "0", ["depth", "less than or equal to 10000"]),
        ("depth = 12", "depth = ", ["not valid TOML"]),
        ('corpus = "mine"', 'corpus = "other"', ["'other'", "file's name"]),
        ('corpus = "mine"', 'corpus = "My-Corpus"', ["must match"]),
        ('corpus = "mine"', "", ["'corpus' is missing"]),
        ('baseline = "clause"', 'baseline = "claus"', ["baseline", "did you mean 'clause'"]),
        ('chunker = "naive"', 'chunker = "nave"', ["'naive'", "did you mean 'naive'"]),
        ('retriever = "bm25"', 'retriever = "bm26"', ["'clause'", "did you mean 'bm25'"]),
        ('reranker = "cross"', 'reranker = "crass"', ["did you mean 'cross'"]),
        ("doc_scope = false", "doc_scop = false", ["did you mean 'doc_scope'"]),
        ("doc_scope = false", 'doc_scope = "no"', ["doc_scope = 'no'", "must be a valid boolean"]),
        ("rrf_k = 10", "rrf_k = -1", ["rrf_k = -1", "greater than or equal to 0"]),
        ("rrf_k = 10", 'fusion = "rff"', ["fusion", "'rff'", "did you mean 'rrf'"]),
        ("rrf_k = 10", "fusion = 3", ["fusion = 3", "must be a valid string"]),
        ("rrf_k = 10", 'fusion = "cc"\nalpha = 1.5', ["alpha = 1.5", "less than or equal to 1"]),
        (
            "rrf_k = 10",
            'fusion = "cc"\nalpha = -0.1',
            ["alpha = -0.1", "greater than or equal to 0"],
        ),
        ("rrf_k = 10", 'fusion = "cc"\nalpha = nan', ["alpha = nan", "finite number"]),
        ("rrf_k = 10", 'fusion = "cc"\nalpha = "x"', ["alpha = 'x'", "must be a valid number"]),
        ("rrf_k = 10", 'fusion = "cc"\nalfa = 0.5', ["'alfa'", "did you mean 'alpha'"]),
        # What has no effect is a slip.
        ("rrf_k = 10", "alpha = 0.5", ["alpha = 0.5", "'rrf' does not use it"]),
        ("rrf_k = 10", 'rrf_k = 10\nfusion = "cc"', ["rrf_k = 10", "'cc' does not use it"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nfusion = "cc"', ["'clause'", "one channel"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nrrf_k = 60', ["rrf_k", "nothing is fused"]),
        ("rrf_k = 10", "routing = -1", ["routing = -1", "greater than or equal to 0"]),
        ("rrf_k = 10", "routing = 1.5", ["routing = 1.5", "must be a valid integer"]),
        (
            "rrf_k = 10",
            "routing = 3\nrouting_alpha = 2",
            ["routing_alpha = 2", "less than or equal to 1"],
        ),
        ("rrf_k = 10", "routing_alpha = 0.5", ["routing_alpha", "nothing is routed"]),
        ("rrf_k = 10", "rooting = 3", ["'rooting'", "did you mean 'routing'"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nbm25 = "lucen"', ["mean 'lucene'"]),
        ('retriever = "bm25"', 'retriever = "bm25"\ntokenizer = "icu"', ["valid: ascii, unicode"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nstemming = "chech"', ["mean 'czech'"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nstemming = ""', ["stemming", "unknown"]),
        ('retriever = "bm25"', "bm25 = 'okapi'", ["bm25 = 'okapi'", "does not use BM25"]),
        ('retriever = "bm25"', "tokenizer = 'unicode'", ["tokenizer", "nothing is routed"]),
        ('retriever = "bm25"', "stemming = 'czech'", ["stemming", "does not use BM25"]),
        (
            '"some/model"',
            '"some/model"\nmax_length = 0',
            ["Mini LM", "max_length = 0", "greater than or equal to 1"],
        ),
        ('model = "some/model"', "", ["exactly one of package and model"]),
        ('model = "some/cross"', "", ["rerankers.cross", "model"]),
        ('name = "clause"', 'name = "naive"', ["'naive'", "twice"]),
        ('name = "clause"', 'name = " naive "', ["'naive'", "looks the same"]),
        ('name = "clause"', 'name = "naive\u200b"', ["'naive'", "looks the same"]),
        ('name = "clause"', 'name = "a\\nb"', ["configuration", "control character"]),
        ('name = "clause"', 'name = ""', ["no letter or digit"]),
        ('name = "clause"', 'name = "clause"\nkey = "x"', ["unknown key 'key'"]),
        ('name = "clause"', 'name = "+"', ["no letter or digit"]),
        ("clause = {}", "clause = 3", ["chunkers.clause", "must be a table"]),
        ("clause = {}", '"Clause" = {}', ["chunkers.Clause", "must match"]),
        ('retriever = "bm25"', 'retriever = "bm25"\nencoder = "Mini LM"', ["nothing is encoded"]),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_valid_name(
    tmp_path: Path, old: str, new: str, parts: list[str]
):
    assert old in GOOD
    message = refused(tmp_path, GOOD.replace(old, new, 1))
    for part in parts:
        assert part in message


def test_names_with_one_slug_have_two_keys_and_nothing_else_changes(tmp_path: Path):
    alone = load(tmp_path, GOOD)
    assert [c.slug for c in alone.configurations] == ["naive", "clause", "long_hybrid_rerank"]
    text = GOOD + '[[configurations]]\nname = "NAIVE!"\nchunker = "naive"\n'
    found = load(tmp_path, text.replace('"Mini LM"', '"модель"'))
    naive, clause, long, loud = found.configurations
    assert [naive.slug, clause.slug, long.slug] == [c.slug for c in alone.configurations]
    assert loud.slug.startswith("naive__")
    assert found.encoder_key("модель").startswith("name__")
    # The key is no setting: nothing that decides what is stale is told by it.
    assert naive == replace(alone.configurations[0], encoder="модель")
    assert loud == replace(naive, name="NAIVE!")
    assert repr(loud) == repr(replace(naive, name="NAIVE!"))
    assert asdict(loud) == asdict(naive) | {"name": "NAIVE!"}
    assert json.dumps(asdict(loud)) == json.dumps(asdict(naive) | {"name": "NAIVE!"})
    copied = pickle.loads(pickle.dumps(replace(loud, doc_scope=False)))
    assert (copied.slug, copied.name) == (loud.slug, "NAIVE!")


def test_a_configuration_is_found_however_its_letters_are_composed(tmp_path: Path):
    found = load(
        tmp_path,
        GOOD.replace('name = "clause"', 'name = "café"').replace(
            'baseline = "clause"', 'baseline = "café"'
        ),
    )
    assert found.configuration("cafe\u0301").name == "café"


def test_fusion_and_routing_of_a_file(tmp_path: Path):
    plain = load(tmp_path, GOOD).configurations
    assert [c.fusion_used for c in plain] == [None, None, ("rrf", 10)]
    assert [c.routing_used for c in plain] == [None, None, None]
    text = GOOD.replace("rrf_k = 10", 'fusion = "cc"\nrouting = 3')
    text = text.replace('retriever = "bm25"', 'retriever = "bm25"\nrouting = 5\nrouting_alpha = 1')
    naive, clause, long = load(tmp_path, text).configurations
    assert long.fusion_used == ("cc", 0.2)
    assert long.routing_used == (3, 0.3)
    # Documents are chosen with an encoder, whatever searches their chunks.
    assert (clause.routing_used, clause.encoder, clause.uses_dense) == ((5, 1.0), "Mini LM", False)
    assert naive.routing_used is None
    # Off, and what it would have been: a sweep says it so.
    off = load(tmp_path, GOOD.replace("rrf_k = 10", "routing = 0\nrouting_alpha = 0.5"))
    assert off.configurations[2].routing_used is None


def test_how_bm25_matches_words(tmp_path: Path):
    plain = load(tmp_path, GOOD).configurations
    assert [c.bm25_used for c in plain] == [
        None,
        ("okapi", "ascii", None),
        ("okapi", "ascii", None),
    ]
    stated = 'bm25 = "lucene"\ntokenizer = "unicode"\nstemming = "czech"'
    text = GOOD.replace("rrf_k = 10", stated)
    *_, long = load(tmp_path, text).configurations
    assert long.bm25_used == ("lucene", "unicode", "czech")
    assert experiments.bm25_text(long) == "lucene, unicode words, czech stems"
    # Of routing as well, also where no channel uses it; not where it is off.
    routed = load(tmp_path, GOOD.replace('retriever = "bm25"', f"routing = 3\n{stated}"))
    assert routed.configurations[1].bm25_used == ("lucene", "unicode", "czech")
    with pytest.raises(InputError, match="nothing is routed"):
        load(tmp_path, GOOD.replace('retriever = "bm25"', f"routing = 0\n{stated}"))


def test_settings_at_their_default_are_not_in_what_a_configuration_is_called_by():
    # As written before there were such settings: code versions rest on it.
    assert repr(Configuration("a", "c", "bm25")) == (
        "Configuration(name='a', chunker='c', retriever='bm25', reranker=None, doc_scope=True, "
        "metadata_filters=False, encoder=None, rrf_k=60, fusion='rrf', alpha=0.2, routing=0, "
        "routing_alpha=0.3)"
    )
    assert repr(Configuration("a", "c", "bm25", tokenizer="unicode")).endswith(
        "routing_alpha=0.3, tokenizer='unicode')"
    )


def test_a_relative_folder_of_weights_is_relative_to_the_file(tmp_path: Path):
    found = load(tmp_path, GOOD.replace('"some/model"', '"./weights/mini"'))
    assert found.encoders["Mini LM"].model == str((tmp_path / "weights" / "mini").resolve())
    assert found.rerankers["cross"].model == "some/cross"


def test_two_encoders_must_be_told_apart(tmp_path: Path):
    second = GOOD.replace("[rerankers.cross]", '[encoders.other]\nmodel = "o"\n[rerankers.cross]')
    assert "encoder" in refused(tmp_path, second)


def test_no_configurations_and_no_file(tmp_path: Path):
    head = GOOD.split("[[configurations]]")[0]
    assert "configurations" in refused(tmp_path, head)
    assert "at least one" in refused(tmp_path, "configurations = []\n" + head)
    with pytest.raises(InputError, match="cannot be read"):
        experiments.load(tmp_path / "absent.toml")


def test_unknown_configuration_names_the_nearest(tmp_path: Path):
    with pytest.raises(InputError, match="did you mean 'naive'"):
        load(tmp_path, GOOD).configuration("naiv")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clause + hybrid + rerank", "clause_hybrid_rerank"),
        ("clause, unfiltered + filters", "clause_unfiltered_filters"),
        ("  A--b ", "a_b"),
        ("ms-marco-MiniLM-L-6-v2", "ms_marco_minilm_l_6_v2"),
    ],
)
def test_slug(name: str, expected: str):
    assert slug(name) == expected


BASE = Configuration("a", "clause", "dense", None, True, False, "m")


def test_another_fusion_constant_is_another_setting_of_hybrid_retrieval():
    sixty = replace(BASE, retriever="hybrid")
    ten = replace(sixty, name="b", rrf_k=10)
    assert lever_differences(sixty, ten) == ("hybrid retrieval",)
    assert lever_differences(sixty, replace(ten, reranker="x")) == (
        "hybrid retrieval",
        "reranking",
    )


CC = replace(BASE, retriever="hybrid", fusion="cc")
ROUTED = replace(BASE, retriever="bm25", routing=3)


@pytest.mark.parametrize(
    ("base", "change", "levers"),
    [
        (CC, {"alpha": 0.3}, ("hybrid retrieval",)),
        (CC, {"rrf_k": 10}, ()),  # not used
        (CC, {"fusion": "rrf"}, ("hybrid retrieval",)),
        (replace(CC, fusion="rrf"), {"alpha": 0.3}, ()),  # not used
        (ROUTED, {"routing": 5}, ("document routing",)),
        (ROUTED, {"routing_alpha": 0.4}, ("document routing",)),
        # Two that only choose documents with their encoder still differ in it.
        (ROUTED, {"encoder": "n"}, ("encoder",)),
        (ROUTED, {"routing": 0, "encoder": None}, ("document routing",)),
        (ROUTED, {"fusion": "cc", "alpha": 0.9, "rrf_k": 1}, ()),
        (CC, {"bm25": "lucene"}, ("lexical matching",)),
        (CC, {"tokenizer": "unicode", "stemming": "czech"}, ("lexical matching",)),
        # Of both its uses it is one lever.
        (ROUTED, {"bm25": "lucene"}, ("lexical matching",)),
        (ROUTED, {"bm25": "lucene", "alpha": 0.3, "routing": 4}, ("document routing", LEXICAL)),
        # Dense against hybrid: there is nothing of it in dense that could differ.
        (CC, {"retriever": "dense", "bm25": "lucene"}, ("hybrid retrieval",)),
        (replace(CC, retriever="dense"), {"bm25": "lucene"}, ()),
    ],
)
def test_a_constant_counts_where_it_is_used(base: Configuration, change: dict, levers: tuple):
    other = replace(base, name="b", **change)
    assert lever_differences(base, other) == levers
    assert lever_differences(other, base) == levers


@pytest.mark.parametrize(
    ("change", "levers"),
    [
        ({}, ()),
        ({"chunker": "naive"}, ("chunking",)),
        ({"reranker": "x"}, ("reranking",)),
        ({"doc_scope": False}, ("metadata filtering",)),
        ({"doc_scope": False, "metadata_filters": True}, ("metadata filtering",)),
        ({"encoder": "n"}, ("encoder",)),
        # The fusion's constant is a part of that lever, where something is fused.
        ({"rrf_k": 10}, ()),
        ({"retriever": "hybrid", "rrf_k": 10}, ("hybrid retrieval",)),
        ({"fusion": "cc"}, ()),
        ({"retriever": "hybrid", "fusion": "cc"}, ("hybrid retrieval",)),
        ({"routing": 3}, ("document routing",)),
        ({"routing_alpha": 0.5}, ()),
        ({"routing": 3, "retriever": "hybrid"}, ("hybrid retrieval", "document routing")),
        ({"routing": 3, "encoder": "n"}, ("encoder", "document routing")),
        # bm25 needs no encoder: that alone is no second lever.
        ({"retriever": "bm25", "encoder": None}, ("hybrid retrieval",)),
        ({"retriever": "hybrid", "encoder": "n"}, ("hybrid retrieval", "encoder")),
        ({"retriever": "hybrid", "reranker": "x"}, ("hybrid retrieval", "reranking")),
    ],
)
def test_levers_are_computed_from_the_settings(change: dict, levers: tuple[str, ...]):
    other = replace(BASE, name="b", **change)
    assert lever_differences(BASE, other) == levers
    assert lever_differences(other, BASE) == levers


def test_owners_are_a_team_unless_the_file_names_them(tmp_path: Path):
    assert load(tmp_path, GOOD).owners == ("team:retrieval",)
    named = 'owners = ["team:legal", "a.b@example.org"]\n' + GOOD
    assert load(tmp_path, named).owners == ("team:legal", "a.b@example.org")


@pytest.mark.parametrize("owner", ['"legal"', '"team:"', '"a@b"', "7"])
def test_an_owner_that_dagster_would_refuse_is_refused_with_its_file(tmp_path: Path, owner: str):
    message = refused(tmp_path, f'owners = ["team:x", {owner}]\n' + GOOD)
    assert f"owners[1] = {owner.replace(chr(34), chr(39))} " in message


def test_one_message_names_every_problem_of_a_file(tmp_path: Path):
    wrong = GOOD.replace("depth = 12", "depth = 0\ndept = 3")
    wrong = wrong.replace('model = "some/cross"', 'modell = "some/cross"')
    wrong = wrong.replace('retriever = "bm25"', 'retriever = "bm26"\nrrf_k = "x"')
    first, *problems = refused(tmp_path, wrong).split("\n")
    assert first.startswith(f"{tmp_path / 'mine.toml'}: 6 problems")
    places = [line.split("mine.toml: ")[1].split(": ")[0] for line in problems]
    assert sorted(places) == [
        "configuration 'clause'",
        "configuration 'clause'",
        "rerankers.cross",
        "rerankers.cross",
        "top level",
        "top level",
    ]


def documented(kind: str) -> dict[str, str]:
    """Return key -> default of the table of docs/levers.md whose first column is ``kind``."""
    text = (Path(__file__).parents[2] / "docs" / "levers.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"\| key of an? {kind} \|.*\n\|-.*\n((?:\|.*\n)+)", text)
    rows = [[cell.strip(" `") for cell in row.split("|")[1:3]] for row in table.splitlines()]
    return dict(rows)


@pytest.mark.parametrize(
    ("kind", "settings", "no_keys"),
    [
        ("experiment", Experiment, {"path"}),
        ("encoder", Encoder, {"name", "parameters"}),
        ("reranker", Reranker, {"name", "parameters"}),
        ("configuration", Configuration, {"name"}),
    ],
)
def test_every_key_stands_in_the_docs_with_its_default(kind: str, settings: type, no_keys: set):
    table = documented(kind)
    found = {f.name: f.default for f in fields(settings) if f.name not in no_keys}
    assert sorted(table) == sorted(found)
    for key, default in found.items():
        if isinstance(default, int | float):  # bool as well
            assert table[key] == str(default).lower(), key
        elif isinstance(default, str) and default:
            assert table[key] == default, key
        if default is MISSING and key not in ("chunkers", "encoders", "rerankers", "description"):
            assert table[key] == "required", key
