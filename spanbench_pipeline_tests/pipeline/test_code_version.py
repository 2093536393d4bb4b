"""What changes an asset's code version, and what must not."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from pathlib import Path

import pytest

from spanbench_pipeline.pipeline import code_version as cv

CACHES = (cv._file, cv._imports_at, cv._is_module_of, cv._tree_hash_at, cv._function_hash_at)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of four modules: one -> helper, two -> deep -> helper."""
    folder = tmp_path / "pk"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Pk."""\n')
    (folder / "helper.py").write_text("def f():\n    return 1\n")
    (folder / "one.py").write_text("from pk import helper\nX = 1\n")
    (folder / "deep.py").write_text("from .helper import f\n")
    (folder / "two.py").write_text("def late():\n    import pk.deep\n")
    (folder / "alone.py").write_text('"""Alone."""\n\n\ndef g(a):\n    """Doc."""\n    return a\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cv, "PACKAGE", "pk")
    importlib.invalidate_caches()
    for cached in CACHES:
        cached.cache_clear()
    yield folder
    for cached in CACHES:
        cached.cache_clear()
    for name in [m for m in sys.modules if m == "pk" or m.startswith("pk.")]:
        del sys.modules[name]


def rewrite(path: Path, text: str) -> None:
    # Python takes compiled code for current where the second and the size are the same.
    stamp = path.stat().st_mtime_ns + 2_000_000_000
    path.write_text(text)
    os.utime(path, ns=(stamp, stamp))


def version(*modules: str, **params: object) -> str:
    return cv.code_version(modules, params)


def test_imports_are_followed_wherever_they_stand(package: Path):
    assert set(cv.closure(["pk.one"])) == {"pk", "pk.one", "pk.helper"}
    assert set(cv.closure(["pk.two"])) == {"pk.two", "pk.deep", "pk.helper"}
    assert set(cv.closure(["pk.alone"])) == {"pk.alone"}


def test_comments_and_docstrings_change_nothing(package: Path):
    before = version("pk.alone")
    rewrite(
        package / "alone.py",
        "# new\n'''Alone.'''\n'''And more.'''\ndef g(a):\n    '''Other.'''\n    return a  # why\n",
    )
    assert version("pk.alone") == before


def test_code_changes_it(package: Path):
    before = version("pk.alone")
    rewrite(package / "alone.py", "def g(a):\n    return a + 1\n")
    assert version("pk.alone") != before


def test_a_shared_helper_changes_its_users_only(package: Path):
    users = [version("pk.one"), version("pk.two")]
    other = version("pk.alone")
    rewrite(package / "helper.py", "def f():\n    return 2\n")
    assert version("pk.one") != users[0]
    assert version("pk.two") != users[1]
    assert version("pk.alone") == other


def test_parameters_count_but_not_their_order(package: Path):
    assert version("pk.alone", a=1, b=2) == version("pk.alone", b=2, a=1)
    assert version("pk.alone", a=1) != version("pk.alone", a=2)
    assert cv.code_version(["pk.alone"], {}, ["numpy"]) != version("pk.alone")


def test_strategies_do_not_see_one_another():
    naive = cv.closure(["spanbench_pipeline.chunkers.naive", "spanbench_pipeline.chunkers"])
    assert "spanbench_pipeline.chunkers.clause" not in naive
    dense = cv.closure(
        ["spanbench_pipeline.retrieval.ranking", "spanbench_pipeline.retrieval.dense"]
    )
    assert not {
        f"spanbench_pipeline.retrieval.{m}"
        for m in ("bm25", "convex", "fusion", "rerank", "routing")
    } & set(dense)


def test_differences_name_what_changed(package: Path):
    before = cv.parts(["pk.one"], {"size": 1, "deps": [["a"], ["b"]], "gone": None}, ["numpy"])
    rewrite(package / "helper.py", "def f():\n    return 2\n")
    now = cv.parts(["pk.one", "pk.alone"], {"size": 2, "deps": [["a"], ["c"]], "new": ""})
    assert cv.differences(before, now) == [
        "module pk.alone is new",
        "module pk.helper changed",
        f'library numpy: "{before["libraries"]["numpy"]}" -> absent',
        'parameter deps.1.0: "b" -> "c"',
        "parameter gone: null -> absent",
        'parameter new: absent -> ""',
        "parameter size: 1 -> 2",
    ]
    assert cv.differences(now, now) == []
    assert cv.digest(now) == cv.code_version(
        ["pk.alone", "pk.one"], {"new": "", "deps": [["a"], ["c"]], "size": 2}
    )


GLUE = """
LIMIT = 3
OTHER = 1


def compute(x):
    def inner():
        return helper(x)
    return inner


def helper(x):
    '''Doc.'''
    return x + LIMIT


def unused():
    return OTHER
"""


def test_a_function_counts_with_what_it_uses_of_its_module(package: Path):
    path = package / "glue.py"
    path.write_text("import pk.helper\n" + GLUE)
    before = cv.parts(["pk.glue:compute"], {})
    assert set(before["modules"]) == {"pk.glue:compute"}
    for old, new, same in [
        ("OTHER = 1", "OTHER = 2", True),
        ("'''Doc.'''", "'''Another.'''  # why", True),
        ("LIMIT = 3", "LIMIT = 4", False),
        ("return x +", "return x -", False),
        ("return helper(x)", "return helper(x + 1)", False),
    ]:
        rewrite(path, "import pk.helper\n" + GLUE.replace(old, new))
        assert (cv.parts(["pk.glue:compute"], {}) == before) is same, old


def test_a_partial_or_closure_is_its_functions_and_others_functions_are_not_ours(package: Path):
    (package / "glue.py").write_text("from functools import partial\n" + GLUE)
    glue = importlib.import_module("pk.glue")
    assert cv.function_root(glue.compute) == "pk.glue:compute"
    assert cv.function_root(functools.partial(functools.partial(glue.helper, 1))) == (
        "pk.glue:helper"
    )
    assert cv.function_root(glue.compute(1)) == "pk.glue:compute"
    assert cv.function_root(rewrite) is None
