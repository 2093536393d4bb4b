"""What a list is made by: settings at their default leave no trace, others have their own list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import ChunkerSettings, Configuration, Encoder, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import tokenizer
from spanbench_pipeline.pipeline.stages import candidates, rankings, regression, routing

PLAIN = Configuration("plain", "naive", "bm25")
OTHER = replace(PLAIN, name="other", bm25="lucene", tokenizer="unicode", stemming="czech")
ROUTED = replace(PLAIN, name="routed", routing=2, encoder="e")


def experiment(*configurations: Configuration) -> Experiment:
    return Experiment(
        "own",
        Path("own.toml"),
        "",
        {},
        {"naive": ChunkerSettings("naive", "naive")},
        configurations,
        {"e": Encoder("e", model="./absent")},
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "home")


def test_defaults_add_nothing_to_what_a_list_is_made_by(project: Project) -> None:
    (stage,) = candidates.stages(experiment(PLAIN), project)
    assert stage.key == ("own", "candidates", "naive_bm25")
    assert stage.params == {
        "channel": "bm25",
        "chunker": "naive",
        "encoder": None,
        "doc_scope": True,
        "metadata_filters": False,
        "routing": "",
        "depth": 30,
    }
    (ranked,) = rankings.stages(experiment(PLAIN), project)
    assert {*ranked.params} & {"bm25", "tokenizer", "stemming"} == set()
    (routes,) = routing.stages(experiment(ROUTED), project)
    assert routes.params.keys() == {"config", "keep", "alpha", "encoder"}
    assert "words" not in regression.stages(experiment(PLAIN), project)[0].params


def test_other_settings_have_a_list_of_their_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {s.key[2]: s for s in candidates.stages(experiment(PLAIN, OTHER), project)}
    assert [*found] == ["naive_bm25", "naive_bm25_lucene_unicode_czech"]
    settings = {"bm25": "lucene", "tokenizer": "unicode", "stemming": "czech"}
    params = found["naive_bm25_lucene_unicode_czech"].params
    assert params["settings"] == settings
    assert params["words"] == tokenizer.versions("unicode", "czech")
    both = replace(OTHER, routing=2, encoder="e")
    (routes,) = routing.stages(experiment(both), project)
    assert routes.params["settings"] == settings
    # Dense lists know nothing of it.
    hybrid = replace(OTHER, retriever="hybrid", encoder="e")
    assert [s.settings for s in asset_keys.sources(hybrid)] == [(), tuple(settings.items())]
    # ICU that comes or goes makes the list anew.
    before = found["naive_bm25_lucene_unicode_czech"].node().code_version
    monkeypatch.setattr(tokenizer, "_segmentation", lambda: "absent")
    now = {s.key[2]: s for s in candidates.stages(experiment(PLAIN, OTHER), project)}
    assert now["naive_bm25_lucene_unicode_czech"].node().code_version != before
    assert now["naive_bm25"].node() == found["naive_bm25"].node()
