"""Find what other distributions add to spanbench, through standard entry points.

A kind of plug-in is an entry-point group, such as ``spanbench.chunkers``; an entry names a module,
or an attribute of one. Ours are entries too, declared beside their kind. Nothing is looked up
before a kind is used, and no module is imported before its name is asked for: a broken plug-in
stops those who name it, and nobody else. Only kinds that are used whole (metrics, labels, report
sections) import all of their entries.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanbench_pipeline.core.errors import InputError, NotMeasured

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PREFIX = "spanbench."
GROUPS = tuple(
    PREFIX + kind
    for kind in (
        "channels",
        "chunkers",
        "commands",
        "encoders",
        "formats",
        "metrics",
        "rerankers",
        "sources",
    )
)
"""The kinds of plug-ins."""


class Registry(Mapping[str, str]):
    """The plug-ins of one kind, name -> ``module`` or ``module:attribute``.

    ``ours`` in the order declared, then those of other distributions, sorted by name. Looking for
    a name that is not ours raises InputError where a plug-in takes a name that is taken.
    """

    def __init__(self, group: str, ours: Mapping[str, str]) -> None:
        self.group = group
        self.ours = dict(ours)

    def __getitem__(self, name: str) -> str:
        return self.ours[name] if name in self.ours else self._others()[name].value

    def __iter__(self) -> Iterator[str]:
        return iter([*self.ours, *self._others()])

    def __len__(self) -> int:
        return len(self.ours) + len(self._others())

    def load(self, name: str) -> Any:
        """Return what a name stands for.

        Raise KeyError where nothing has the name, InputError where a plug-in cannot be imported.
        """
        if name not in self.ours:
            return _load(self._others()[name])
        module, _, attribute = self.ours[name].partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, attribute) if attribute else loaded

    def choose(self, where: str, key: str, name: object, hint: str = "") -> Any:
        """Return what the value ``name`` of a setting stands for.

        Raise InputError that begins with ``where``, a file and a table, for an unknown name (with
        the nearest one, and ``hint``) and for a plug-in that cannot be imported.
        """
        from spanbench_pipeline.core.suggestions import nearest

        try:
            if isinstance(name, str) and name in self:
                return self.load(name)
            valid = nearest(str(name), self)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        raise InputError(f"{where}: {key} = {name!r} is unknown{valid}{hint}")

    @contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """Raise InputError that names the plug-in for whatever its code raises in this context.

        An InputError, a NotMeasured and what our own code raises stay as they are.
        """
        if name in self.ours:
            yield
            return
        try:
            yield
        except (InputError, NotMeasured):
            raise
        except (Exception, SystemExit) as error:
            entry = self._others()[name]
            raise InputError(f"{_described(entry)} failed: {_reason(error)}") from error

    def load_all(self) -> dict[str, Any]:
        """Return what every name stands for. Raise InputError as ``load`` does."""
        return {name: self.load(name) for name in self}

    def _others(self) -> dict[str, EntryPoint]:
        others: dict[str, EntryPoint] = {}
        for entry in installed(self.group):
            if entry.name in self.ours or entry.name in others:
                owner = _origin(others[entry.name]) if entry.name in others else "spanbench"
                raise InputError(
                    f"{_described(entry)}: the name {entry.name!r} is taken by {owner}; uninstall "
                    "one of the two, or rename the entry point"
                )
            others[entry.name] = entry
        return others


def installed(group: str) -> list[EntryPoint]:
    """Return the entry points that other distributions declare for a group, sorted by name."""
    return [entry for entry in _scan(tuple(sys.path)) if entry.group == group]


def versions(modules: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution with a plug-in in the package of one of ``modules``.

    By the distribution's name. Modules of spanbench itself have none.
    """
    packages = {module.partition(".")[0] for module in modules} - {__name__.partition(".")[0]}
    if not packages:
        return {}
    return {
        entry.dist.name: entry.dist.version
        for entry in _scan(tuple(sys.path))
        if entry.dist and entry.module.partition(".")[0] in packages
    }


def source_hash(module: str) -> str:
    """Return a hash of the source files of the package that holds a module, or of it alone."""
    package = importlib.import_module(module.partition(".")[0])
    file = Path(package.__file__ or "")
    files = sorted(file.parent.rglob("*.py")) if hasattr(package, "__path__") else [file]
    digest = hashlib.sha256()
    for path in files:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _scan(_: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return all entry points of GROUPS; looked for once for each search path of Python."""
    from importlib import metadata

    found = metadata.entry_points()
    entries = [entry for group in GROUPS for entry in found.select(group=group)]
    return tuple(sorted(entries, key=lambda entry: (entry.group, entry.name, _origin(entry))))


def _described(entry: EntryPoint) -> str:
    return f"plug-in {entry.name!r} ({entry.group}: {entry.value}) of {_origin(entry)}"


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed distribution"


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # another's code, which may do anything on import
        raise InputError(
            f"{_described(entry)} cannot be used: {_reason(error)}; mend it, or uninstall it"
        ) from error


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
