"""The state of each corpus as the last run found it, while nothing that decides it has changed.

A run writes ``index/<corpus>.json``. Reading it costs a look at the file system and at Dagster's
events; building the graph, hashing code and asking Dagster cost seconds. A file of the index says
what it was made of:

- *definitions*: experiments, code, libraries, sources, models, the accepted run, operations. Their
  files are listed, and hashed as the file system states them (``storage/file_states.py``).
- *records*: what Dagster recorded of the corpus's assets and checks, whoever ran them.
- *stored files*: tables, history and reports of the corpus.

Where one of the three is not as it was, the index says nothing, and the caller looks at everything
itself. So it can be deleted at any time, and never says what a full look would not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import plugins
from spanbench_pipeline.pipeline.staleness import Key, Node, Record, name
from spanbench_pipeline.pipeline.state import WAREHOUSE, Experiments, State
from spanbench_pipeline.storage import files
from spanbench_pipeline.storage.file_states import FileStates, folder_times

if TYPE_CHECKING:
    from spanbench_pipeline.config.experiment import Encoder, Experiment, Reranker

SHARED = "_shared"
"""The file of the assets that belong to all corpora; no corpus has such a name."""
SETTINGS = """\
# Written by spanbench. Dagster's state for this project lies in this folder.
telemetry:
  enabled: false
nux:
  enabled: false
"""
"""Dagster's settings as we write them: its records lie in SQLite files beside them."""
_LAYOUT = 1
"""Raise it when the files of the index say something else than before."""
_PACKAGE = Path(__file__).parents[1]
_SOURCES = {"cuad", "directory", "legalbenchrag"}
"""The kinds of source of which it is known where they read: downloads, and paths in [source]."""
_TICK_NS = 50_000_000
"""Two changes of a file within one tick of the clock may look like one."""
_UNDER_WAY = ("NOT_STARTED", "STARTING", "STARTED")


@dataclass(frozen=True)
class Views:
    """Table -> the files that its view reads; ``left_out`` where some could not be read."""

    files: Mapping[str, Sequence[Path]]
    left_out: bool = False


@dataclass(frozen=True)
class Index:
    """What the index says of some corpora."""

    state: State
    views: Views


