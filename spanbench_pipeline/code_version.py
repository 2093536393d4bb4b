"""A hash of the code that decides an asset's output.

Source counts as its syntax tree without docstrings, so a comment or a reworded docstring changes
nothing. A module brings in the project modules that it imports, and those theirs: a change in a
shared helper changes its users, and nobody else.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGE = "spanbench_pipeline"


def code_version(
    modules: Iterable[str], params: Mapping[str, Any], libraries: Iterable[str] = ()
) -> str:
    """A short hash of modules (with what they import), parameters and library versions.

    ``params`` must be expressible as JSON; the order of its keys does not matter.
    """
    parts = {
        "code": sorted({f"{name} {_tree_hash(path)}" for name, path in closure(modules).items()}),
        "params": params,
        "libraries": {name: metadata.version(name) for name in sorted(set(libraries))},
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """Each module and every project module that it imports, directly or not: name -> file."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _file(name)
            waiting.extend(_imports(found[name], name))
    return found


@cache
def _file(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source for module {module}")
    return Path(spec.origin)


def _imports(path: Path, module: str) -> tuple[str, ...]:
    """The project modules that a file imports, wherever in it the import stands."""
    return _imports_at(path, module, path.stat().st_mtime_ns)


@cache
def _imports_at(path: Path, module: str, _: int) -> tuple[str, ...]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, path)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return tuple(sorted(name for name in names if name != module and _is_ours(name)))


def _absolute(node: ast.ImportFrom, module: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, node.module] if node.module else package)


@cache
def _is_ours(name: str) -> bool:
    """Whether a dotted name is a module of the project, and not a name inside one."""
    if not f"{name}.".startswith(f"{PACKAGE}."):
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _tree_hash(path: Path) -> str:
    return _tree_hash_at(path, path.stat().st_mtime_ns)


@cache
def _tree_hash_at(path: Path, _: int) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(statement: ast.AST) -> bool:
    """Whether a statement is a string and nothing else: a docstring, of whatever it may be."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
