"""Registering an own corpus: a directory becomes an experiment, with a manifest of its texts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spanbench_pipeline.config import experiment
from spanbench_pipeline.config.experiment import BM25, DENSE, RETRIEVERS, SLUG, Experiment, slug
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import Document
from spanbench_pipeline.corpora import files, manifest, source_table
from spanbench_pipeline.corpora.directory import MAX_BYTES, MAX_DOCUMENTS, DirectorySource
from spanbench_pipeline.formats import strict_json
from spanbench_pipeline.storage import files as writing

MODEL = "sample"
"""The project's experiment whose chunkers, models and configurations an own corpus gets."""
DEPTH = 30
MATCHING = {"bm25": "lucene", "tokenizer": "unicode"}
"""How BM25 matches words in an own corpus: it may be small, and in any language."""
MAX_NAME = 100
HEAD = "# Registered by spanbench adapt; registering the corpus again changes [source] alone.\n"
HEAD_ONCE = "# Registered by spanbench adapt; registering the corpus again replaces this file.\n"
MEND = "Mend the file, or remove it to register the corpus from the start."


def adapt(
    project: Project,
    *,
    docs: Path,
    queries: Path,
    name: str,
    metadata: Path | None = None,
    max_documents: int | None = None,
    max_bytes: int | None = None,
) -> Path:
    """Register a directory corpus as experiment ``name``; the path of its experiment file.

    Everything is read and held to the invariants first; then ``<name>.manifest.json`` and
    ``<name>.toml`` are written to ``Project.registered``. An experiment file that is there already
    is its owner's: only its [source] table is replaced, and a cap that is not given stays as the
    file has it. Raises InputError, with nothing written, for a name that is no slug or is an
    experiment of the project's own, for whatever is wrong with the corpus, and for an experiment
    file that cannot be kept.
    """
    _check_name(project, name)
    path = project.registered / f"{name}.toml"
    held = _held(path)
    source = DirectorySource(
        documents=files.at_home(docs).absolute(),
        queries=files.at_home(queries).absolute(),
        metadata=files.at_home(metadata).absolute() if metadata else None,
        max_documents=max_documents or _cap(held, "max_documents", MAX_DOCUMENTS),
        max_bytes=max_bytes or _cap(held, "max_bytes", MAX_BYTES),
    )
    documents, recorded = source.extracted()
    evalset.assemble(name, documents, source.asked(documents, recorded))
    registered = project.registered / f"{name}.manifest.json"
    table = _source_table(source, registered)
    text = _edited(path, table) if held else _experiment(project, name, table, documents)
    project.registered.mkdir(parents=True, exist_ok=True)
    # A stop between the two leaves an experiment that its manifest refuses, never one unguarded.
    writing.write_whole(registered, manifest.to_bytes(recorded))
    writing.write_whole(path.resolve(), text)  # where the file is a link, what it leads to
    return path


def _held(path: Path) -> Experiment | None:
    """Return the experiment that is registered; InputError where its file is none that can be
    kept.
    """
    if not path.exists():
        return None
    try:
        held = experiment.load(path)
    except InputError as error:
        raise InputError(f"{error}. {MEND}") from error
    if held.source.get("kind") != "directory":
        raise InputError(
            f"{path}: source: kind = {held.source.get('kind')!r}, not 'directory', which is what "
            f"spanbench adapt registers. {MEND}"
        )
    return held


def _cap(held: Experiment | None, key: str, default: int) -> int:
    found = held.source.get(key) if held else None
    return found if type(found) is int and found > 0 else default


def _edited(path: Path, source: Mapping[str, Any]) -> bytes:
    """Return the experiment file that is there, with another [source] table."""
    text = strict_json.decode(files.read_bytes(path), str(path))
    if text.startswith(HEAD_ONCE):  # which would not be true any more
        text = HEAD + text.removeprefix(HEAD_ONCE)
    values = {key: (value, _value(value)) for key, value in source.items()}
    return source_table.replaced(text, values, path).encode("utf-8")


def _check_name(project: Project, name: str) -> None:
    if not SLUG.fullmatch(name) or len(name) > MAX_NAME:
        nearest = slug(name)[:MAX_NAME].rstrip("_")
        raise InputError(
            f"--name {name!r}: must match {SLUG.pattern}: lower-case letters and digits, words "
            f"joined by one _, {MAX_NAME} characters at most"
            + (f"; such as --name {nearest}" if nearest else "")
        )
    if (project.root / "data" / "experiments" / f"{name}.toml").exists():
        raise InputError(
            f"--name {name!r}: the project has an experiment of that name; choose another"
        )


def _source_table(source: DirectorySource, registered: Path) -> dict[str, Any]:
    """Return the [source] table, every setting stated, paths absolute."""
    paths = {
        "documents": source.documents,
        "queries": source.queries,
        "metadata": source.metadata,
        "manifest": registered.absolute(),
    }
    for key, path in paths.items():
        try:
            str(path).encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                f"{key} {str(path)!r}: the path is not UTF-8, so no experiment file can hold it; "
                "rename it"
            ) from error
    return {
        "kind": "directory",
        **{key: str(path) for key, path in paths.items() if path},
        "max_documents": source.max_documents,
        "max_bytes": source.max_bytes,
    }


def _experiment(
    project: Project, name: str, source: Mapping[str, Any], documents: Iterable[Document]
) -> bytes:
    """Return the experiment file: the model's, without filters where no document declares
    metadata.
    """
    path = project.root / "data" / "experiments" / f"{MODEL}.toml"
    model = tomllib.loads(files.read_bytes(path).decode("utf-8"))
    declared = any(document.metadata for document in documents)
    kept = [c for c in model["configurations"] if declared or not c.get("metadata_filters")]
    top = {
        "corpus": name,
        "description": f"own corpus, registered as {name}",
        "baseline": model["baseline"],
        "depth": DEPTH,
    }
    blocks = [_block("", top), _block("[source]", source)]
    for section in ("chunkers", "encoders", "rerankers"):
        for key, settings in model.get(section, {}).items():
            blocks.append(_block(f"[{section}.{_key(key)}]", settings))
    blocks += [_block("[[configurations]]", _matching(configuration)) for configuration in kept]
    return (HEAD + "\n".join(blocks)).encode("utf-8")


def _matching(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration, with ``MATCHING`` where it uses BM25."""
    channels = RETRIEVERS[configuration.get("retriever", DENSE)]
    used = BM25 in channels or configuration.get("routing")
    return {**configuration, **(MATCHING if used else {})}


def _block(header: str, settings: Mapping[str, Any]) -> str:
    """Return a TOML table of plain values."""
    lines = [header] if header else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: str | int | float | bool) -> str:
    """Return a TOML value. JSON writes these alike, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