class IndexReader:
    """Reads the index of a home; every question is answered by None where it says nothing."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._states = FileStates()

    @cached_property
    def experiments(self) -> Experiments | None:
        """Return the experiments, none of them broken."""
        found = self._definitions
        if found is None:
            return None
        return Experiments({corpus: Path(path) for corpus, path in found["experiments"].items()})

    @cached_property
    def _definitions(self) -> dict[str, Any] | None:
        found = _read(self.project, "_definitions")
        now = found and _definitions_hash(
            self.project, found["watched"], found["searched"], self._states
        )
        return found if found and now is not None and found["definitions"] == now else None

    def of(self, corpora: Iterable[str], *, shared: bool = True) -> Index | None:
        """Return what is known of ``corpora``, and of the assets of all corpora if ``shared``."""
        if self._definitions is None:
            return None
        found = []
        for owner in [*corpora, *([SHARED] if shared else [])]:
            stored = _read(self.project, owner)
            if stored is None or stored["made of"] != self._made_of(owner):
                return None
            found.append(stored)
        return _index(self.project, found)

    def _made_of(self, owner: str) -> str | None:
        definitions = (self._definitions or {}).get("definitions")
        return _made_of(self.project, owner, definitions, self._states)

    @cached_property
    def idle(self) -> bool:
        """Return whether no run that is recorded as under way may need to be ended."""
        rows = _rows(
            self.project.dagster / "history" / "runs.db",
            f"SELECT count(*) FROM runs WHERE status IN ({', '.join('?' * len(_UNDER_WAY))})",
            _UNDER_WAY,
        )
        return rows == [(0,)]


def begin() -> int:
    """Return the time that ``IndexWriter`` needs of the moment before the definitions are read."""
    return time.time_ns() - _TICK_NS


class IndexWriter:
    """Writes what a look at a home found. ``began`` is when the definitions began to be read.

    ``experiments`` are all of the home; nothing is written where one of them is broken, or reads
    what cannot be listed, or what decides the answer changed while it was read.
    """

    def __init__(
        self, project: Project, experiments: Mapping[str, Experiment], broken: bool, began: int
    ) -> None:
        self.project = project
        self._states = FileStates()
        self._definitions: str | None = None
        own_modules = None if broken else _own_modules(experiments.values())
        watched = own_modules is not None and _watched(project, experiments.values(), own_modules)
        if own_modules is None or not watched:
            return
        searched = _searched(own_modules)
        digest = _definitions_hash(project, watched, searched, self._states)
        if digest is not None and self._states.newest < began:
            self._definitions = digest
            content = {
                "watched": watched,
                "searched": searched,
                "definitions": self._definitions,
                "experiments": {corpus: str(e.path) for corpus, e in experiments.items()},
            }
            _write(project, "_definitions", content)

    def before(self, corpora: Iterable[str]) -> dict[str, str | None]:
        """Return what the state of ``corpora`` is made of now, before it is looked at."""
        if self._definitions is None:
            return {}
        return {owner: self._now(owner) for owner in (*corpora, SHARED)}

    def write(
        self, before: Mapping[str, str | None], state: State, views: Mapping[Key, Views]
    ) -> None:
        """Write the state of each corpus of which nothing changed since ``before``."""
        for owner, made_of in before.items():
            if made_of is not None and self._now(owner) == made_of:
                keys = [key for key in state.nodes if _owner(key) == owner]
                assets = [_asset(self.project, key, state, views) for key in keys]
                _write(self.project, owner, {"made of": made_of, "assets": assets})

    def _now(self, owner: str) -> str | None:
        states = FileStates()
        found = _made_of(self.project, owner, self._definitions, states)
        if states.newest > time.time_ns() - _TICK_NS:
            time.sleep(_TICK_NS / 1e9)
            found = _made_of(self.project, owner, self._definitions, FileStates())
        return found


def _owner(key: Key) -> str:
    return SHARED if len(key) == 1 else key[0]


# What an answer is made of.


def _watched(
    project: Project, experiments: Iterable[Experiment], own_modules: Iterable[str]
) -> list[str] | None:
    """Return the files and folders that decide what is defined; None where that is not known."""
    found = {
        _PACKAGE,
        project.root / "data" / "experiments",
        project.registered,
        project.root / "data" / "operations.toml",
        project.home / "operations.toml",
        project.downloads,
        project.home / "accepted",
    }
    found |= {place for module in own_modules for place in _places(module)}
    for experiment in experiments:
        paths = _read_by(project, experiment)
        if paths is None:
            return None
        found |= paths
    return sorted(map(str, found))


def _read_by(project: Project, experiment: Experiment) -> set[Path] | None:
    """Return the paths outside the home that an experiment reads; None where that is not known."""
    from spanbench_pipeline.core.errors import NotMeasured
    from spanbench_pipeline.models import weights

    if experiment.source.get("kind") not in _SOURCES:
        return None
    named = [v for k, v in experiment.source.items() if isinstance(v, str) and k != "kind"]
    models: list[Encoder | Reranker] = [
        *experiment.encoders.values(),
        *experiment.rerankers.values(),
    ]
    found = {project.root / Path(text).expanduser() for text in named}
    for model in models:
        try:
            folder = weights.locate(model, project.models)
        except NotMeasured:
            own = Path(model.model or "").expanduser()
            # A folder that may come yet; hub and package names lie where is looked anyway.
            folder = own if len(own.parts) > 1 and own.is_absolute() else project.models
        if not folder.is_absolute():
            return None
        found.add(folder)
    return found


def _own_modules(experiments: Iterable[Experiment]) -> set[str] | None:
    """Return the packages whose code decides something and is not ours; None where more does.

    What an encoder or reranker of a plug-in computes may depend on anything.
    """
    installed = {group: plugins.installed(group) for group in plugins.GROUPS}
    if installed["spanbench.encoders"] or installed["spanbench.rerankers"]:
        return None
    found = {entry.module for entries in installed.values() for entry in entries}
    found |= {c.strategy for e in experiments for c in e.chunkers.values() if "." in c.strategy}
    return {module.partition(".")[0] for module in found} - {_PACKAGE.name}


def _places(package: str) -> list[Path]:
    """Return the folders of a package, or the file of a module."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return []
    folders = spec.submodule_search_locations
    return [Path(place) for place in folders or [spec.origin or ""]]


def _searched(own_modules: Iterable[str]) -> list[str]:
    """Return the folders where modules are looked for, as far as they decide what is defined.

    Where a module of one's own is used, which one it is may depend on all of them.
    """
    if any(own_modules):
        return sys.path
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def _definitions_hash(
    project: Project, watched: Sequence[str], searched: Sequence[str], states: FileStates
) -> str | None:
    found = states.digest(watched)
    if found is None or not _is_local(project):
        return None
    # Packages are added, removed and replaced by their folders' names, which hold the version.
    here = [path for path in sys.path if path in searched]
    return _hash([sys.version, here, folder_times(here), found])


def _is_local(project: Project) -> bool:
    """Return whether Dagster's records lie in the home's own SQLite files."""
    with suppress(OSError):
        return (project.dagster / "dagster.yaml").read_bytes() == SETTINGS.encode()
    return False


def _made_of(
    project: Project, owner: str, definitions: str | None, states: FileStates
) -> str | None:
    """Return a hash of all that decides the state of a corpus; None where it is not known."""
    events = _recorded(project, owner)
    folders = [project.parquet, project.home / "history"]
    if owner == SHARED:
        stored = states.digest([*folders, project.database])
    else:
        stored = states.digest([folder / owner for folder in (*folders, project.reports)])
    if definitions is None or events is None or stored is None:
        return None
    return _hash([definitions, events, stored])


