"""Entry points of other distributions, by kind and name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from spanbench_pipeline.core import plugins
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline_tests.support.plugin import install

GROUP = "spanbench.chunkers"
OURS = {"second": "json", "first": "json:dumps"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    """No plug-in but a test's own, and none of its modules left behind."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def add(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def test_ours_stand_in_their_order_and_others_by_name_after_them(tmp_path: Path):
    targets = {"zeta": "acme_zeta", "alpha": "acme_alpha:cut"}
    add(install(tmp_path, {"acme_alpha.py": "cut = 7", "acme_zeta.py": ""}, {GROUP: targets}))
    registry = Registry(GROUP, OURS)
    assert list(registry) == ["second", "first", "alpha", "zeta"]
    assert len(registry) == 4
    assert dict(registry) == OURS | {"alpha": "acme_alpha:cut", "zeta": "acme_zeta"}
    assert registry.load("first") is importlib.import_module("json").dumps
    assert registry.load("alpha") == 7
    assert registry.load_all()["zeta"].__name__ == "acme_zeta"
    assert list(Registry("spanbench.formats", {})) == []


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError):
        Registry(GROUP, OURS).load("third")


def test_a_broken_plug_in_stops_only_who_names_it(tmp_path: Path):
    modules = {"acme_bad.py": "import no_such_module", "acme_good.py": ""}
    add(install(tmp_path, modules, {GROUP: {"bad": "acme_bad", "good": "acme_good"}}))
    registry = Registry(GROUP, OURS)
    assert registry.load("good").__name__ == "acme_good"
    assert "bad" in registry
    with pytest.raises(InputError) as refused:
        registry.load("bad")
    for told in ("'bad'", GROUP, "acme_bad", "acme 1.0", "no_such_module"):
        assert told in str(refused.value)
    with pytest.raises(InputError, match="'bad'"):
        registry.load_all()


@pytest.mark.parametrize("name", ["first", "alpha"])
def test_a_name_that_is_taken_names_both_owners(tmp_path: Path, name: str):
    for distribution in ("acme", "best"):
        add(install(tmp_path / distribution, {}, {GROUP: {name: "json"}}, distribution))
    registry = Registry(GROUP, OURS)
    assert registry.load("second").__name__ == "json"  # ours is not affected
    with pytest.raises(InputError) as refused:
        list(registry)
    owners = ("acme 1.0", "spanbench") if name == "first" else ("acme 1.0", "best 1.0")
    assert all(owner in str(refused.value) for owner in (repr(name), *owners))


def test_versions_are_those_of_the_packages_that_plug_ins_are_in(tmp_path: Path):
    target = {GROUP: {"alpha": "acme.cut:alpha"}}
    add(install(tmp_path, {"acme/__init__.py": ""}, target, "acme-chunkers", "2.5"))
    assert plugins.versions(["acme.other", "json", "spanbench_pipeline.core"]) == {
        "acme-chunkers": "2.5"
    }
    assert plugins.versions(["spanbench_pipeline.core", "acmeother"]) == {}
