"""A hash of the code that decides an asset's output.

Source counts as its syntax tree without docstrings, so a comment or a reworded docstring changes
nothing. A module brings in the project modules that it imports, and those theirs: a change in a
shared helper changes its users, and nobody else. A module of a plug-in brings in those of its own
package too, and the version of the distribution that installed it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from spanbench_pipeline.core import plugins

PACKAGE = "spanbench_pipeline"
COLLECTED = (f"{PACKAGE}.metrics.quality",)
"""Packages whose modules are found by looking for them: one brings in all, as imports would."""
Parts = dict[str, dict[str, Any]]


def code_version(
    modules: Iterable[str], params: Mapping[str, Any], libraries: Iterable[str] = ()
) -> str:
    """Return a short hash of modules (with what they import), parameters and library versions.

    ``params`` must be expressible as JSON; the order of its keys does not matter.
    """
    return digest(parts(modules, params, libraries))


def parts(
    modules: Iterable[str], params: Mapping[str, Any], libraries: Iterable[str] = ()
) -> Parts:
    """Return what a code version is a hash of: ``modules``, ``parameters`` and ``libraries``.

    Modules and libraries by name, with a hash of the source and with the version. A root may also
    be one function, ``module:function``: it counts with what it uses of its own module, and brings
    in no import.
    """
    roots = sorted(modules)
    functions = [root for root in roots if ":" in root]
    found = closure(root for root in roots if ":" not in root)
    hashes = {name: _tree_hash(path) for name, path in sorted(found.items())}
    versions = {name: metadata.version(name) for name in set(libraries)}
    versions |= plugins.versions(root.partition(":")[0] for root in roots)
    return {
        "modules": hashes | {root: _function_hash(*root.split(":")) for root in functions},
        "parameters": json.loads(json.dumps(params)),
        "libraries": dict(sorted(versions.items())),
    }


def digest(made_by: Parts) -> str:
    """Return the code version of something made by these parts."""
    text = json.dumps(made_by, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(before: Parts, now: Parts) -> list[str]:
    """Return what differs between two code versions, a line each: ``module x changed``."""
    lines = []
    for kind, one in (("modules", "module"), ("libraries", "library"), ("parameters", "parameter")):
        old, new = (dict(_flat("", made_by.get(kind, {}))) for made_by in (before, now))
        for name in sorted({*old, *new} - {""}):
            values = _shown(old, name), _shown(new, name)
            if values[0] != values[1]:
                what = f": {values[0]} -> {values[1]}"
                if kind == "modules":  # their hashes say nothing to a person
                    what = " is new" if name not in old else " is gone" if name not in new else ""
                lines.append(f"{one} {name}{what or ' changed'}")
    return lines


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every leaf of nested tables and lists, by its dotted path; one without a leaf is
    one.
    """
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), part)
    else:
        yield prefix, value


def _shown(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False) if name in values else "absent"


def function_root(function: Callable[..., Any]) -> str | None:
    """Return ``module:function`` of a function, partial or closure; None where it is not the
    project's.
    """
    while isinstance(function, partial):
        function = function.func
    module = function.__module__
    if not _is_module_of(PACKAGE, module):
        return None
    return f"{module}:{function.__qualname__.split('.')[0]}"


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """Return each module and what it imports, directly or not, of its own package and the project.

    By name, with its file.
    """
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _file(name)
            waiting.extend(_imports(found[name], name))
            if name in COLLECTED:
                modules_of = iter_modules([str(found[name].parent)], f"{name}.")
                waiting.extend(info.name for info in modules_of)
    return found


@cache
def _file(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source for module {module}")
    return Path(spec.origin)


def _imports(path: Path, module: str) -> tuple[str, ...]:
    """Return the modules of its package and the project that a file imports, wherever it does."""
    return _imports_at(path, module, path.stat().st_mtime_ns)


@cache
def _imports_at(path: Path, module: str, _: int) -> tuple[str, ...]:
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, path)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    packages = {PACKAGE, module.partition(".")[0]}
    found = {name for name in names - {module} for p in packages if _is_module_of(p, name)}
    return tuple(sorted(found))


def _absolute(node: ast.ImportFrom, module: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, node.module] if node.module else package)


@cache
def _is_module_of(package: str, name: str) -> bool:
    """Return whether a dotted name is a module of a package, and not a name inside one."""
    if not f"{name}.".startswith(f"{package}."):
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return False
    return spec is not None and spec.origin is not None


def _tree_hash(path: Path) -> str:
    return _tree_hash_at(path, path.stat().st_mtime_ns)


@cache
def _tree_hash_at(path: Path, _: int) -> str:
    return hashlib.sha256(ast.dump(_without_docstrings(path)).encode()).hexdigest()[:16]


def _function_hash(module: str, name: str) -> str:
    path = _file(module)
    return _function_hash_at(path, name, path.stat().st_mtime_ns)


@cache
def _function_hash_at(path: Path, name: str, _: int) -> str:
    """Return a hash of a top-level definition and of those that it uses, directly or not."""
    defined: dict[str, list[ast.stmt]] = {}
    for node in _without_docstrings(path).body:
        for defines in _names_defined(node):
            defined.setdefault(defines, []).append(node)
    used: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in used:
            used.add(name)
            nodes = [n for statement in defined[name] for n in ast.walk(statement)]
            waiting += [n.id for n in nodes if isinstance(n, ast.Name)]
    texts = [ast.dump(node) for name in sorted(used) for node in defined[name]]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_stored(n)]
    return []


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _tree(path: Path) -> ast.Module:
    """Return the syntax tree of a module; of one that is no Python source, one that holds its
    sha256.
    """
    content = path.read_bytes()
    if path.suffix == ".py":
        return ast.parse(content)
    return ast.Module([ast.Expr(ast.Constant(hashlib.sha256(content).digest()))], [])


def _without_docstrings(path: Path) -> ast.Module:
    tree = _tree(path)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return tree


def _is_text(statement: ast.AST) -> bool:
    """Return whether a statement is a string and nothing else: a docstring, of whatever it may
    be.
    """
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