def _recorded(project: Project, owner: str) -> list[Any] | None:
    """Return what tells states of Dagster's records of a corpus apart; None where it is unknown."""
    path = project.dagster / "history" / "runs" / "index.db"
    if owner == SHARED:
        asset, bounds = "asset_key = ?", [json.dumps(list(WAREHOUSE))]
    else:
        asset, begin = "asset_key >= ? AND asset_key < ?", json.dumps([owner])[:-1]
        bounds = [f"{begin},", f"{begin}-"]  # "-" is what comes after ","
    latest = _rows(
        path,
        "SELECT asset_key, last_materialization_timestamp, last_run_id, wipe_timestamp "
        f"FROM asset_keys WHERE {asset} ORDER BY asset_key",
        bounds,
    )
    events = _rows(path, f"SELECT max(id), count(*) FROM event_logs WHERE {asset}", bounds)
    checks = _rows(
        path,
        "SELECT max(id), count(*), total(evaluation_event_storage_id), "
        "total(materialization_event_storage_id), total(execution_status = 'PLANNED') "
        f"FROM asset_check_executions WHERE {asset}",
        bounds,
    )
    if latest is None or events is None or checks is None:
        return None
    return [path.stat().st_ino, latest, events, checks]


def _rows(path: Path, query: str, values: Sequence[Any]) -> list[Any] | None:
    """Return a query's rows from a database that is left as it is; None where it cannot be read.

    A database with a log beside it may be in use; one without is read as the file alone, since
    opening it otherwise would make one.
    """
    if not path.is_file():
        return None
    log = path.with_name(f"{path.name}-wal")
    used = log.exists()
    before = path.stat()
    uri = f"file:{quote(str(path))}?mode=ro{'' if used else '&immutable=1'}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found = connection.execute(query, tuple(values)).fetchall()
    except sqlite3.Error:
        return None
    now = path.stat()
    as_it_was = (before.st_mtime_ns, before.st_size) == (now.st_mtime_ns, now.st_size)
    return found if used or (as_it_was and not log.exists()) else None


# The files of the index.


def folder(project: Project) -> Path:
    """Return where the index lies."""
    return project.home / "index"


def _read(project: Project, owner: str) -> dict[str, Any] | None:
    try:
        found = json.loads((folder(project) / f"{owner}.json").read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and found.get("hash") == _hash([_LAYOUT, found.get("content")])
    return found["content"] if whole else None


def _write(project: Project, owner: str, content: Mapping[str, Any]) -> None:
    text = json.dumps({"content": content, "hash": _hash([_LAYOUT, content])}, ensure_ascii=False)
    path = folder(project) / f"{owner}.json"
    with suppress(OSError):  # what cannot be kept is looked at again
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            files.write_whole(path, text.encode())


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


def _asset(project: Project, key: Key, state: State, views: Mapping[Key, Views]) -> dict[str, Any]:
    node, record, viewed = state.nodes[key], state.records.get(key), views.get(key)
    paths = [path for listed in viewed.files.values() for path in listed] if viewed else []
    return {
        "key": list(key),
        "table": state.tables[key],
        "code_version": node.code_version,
        "deps": [list(dep) for dep in node.deps],
        "absent": state.absent.get(key, ""),
        "record": record and _record(record),
        "failed_errors": list(state.failed_errors.get(key, ())),
        "view": [path.relative_to(project.home).as_posix() for path in paths],
        "left_out": bool(viewed and viewed.left_out),
    }


def _record(record: Record) -> dict[str, Any]:
    return {
        "code_version": record.code_version,
        "data_version": record.data_version,
        "inputs": {name(key): version for key, version in record.inputs.items()},
        "failed_checks": list(record.failed_checks),
        "damage": record.damage,
    }


def _index(project: Project, found: Iterable[Mapping[str, Any]]) -> Index:
    assets = {tuple(asset["key"]): asset for stored in found for asset in stored["assets"]}
    viewed: dict[str, list[Path]] = {}
    for asset in assets.values():
        for path in asset["view"]:
            viewed.setdefault(asset["table"], []).append(project.home / path)
    state = State(
        nodes={key: _node(key, asset) for key, asset in assets.items()},
        tables={key: asset["table"] for key, asset in assets.items()},
        absent={key: asset["absent"] for key, asset in assets.items() if asset["absent"]},
        records=dict(_records(assets)),
        failed_errors={
            key: tuple(a["failed_errors"]) for key, a in assets.items() if a["failed_errors"]
        },
    )
    return Index(state, Views(viewed, any(asset["left_out"] for asset in assets.values())))


def _node(key: Key, asset: Mapping[str, Any]) -> Node:
    return Node(key, asset["code_version"], tuple(tuple(dep) for dep in asset["deps"]))


def _records(assets: Mapping[Key, Mapping[str, Any]]) -> Iterator[tuple[Key, Record]]:
    for key, asset in assets.items():
        if stored := asset["record"]:
            inputs = {tuple(k.split("/")): v for k, v in stored["inputs"].items()}
            checks = tuple(stored["failed_checks"])
            yield key, Record(**{**stored, "inputs": inputs, "failed_checks": checks})
