"""Which files of a model's folder decide what the model computes.

The library that loads models reads the folder itself and the folders of the modules that
``modules.json`` or a router's configuration names, whatever they are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from spanbench_pipeline.core.errors import InputError

NAMING = ("modules.json", "router_config.json", "config.json")
"""The files of a model's folder that name folders of modules."""

_NUMBERED = re.compile(r"\d+_[^/]*")
_PREFERRED = ("model.safetensors", "model.safetensors.index.json")
"""Where one of these is, the library does not read ``pytorch_model.bin``."""
_TEMPLATES = "additional_chat_templates"
_ALWAYS = frozenset({".json", ".txt", ".model", ".safetensors"})
_NEVER = frozenset(
    {".md", ".rst", ".html", ".pdf", ".ipynb", ".cff"}  # documentation
    | {".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"}
    | {".csv", ".tsv", ".log"}  # what training or an evaluation left behind
    | {".py", ".pyc", ".sh"}  # code: trust_remote_code is never set, so none of it runs
    | {".h5", ".msgpack", ".ot", ".pb"}  # weights for other libraries and engines
    | {".onnx", ".onnx_data", ".xml", ".gguf", ".tflite", ".mlmodel"}
)
_NEVER_NAMES = (
    "README*",
    "LICENSE*",
    "NOTICE*",
    "openvino_*",
    "training_args.bin",
    "optimizer.*",
    "scheduler.*",
    "scaler.*",
    "rng_state*",
    "events.out.tfevents*",
)


def module_folders(folder: Path) -> set[str]:
    """Return the folders that a model's configuration names, relative to its own, ``/`` between
    parts.
    """
    modules, *routers = (_parsed(folder / name) for name in NAMING)
    named = [entry.get("path") for entry in _objects(modules)]
    for router in routers:
        types = router.get("types") if isinstance(router, dict) else None
        named += list(types) if isinstance(types, dict) else []
    found = {PurePosixPath(name) for name in named if isinstance(name, str)}
    # The library refuses a path that leads out of the folder, and loads nothing then.
    return {str(p) for p in found if p.parts and not p.is_absolute() and ".." not in p.parts}


def deciding(names: Iterable[str], folders: Iterable[str]) -> list[str]:
    """Return those of a model's files that decide its output: sorted paths relative to its folder.

    ``names`` are all its files, ``folders`` its ``module_folders``. Files of the folder itself, of
    folders with a number (``1_Pooling``), and all below ``folders`` count; weights once, in the
    format that is preferred. Hidden files, documentation, code, training's leftovers and weights
    for other libraries and engines (``onnx/``, ``openvino/``) do not.
    """
    below = [PurePosixPath(name) for name in {*folders, _TEMPLATES}]
    paths = [p for p in map(PurePosixPath, names) if _is_read(p, below)]
    safe = {p.parent for p in paths if p.name in _PREFERRED}
    return sorted(str(p) for p in paths if _counts(p, beside_safe=p.parent in safe))


def deciding_in(folder: Path) -> list[str]:
    """Return the ``deciding`` files of the model in ``folder``, links followed.

    Raises InputError where a folder that counts cannot be read; into others it does not look.
    """
    folders = module_folders(folder)
    try:
        numbered = {p.name for p in folder.iterdir() if p.is_dir() and _NUMBERED.fullmatch(p.name)}
        found = {path for path in folder.iterdir() if path.is_file()}
        for name in {*folders, *numbered, _TEMPLATES}:
            found.update(_below(folder / name, (folder.resolve(),)))
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return deciding((path.relative_to(folder).as_posix() for path in found), folders)


def _below(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    """Yield every file below ``folder``; a link to one of the folders ``above``, resolved, is
    left.
    """
    here = folder.resolve()
    if here in above or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir():
            yield from _below(path, (*above, here))
        elif path.is_file():
            yield path


def _is_read(path: PurePosixPath, below: list[PurePosixPath]) -> bool:
    if any(part.startswith(".") for part in path.parts):
        return False
    numbered = len(path.parts) == 2 and _NUMBERED.fullmatch(path.parts[0]) is not None
    return len(path.parts) == 1 or numbered or any(f in path.parents for f in below)


def _counts(path: PurePosixPath, *, beside_safe: bool) -> bool:
    if path.suffix in _ALWAYS:
        return True
    if path.match("pytorch_model*.bin"):
        return not beside_safe
    return path.suffix.lower() not in _NEVER and not any(path.match(n) for n in _NEVER_NAMES)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _parsed(path: Path) -> Any:
    """Return a JSON file's value; None where there is none, and no model can be loaded from it
    either.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
